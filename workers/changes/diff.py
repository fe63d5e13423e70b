"""Unified diffs whose cost is bounded, whatever the texts are.

Rule: pure. What both texts begin and end with is set aside; the rest is compared by Myers' greedy algorithm ("An O(ND)
difference algorithm", 1986) until its steps are used up, and then counts as replaced as a whole. A diff is always
right, at worst longer than it had to be. Every worker that writes files imports this: no NamedTuple, which costs six
times as much to define.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import msgspec

CONTEXT: Final = 3
"""Lines that stay around a change."""

DIFFS: Final = 5 * 2**20
"""What all diffs of a call may weigh together: as much as a frame holds, and a message to a client."""

TEXT: Final = 2**22
"""Bytes of the larger one of two texts that are compared."""

LINES: Final = 200_000
"""Lines of it."""

DISTANCE: Final = 1000
"""Lines that may differ before everything between the first and the last change counts as replaced."""


_CONTROLS: Final = bytes([*range(9), *range(11, 32), 127])
_ESCAPE: Final = 5
"""Bytes that an escape takes more than its character."""


class Diff(msgspec.Struct, frozen=True):
    """A text, and how many of its lines did not fit."""

    text: str
    left_out: int


class Budget:
    """Steps that are left for the comparisons of one rehearsal."""

    def __init__(self, steps: int) -> None:
        self.steps = steps


class Edit(msgspec.Struct, frozen=True):
    """Lines `old` to `old_end` became `new` to `new_end`; either may be none."""

    old: int
    old_end: int
    new: int
    new_end: int


def unified(old: str, new: str, limit: int, budget: Budget) -> Diff:
    """Return the difference of two texts, what weighs at most `limit` of it, cut between lines."""
    before, after = _lines(old), _lines(new)
    return _cut([line for near in _near(edits(before, after, budget)) for line in _hunk(before, after, near)], limit)


def edits(before: Sequence[str], after: Sequence[str], budget: Budget) -> list[Edit]:
    """Return what makes one sequence, of lines or of words, the other; too much of it where the budget is used up."""
    start = 0
    ends = min(len(before), len(after))
    while start < ends and before[start] == after[start]:
        start += 1
    same = 0
    while same < ends - start and before[-1 - same] == after[-1 - same]:
        same += 1
    numbers: dict[str, int] = {}
    old_end, new_end = len(before) - same, len(after) - same
    if start in {old_end, new_end}:
        return [Edit(start, old_end, start, new_end)] if old_end != new_end else []
    old = [numbers.setdefault(line, len(numbers)) for line in before[start:old_end]]
    new = [numbers.setdefault(line, len(numbers)) for line in after[start:new_end]]
    shared = set(old) & set(new)
    pairs = _matches(old, new, budget) if shared else []
    return [
        Edit(start + each.old, start + each.old_end, start + each.new, start + each.new_end)
        for each in _between(pairs, len(old), len(new))
    ]


def shortened(diff: Diff, limit: int) -> Diff:
    """Return what weighs at most `limit` of a difference, cut between lines."""
    cut = _cut(_lines(diff.text), limit)
    return Diff(cut.text, diff.left_out + cut.left_out)


def shares(weights: Sequence[int], total: int) -> list[int]:
    """Return how much of a total each gets: all that it needs, or as much as any other that needs more."""
    if sum(weights) <= total:
        return list(weights)
    given = [0] * len(weights)
    left = total
    for place, at in enumerate(sorted(range(len(weights)), key=weights.__getitem__)):
        given[at] = min(weights[at], left // (len(weights) - place))
        left -= given[at]
    return given


def weight(text: str) -> int:
    """Return the bytes that a text takes in a message, with its controls as escapes."""
    if text.isascii() and text.isprintable():
        return len(text)
    data = text.encode("utf-8", "surrogatepass")
    return len(data) + _ESCAPE * (len(data) - len(data.translate(None, _CONTROLS)))


def _cut(lines: Sequence[str], limit: int) -> Diff:
    text = "".join(lines)
    if len(text) * (1 + _ESCAPE) <= limit:  # no character weighs more
        return Diff(text, 0)
    fits = sum(size <= limit for size in accumulate(map(weight, lines)))
    return Diff("".join(lines[:fits]), len(lines) - fits)


def _lines(text: str) -> list[str]:
    """Split at LF only, which stays; whatever else ends lines elsewhere belongs to them."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _matches(old: Sequence[int], new: Sequence[int], budget: Budget) -> list[tuple[int, int]]:
    """Return the lines that stay, as pairs of positions; none if there were too many steps."""
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for distance in range(min(DISTANCE, len(old) + len(new)) + 1):
        trace.append(dict(furthest))
        for diagonal in range(-distance, distance + 1, 2):
            down = diagonal == -distance or (diagonal != distance and furthest[diagonal - 1] < furthest[diagonal + 1])
            at = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            begun = at
            while at < len(old) and at - diagonal < len(new) and old[at] == new[at - diagonal]:
                at += 1
            furthest[diagonal] = at
            budget.steps -= 1 + at - begun
            if at >= len(old) and at - diagonal >= len(new):
                return _path(trace, len(old), len(new))
        if budget.steps - len(furthest) < 0:
            return []
        budget.steps -= len(furthest)
    return []


def _path(trace: Sequence[dict[int, int]], at: int, other: int) -> list[tuple[int, int]]:
    """Go back the way that reached the end, and note its diagonals."""
    pairs: list[tuple[int, int]] = []
    for distance in range(len(trace) - 1, -1, -1):
        furthest = trace[distance]
        diagonal = at - other
        down = diagonal == -distance or (diagonal != distance and furthest[diagonal - 1] < furthest[diagonal + 1])
        previous = diagonal + 1 if down else diagonal - 1
        begin = furthest[previous] if distance else 0
        turn = begin if down or not distance else begin + 1
        while at > turn and other > turn - diagonal:
            at, other = at - 1, other - 1
            pairs.append((at, other))
        if distance:
            at, other = begin, begin - previous
    return pairs[::-1]


def _between(pairs: Sequence[tuple[int, int]], old: int, new: int) -> Iterator[Edit]:
    at = other = 0
    for left, right in (*pairs, (old, new)):
        if left > at or right > other:
            yield Edit(at, left, other, right)
        at, other = left + 1, right + 1


def _near(edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """Group edits whose contexts touch."""
    group: list[Edit] = []
    for edit in edits:
        if group and edit.old - group[-1].old_end > 2 * CONTEXT:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _hunk(before: Sequence[str], after: Sequence[str], edits: Sequence[Edit]) -> list[str]:
    """Return the lines of edits that are shown together, and of their context."""
    first, last = edits[0], edits[-1]
    lead = min(CONTEXT, first.old)
    trail = min(CONTEXT, len(before) - last.old_end)
    old, new = _span(first.old - lead, last.old_end + trail), _span(first.new - lead, last.new_end + trail)
    found = [f"@@ -{old} +{new} @@\n"]
    at = first.old - lead
    for edit in edits:
        found += _marked(" ", before[at : edit.old])
        found += _marked("-", before[edit.old : edit.old_end])
        found += _marked("+", after[edit.new : edit.new_end])
        at = edit.old_end
    return found + _marked(" ", before[at : at + trail])


def _span(begin: int, end: int) -> str:
    """Return a range of lines as unified diffs count it: from 1, or the line before where there is none."""
    count = end - begin
    first = begin + 1 if count else begin
    return str(first) if count == 1 else f"{first},{count}"


def _marked(mark: str, lines: Sequence[str]) -> list[str]:
    """Return lines with a mark each; the last one of a text may have no end, which is said."""
    found = [mark + line for line in lines]
    if found and not found[-1].endswith("\n"):
        found[-1] += "\n\\ No newline at end of file\n"
    return found
