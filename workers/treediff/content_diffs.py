"""Diffs of the files that a command changes, and what else their contents say: dependencies, places, scripts.

Rule: what is read and compared is bounded for a whole rehearsal; what there was no room or time for says so.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from workers.changes.diff import DIFFS, TEXT, Budget, Diff, shares, shortened, weight
from workers.changes.effects import Change, new_executable_bits
from workers.changes.readable import HEAD, Compared, Readable, binary, compare, encoding_of, left_out, too_large
from workers.treediff.comparison import Difference
from workers.treediff.folded_names import PACKAGES
from workers.treediff.manifests import (
    LARGEST,
    LARGEST_LOCK,
    UNKNOWN,
    differs_in_dependencies,
    is_manifest,
    names_places,
    new_places,
)
from workers.treediff.snapshot import Node

TEXTS: Final = 2**25
"""Bytes that are read for diffs."""

STEPS: Final = 2_000_000
"""Steps of all comparisons of texts; a second or two."""

Content = Callable[[str, Node, int], bytes | None]
"""Reads the first so many bytes of a file that was seen, if it is still that file."""


def with_diffs(pairs: Sequence[tuple[Difference, Change]], contents: tuple[Content, Content]) -> list[Change]:
    """Return changes with their diffs, or with the reason why they have none; what room there is, they share."""
    compared = _Comparisons(contents)
    found = [compared.of(difference, change) for difference, change in pairs]
    weights = [weight(each.diff.text) for each in found]
    room = shares(weights, DIFFS)
    changes = []
    for (difference, change), seen, needs, gets in zip(pairs, found, weights, room, strict=True):
        diff = seen.diff if needs <= gets else shortened(seen.diff, gets)
        why = seen.why if diff is seen.diff else left_out(diff)
        more: dict[str, Any] = {"diff": diff.text, "diff_left_out": why, "encoding": seen.how}
        more |= {"only_dependencies": True} if compared.is_dependencies(difference) else {}
        more |= {"places": compared.places(difference)}
        more |= {"script": True} if compared.is_script(difference, change) else {}
        changes.append(msgspec.structs.replace(change, **more) if any(more.values()) else change)
    return changes


class _Comparisons:
    """The comparisons of one rehearsal, as long as there is time."""

    def __init__(self, contents: tuple[Content, Content]) -> None:
        self._before, self._after = contents
        self._texts = TEXTS
        self._budget = Budget(STEPS)

    def of(self, difference: Difference, change: Change) -> Compared:
        """Return the difference of a file's content, or the reason why it is not shown."""
        sizes = [each.size for each in (change.before, change.after) if each and each.kind == "file"]
        if not sizes or change.moved_from or change.what not in {"added", "modified", "deleted", "replaced"}:
            return Compared(Diff("", 0))
        old = self._side(difference.path, difference.before, self._before)
        new = self._side(difference.path, difference.after, self._after)
        return compare(old, new, DIFFS, self._budget)

    def is_script(self, difference: Difference, change: Change) -> bool:
        """Say whether a text gets executable bits, and there is time to read it."""
        after = change.after
        if after is None or after.kind != "file" or not new_executable_bits(change.before, after):
            return False
        text = self._side(difference.path, difference.after, self._after)
        return isinstance(text, Readable) and not text.how and "\0" not in text.text

    def is_dependencies(self, difference: Difference) -> bool:
        """Say whether a manifest changes in its dependencies alone."""
        name = difference.path.rpartition("/")[2]
        sides = self._whole(difference) if is_manifest(name) else None
        return sides is not None and differs_in_dependencies(name, *sides)

    def places(self, difference: Difference) -> tuple[str, ...]:
        """Return the places from where a manifest or a lock file would have packages, and had none before."""
        name = difference.path.rpartition("/")[2]
        if not names_places(name) or not PACKAGES.isdisjoint(difference.path.split("/")):
            return ()
        sides = self._whole(difference, LARGEST_LOCK)
        return new_places(name, *sides) if sides is not None else UNKNOWN if difference.after is not None else ()

    def _whole(self, difference: Difference, most: int = LARGEST) -> tuple[bytes, bytes] | None:
        """Return a small file as it was and as it is; None where either is no such file."""
        path, before, after, _inner = difference
        if after is None:
            return None
        if any(each and (each.state.kind != "file" or each.state.size > most) for each in (before, after)):
            return None
        old = b"" if before is None else self._before(path, before, before.state.size)
        new = self._after(path, after, after.state.size)
        return (old, new) if old is not None and new is not None else None

    def _side(self, path: str, seen: Node | None, content: Content) -> Readable | str | None:
        """Return a file as a text, or why it is none; None where there is none."""
        if seen is None or seen.state.kind != "file":
            return None
        size = seen.state.size
        head = b"" if size > TEXT else content(path, seen, HEAD)
        if size > TEXT or head is None:
            return too_large(size) or "it cannot be read"
        if (encoding := encoding_of(head, whole=size <= HEAD)) is None:
            return binary(size)
        if size > self._texts:
            return "there are too many changes to show them all"
        self._texts -= size
        data = head if size <= HEAD else content(path, seen, size)
        return "it cannot be read" if data is None else encoding.decoded(data)
