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

from workers.changes.diff import DIFFS, TEXT, Budget, Diff, shares, shortened, weight
from workers.changes.effects import CHANGES, Change, Effects, GitChange, NodeState, What, new_executable_bits
from workers.changes.readable import HEAD, Compared, Readable, binary, compare, encoding_of, left_out, too_large
from workers.tree.git_config import GitConfigs
from workers.tree.git_ignore import GitIgnore
from workers.tree.git_index import entries_of
from workers.tree.protected import Protection, protection_of
from workers.treediff.comparison import Difference
from workers.treediff.folded_names import PACKAGES, fold, folder_of
from workers.treediff.manifests import (
    LARGEST,
    LARGEST_LOCK,
    UNKNOWN,
    differs_in_dependencies,
    is_manifest,
    names_places,
    new_places,
)
from workers.treediff.snapshot import Node, spoken

_LARGEST_INDEX: Final = 2**26

TOLD: Final = 6 * 2**20
"""Bytes of all changes as they are sent, diffs included: less than a frame, which has to hold the output as well."""

TEXTS: Final = 2**25
"""Bytes that are read for diffs."""

STEPS: Final = 2_000_000
"""Steps of all comparisons of texts; a second or two."""

_WITHHELD: Final = stat.S_ISUID | stat.S_ISGID

_RANK: Final[Mapping[What, int]] = MappingProxyType(
    {"replaced": 0, "modified": 0, "mode": 1, "attributes": 1, "times": 3, "added": 2, "deleted": 2}
)
"""What is told first where not all can be."""

Content = Callable[[str, Node, int], bytes | None]
"""Reads the first so many bytes of a file that was seen, if it is still that file."""


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
        behind = _left_behind(differences, gone, git, contents[1])
        found = [_of_git(each, one, ignore, contents[1], gone, behind) for each, one in pairs]
    changes = _with_moves(found)
    everything = hashlib.sha256()
    for change in sorted(changes, key=_by_path):
        everything.update(_encoder.encode(change))
    left = TOLD
    kept: list[Change] = []
    omitted: list[Change] = []
    by_weight = sorted(zip(differences, changes, strict=True), key=_by_weight)
    for full in _with_diffs(by_weight, contents):
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
    differences: Sequence[Difference], gone: frozenset[str], git: Sequence[GitChange], after: Content
) -> frozenset[str]:
    """Return what is deleted because HEAD is at another commit that was there before, whose index has not got it.

    The commit that HEAD was at still has it.
    """
    if not any(each.kind == "head" and each.new and not each.repository for each in git):
        return frozenset()
    index = next((each for each in differences if each.path == ".git/index" and each.after is not None), None)
    data = (after(index.path, index.after, _LARGEST_INDEX) or b"") if index is not None and index.after else b""
    entries = entries_of(data)
    return gone - {os.fsdecode(each) for each in entries} if entries else frozenset()


def _ignored(difference: Difference, ignore: GitIgnore) -> bool:
    """Say whether git ignores what was there, and what is."""
    path, before, after, _inner = difference
    return path != "." and all(
        ignore.ignores(path, is_directory=each.state.kind == "dir", was_there=before is not None)
        for each in (before, after)
        if each is not None
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


def _with_diffs(pairs: Sequence[tuple[Difference, Change]], contents: tuple[Content, Content]) -> list[Change]:
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


def _by_path(change: Change) -> bytes:
    return change.raw_path or change.path.encode()


def _by_weight(pair: tuple[Difference, Change]) -> tuple[bool, bool, int, bytes]:
    """What nobody can be told together comes first."""
    difference, change = pair
    return bool(folder_of(change)), not change.protected, _RANK[change.what], os.fsencode(difference.path)


_encoder: Final = msgspec.msgpack.Encoder()
