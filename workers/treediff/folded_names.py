"""Names in directories of packages that are too many to be told one by one: how many, and what all of them are.

Rule: deny by default. Only ordinary files and directories are taken together, in a directory that package managers
fill: no links, no second names, no set-user-ID bits or attributes, nothing that somebody else changed meanwhile, and
nothing in a repository's own directory. Pure.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

from workers.changes.effects import FOLDED, Change, FoldedNames, NodeState, What

PACKAGES: Final = frozenset({"node_modules", ".venv"})
_OTHERS: Final = frozenset({"vendor"})
"""Those that only count where none of the first is above."""
_SPECIAL_BITS: Final = 0o7000
_PLAIN: Final = frozenset({"file", "dir"})


def folder_of(change: Change) -> str:
    """Return the directory of packages that a change may be taken together in; "" where it has to be told."""
    *parts, name = change.path.split("/")
    if PACKAGES.isdisjoint(parts) and _OTHERS.isdisjoint(parts):
        return ""
    if change.raw_path or ".git" in (*parts, name) or not _is_plain(change):
        return ""
    at = next((at for at, part in enumerate(parts) if part in PACKAGES), -1)
    if at < 0:
        at = next((at for at, part in enumerate(parts) if part in _OTHERS), -1)
    return "/".join(parts[: at + 1])


def _is_plain(change: Change) -> bool:
    if change.linked or change.same_as or change.withheld or change.meanwhile or change.leaves or change.loses:
        return False
    return all(map(_is_plain_node, filter(None, (change.before, change.after))))


def _is_plain_node(node: NodeState) -> bool:
    return node.kind in _PLAIN and not node.mode & _SPECIAL_BITS and not node.attributes


def fold(changes: Iterable[Change]) -> tuple[FoldedNames, ...]:
    """Return what is not told of some changes, a directory of packages each; none of what lies in no such one."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        if folder := folder_of(change):
            found.setdefault(folder, []).append(change)
    return tuple(_folded(folder, found[folder]) for folder in sorted(found)[:FOLDED])


def _folded(folder: str, changes: Iterable[Change]) -> FoldedNames:
    totals: dict[What, int] = {}
    size = old = largest = 0
    unread, protected, everything = False, "", hashlib.sha256()
    for change in sorted(changes, key=lambda each: each.path):
        totals[change.what] = totals.get(change.what, 0) + 1
        before, after = change.before, change.after
        size += after.size if after is not None and change.what != "deleted" else 0
        protected = protected or change.protected
        if before is not None and before.kind == "file":
            old, largest = old + before.size, max(largest, before.size)
            unread = unread or not before.digest
        everything.update(_encoder.encode(change))
    return FoldedNames(folder, totals, everything.digest(), size, old, largest, unread, protected)


_encoder: Final = msgspec.msgpack.Encoder()
