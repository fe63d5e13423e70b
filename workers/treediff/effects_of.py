"""Differences -> the effects that a person and the policy judge.

Rule: what is told fits a frame, and says what it leaves out. The digest stands for all of it, also for what is left
out, so that nothing else is committed under its name.
"""

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from workers.changes.effects import CHANGES, Change, Effects, GitChange, NodeState, What
from workers.tree.git_config import GitConfigs
from workers.tree.git_ignore import GitIgnore
from workers.tree.git_index import SHA1, entries_of, tree_of
from workers.tree.protected import Protection, protection_of
from workers.treediff.comparison import Difference
from workers.treediff.content_diffs import Content, with_diffs
from workers.treediff.folded_names import fold, folder_of
from workers.treediff.snapshot import Node, spoken

_LARGEST_INDEX: Final = 2**26

TOLD: Final = 6 * 2**20
"""Bytes of all changes as they are sent, diffs included: less than a frame, which has to hold the output as well."""

_WITHHELD: Final = stat.S_ISUID | stat.S_ISGID

_RANK: Final[Mapping[What, int]] = MappingProxyType(
    {"replaced": 0, "modified": 0, "mode": 1, "attributes": 1, "times": 3, "added": 2, "deleted": 2}
)
"""What is told first where not all can be."""


def build_effects(
    differences: Sequence[Difference],
    unchanged: Mapping[int, tuple[str, Node]],
    contents: tuple[Content, Content],
    since_ns: int,
    there: Callable[[str], bool],
    configs: GitConfigs | None = None,
    leaves: Callable[[str], bool] = lambda _path: False,
    ignore: GitIgnore | None = None,
    git: tuple[GitChange, ...] = (),
) -> Effects:
    """Return the effects that these differences are.

    Args:
        differences: In any order.
        unchanged: Files of the root that keep their names and get more of them, as a comparison finds them.
        contents: To read a file before (in the root) and after (in the upper layer).
        since_ns: When the command began; what was changed in the root after that was changed by somebody else.
        there: Says of a path whether the root has something there.
        configs: What the repositories of the root name.
        leaves: Says of a path whether the root's links lead it out.
        ignore: What git ignores in the root.
        git: What the differences in git's directories come to.
    """
    left_there = {path for path, _before, after, _inner in differences if after is not None}
    first = _first_names(differences, unchanged)

    def protection(of: Difference) -> Protection:
        """Of a new directory that programs make as their work, the first name alone is asked about."""
        found = protection_of(of.path, lambda path: path in left_there or there(path), configs)
        return found._replace(reason="") if of.inner and found.of_parent else found

    found = [_change(each, first, since_ns, protection(each), leaves) for each in differences]
    if ignore is not None:
        pairs = zip(differences, found, strict=True)
        gone = frozenset(each.path for each in differences if each.after is None)
        behind = _left_behind(differences, gone, git, contents)
        found = [_of_git(each, one, ignore, contents[1], gone, behind) for each, one in pairs]
    return _told(differences, _with_moves(found), contents, git)


def _told(
    differences: Sequence[Difference],
    changes: Sequence[Change],
    contents: tuple[Content, Content],
    git: tuple[GitChange, ...],
) -> Effects:
    """Return the effects with as many changes, and their diffs, as fit."""
    everything = hashlib.sha256()
    for change in sorted(changes, key=_by_path):
        everything.update(_encoder.encode(_lasting(change)))
    left = TOLD
    kept: list[Change] = []
    omitted: list[Change] = []
    by_weight = sorted(zip(differences, changes, strict=True), key=_by_weight)
    for full in with_diffs(by_weight, contents):
        left -= len(_encoder.encode(full))
        if left >= 0 and len(kept) < CHANGES:
            kept.append(full)
        else:
            omitted.append(full)
    return Effects(
        tuple(sorted(kept, key=_by_path)),
        dict(Counter(each.what for each in changes)),
        everything.digest(),
        sum(each.after.size for each in changes if each.after and each.what in {"added", "modified", "replaced"}),
        dict(Counter(each.what for each in omitted)),
        fold(omitted),
        git=git,
    )


def _lasting(change: Change) -> tuple[Any, ...]:
    """Return what makes a change, without the time at which a file was written whose content is known."""
    after, state = change.after, None
    if after is not None:
        at = after.mtime_ns if change.what == "times" or (after.kind == "file" and not after.digest) else 0
        state = after.kind, after.mode, after.size, after.digest, after.target, after.raw_target, after.attributes, at
    return change.path, change.raw_path, change.what, change.before, state, change.same_as, change.withheld


def _of_git(
    difference: Difference,
    change: Change,
    ignore: GitIgnore,
    after: Content,
    gone: frozenset[str],
    behind: Container[str],
) -> Change:
    """Return a change with what git says of the name; `gone` is what is deleted, `behind` what a switch left so."""
    if _ignored(difference, ignore):
        return msgspec.structs.replace(change, ignored=True)
    path = difference.path
    tracked = change.what in ("deleted", "replaced") and path not in behind and ignore.tracks(path)
    if change.what == "modified" and difference.after is not None and path.endswith(".git/index"):
        tracked = ignore.untracks(path, after(path, difference.after, _LARGEST_INDEX) or b"", gone)
    return msgspec.structs.replace(change, tracked=True) if tracked else change


def _left_behind(
    differences: Sequence[Difference], gone: frozenset[str], git: Sequence[GitChange], contents: tuple[Content, Content]
) -> frozenset[str]:
    """Return what is deleted because HEAD is at another commit that was there before, whose index has not got it.

    The index had exactly its content before, so that git keeps that: an edit that nobody has committed is no such one.
    It has exactly what that commit has, where that can be read, or else something was taken out besides.
    """
    head = next((each for each in git if each.kind == "head" and each.new and not each.repository), None)
    if head is None:
        return frozenset()
    index = next((each for each in differences if each.path == ".git/index"), None)
    if index is None or index.before is None or index.after is None:
        return frozenset()
    old = entries_of(contents[0](index.path, index.before, _LARGEST_INDEX) or b"") or {}
    new = entries_of(contents[1](index.path, index.after, _LARGEST_INDEX) or b"")
    if not new or (head.tree and tree_of(new) != head.tree):
        return frozenset()
    left = gone - {os.fsdecode(each) for each in new}
    return frozenset(each.path for each in differences if each.path in left and _is_in(old, each, contents[0]))


def _is_in(index: Mapping[bytes, tuple[bytes, bytes]], difference: Difference, before: Content) -> bool:
    """Say whether an index has a file or a link with the content that it had; of a directory there is none to have."""
    path, node, _after, _inner = difference
    if node is None or node.state.kind == "dir":
        return node is not None
    if (entry := index.get(os.fsencode(path))) is None:
        return False
    state = node.state
    data = before(path, node, state.size) if state.kind == "file" else state.raw_target or os.fsencode(state.target)
    make = hashlib.sha256 if len(entry[1]) > SHA1 else hashlib.sha1
    return data is not None and make(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest() == entry[1]


def _ignored(difference: Difference, ignore: GitIgnore) -> bool:
    """Say whether git ignores what was there, and what is."""
    path, before, after, _inner = difference
    kinds = {each.state.kind == "dir" for each in (before, after) if each is not None}
    return path != "." and all(
        ignore.ignores(path, is_directory=is_directory, was_there=before is not None) for is_directory in kinds
    )


def committable(state: NodeState) -> NodeState:
    """Return a state without what a commit withholds."""
    return msgspec.structs.replace(state, mode=state.mode & ~_WITHHELD) if state.kind == "file" else state


def _first_names(differences: Sequence[Difference], unchanged: Mapping[int, tuple[str, Node]]) -> Mapping[int, str]:
    """Return the first name of each file that has several afterwards, by inode in the upper layer."""
    first = {inode: path for inode, (path, _seen) in unchanged.items()}
    for path, _before, after, _inner in sorted(differences):
        if after is not None and after.links > 1 and after.state.kind == "file":
            first.setdefault(after.inode, path)
    return first


def _change(
    difference: Difference,
    first: Mapping[int, str],
    since_ns: int,
    protection: Protection,
    leaves: Callable[[str], bool],
) -> Change:
    path, before, after, _inner = difference
    text, raw = spoken(path)
    is_file = after is not None and after.state.kind == "file"
    same_as = first.get(after.inode, path) if after is not None and is_file else path
    return Change(
        text,
        difference.what(),
        before.state if before else None,
        committable(after.state) if after else None,
        raw_path=raw,
        protected=protection.protected,
        level=protection.level if protection.level != "told" or not _is_directory(after) else "",  # nobody runs one
        same_as="" if same_as == path else spoken(same_as)[0],
        linked=before is not None and before.state.kind == "file" and before.links > 1,
        withheld=after.state.mode & _WITHHELD if after is not None and is_file else 0,
        leaves=after is not None and after.state.kind == "link" and leaves(_target(path, after.state)),
        meanwhile=changed_since(difference, since_ns),
        loses=_loses(before, after),
    )


def _is_directory(node: Node | None) -> bool:
    return node is not None and node.state.kind == "dir"


def _target(path: str, link: NodeState) -> str:
    """Return where a link leads, as seen from the root."""
    return os.path.join(os.path.dirname(path), os.fsdecode(link.raw_target) if link.raw_target else link.target)


def _loses(before: Node | None, after: Node | None) -> tuple[str, ...]:
    """Return what could not be given back; a directory that stays one keeps what it has."""
    stays = before is not None and after is not None and before.state.kind == after.state.kind == "dir"
    return before.loses if before is not None and not stays else ()


def changed_since(difference: Difference, since_ns: int) -> bool:
    """Say whether somebody else changed what was there, while the command ran.

    A directory that stays one does not count: it changes with every name in it.
    """
    before, after = difference.before, difference.after
    if before is None or before.changed_ns <= since_ns:
        return False
    return before.state.kind != "dir" or after is None or after.state.kind != "dir"


def _with_moves(changes: Sequence[Change]) -> list[Change]:
    """Mark new files that are, by size and digest, the one deleted file of that content."""
    gone: dict[tuple[int, bytes], list[Change]] = {}
    for change in changes:
        if change.what == "deleted" and change.before and change.before.size and change.before.digest:
            gone.setdefault((change.before.size, change.before.digest), []).append(change)
    marked = list(changes)
    for at, change in enumerate(changes):
        after = change.after
        sources = gone.get((after.size, after.digest), []) if after and change.what == "added" else []
        if len(sources) == 1:
            marked[at] = msgspec.structs.replace(change, moved_from=sources.pop().path)
    return marked


def _by_path(change: Change) -> bytes:
    return change.raw_path or change.path.encode()


def _by_weight(pair: tuple[Difference, Change]) -> tuple[bool, bool, int, bytes]:
    """What nobody can be told together comes first."""
    difference, change = pair
    return bool(folder_of(change)), not change.protected, _RANK[change.what], os.fsencode(difference.path)


_encoder: Final = msgspec.msgpack.Encoder()
