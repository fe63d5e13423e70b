"""The plan of a commit: what it is about to rename, in its staging directory before the first name changes.

Rule: what lies in the staging directory under an operation's number is what was staged, by its inode, or the operation
was done. So the plan and the directory say exactly what a commit that was killed had done, whatever anybody believes.
A plan has the number of its call, which only the call's journal has as well: nobody else can make one up.
"""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from workers.changes.effects import Kind, NodeState
from workers.commit.operations import Operation
from workers.tree.attributes import attributes_of
from workers.tree.root import DIRECTORY, closing, open_beneath
from workers.treediff.comparison import Difference
from workers.treediff.snapshot import Node

PLAN: Final = "plan"
"""The file in the staging directory."""

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PAIR: Final = b"\x92"
"""How msgpack begins an array of two."""
_MOST: Final = 2**28
"""Bytes of a plan that are read."""


class PlannedOperation(NamedTuple):
    """One operation of a plan. Its nodes have a kind, a mode, a size and a time alone."""

    operation: Operation
    inode: int
    """Of what was staged, or of a directory that stays; 0 where the name goes."""
    attributes: dict[str, bytes]
    """Those that a directory had which stays."""

    def is_done(self, staging: int) -> bool:
        """Say whether the rename has taken place, by what lies in the staging directory; of no directory that stays."""
        try:
            now = os.lstat(self.operation.number, dir_fd=staging).st_ino
        except FileNotFoundError:
            now = 0
        return now != self.inode


_Seen = tuple[Kind, int, int, int]
"""Kind, mode, size and time."""


class _PlanLine(msgspec.Struct, array_like=True):
    number: str
    path: bytes
    before: _Seen | None
    after: _Seen | None
    inode: int
    attributes: dict[str, bytes]
    inner: list[tuple[bytes, _Seen]]
    """What is in a new directory."""


def write_plan(root: int, staging: int, number: int, todo: Sequence[Operation], inodes: Mapping[str, int]) -> None:
    """Write the plan of a commit, durable where a part of it could be done alone.

    Args:
        root: a descriptor of the root.
        staging: one of the staging directory.
        number: of the call.
        todo: what is to be done.
        inodes: of what was made for it, by number.

    Raises:
        OSError: it cannot be written, or a directory that is to stay is gone.
    """
    data = _encoder.encode((number, [_row(root, each, inodes.get(each.number, 0)) for each in todo]))
    with closing(os.open(PLAN, _CREATE, 0o600, dir_fd=staging)) as file:
        if os.write(file, data) != len(data):
            raise OSError(errno.ENOSPC, "a short write", PLAN)
        if len(todo) > 1:
            os.fsync(file)


def has_plan(staging: int) -> bool:
    """Say whether there is a plan in a staging directory, of whatever call."""
    try:
        os.stat(PLAN, dir_fd=staging, follow_symlinks=False)
    except OSError:
        return False
    return True


def read_plan(staging: int, number: int) -> list[PlannedOperation] | None:
    """Return the plan in a staging directory; None where there is none of the call with that number."""
    try:
        with closing(open_beneath(staging, PLAN, os.O_RDONLY, links=False)) as file:
            begins = _PAIR + _encoder.encode(number)
            if not number or os.pread(file, len(begins), 0) != begins:
                return None  # of another call, or made up: then it may be of any size
            data = os.pread(file, min(_MOST, os.fstat(file).st_size), 0)
        return [_planned(each) for each in _decoder.decode(data)[1]]
    except (OSError, ValueError):  # msgspec.DecodeError is one
        return None


def _row(root: int, each: Operation, inode: int) -> _PlanLine:
    attributes: dict[str, bytes] = {}
    if each.stays_directory:
        with closing(open_beneath(root, each.path, os.O_PATH | os.O_DIRECTORY, links=False)) as handle:
            inode = os.fstat(handle).st_ino
            attributes = _attributes(handle)
    path, before, after, _inner = each.top
    return _PlanLine(
        each.number, os.fsencode(path), _seen(before), _seen(after), inode, attributes, [*_made_within(each)]
    )


def _attributes(handle: int) -> dict[str, bytes]:
    """Return the attributes of a directory; none where it may not be read: then it has none that are carried."""
    try:
        with closing(os.open(".", DIRECTORY, dir_fd=handle)) as directory:
            return attributes_of(directory)
    except PermissionError:
        return {}


def _made_within(operation: Operation) -> Iterator[tuple[bytes, _Seen]]:
    for path, _before, after, _inner in operation.inner:
        if (seen := _seen(after)) is not None:
            yield os.fsencode(path), seen


def _planned(row: _PlanLine) -> PlannedOperation:
    path = os.fsdecode(row.path)
    inner = (Difference(os.fsdecode(inside), None, _node(seen), True) for inside, seen in row.inner)
    operation = Operation(row.number, Difference(path, _node(row.before), _node(row.after)), tuple(inner))
    return PlannedOperation(operation, row.inode, row.attributes)


def _seen(node: Node | None) -> _Seen | None:
    state = node.state if node is not None else None
    return (state.kind, state.mode, state.size, state.mtime_ns) if state is not None else None


def _node(seen: _Seen | None) -> Node | None:
    return Node(NodeState(*seen), 0, 0, 0, 1) if seen is not None else None


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(tuple[int, list[_PlanLine]])
