"""Find the daemon of this home, or start one.

Rule: a client that starts the daemon waits for its message, never for a time: the daemon says on a pipe that it
listens, or why it does not. A private daemon serves one client over a socket pair and dies with it. One that runs
already and does not answer is waited for, with a note to the person and a deadline.
"""

import os
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

import msgspec

from supervisor.acp import jsonrpc
from supervisor.clients.connection.link import Link, as_exception
from supervisor.clients.connection.link_events import Listener
from supervisor.clients.connection.patience import USUAL, Patience, introduce, unreachable, warn
from supervisor.clients.connection.spawn import StartingBackground, StartingPrivate, begin_background, begin_private
from supervisor.config.settings import Settings
from supervisor.daemon.process import lock
from supervisor.errors import ConfigError, DaemonLost, DaemonRefused, StrongroomError
from supervisor.system import unix_socket

if TYPE_CHECKING:
    import subprocess

_TRIES: Final = 3
"""Attempts to reach a daemon, where the one that was found ends before it has answered."""
_STEP: Final = 0.01
_STOP_TIMEOUT: Final = 15.0

_Otherwise = TypeVar("_Otherwise", bound="ConnectedDaemon | None")
_Starting = TypeVar("_Starting", StartingBackground, StartingPrivate)

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


def connect(
    settings: Settings,
    listener: Listener,
    client: str,
    patience: Patience = USUAL,
    starting: StartingBackground | None = None,
) -> ConnectedDaemon:
    """Return a connection to this home's daemon, which may be `starting`; without one that runs, start it.

    Raises:
        DaemonLost: each that was found went away at once, takes no clients, or does not answer.
        ConfigError: it cannot be started; the text is the daemon's own. Or it is another home's.
    """

    def start_it(starting: StartingBackground | None) -> ConnectedDaemon:
        return ConnectedDaemon(Link(start(settings, starting), listener))

    return _introduced(settings, listener, client, patience, start_it, starting)


def connect_running(
    settings: Settings, listener: Listener, client: str, patience: Patience = USUAL
) -> ConnectedDaemon | None:
    """Return a connection to this home's daemon; None where none runs.

    Raises:
        DaemonLost: it takes no clients, or does not answer.
        ConfigError: what listens there is another home's.
    """
    return _introduced(settings, listener, client, patience, lambda _: None)


def connect_or_private(
    settings: Settings,
    listener: Listener,
    client: str,
    faults: Path | None = None,
    patience: Patience = USUAL,
    starting: StartingPrivate | None = None,
) -> ConnectedDaemon:
    """Return a connection to this home's daemon, or to a private one for as long as the connection lives.

    With a fault plan (`faults`, an absolute path) it is always a private one, and the plan holds for that one alone.
    One that is `starting` is taken.

    Raises:
        ConfigError: the private daemon cannot start, or a plan was given and a daemon runs, or it is another home's.
        DaemonLost: a daemon runs, and takes no clients or does not answer.
    """

    def start_private(starting: StartingPrivate | None) -> ConnectedDaemon:
        private = starting or begin_private(faults)
        return ConnectedDaemon(Link(private.connection, listener), private.process)

    return _introduced(settings, listener, client, patience, start_private, starting, alone=faults is not None)


def _introduced(
    settings: Settings,
    listener: Listener,
    client: str,
    patience: Patience,
    otherwise: Callable[[_Starting | None], _Otherwise],
    starting: _Starting | None = None,
    *,
    alone: bool = False,
) -> ConnectedDaemon | _Otherwise:
    """Reach a daemon until a deadline and introduce the client; reach again where it is just stopping.

    `otherwise` is called where none runs, and with one that is `starting`; with `alone`, one that runs is refused.
    """
    deadline = time.monotonic() + patience.end
    for tries_left in reversed(range(_TRIES)):
        connection = find(settings, deadline) if starting is None else None
        if connection is not None and alone:
            connection.close()
            raise ConfigError(_NO_FAULTS_THERE)
        connected = otherwise(starting) if connection is None else ConnectedDaemon(Link(connection, listener))
        starting = None
        if connected is None:
            break
        try:
            connected.notices = introduce(connected.link, settings, client, patience, private=connected.private)
        except BaseException as error:
            connected.close()
            stopping = isinstance(error, DaemonLost) or (isinstance(error, DaemonRefused) and error.kind == "stopping")
            if connected.private or not stopping or not tries_left or time.monotonic() > deadline:
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
    while (found := lock.running(settings, named=False)) is not None:
        problem: OSError | None = None
        try:
            if found.socket:
                return unix_socket.connect(found.socket, wait=False)
        except OSError as error:
            problem = error  # between its lock and its socket, or on its way out; or too many knock
        if time.monotonic() > deadline:
            raise DaemonLost(unreachable(settings, problem))
        time.sleep(_STEP)
    return None


def start(settings: Settings, starting: StartingBackground | None = None) -> socket.socket:
    """Start the daemon in the background, if it is not `starting`; return a connection to it, or to a quicker one.

    Raises:
        ConfigError: it cannot be started; the text is the daemon's own.
        DaemonLost: it has ended again.
    """
    starting = starting or begin_background(settings)
    with open(starting.word, "rb") as word:
        starting.process.wait()
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
