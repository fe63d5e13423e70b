"""Sockets that a command is refused, and connections: its kernel asks the worker, which counts them and answers.

It also answers for renames, which it has done where the overlay cannot (`directory_moves`), and `ps`, which looks for
itself in /proc: where that is the machine's, it has another number there.

Rule: this is information and no lock. A socket is refused here exactly as the deny-list refuses it where nobody asks. A
connection is only looked at where the network namespace has nothing to reach but the command's own localhost: what is
meant for elsewhere, a name server above all, is refused at once.
The list is bounded; what does not fit is counted. Where the kernel cannot ask, or the listener cannot be handed over,
commands run all the same, and nothing is counted.

    the command's process: its filter (`notify_sockets`) -> a listener -> this socket -> the worker
    a call -> the kernel stops it -> the worker counts it -> EPERM

Whoever waits for an answer can be killed like anybody else. Source: seccomp_unotify(2).
"""

import errno
import fcntl
import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from workers import kernel
from workers.changes.effects import ATTEMPT, ATTEMPTS, Attempt
from workers.confine import seccomp
from workers.confine.denylist import IsNot, Notify
from workers.confine.syscalls import NUMBERS
from workers.shell.run.directory_moves import begin, memory_at, wanted

_CUT: Final = "..."
_NAMED: Final = 3
"""Attempts that a result names."""

_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, pid, flags; of the call its number, architecture, where it was made, and its arguments."""
_ANSWER: Final = struct.Struct("=QqiI")
"""struct seccomp_notif_resp: id, result, error, flags."""
_CONTINUE: Final = 1
"""SECCOMP_USER_NOTIF_FLAG_CONTINUE: the kernel does what was asked."""
_SOCKET: Final = NUMBERS.get(kernel.MACHINE, {}).get("socket", -1)
_CONNECT: Final = NUMBERS.get(kernel.MACHINE, {}).get("connect", -1)
_ADDRESS: Final = 28
"""Bytes of the longest address that is looked at, struct sockaddr_in6."""
_NAMES: Final = 53
"""The port of name servers."""
_IPV4, _LOOPBACK, _MAPPED = 4, 127, bytes(10) + b"\xff\xff"
"""Bytes of an address, how those of localhost begin, and how they begin in IPv6."""
_HERE: Final = (bytes(4), bytes(16), bytes(15) + b"\1")
"""Other addresses that lead to localhost: 0.0.0.0, :: and ::1."""
_GETPID: Final = NUMBERS.get(kernel.MACHINE, {}).get("getpid", -1)
_LOOKS_FOR_ITSELF: Final = b"ps\n"
_MOVES: Final = 8
"""Directories that are moved at once; what else is asked for meanwhile fails as on any overlay."""
_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
"""SECCOMP_IOCTL_NOTIF_*."""

_FAMILIES: Final[Mapping[int, str]] = MappingProxyType(
    {2: "IPv4", 10: "IPv6", 17: "raw packets", 31: "Bluetooth", 40: "virtual machines"}
)
"""Address families (AF_* of address_families(7)), for people."""


def notify_sockets(families: tuple[int, ...]) -> Notify:
    """Return the row that tells of every socket but those of `families`, instead of the one that denies them."""
    return Notify("socket", (IsNot(0, families),))


CONNECTS: Final = Notify("connect")
"""The row that tells of connections."""

ASKS_ITS_NUMBER: Final = Notify("getpid")
"""The row that tells of processes that ask for their number."""


def hand_over(program: bytes, descriptor: int, *more: int) -> bool:
    """Install a filter that asks, and send its listener over the socket `descriptor`; say whether it could be had.

    With it goes what `more` are, which the caller closes.

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
        socket.send_fds(to_worker, [b"l"], [listener, *more])
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


Answer = Callable[[int, int, tuple[int, ...]], int]
"""Does what a process asks for by a call, of which the number and the arguments come next; the errno, 0 where it has
been done, and `KERNEL` where the kernel shall do it."""

KERNEL: Final = -1


class Attempts:
    """Those of one command."""

    def __init__(
        self, root: str, calls: Answer | None = None, number: int = 0, elsewhere: frozenset[int] = frozenset()
    ) -> None:
        """Begin.

        Args:
            root: where the overlay lies in the command's tree.
            calls: answers instead of `directory_moves`, for every call but those for sockets.
            number: what `ps` is to take for its own in the command's /proc; 0 where it finds itself.
            elsewhere: ports at which localhost means the machine's: a registry may be there.
        """
        self._root = root
        self._number = number
        self._calls = calls
        self._elsewhere = elsewhere | {_NAMES}
        self._moves: dict[int, int] = {}
        """Where the result of a directory's move is read -> the call that waits for it."""
        self._socket, self._theirs = socket.socketpair()
        self._listener = -1
        self.mounts = -1
        """The mount namespace of the command, where it has one of its own; whoever takes it closes it."""
        self._counts: dict[str, int] = {}
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
        """Answer one call, if the poll found that somebody waits."""
        events = dict(found)
        if self._socket.fileno() in events:
            poll.unregister(self._socket)
            if self._take_listener():
                poll.register(self._listener, select.POLLIN)
        elif done := self._moves.keys() & events:
            for result in done:
                poll.unregister(result)
                self._send(self._moves.pop(result), int.from_bytes(os.read(result, 4), "little"))
                os.close(result)
        elif events.get(self._listener, 0) & select.POLLIN:
            self._answer_one(poll)
        elif self._listener in events:  # nobody is left who could ask
            poll.unregister(self._listener)

    def refused(self) -> tuple[Attempt, ...]:
        """Return what was tried, in the order of the first try."""
        return tuple(Attempt("network", what, count) for what, count in self._counts.items())

    def close(self) -> None:
        """Let go of everything; whoever still waits gets ENOSYS."""
        self._socket.close()
        self._theirs.close()
        for result in self._moves:
            os.close(result)
        self._moves.clear()
        if self._listener >= 0:
            os.close(self._listener)
            self._listener = -1

    def _take_listener(self) -> bool:
        try:
            _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 2)
        except OSError:
            return False
        if not descriptors:  # there is none to be had
            return False
        for each in descriptors:
            os.set_inheritable(each, False)
        self._listener, self.mounts = (*descriptors, -1)[:2]
        return True

    def _answer_one(self, poll: select.poll) -> None:
        notification = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notification)
        except OSError:  # whoever asked has been killed
            return
        identity, pid, _, number, _, _, *arguments = _NOTIFICATION.unpack(notification)
        if number == _SOCKET:
            family = arguments[0] & 0xFFFFFFFF
            self.add(_FAMILIES.get(family, f"address family {family}"))
            self._send(identity, errno.EPERM)
        elif number == _CONNECT:
            family = _wanted_elsewhere(pid, arguments[1], arguments[2], self._elsewhere)
            if family:
                self.add(_FAMILIES[family])
            self._send(identity, errno.EPERM if family else 0, 0 if family else _CONTINUE)
        elif number == _GETPID:
            itself = self._number and kernel.read_proc(f"/proc/{pid}/comm") == _LOOKS_FOR_ITSELF
            self._send(identity, 0, 0 if itself else _CONTINUE, self._number if itself else 0)
        elif self._calls is not None:
            error = self._calls(pid, number, tuple(arguments))
            self._send(identity, max(error, 0), _CONTINUE if error == KERNEL else 0)
        elif (result := self._begin_move(pid, number, tuple(arguments))) >= 0:
            self._moves[result] = identity
            poll.register(result, select.POLLIN)
        else:
            self._send(identity, 0, _CONTINUE)

    def _begin_move(self, pid: int, number: int, arguments: tuple[int, ...]) -> int:
        """Begin what moves a directory; return where its result is read, -1 where the kernel does what was asked."""
        move = wanted(pid, number, arguments, self._root) if len(self._moves) < _MOVES else None
        if move is None:
            return -1
        try:
            return begin(move)
        except OSError:  # no process or descriptor is to be had
            return -1
        finally:
            move.close()

    def _send(self, identity: int, error: int, flags: int = 0, result: int = 0) -> None:
        """Let a call end, or be done by the kernel; nobody needs to be there any more."""
        with suppress(OSError):
            fcntl.ioctl(self._listener, _SEND, _ANSWER.pack(identity, result, -error, flags))

    def add(self, what: str) -> None:
        """Count one more of what was tried in vain."""
        what = what if len(what) <= ATTEMPT else what[: ATTEMPT - len(_CUT)] + _CUT
        if what in self._counts or len(self._counts) < ATTEMPTS:
            self._counts[what] = self._counts.get(what, 0) + 1
        else:
            self.left_out += 1


def _wanted_elsewhere(pid: int, address: int, size: int, ports: frozenset[int]) -> int:
    """Return the family of an address that a process wants to reach; 0 where it is on localhost, or cannot be read.

    At `ports` it is elsewhere there, too.
    """
    try:
        said = memory_at(pid, address, min(size & 0xFFFFFFFF, _ADDRESS))
    except (OSError, OverflowError):
        return 0  # the kernel says what is wrong with it
    family = int.from_bytes(said[:2], sys.byteorder)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return 0
    place = said[4:8] if family == socket.AF_INET else said[8:24].removeprefix(_MAPPED)
    here = place in _HERE or (len(place) == _IPV4 and place[0] == _LOOPBACK)
    return 0 if here and int.from_bytes(said[2:4], "big") not in ports else family


def remark(refused: Sequence[Attempt]) -> str:
    """Return what is said of it to whoever reads the result; "" where nothing was refused."""
    failed = [each.what for each in refused if " (" in each.what]  # a place with the broker's reason
    blocked = [each.what for each in refused if " (" not in each.what]
    told = [f"blocked: network ({_listed(blocked)})"] if blocked else []
    return "; ".join([*told, f"not reached: {_listed(failed)}"] if failed else told)


def _listed(what: Sequence[str]) -> str:
    return f"{', '.join(what[:_NAMED])}{', ...' * (len(what) > _NAMED)}"
