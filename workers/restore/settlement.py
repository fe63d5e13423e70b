"""The settlement of a commit that was killed: taken back, unless it was complete, from its own staging directory.

Rule: what was to be changed is known from the pack, or from the journal, never from what lies in the root: anybody may
have put it there. A name that a commit has changed is as after the call, and what was there before lies in the staging
directory under the number of its operation: then it is exchanged back, by the same renames. What somebody else has
changed since is left, and named.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec

from workers.changes.effects import Change, NodeState
from workers.commit.exchange import Exchange
from workers.commit.operations import OpenParents, Operation, is_directory, of_root, operations
from workers.commit.staging import Staging
from workers.commit.staging_directory import BEGUN, RESCUED
from workers.commit.temporary_modes import NOTES, put_back
from workers.restore.pack import PackEntry
from workers.restore.restore_plan import is_after, is_before, look_at, named
from workers.tree.drafts import drafts_in, remove_directory, sweep_drafts
from workers.tree.root import closing, open_beneath
from workers.treediff.comparison import Difference
from workers.treediff.snapshot import Node, look

Fate = Literal["before", "after", "mixed"]
_LISTED: Final = 20
"""Names that are told."""


class Settlement(msgspec.Struct, frozen=True):
    """What became of a commit."""

    fate: Fate
    others: tuple[str, ...] = ()
    """Names that are neither as they were before nor as they were to be; and what of that is kept where."""


def entries_of(changes: Iterable[Change]) -> dict[str, PackEntry]:
    """Return changes as a pack has them; a directory before what is in it."""
    paths = {os.fsdecode(each.raw_path) if each.raw_path else each.path: each for each in changes}
    return {
        path: PackEntry(path, each.before, each.after, each.before.attributes if each.before else {}, False, 0)
        for path, each in paths.items()
    }


def settle(root: int, entries: Mapping[str, PackEntry]) -> Settlement:
    """Take back what a killed commit of these changes has done, if it was not complete; say what there is now.

    Raises:
        OSError: the root cannot be read.
    """
    stands: list[str] = []
    with closing(open_beneath(root, ".", os.O_RDONLY | os.O_DIRECTORY, links=False)) as directory:

        def take(name: str, fd: int) -> None:
            if os.fstat(fd).st_mode & BEGUN or name.startswith(RESCUED):
                with OpenParents(root) as parents:
                    stands.extend(_Killed(parents, Staging(fd, name, root, -1, {}), entries).settle())
            else:
                remove_directory(directory, name)

        with os.scandir(directory) as found:
            rescued = [each.name for each in found if each.name.startswith(RESCUED)]
        sweep_drafts([*drafts_in(directory), *rescued], take, directory)
    with OpenParents(root) as parents:
        now = {path: look_at(parents, path, of_root())[0] for path in entries}
    changed = {path for path, each in entries.items() if not is_before(each.before, _state(now[path]))}
    undone = {path for path, each in entries.items() if not _holds(_node(each.after), now[path])}
    if not changed or not undone:
        return Settlement("before" if not changed else "after", tuple(stands))
    others = sorted(changed & undone or changed)
    return Settlement("mixed", (*stands, *(named(path) for path in others[:_LISTED])))


class _Killed:
    """One staging directory that a killed commit has left, if it is of these changes."""

    def __init__(self, parents: OpenParents, staging: Staging, entries: Mapping[str, PackEntry]) -> None:
        self._parents = parents
        self._staging = staging
        self._entries = entries
        self._operations = {each.number: each for each in _operations(entries)}

    def settle(self) -> Iterator[str]:
        """Take back what was done, unless all was, and remove the directory; yield what stands, in words."""
        staged = self._staged()
        if staged is None:
            return
        put_back(self._parents.root, self._staging.fd)
        done, altered, whole = list[tuple[Operation, int]](), list[tuple[Operation, int, dict[str, bytes]]](), True
        for number, each in self._operations.items():
            before, after = each.top.before, each.top.after
            now = look_at(self._parents, each.path, of_root())[0]
            there = staged.get(number)
            if each.stays_directory:
                whole = whole and _holds(after, now)
                if before is not None and (_is(before, now) or _is(after, now)):
                    altered.append((each, before.state.mode, dict(self._entries[each.path].attributes)))
            elif not _is(after, now):
                whole = False
            elif (before is None and there is None) or (before is not None and _is(before, there)):
                done.append((each, now.inode if now is not None else 0))
        if not whole:
            exchange = Exchange(self._parents, -1, self._staging, [])
            exchange.resume(done, altered)
            exchange.roll_back()
            yield from exchange.stands
            yield from self._left()
        self._staging.sync_root({each.parent for each in self._operations.values()})
        if not self._staging.rescued:
            remove_directory(self._parents.root, self._staging.name)

    def _staged(self) -> dict[str, Node] | None:
        """Return what lies in the directory, by the number of its operation; None if it is of another commit."""
        found: dict[str, Node] = {}
        for name in os.listdir(self._staging.fd):
            each, there = self._operations.get(name), look(self._staging.fd, name, of_root(), ours=False)
            if name == NOTES or there is None:
                continue
            if each is None or not (_is(each.top.before, there) or _is(each.top.after, there)):
                return None
            found[name] = there
        return found

    def _left(self) -> Iterator[str]:
        """Keep old content whose name somebody else has changed since, where a person finds it."""
        for number, there in (self._staged() or {}).items():
            each = self._operations[number]
            if each.top.before is not None and not _is(each.top.after, there):
                yield f"{named(each.path)}: somebody else changed it; before, it was {self._staging.rescue()}/{number}"


def _is(wanted: Node | None, now: Node | None) -> bool:
    """Say whether a name holds what an operation found or made; a commit may have given its owner more rights to it."""
    if wanted is None or now is None:
        return wanted is now
    if wanted.state.kind == now.state.kind == "dir":
        return wanted.state.mode | stat.S_IRWXU == now.state.mode | stat.S_IRWXU
    return is_before(wanted.state, now.state) if wanted.state.mtime_ns == 0 else is_after(wanted.state, now.state)


def _holds(after: Node | None, now: Node | None) -> bool:
    """Say whether a name is as it was to be, a directory's attributes included."""
    if not is_after(_state(after), _state(now)):
        return False
    return after is None or now is None or after.state.kind != "dir" or after.state.attributes == now.state.attributes


def _node(state: NodeState | None) -> Node | None:
    return Node(state, 0, 0, 0, 1) if state is not None else None


def _state(seen: Node | None) -> NodeState | None:
    return seen.state if seen is not None else None


def _operations(entries: Mapping[str, PackEntry]) -> list[Operation]:
    """Return the operations of a commit, numbered as it did: in the order of a comparison."""
    found, inside = [], ""
    for path in sorted(entries, key=lambda each: each.split("/") if each != "." else []):
        before, after = _node(entries[path].before), _node(entries[path].after)
        inner = bool(inside) and path.startswith(inside)
        if not inner:
            inside = "" if is_directory(before) == is_directory(after) else f"{path}/"
        found.append(Difference(path, before, after, inner))
    return operations(found)
