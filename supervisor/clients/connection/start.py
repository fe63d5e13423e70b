"""Find the daemon of this home, or start one.

Rule: a client that starts the daemon waits for its message, never for a time: the daemon says on a pipe that it
listens, or why it does not. A private daemon serves one client over a socket pair and dies with it. One that runs
already and does not answer is waited for, with a note to the person and a deadline.
"""

import logging
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self, TypeVar

import msgspec

from supervisor.acp import jsonrpc
from supervisor.clients.connection import unreachable
from supervisor.clients.connection.introduction import USUAL, Patience, introduce, warn
from supervisor.clients.connection.link import Link, as_exception
from supervisor.clients.connection.link_events import Listener
from supervisor.config.settings import Settings
from supervisor.daemon.process import lock
from supervisor.errors import ConfigError, DaemonLost, DaemonRefused, StrongroomError
from supervisor.system import unix_socket
from supervisor.system.own_files import own_directory, own_file, secure_home

_TRIES: Final = 3
"""Attempts to reach a daemon, where the one that was found ends before it has answered."""
_STEP: Final = 0.01
_STOP_TIMEOUT: Final = 15.0
_MODULE: Final = (sys.executable, "-P", "-X", "utf8", "-m", "supervisor.daemon")
"""-P: the directory that one happens to stand in is not where the daemon's code comes from."""

_Reached = TypeVar("_Reached", bound="ConnectedDaemon | None")

_NO_FAULTS_THERE: Final = (
    "A daemon runs in this home, and its workers are others' too: faults are only injected into a daemon that began "
    "with them. End it with `strongroom daemon --stop`, or set STRONGROOM_HOME to another directory."
)


class ConnectedDaemon:
    """A link, and the private daemon at its other end if it has one. Use it in `with`."""

    def __init__(self, link: Link, process: "subprocess.Popen[bytes] | None" = None) -> None:
        self.link = link
        self.notices: tuple[str, ...] = ()
        """What the person should know, such as that the daemon is of another version."""
        self._process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def warn(self) -> None:
        """Tell the person on stderr what there is to know, if anybody listens there."""
        warn(self.notices)

    @property
    def private(self) -> bool:
        """Whether the daemon is this client's alone."""
        return self._process is not None

    def close(self) -> None:
        """Leave. A private daemon ends with it, and this returns when it has."""
        self.link.close()
        if self._process is not None:
            if not _ended(self._process, _STOP_TIMEOUT):
                self._process.kill()
            self._process.wait()


def connect(settings: Settings, listener: Listener, client: str, patience: Patience = USUAL) -> ConnectedDaemon:
    """Return a connection to this home's daemon; without one that runs, start it.

    Raises:
        DaemonLost: each that was found went away at once, takes no clients, or does not answer.
        ConfigError: it cannot be started; the text is the daemon's own. Or it is another home's.
    """

    def reach(deadline: float) -> ConnectedDaemon:
        return ConnectedDaemon(Link(find(settings, deadline) or start(settings), listener))

    return _introduced(reach, settings, client, patience)


def connect_running(
    settings: Settings, listener: Listener, client: str, patience: Patience = USUAL
) -> ConnectedDaemon | None:
    """Return a connection to this home's daemon; None where none runs.

    Raises:
        DaemonLost: it takes no clients, or does not answer.
        ConfigError: what listens there is another home's.
    """

    def reach(deadline: float) -> ConnectedDaemon | None:
        connection = find(settings, deadline)
        return None if connection is None else ConnectedDaemon(Link(connection, listener))

    return _introduced(reach, settings, client, patience)


def connect_or_private(
    settings: Settings, listener: Listener, client: str, faults: Path | None = None, patience: Patience = USUAL
) -> ConnectedDaemon:
    """Return a connection to this home's daemon, or to a private one for as long as the connection lives.

    With a fault plan (`faults`, an absolute path) it is always a private one, and the plan holds for that one alone.

    Raises:
        ConfigError: the private daemon cannot start, or a plan was given and a daemon runs, or it is another home's.
        DaemonLost: a daemon runs, and takes no clients or does not answer.
    """

    def reach(deadline: float) -> ConnectedDaemon:
        connection = find(settings, deadline)
        if connection is not None and faults is not None:
            connection.close()
            raise ConfigError(_NO_FAULTS_THERE)
        if connection is not None:
            return ConnectedDaemon(Link(connection, listener))
        ours, theirs = socket.socketpair()
        with theirs:
            level = logging.getLogger("strongroom").getEffectiveLevel()  # it logs as much as the command that runs
            arguments = ["private", str(theirs.fileno()), str(os.getpid()), str(level)]
            arguments += [] if faults is None else [str(faults)]
            process = _spawn(arguments, (theirs.fileno(),), None)
        return ConnectedDaemon(Link(ours, listener), process)

    return _introduced(reach, settings, client, patience)


def _introduced(reach: Callable[[float], _Reached], settings: Settings, client: str, patience: Patience) -> _Reached:
    """Reach a daemon until a deadline and introduce the client; reach again where it is just stopping."""
    deadline = time.monotonic() + patience.end
    for tries_left in reversed(range(_TRIES)):
        connected = reach(deadline)
        if connected is None:
            break
        try:
            connected.notices = introduce(connected.link, settings, client, patience, private=connected.private)
        except (DaemonLost, DaemonRefused) as error:
            connected.close()
            stopping = isinstance(error, DaemonLost) or error.kind == "stopping"
            if connected.private or not stopping or not tries_left or time.monotonic() > deadline:
                raise
        except BaseException:
            connected.close()
            raise
        else:
            break
    return connected


def find(settings: Settings, deadline: float | None = None) -> socket.socket | None:
    """Return a connection to the daemon that holds the lock; wait while it is only about to listen, or to end.

    The wait ends at the deadline, in the seconds of `time.monotonic`; None is the usual patience.

    Raises:
        DaemonLost: it takes longer.
    """
    deadline = time.monotonic() + USUAL.end if deadline is None else deadline
    while (found := lock.running(settings)) is not None:
        problem: OSError | None = None
        try:
            if found.socket:
                return unix_socket.connect(found.socket, wait=False)
        except OSError as error:
            problem = error  # between its lock and its socket, or on its way out; or too many knock
        if time.monotonic() > deadline:
            raise DaemonLost(unreachable.unreachable(settings, found, problem))
        time.sleep(_STEP)
    return None


def start(settings: Settings) -> socket.socket:
    """Start the daemon in the background; return a connection to it, or to one that was quicker.

    Raises:
        ConfigError: it cannot be started; the text is the daemon's own.
        DaemonLost: it has ended again.
    """
    secure_home(settings.home)
    own_directory(settings.logs, "Set XDG_STATE_HOME or STRONGROOM_HOME to a directory of your own.")
    reader, writer = os.pipe()
    with open(reader, "rb") as word:
        errors = own_file(settings.logs / "daemon.err", os.O_WRONLY | os.O_TRUNC)
        try:
            _spawn(["background", str(writer)], (writer,), errors).wait()  # it leaves a child of nobody
        finally:
            os.close(errors)
            os.close(writer)
        said = word.read()  # ends when it listens, or has given up
    if said in (b"listening", b"runs"):
        connection = find(settings)
        if connection is None:
            raise DaemonLost("The daemon went away as soon as it was there. Try again.")
        return connection
    try:
        why = msgspec.json.decode(said, type=jsonrpc.ErrorObject)
    except msgspec.DecodeError as error:
        raise StrongroomError(f"The daemon ended before it listened; {settings.logs} tells why.") from error
    raise as_exception(why)


def _ended(process: "subprocess.Popen[bytes]", timeout: float) -> bool:
    """Wait for a process's end, without looking again and again as `Popen.wait` with a timeout does."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:  # no descriptor to be had
        return False
    try:
        end = select.poll()
        end.register(handle, select.POLLIN)
        return bool(end.poll(timeout * 1000))
    finally:
        os.close(handle)


def _spawn(arguments: Sequence[str], descriptors: tuple[int, ...], errors: int | None) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [*_MODULE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            start_new_session=True,
            pass_fds=descriptors,
        )
    except OSError as error:
        raise ConfigError(f"The daemon cannot be started: {error.strerror}.") from error
