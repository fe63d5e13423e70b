"""A command that only looks, tried on the root itself, which is quicker than on an overlay.

Rule: the root is shown read-only, by the mount and by Landlock, and nothing of it is locked, connected to or taken
from a FIFO. What would change anything there, or runs another program than those of the table, is told by the kernel
before it happens: then the command is ended, and rehearsed from the start as if it had not run. So each answer is one
that an overlay would have given. Where the kernel cannot ask, nothing is tried.
"""

import fnmatch
import glob
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from workers import kernel
from workers.confine import mounts
from workers.confine.denylist import Has, Is, Notify
from workers.confine.syscalls import NUMBERS
from workers.errors import CannotRehearse
from workers.shell.command_runner import CommandRunner
from workers.shell.look_table import GIT, PROGRAMS, LookPlan, look_of
from workers.shell.own_programs import own_program
from workers.shell.run.attempts import KERNEL
from workers.shell.run.directory_moves import text_at
from workers.shell.shell_inputs import HOME, SYSTEM, within
from workers.shell.shell_line import Word, simple_commands_of

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LOCKS: Final = (6, 7, 37, 38, 1024)
"""F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_SETLEASE of fcntl(2)."""
_PATH_OF: Final = {
    **dict.fromkeys(("open", "creat", "unlink", "access", "execve"), 0),
    **dict.fromkeys(("openat", "unlinkat", "faccessat", "faccessat2"), 1),
}
"""Which argument of a call is the path that decides; any other call that is told of ends the look."""
TOLD: Final = (
    Notify("open", (Has(1, _WRITES),)),
    Notify("openat", (Has(2, _WRITES),)),
    Notify("access", (Has(1, os.W_OK),)),
    *(Notify(call, (Has(2, os.W_OK),)) for call in ("faccessat", "faccessat2")),
    *map(Notify, ("creat", "unlink", "unlinkat", "execve", "execveat")),
    *map(Notify, ("rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat")),
    *map(Notify, ("mkdir", "mkdirat", "rmdir", "mknod", "mknodat", "truncate", "bind", "flock")),
    *map(Notify, ("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat")),
    *map(Notify, ("utime", "utimes", "futimesat", "utimensat", "file_setattr")),
    *map(Notify, ("setxattr", "lsetxattr", "fsetxattr", "setxattrat")),
    *map(Notify, ("removexattr", "lremovexattr", "fremovexattr", "removexattrat")),
    Notify("fcntl", (Is(1, _LOCKS),)),
)
"""What a look is told of, besides sockets."""
_NAMES: Final = {number: name for name, number in NUMBERS.get(kernel.MACHINE, {}).items()}

_STREAMS: Final = frozenset({"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdout", "/dev/stderr"})
_OWN: Final = ("/tmp", "/var/tmp", "/dev/shm", HOME)  # noqa: S108 - the private ones
_SHELLS: Final = frozenset({"bash", "sh"})
_MOST: Final = 2_000
"""Names that are looked at beforehand."""
_REMEMBERED: Final = 2**20
_MORE: Final = "it does more than look"


def looking(engine: CommandRunner, file: str, arguments: Sequence[bytes]) -> CommandRunner | None:
    """Return an engine that lets a command look; None where it is to be rehearsed at once.

    With that engine, a run raises `CannotRehearse` where the command has to be rehearsed after all.
    """
    look = _look(file, list(map(os.fsdecode, arguments)))
    root = engine.layout.root
    if look is None or any(own_program(each, root, engine.held, engine.own) for each in look.programs):
        return None
    if engine.copies and not _is_plain(look, engine):
        return None
    watch = LookWatch(root, engine.path)
    # What Landlock leaves is to be read, whatever the profile says.
    start = msgspec.structs.replace(engine.start, writable=False, plan=False)
    return msgspec.structs.replace(
        engine, start=start, place=_place(look), filter=engine.look_filter, calls=lambda _group: watch.answer
    )


def _look(file: str, texts: list[str]) -> LookPlan | None:
    """Return what a program looks at, or the line that it is, as a shell, given."""
    if os.path.basename(file) in _SHELLS and texts[1:2] == ["-c"] and len(texts) == 3:  # noqa: PLR2004 - with the line
        commands = simple_commands_of(texts[2])
    else:
        commands = [[Word(each, each, in_shell=False) for each in (os.path.basename(file), *texts[1:])]]
    return look_of(commands) if commands else None


def _place(look: LookPlan) -> Callable[[str], None]:
    """Return what shows the root read-only, unless what the command names is there and no file, directory or link."""

    def show(path: str) -> None:
        try:
            mounts.bind(".", path, mounts.READ_ONLY, beneath=False)
        except OSError as error:  # something is mounted in the root
            raise CannotRehearse("the root cannot be shown read-only") from error
        _refuse_special(look, path)

    return show


def _is_plain(look: LookPlan, engine: CommandRunner) -> bool:
    """Say the same of the root itself, where nothing can be mounted; it must still be where its path leads."""
    try:
        there = os.path.samestat(os.stat(engine.layout.root), os.fstat(engine.start.root_fd))
        _refuse_special(look, engine.layout.root)
    except (OSError, CannotRehearse):
        return False
    return there


def _refuse_special(look: LookPlan, root: str) -> None:
    """Look whether a command names anything but files, directories and links to them.

    Raises:
        CannotRehearse: it does, or names more than can be looked at.
    """
    for count, each in enumerate(_named(look, root)):
        if count >= _MOST or (each and _is_special(each)):
            raise CannotRehearse(_MORE)


def _named(look: LookPlan, root: str) -> Iterator[str]:
    """Yield what a command may name; nothing in the place of each name in a directory that it does not.

    Raises:
        CannotRehearse: it names what is in more than one directory at once.
    """
    for start, pattern in ((os.path.join(root, each), name) for each in look.directories for name in look.names):
        above, name = os.path.split(pattern)
        if glob.has_magic(above):
            raise CannotRehearse(_MORE)
        directory = os.path.join(start, above)
        if not glob.has_magic(name):
            yield os.path.join(directory, name)
            yield from _all_of_git(directory) if name == GIT else ()
            continue
        with suppress(OSError, ValueError), os.scandir(directory) as entries:
            for entry in entries:
                yield entry.path if fnmatch.fnmatchcase(entry.name, name) else ""


def _all_of_git(directory: str) -> Iterator[str]:
    left = [os.path.join(directory, GIT)]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield "" if entry.is_file(follow_symlinks=False) else entry.path
                elif entry.name != "objects":
                    left.append(entry.path)


def _is_special(path: str) -> bool:
    if within(path, "/proc"):  # it may ask what the root is mounted as
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


class LookWatch:
    """What a command that looks may do besides reading: write to its own places, and run programs of the table."""

    def __init__(self, root: str, path: Sequence[str]) -> None:
        self._root = root
        self._path = frozenset(path)
        self._begun = False

    def answer(self, pid: int, number: int, arguments: tuple[int, ...]) -> int:
        """Let the kernel do what a process asks for.

        Raises:
            CannotRehearse: it has to be rehearsed.
        """
        name = _NAMES.get(number, "")
        if name == "execve" and not self._begun:  # our own, whose memory nobody can read
            self._begun = True
            return KERNEL
        try:
            path = text_at(pid, arguments[_PATH_OF[name]])
        except (KeyError, OSError, ValueError, OverflowError):
            raise CannotRehearse(_MORE) from None
        if not (self._may_run(path) if name == "execve" else self._is_own(path)):
            raise CannotRehearse(_MORE)
        return KERNEL

    def _may_run(self, path: str) -> bool:
        directory, program = os.path.split(path)
        of_git = directory.endswith("/git-core") and any(within(directory, each) for each in SYSTEM)
        return program in PROGRAMS and (of_git or directory in self._path)

    def _is_own(self, path: str) -> bool:
        """Say whether a path leads to a place of the command's own, where there are no links."""
        if within(path, self._root) or os.path.normpath(path) != path:
            return False
        return path in _STREAMS or any(within(path, each) for each in _OWN)


class ShownOnce:
    """What is shown of a command that may run twice: what both runs print, once.

    Args:
        show: takes it.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._known = ""

    def show(self, text: str) -> None:
        self._known = (self._known + text)[:_REMEMBERED]
        self._show(text)

    def show_again(self, text: str) -> None:
        """Show what the second run prints, but for what is known as long as it is the same."""
        known = len(self._known)
        is_known = text[:known] == self._known[: len(text)]
        self._known = self._known[len(text) :] if is_known else ""
        if rest := text[known:] if is_known else text:
            self._show(rest)
