"""Packs of several calls as the pack of one: what each name was before the first, and after the last.

Rule: where one call did not find what the one before had left, others have changed it in between. That name is as the
last call left it, and has no content from before: nothing but what the calls themselves have written is taken back.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from workers.changes.effects import NodeState
from workers.restore.pack import PackEntry
from workers.restore.restore_plan import is_after, is_before
from workers.treediff.snapshot import KEPT


class MergedPacks(NamedTuple):
    """The names of several packs."""

    entries: dict[str, PackEntry]
    """By path, a directory before what is in it."""
    held_by: dict[str, str]
    """The pack that an entry, and its content, is of."""
    between: dict[str, str]
    """Why a name is left: others have changed it between two of the calls."""


def merged(packs: Iterable[tuple[str, Mapping[str, PackEntry]]]) -> MergedPacks:
    """Merge the packs of calls, by their names, the last call first."""
    entries: dict[str, PackEntry] = {}
    held_by: dict[str, str] = {}
    between: dict[str, str] = {}
    room = KEPT
    for name, pack in packs:
        for path, entry in pack.items():
            newer = entries.get(path)
            if path in between:
                continue
            if newer is not None and not _follows(entry.after, newer.before):
                between[path] = "others have changed it between two of the calls"
                continue
            room += len(newer.content or b"") if newer is not None else 0
            if len(entry.content or b"") > room:
                entry = entry._replace(content=None)  # noqa: PLW2901 - it is read again
            room -= len(entry.content or b"")
            entries[path] = entry if newer is None else entry._replace(after=newer.after, gist=newer.gist)
            held_by[path] = name
    found = {path: entries[path] for path in sorted(entries) if not _is_nothing(entries[path])}
    return MergedPacks(found, held_by, {path: why for path, why in between.items() if path in found})


def _follows(after: NodeState | None, found: NodeState | None) -> bool:
    """Say whether a call found a name as the one before had left it; of a known content, the time does not count."""
    known = after is not None and found is not None and bool(after.digest and found.digest)
    return is_after(after, found) or (known and is_before(found, after))


def _is_nothing(entry: PackEntry) -> bool:
    """Say whether a name came with one call and went with another."""
    return entry.before is None and entry.after is None
