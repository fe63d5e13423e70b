"""Finding the daemon of this home, or starting one.

Rule: a client that starts the daemon waits for its word, never for a time: the daemon says on a pipe that it listens,
or why it does not. A private daemon serves one client over a socket pair and dies with it.
"""

import logging
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from typing import Final, Self

import msgspec

from supervisor import unix
from supervisor.acp import rpc
from supervisor.clients.link import Link, Listener, as_exception
from supervisor.config import Settings, own_directory, own_file, secure_home
from supervisor.daemon import lock
from supervisor.errors import ConfigError, DaemonLost, StrongroomError

_PATIENCE: Final = 15.0
"""Seconds that another client's daemon, which holds the lock, has to listen."""
_STEP: Final = 0.01
_STOP_TIMEOUT: Final = 15.0
_MODULE: Final = (sys.executable, "-P", "-X", "utf8", "-m", "supervisor.daemon")
"""-P: the directory that one happens to stand in is not where the daemon's code comes from."""


class Connected:
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
        if sys.stderr is not None:
            sys.stderr.writelines(f"note: {notice}\n" for notice in self.notices)

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


def connect(settings: Settings, listener: Listener, client: str, *, starting: bool = True) -> Connected:
    """Return a connection to this home's daemon; without one that runs, start it, unless `starting` is False.

    Raises:
        DaemonLost: none runs, and none was to be started; or it went away at once.
        ConfigError: it cannot be started; the text is the daemon's own.
    """
    connection = find(settings)
    if connection is None and starting:
        connection = start(settings)
    if connection is None:
        raise DaemonLost("No daemon runs. `strongroom daemon` starts one, and so does the console.")
    return _introduced(Connected(Link(connection, listener)), client)


def connect_or_private(settings: Settings, listener: Listener, client: str) -> Connected:
    """Return a connection to this home's daemon, or to a private one for as long as the connection lives.

    Raises:
        ConfigError: the private daemon cannot start.
    """
    connection = find(settings)
    if connection is not None:
        return _introduced(Connected(Link(connection, listener)), client)
    ours, theirs = socket.socketpair()
    with theirs:
        process = _spawn(
            ["private", str(theirs.fileno()), str(os.getpid()), str(_log_level())],
            (theirs.fileno(),),
            None,
        )
    return _introduced(Connected(Link(ours, listener), process), client)


def _introduced(connected: Connected, client: str) -> Connected:
    version = metadata.version("strongroom")
    try:
        daemon = connected.link.introduce(client, version)
    except BaseException:
        connected.close()
        raise
    if daemon.version != version:
        connected.notices = (
            (
                f"The daemon that runs (pid {daemon.pid}) is version {daemon.version}, this is {version}. "
                "`strongroom daemon --stop` ends it when its turns are done; the next client starts the new one."
            ),
        )
    return connected


def find(settings: Settings) -> socket.socket | None:
    """Return a connection to the daemon that holds the lock; wait while it is only about to listen."""
    deadline = time.monotonic() + _PATIENCE
    while (found := lock.running(settings)) is not None:
        try:
            if found.socket:
                return unix.connect(found.socket)
        except OSError:
            pass  # between its lock and its socket, or on its way out
        if time.monotonic() > deadline:
            raise DaemonLost(
                f"A daemon (pid {found.pid}) holds {settings.lock} and does not listen. Its log is in {settings.logs}."
            )
        time.sleep(_STEP)
    return None


def start(settings: Settings) -> socket.socket | None:
    """Start the daemon in the background; return a connection to it, or to one that was quicker."""
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
        return find(settings)
    try:
        why = msgspec.json.decode(said, type=rpc.ErrorObject)
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


def _log_level() -> int:
    """Return what the command that runs logs, so that its private daemon logs as much."""
    return logging.getLogger("strongroom").getEffectiveLevel()


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
