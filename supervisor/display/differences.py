"""Differences of texts, for people: unified, every line visible, coloured by word and by language. Pure.

Rule: this is the only renderer of them. `differences` gives lines in one tone, for editors, models and whoever counts;
`painted` gives the same lines, to the character, in pieces; `folded` the first of these. What colours cost is bounded,
and is paid for what is shown alone: lines beyond that have the tone of their side.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Final

import msgspec

from supervisor.acp import extensions
from supervisor.display.code_tones import Span, language_of, spans
from supervisor.display.escape import name, visible
from supervisor.display.fragments import Fragments, Line, marked_rows
from supervisor.display.git_words import own_part
from workers.changes.diff import Budget, edits

LETTERS: Final[Mapping[str, Line]] = MappingProxyType(
    {
        "added": ("green", "A"),
        "modified": ("yellow", "M"),
        "deleted": ("red", "D"),
        "replaced": ("red", "R"),
        "mode": ("cyan", "P"),
        "attributes": ("cyan", "X"),
        "times": ("dim", "T"),
    }
)
"""How each kind of change is marked."""
FOLDED: Final = 20
"""Rows of a call's differences that are shown unasked."""

_MARKS: Final[Mapping[str, str]] = MappingProxyType({"+": "green", "-": "red", "@": "cyan", "\\": "dim"})
_SIDES: Final = ("-", "+")
_WEIGHTS: Final = ("bold", "dim")
"""Tones of code that leave a line that of its side."""
_TABS: Final = "→   "
_SPACES: Final = re.compile(r"[ \t]+(?=\r?\Z)")
_FAR: Final = re.compile(" {61,}")
"""Blanks that push off a screen what follows them."""
_AHEAD: Final = 3
"""So many times the lines that are shown are looked at: what a line has become may stand below."""
_PAINTED: Final = 2000
"""Lines of one text that are coloured by word and by language."""
_LONGEST: Final = 1000
"""Characters of such a line."""
_STEPS: Final = 400_000
"""Steps of the comparisons by word of one text, and of one line."""
_STEPS_OF_LINE: Final = 4000
_ALIKE: Final = 0.4
"""How much of two lines must be the same for one to have become the other."""
_CANDIDATES: Final = 4
"""Lines that are looked at for the one that a line has become."""
_WORD: Final = re.compile("[^\\W\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]+|\\s+|.", re.DOTALL)
"""A word, blanks, or another character; the scripts that have no blanks between words go by character."""
_CHANGED: Final = "reverse"

Place = tuple[int, int]
"""Where something begins in a line, and where it ends."""


class _TextDifference(msgspec.Struct, frozen=True):
    """The difference of one file's texts; what it has above, and below."""

    path: str
    head: Line | None
    counts: str
    lines: tuple[str, ...]
    foot: Line | None


def shown(effects: extensions.ProposedEffects, short: bool = False) -> list[extensions.ChangedName]:
    """Return the changes that are shown by their texts, or of which it is said why not.

    If `short`, those of what was there before come first.
    """
    found = [
        each
        for each in effects.changes
        if (each.protected or not (each.ignored or (effects.git and own_part(each.path))))
        and (each.diff or each.encoding or each.diff_left_out)
    ]
    return sorted(found, key=lambda each: short and each.what == "added")


def differences(effects: extensions.ProposedEffects, short: bool = False) -> Iterator[Line]:
    """Yield the differences of texts, line by line; see `shown` for `short`."""
    for found in _found(shown(effects, short)):
        yield from [found.head] if found.head else ()
        yield from map(_toned, found.lines)
        yield from [found.foot] if found.foot else ()


def painted(
    changes: Iterable[extensions.ChangedName], *, colour: bool = True, lines: int | None = None
) -> Iterator[Fragments]:
    """Yield the differences of changes, line by line, with how many lines of each are new and gone.

    Args:
        changes: that are shown.
        colour: whether words and languages are told apart; else a line has one tone.
        lines: of all differences that are looked at; None for all.
    """
    for found in _found(changes, lines):
        if found.head:
            yield [found.head, *([("dim", found.counts)] if found.counts else [])]
        yield from _painted(found) if colour else ([_toned(line)] for line in found.lines)
        if found.foot:
            yield [found.foot]


def folded(
    changes: Sequence[extensions.ChangedName], columns: int, rows: int, more: str, *, colour: bool = True
) -> Iterator[Fragments]:
    """Yield the first `rows` of the differences of changes, and how many lines are left.

    Args:
        changes: that are shown.
        columns: at which lines are broken; 0 for never.
        rows: at most.
        more: how to see all of it, a clause.
        colour: whether words and languages are told apart; else a line has one tone.
    """
    left = sum(map(_line_count, changes))
    for line in painted(changes, colour=colour, lines=rows * _AHEAD):
        pieces = list(marked_rows(line, columns))
        yield from pieces[:rows]
        rows -= len(pieces)
        left -= rows >= 0
        if rows <= 0:
            break
    if left:
        yield [("dim", f"... {left} more line{'s' * (left > 1)}{more}")]


def _line_count(change: extensions.ChangedName) -> int:
    of_diff = change.diff.removesuffix("\n").count("\n") + 1 if change.diff else 0
    return of_diff + bool(change.diff or change.encoding) + bool(change.diff_left_out)


# --- lines ------------------------------------------------------------------------------------------------------------


def _found(changes: Iterable[extensions.ChangedName], lines: int | None = None) -> Iterator[_TextDifference]:
    """Yield differences, of which so many lines are looked at in all."""
    for change in changes:
        head = foot = None
        kept = change.diff.removesuffix("\n").split("\n", -1 if lines is None else lines)[:lines] if change.diff else []
        if change.diff or change.encoding:
            how = f"  ({name(change.encoding)})" if change.encoding else ""
            head = "bold", f"{LETTERS.get(change.what, ('', '?'))[1]} {name(change.path)}{how}"
        if change.diff_left_out:
            where = "" if change.diff else f"{name(change.path)}: "
            foot = "dim", f"{where}{name(change.diff_left_out)}"
        yield _TextDifference(change.path, head, _counts(change), tuple(map(_with_blanks, kept)), foot)
        lines = None if lines is None else lines - len(kept) - 1
        if lines is not None and lines <= 0:
            return


def _toned(line: str) -> Line:
    return _MARKS.get(line[:1], ""), line


def _counts(change: extensions.ChangedName) -> str:
    """Return how many lines are new and gone, where all of them are told."""
    new, gone = (f"\n{change.diff}".count(f"\n{mark}") for mark in "+-")
    return f"  +{new} -{gone}" if change.diff and not change.diff_left_out else ""


def _with_blanks(line: str) -> str:
    """Return a line of a difference with its tabs, the blanks at its end, and how many are within it."""
    if line[:1] not in "+- ":
        return visible(line)
    text = _FAR.sub(lambda run: f" [{len(run[0])} blanks] ", line[1:])
    text = _SPACES.sub(lambda run: run[0].replace(" ", "·"), text)
    return line[:1] + visible(text).replace("\t", _TABS)


# --- colours ----------------------------------------------------------------------------------------------------------


def _painted(found: _TextDifference) -> Iterator[Fragments]:
    language, budget = language_of(found.path), Budget(_STEPS)
    starts = [at for at, line in enumerate(found.lines[:_PAINTED]) if at and line[:1] == "@"]
    for begin, end in pairwise((0, *starts, min(len(found.lines), _PAINTED))):
        yield from _painted_hunk(found.lines[begin:end], language, budget)
    yield from ([_toned(line)] for line in found.lines[_PAINTED:])


def _painted_hunk(lines: Sequence[str], language: str, budget: Budget) -> Iterator[Fragments]:
    toned: dict[int, list[Span]] = {}
    for side in _SIDES if language else ():
        of_side = [at for at, line in enumerate(lines) if line[:1] in (" ", side)]
        toned |= zip(of_side, _by_line(language, [lines[at][1:] for at in of_side]), strict=True)
    changed = dict(_changed_words(lines, budget))
    for at, line in enumerate(lines):
        base = _MARKS.get(line[:1], "")
        if len(line) > _LONGEST or not (at in toned or at in changed):
            yield [_toned(line)]
            continue
        tones = [base] * len(line)
        for begin, end, tone in toned.get(at, ()):
            tones[begin + 1 : end + 1] = [f"{base} {tone}".strip() if tone in _WEIGHTS else tone] * (end - begin)
        for begin, end in changed.get(at, ()):
            tones[begin + 1 : end + 1] = [f"{base} {_CHANGED}"] * (end - begin)
        cuts = [0, *(end for end in range(1, len(line)) if tones[end] != tones[end - 1]), len(line)]
        yield [(tones[begin], line[begin:end]) for begin, end in pairwise(cuts)]


def _by_line(language: str, lines: Sequence[str]) -> list[list[Span]]:
    """Return the tones of each of some lines that follow each other.

    What goes over several lines has none: a hunk may begin within a text, and then that is where the code is.
    """
    found: list[list[Span]] = [[] for _ in lines]
    text = "\n".join(lines)
    ends = list(accumulate(len(line) + 1 for line in lines))
    at = 0
    for begin, end, tone in spans(language, text):
        while ends[at] <= begin:
            at += 1
        if "\n" not in text[begin:end]:
            first = ends[at] - len(lines[at]) - 1
            found[at].append((begin - first, end - first, tone))
    return found


def _changed_words(lines: Sequence[str], budget: Budget) -> Iterator[tuple[int, list[Place]]]:
    """Yield lines that have become others of the same block, each with where its words are not the other's."""
    gone: list[int] = []
    new: list[int] = []
    for at, line in enumerate((*lines, " ")):
        mark = line[:1]
        if mark == "-" and not new:
            gone.append(at)
        elif mark == "+":
            new.append(at)
        elif mark != "\\":
            yield from _paired(lines, gone, new, budget)
            gone, new = ([at] if mark == "-" else []), []


def _paired(
    lines: Sequence[str], gone: Sequence[int], new: Sequence[int], budget: Budget
) -> Iterator[tuple[int, list[Place]]]:
    first = 0
    for old in gone:
        for at in range(first, min(first + _CANDIDATES, len(new))):
            if found := _compared(lines[old][1:], lines[new[at]][1:], budget):
                yield from zip((old, new[at]), found, strict=True)
                first = at + 1
                break


def _compared(old: str, new: str, budget: Budget) -> tuple[list[Place], list[Place]] | None:
    """Return where the words of two lines differ; None where they have too little in common, or it takes too long."""
    if max(len(old), len(new)) > _LONGEST or budget.steps <= 0:
        return None
    words = _WORD.findall(old), _WORD.findall(new)
    steps = Budget(_STEPS_OF_LINE)
    found = edits(*words, steps)
    budget.steps -= _STEPS_OF_LINE - steps.steps
    places = (
        _places(words[0], [(each.old, each.old_end) for each in found]),
        _places(words[1], [(each.new, each.new_end) for each in found]),
    )
    whole = _ink(old) + _ink(new)
    apart = sum(_ink(text[begin:end]) for text, of in zip((old, new), places, strict=True) for begin, end in of)
    return places if whole and 1 - apart / whole >= _ALIKE else None


def _ink(text: str) -> int:
    """Return how many characters are no blanks."""
    return len("".join(text.split()))


def _places(words: Sequence[str], changed: Iterable[Place]) -> list[Place]:
    """Return where in a line the words from one number to another stand; what only blanks part is one place."""
    ends = [0, *accumulate(map(len, words))]
    text = "".join(words)
    found: list[Place] = []
    for begin, end in changed:
        if begin == end:
            continue
        if found and not text[found[-1][1] : ends[begin]].strip():
            found[-1] = found[-1][0], ends[end]
        else:
            found.append((ends[begin], ends[end]))
    return found
