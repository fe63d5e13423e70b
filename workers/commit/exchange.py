"""The renames of a commit, each looked at after it was done, and all taken back if one fails.

Rule: nothing is overwritten. What was at a name is exchanged into the staging directory, and only if it is what was
expected does it stay there; what appears somewhere appears only where nothing is. So whoever changes the root at the
same time loses nothing.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from workers.changes.effects import Conflict
from workers.commit.operations import (
    OpenParents,
    Operation,
    conflict,
    is_directory,
    lost_conflicts,
    of_root,
    undigested,
    untouched,
)
from workers.commit.staging import Staging
from workers.commit.temporary_modes import TemporaryModes, loosen, set_mode
from workers.kernel import EXCHANGE, NOREPLACE, hold, rename
from workers.tree.attributes import attributes_of
from workers.tree.root import DIRECTORY, closing, open_beneath
from workers.treediff.snapshot import Node, look, spoken

_HELD: Final = 2**15
"""Files that are held: half of what a process may map (vm.max_map_count)."""


class Overtaken(Exception):
    """Somebody else was faster."""

    def __init__(self, *found: Conflict) -> None:
        super().__init__(found)
        self.conflicts = found


class Exchange:
    """The operations of one commit, as they are done."""

    def __init__(self, parents: OpenParents, upper: int, staging: Staging, held: list[int]) -> None:
        """Take the directories of the root, and a descriptor of the upper layer, which stay the caller's.

        `held` gets what the caller lets go of later (`kernel.let_go`).
        """
        self.stands: list[str] = []
        """What could not be taken back, in words."""
        self.remarks: list[str] = []
        self._upper = upper
        self._staging = staging
        self._held = held
        self._modes = TemporaryModes(parents, staging.fd)
        self._done: list[tuple[Operation, int]] = []
        """With the inode of what was put there; 0 where nothing was."""
        self._altered: list[tuple[Operation, int, dict[str, bytes]]] = []
        """With the mode and attributes that the directory had."""

    def resume(
        self, done: Iterable[tuple[Operation, int]], altered: Iterable[tuple[Operation, int, dict[str, bytes]]]
    ) -> None:
        """Go on where a process was killed: these operations are done, with what is remembered of each."""
        self._modes.resume()
        self._done += done
        self._altered += altered

    def apply(self, operation: Operation) -> None:
        """Do one operation at a name.

        Raises:
            Overtaken: the name is not what it was.
            OSError: the system refuses.
        """
        before, after = operation.top.before, operation.top.after
        inode = self._staging.inodes.get(operation.number, 0)
        if after is not None and after.state.kind == "dir":
            self._modes.remember(operation.path, inode, after.state.mode)
        with self._modes.parent(operation) as parent:
            if is_directory(before):
                self._modes.loosen(parent, operation)
            try:
                if before is None:
                    self._out(operation, parent, NOREPLACE)
                elif after is None:
                    self._in(operation, parent)
                else:
                    self._out(operation, parent, EXCHANGE)
            except FileExistsError:
                raise Overtaken(conflict(operation.path, "somebody else made it")) from None
            except FileNotFoundError:
                raise Overtaken(conflict(operation.path, "it is gone")) from None
            self._done.append((operation, inode))
            found = list(self._unexpected(operation))
            if found:
                raise Overtaken(*found)
            _reset(parent, operation)

    def alter(self, operation: Operation) -> None:
        """Change the mode and attributes of a directory.

        Raises:
            Overtaken: it is not what it was.
            OSError: the system refuses.
        """
        before, after = operation.top.before, operation.top.after
        assert before is not None, "the directory was there"
        assert after is not None, "and stays"
        with self._modes.directory(operation) as directory:
            with self._modes.parent(operation) as parent:  # for a directory may forbid to look at its own name
                now = look(parent, operation.name, of_root(), ours=False)
            if now is None or now.state != before.state or now.inode != os.fstat(directory).st_ino:
                raise Overtaken(conflict(operation.path, "somebody else changed it"))
            self._altered.append((operation, before.state.mode, attributes_of(directory)))
            with closing(open_beneath(self._upper, operation.path, DIRECTORY, links=False)) as source:
                self._modes.give(directory, operation, attributes_of(source), after.state.mode)

    def roll_back(self) -> None:
        """Undo everything that was done, the last first. What cannot be undone is noted in `stands`."""
        self._modes.may_fail = True
        for operation, mode, attributes in reversed(self._altered):
            try:
                with self._modes.directory(operation) as directory:
                    self._modes.give(directory, operation, attributes, mode)
            except OSError:
                self._note(operation, "has another mode or other attributes")
        for operation, inode in reversed(self._done):
            try:
                self._undo(operation, inode)
            except OSError:
                self._lose(operation)
        self._done.clear()
        self._altered.clear()

    def discard(self) -> None:
        """Remove the old content, all of which was seen before. What somebody has put among it since is kept."""
        for operation, _inode in self._done:
            try:
                if is_directory(operation.top.before):
                    self._discard_tree(operation)
                elif operation.top.before is not None:
                    self._remove(operation.number, self._staging.fd, operation.top.before)
            except OSError:
                kept = f"{self._staging.rescue()}/{operation.number}"
                self.remarks.append(f"what somebody put into {_shown(operation)} meanwhile is kept in {kept}")

    def _unexpected(self, operation: Operation) -> Iterator[Conflict]:
        """Compare what came out of the root with what was to come out."""
        before = operation.top.before
        if before is None:
            return
        now = look(self._staging.fd, operation.number, of_root(shows=self._hold), ours=False)
        if now is None or not _is_it(before, now):
            yield conflict(operation.path, "somebody else changed it")
        elif is_directory(before):
            lost = operation.lost()
            ration = of_root(shows=self._hold)
            yield from lost_conflicts(self._staging.fd, operation.number, operation.path, lost, ration)

    def _hold(self, file: int, status: os.stat_result) -> None:
        """Hold a file that came out of the root, while it is open anyway: it goes in name only if it is removed.

        Some file systems take milliseconds to free what a file takes (ext4 that discards and has no journal).
        """
        if status.st_nlink == 1 and status.st_blocks and len(self._held) < _HELD:
            with suppress(OSError):
                self._held.append(hold(file))

    def _undo(self, operation: Operation, inode: int) -> None:
        before, after = operation.top.before, operation.top.after
        with self._modes.parent(operation) as parent:
            if is_directory(after):
                self._modes.loosen(parent, operation)
            if before is None:
                self._in(operation, parent)
                if not self._holds(operation, inode):
                    self._out(operation, parent, NOREPLACE)
                    _reset(parent, operation)
                    self._note(operation, "was changed by somebody else and left as it is")
                return
            self._out(operation, parent, NOREPLACE if after is None else EXCHANGE)
            if after is not None and not self._holds(operation, inode):
                self._out(operation, parent, EXCHANGE)
                _reset(parent, operation)
                self._lose(operation)
            elif before.state.kind == "dir":
                set_mode(parent, operation.name, before.state.mode)

    def _holds(self, operation: Operation, inode: int) -> bool:
        """Say whether what was taken back out of the root is what was put there, and nothing else by now."""
        same = os.lstat(operation.number, dir_fd=self._staging.fd).st_ino == inode
        return same and untouched(self._staging.fd, operation)

    def _out(self, operation: Operation, parent: int, flags: int) -> None:
        rename(self._staging.fd, operation.number, parent, operation.name, flags)

    def _in(self, operation: Operation, parent: int) -> None:
        rename(parent, operation.name, self._staging.fd, operation.number, NOREPLACE)

    def _discard_tree(self, operation: Operation) -> None:
        """Remove names that were seen, and no others: a directory that has more is not empty then."""
        lost = operation.lost()
        places = {f"{operation.number}{path[len(operation.path) :]}": seen for path, seen in lost.items()}
        with OpenParents(self._staging.fd) as parents:
            for place, seen in places.items():
                if seen.state.kind == "dir":
                    above, _, name = place.rpartition("/")
                    loosen(parents.of(above), name)
            for place, seen in sorted(places.items(), reverse=True):
                above, _, name = place.rpartition("/")
                self._remove(name, parents.of(above), seen)
        os.rmdir(operation.number, dir_fd=self._staging.fd)

    def _remove(self, name: str, directory: int, seen: Node) -> None:
        """Remove old content, if it is still what was seen: who had a file open before may have written it since.

        Raises:
            OSError: it is another one, or cannot be removed.
        """
        if seen.state.kind == "dir":
            os.rmdir(name, dir_fd=directory)
            return
        status = os.lstat(name, dir_fd=directory)
        now = status.st_size, status.st_mtime_ns
        if seen.state.kind == "file" and now != (seen.state.size, seen.state.mtime_ns):
            raise OSError(errno.ESTALE, "written since", name)
        os.unlink(name, dir_fd=directory)

    def _note(self, operation: Operation, what: str) -> None:
        self.stands.append(f"{_shown(operation)}: {what}")

    def _lose(self, operation: Operation) -> None:
        """Keep the old content where a person finds it, because it could not go back to its name."""
        if operation.top.before is None:
            self._note(operation, "was added and could not be removed")
        else:
            self._note(operation, f"its old content is in {self._staging.rescue()}/{operation.number}")


def _reset(parent: int, operation: Operation) -> None:
    """Give a new directory, which was writable until it was at its name, its mode."""
    after = operation.top.after
    if after is not None and after.state.kind == "dir":
        set_mode(parent, operation.name, after.state.mode)


def _shown(operation: Operation) -> str:
    return spoken(operation.path)[0]


def _is_it(before: Node, now: Node) -> bool:
    """Say whether an object that was renamed is as it was seen. Renaming changes its st_ctime."""
    if before.state.kind == "dir" and now.state.kind == "dir":
        loose = before.state.mode | stat.S_IRWXU, now.state.mode | stat.S_IRWXU
        return loose[0] == loose[1] and before.state.attributes == now.state.attributes
    if before.state.kind != "file" or (before.state.digest and now.state.digest):
        return before.state == now.state
    same = (before.device, before.inode) == (now.device, now.inode)
    return same and undigested(before.state) == undigested(now.state)
