"""Rehearsal of one command on an overlay of the root.

Rule: until its layer is committed nothing of the root is touched, by whomever. A rehearsal is for one command; all of
that is dead before its effects are determined.

    PID 1     Rehearsal(...)                              layer: effects() -> originals() -> commit() -> close()
    child                    mount(...), the command, end
"""

import errno
import os
import time
from typing import Final

from workers.commit.upper_layer import UpperLayer
from workers.errors import CannotRehearse
from workers.tree.root import open_beneath
from workers.treediff import overlay
from workers.treediff.snapshot import attributes_of

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Rehearsal:
    """The rehearsal of one command."""

    def __init__(self, root_fd: int, root_path: str, scratch: str) -> None:
        """Begin.

        Args:
            root_fd: A descriptor of the root, O_PATH suffices; it stays the caller's.
            root_path: Where the root is in this process's mount namespace.
            scratch: An empty directory on a file system of limited size that has user attributes, which only this
                process can reach; whoever made it removes it.

        Raises:
            CannotRehearse: the scratch directory does not suffice.
        """
        self._root = root_fd
        self._root_path = root_path
        self._upper_path = os.path.join(scratch, "upper")
        self._work_path = os.path.join(scratch, "work")
        since_ns = time.time_ns()
        try:
            self.layer = UpperLayer(root_fd, self._made(), since_ns)
            """What the command changed, once everything of the command is dead."""
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                raise overlay.refusal(error) from error
            raise CannotRehearse(f"it cannot be prepared: {error.strerror}") from error

    def mount(self, at: str) -> None:
        """Mount the overlay over the path `at`; in the command's own mount namespace, before the command.

        Raises:
            CannotRehearse: there cannot be one, and why.
        """
        overlay.mount(self._root, self._root_path, at, self._upper_path, self._work_path)

    def _made(self) -> int:
        """Make both directories; open the upper one, which the command sees as the root, and so has its attributes."""
        root = open_beneath(self._root, ".", os.O_RDONLY | os.O_DIRECTORY, links=False)
        try:
            status = os.fstat(root)
            os.mkdir(self._work_path, 0o700)
            os.mkdir(self._upper_path, 0o700)
            upper = os.open(self._upper_path, _DIRECTORY)
            try:
                os.setxattr(upper, f"{overlay.INTERNAL}probe", b"y")
                os.removexattr(upper, f"{overlay.INTERNAL}probe")
                for name, value in attributes_of(root).items():
                    os.setxattr(upper, name, value)
                os.fchmod(upper, status.st_mode & 0o7777)
                os.utime(upper, ns=(status.st_atime_ns, status.st_mtime_ns))
            except BaseException:
                os.close(upper)
                raise
            return upper
        finally:
            os.close(root)
