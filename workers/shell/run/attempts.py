"""What a command tries and is refused: its kernel asks the worker, which notes it and answers.

Rule: this is information and no lock. A socket is refused here exactly as the deny-list refuses it where nobody asks;
a change by name always goes on, and the kernel's other locks decide. So whoever changes a path in memory while it is
read here misleads the note, never the lock. A path is taken as it is written, no link is followed. The list is bounded;
what does not fit is counted. Where the kernel cannot ask, or who asks cannot be handed over, commands run all the same,
and nothing is noted.

    the command's process: its filter (`confine.noted`) -> a listener -> this socket -> the worker
    a call -> the kernel stops it -> the worker reads what it is about -> goes on, or EPERM

Whoever waits for an answer can be killed like anybody else. Sources: seccomp_unotify(2), proc(5).
"""

import errno
import fcntl
import os
import select
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from workers import kernel
from workers.changes.effects import ATTEMPT, ATTEMPTS, Attempt
from workers.confine import seccomp
from workers.confine.notify_rules import CHANGES, MAKE_DIRECTORIES, MOVES, SOCKETS, Name
from workers.confine.seccomp import Instruction
from workers.confine.syscalls import NUMBERS
from workers.shell.run.process_memory import Memory

_CUT: Final = "..."
_AT_ONCE: Final = 64
"""Calls that are answered before the worker looks at its clock again."""
_WAITS_MS: Final = 1
"""For the next one: whoever makes one such call often makes more."""
_PATH_MAX: Final = 4096

_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, pid, flags; of the call its number, architecture, where it was made, and its arguments."""
_ANSWER: Final = struct.Struct("=QqiI")
"""struct seccomp_notif_resp: id, result, error, flags."""
_ID: Final = struct.Struct("=Q")
_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
_ID_VALID: Final = 0x40082102
_SET_FLAGS: Final = 0x40082104
"""SECCOMP_IOCTL_NOTIF_*."""
_SYNCHRONOUS: Final = 1
"""The worker is woken on the caller's processor: a fourth of the time. Since Linux 6.6."""
_GO_ON: Final = 1
"""SECCOMP_USER_NOTIF_FLAG_CONTINUE."""
_CWD: Final = -100
"""AT_FDCWD."""

_FAST_SINCE: Final = (6, 6)
"""Linux with `_SYNCHRONOUS`. Without it one name costs 65 us here, more than making the file; with it, about 20."""


def tells_paths() -> bool:
    """Say whether this kernel asks fast enough for changes by name to be told as well, not only sockets."""
    release = [int("".join(filter(str.isdigit, part)) or 0) for part in os.uname().release.split(".")[:2]]
    return tuple(release) >= _FAST_SINCE


def hand_over(program: tuple[Instruction, ...], descriptor: int) -> bool:
    """Install a filter that asks, and send its listener over the socket `descriptor`; say whether it could be had.

    Where it could not, nothing is installed. Whether a listener can be sent is tried before there is one: from then on
    the command needs it.

    Raises:
        OSError: it is installed, and could not be sent.
    """
    try:
        _send_to_oneself(descriptor)
        listener = seccomp.install_with_listener(program)
    except OSError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=os.dup(descriptor)) as to_worker:
        socket.send_fds(to_worker, [b"l"], [listener])
    os.close(listener)
    return True


def _send_to_oneself(descriptor: int) -> None:
    """Send a descriptor, whose copy nobody takes.

    Raises:
        OSError: ETOOMANYREFS, this user's processes have more of them on the way, all together, than this process may
            have open (unix(7)). Commands can do that to each other.
    """
    one, other = socket.socketpair()
    with one, other:
        socket.send_fds(one, [b"l"], [descriptor])


class Attempts:
    """Those of one command.

    Args:
        own: directories in which it may change things, absolute and normal.
    """

    def __init__(self, own: Sequence[str]) -> None:
        self._socket, self._theirs = socket.socketpair()
        self._listener = -1
        self._own = tuple((each, each.rstrip("/") + "/") for each in own)
        self._memory = Memory(_PATH_MAX)
        self._wandered = False
        """Whether some process of it has been elsewhere than in these directories."""
        self._counts: dict[tuple[str, str], int] = {}
        self.left_out = 0
        """How many are not among those that are told."""

    @property
    def theirs(self) -> int:
        """What the command's process hands its listener over to; the caller closes nothing."""
        return self._theirs.fileno()

    def register(self, poll: select.poll) -> None:
        """Have a poll watch for what is to be answered; the command's process has been made."""
        self._theirs.close()
        poll.register(self._socket, select.POLLIN)

    def answer(self, found: Sequence[tuple[int, int]], poll: select.poll) -> None:
        """Answer whoever waits, a few of them, if the poll found that somebody does."""
        events = dict(found)
        if self._socket.fileno() in events:
            poll.unregister(self._socket)
            if self._take_listener():
                poll.register(self._listener, select.POLLIN)
        elif events.get(self._listener, 0) & select.POLLIN:
            alone = [(self._listener, select.POLLIN)]
            self._answer_one()
            for _ in range(_AT_ONCE):
                if poll.poll(_WAITS_MS) != alone:
                    break
                self._answer_one()
        elif self._listener in events:  # nobody is left who could ask
            poll.unregister(self._listener)

    def refused(self) -> tuple[Attempt, ...]:
        """Return what was tried, in the order of the first try."""
        return tuple(Attempt(kind, what, count) for (kind, what), count in self._counts.items())  # type: ignore[arg-type]

    def close(self) -> None:
        """Let go of everything; whoever still waits gets ENOSYS."""
        self._socket.close()
        self._theirs.close()
        if self._listener >= 0:
            os.close(self._listener)
            self._listener = -1

    def _take_listener(self) -> bool:
        try:
            _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        except OSError:
            return False
        if not descriptors:  # there is none to be had
            return False
        self._listener = descriptors[0]
        os.set_inheritable(self._listener, False)
        with suppress(OSError):
            fcntl.ioctl(self._listener, _SET_FLAGS, _SYNCHRONOUS)
        return True

    def _answer_one(self) -> None:
        notification = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notification)
        except OSError:  # whoever asked has been killed
            return
        identity, process, _, number, _, _, *arguments = _NOTIFICATION.unpack(notification)
        answer = _ANSWER.pack(identity, 0, 0, _GO_ON)
        if number == _SOCKET:
            family = arguments[0] & 0xFFFFFFFF
            self.note("network", SOCKETS.get(family, f"a socket of family {family}"))
            answer = _ANSWER.pack(identity, 0, -errno.EPERM, 0)
        elif number in _MOVES:
            self._follow(process, number, arguments[0])
        else:
            self._look(identity, process, number, arguments)
        with suppress(OSError):
            fcntl.ioctl(self._listener, _SEND, answer)

    def _look(self, identity: int, process: int, number: int, arguments: Sequence[int]) -> None:
        """Note what of a change by name lies outside."""
        for name in _CHANGES[number]:
            path = self._memory.text(process, arguments[name.path])
            directory = _CWD if name.directory is None else _signed(arguments[name.directory])
            if path[:1] != b"/" and directory == _CWD and b".." not in path and not self._wandered:
                continue  # as nearly all are
            whole = _whole(process, path, directory)
            if whole and self._is_outside(whole, makes_way=number in _MAKE_DIRECTORIES) and self._still_asks(identity):
                self.note("path", whole)

    def _follow(self, process: int, number: int, where: int) -> None:
        """See where a process goes."""
        if _MOVES[number] == "chdir":
            whole = _whole(process, self._memory.text(process, where), _CWD)
        else:
            whole = _whole(process, b".", _signed(where))
        self._wandered = self._wandered or self._is_outside(whole)

    def _is_outside(self, path: str, *, makes_way: bool = False) -> bool:
        beneath = path.rstrip("/") + "/"
        for own, own_beneath in self._own:
            if path == own or path.startswith(own_beneath) or (makes_way and own.startswith(beneath)):
                return False
        return True

    def _still_asks(self, identity: int) -> bool:
        """Say whether what was read was really of the process that asked, not of a later one with its number."""
        try:
            fcntl.ioctl(self._listener, _ID_VALID, _ID.pack(identity))
        except OSError:
            return False
        return True

    def note(self, kind: str, what: str) -> None:
        """Add one to what was tried in vain."""
        key = kind, what if len(what) <= ATTEMPT else what[: ATTEMPT - len(_CUT)] + _CUT
        if key in self._counts or len(self._counts) < ATTEMPTS:
            self._counts[key] = self._counts.get(key, 0) + 1
        else:
            self.left_out += 1


def remarks(refused: Sequence[Attempt]) -> list[str]:
    """Return what is said of it to whoever reads the result."""
    named = {kind: [each.what for each in refused if each.kind == kind] for kind in ("network", "path")}
    return [
        f"it tried to {_WORDS[kind]}, and was refused: {', '.join(what[:_NAMED])}{', ...' * (len(what) > _NAMED)}"
        for kind, what in named.items()
        if what
    ]


_NAMED: Final = 3
_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {"network": "reach the network", "path": "change what lies outside of the root"}
)

_NUMBERS: Final[Mapping[str, int]] = NUMBERS.get(kernel.MACHINE, {})
_SOCKET: Final = _NUMBERS.get("socket")
_CHANGES: Final[Mapping[int, tuple[Name, ...]]] = MappingProxyType(
    {_NUMBERS[call]: names for call, names in CHANGES.items() if call in _NUMBERS}
)
_MAKE_DIRECTORIES: Final = frozenset(_NUMBERS[call] for call in MAKE_DIRECTORIES if call in _NUMBERS)
_MOVES: Final[Mapping[int, str]] = MappingProxyType({_NUMBERS[call]: call for call in MOVES if call in _NUMBERS})


def _whole(process: int, path: bytes, directory: int) -> str:
    """Return a path of another process, absolute, normal and printable; empty where it says nothing."""
    if not path:
        return ""
    try:
        if path[:1] != b"/":
            at = f"/proc/{process}/cwd" if directory == _CWD else f"/proc/{process}/fd/{directory}"
            path = os.fsencode(os.readlink(at)) + b"/" + path
    except OSError:
        return ""
    text = "/" + os.path.normpath(path).decode("utf-8", "backslashreplace").lstrip("/")
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _signed(argument: int) -> int:
    """Return the int that an argument's low half is."""
    low = argument & 0xFFFFFFFF
    return low - 2**32 if low >= 2**31 else low
