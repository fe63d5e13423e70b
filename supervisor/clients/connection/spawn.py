"""Start the processes of daemons.

Rule: this imports light. A program that finds no daemon begins one here at once, and imports what it speaks with while
that one starts, which takes five times as long.
"""

import logging
import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from supervisor.config.settings import Settings
from supervisor.daemon.process import lock
from supervisor.errors import ConfigError
from supervisor.system.isolated import environment_without_code, isolated
from supervisor.system.safe_files import own_directory, own_file, secure_home

_MODULE: Final = isolated(
    "from supervisor.daemon.__main__ import begin; begin()", "daemon", str(Path(msgspec.__file__).parent.parent)
)


class StartingPrivate(NamedTuple):
    """A private daemon that may still be starting, and our end of its socket pair; the process is ours to wait for."""

    connection: socket.socket
    process: "subprocess.Popen[bytes]"


class StartingBackground(NamedTuple):
    """A daemon that is starting, and the pipe on which it says that it listens, or why not; both are ours to end."""

    word: int
    process: "subprocess.Popen[bytes]"
    """Ends when it has left a child of nobody."""


def begin_private(faults: Path | None = None) -> StartingPrivate:
    """Begin a daemon for this process alone.

    Raises:
        ConfigError: it cannot be started.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        level = logging.getLogger("strongroom").getEffectiveLevel()  # it logs as much as the command that runs
        arguments = ["private", str(theirs.fileno()), str(os.getpid()), str(level)]
        arguments += [] if faults is None else [str(faults)]
        return StartingPrivate(ours, _spawn(arguments, (theirs.fileno(),), None))


def begin_background(settings: Settings) -> StartingBackground:
    """Begin the daemon of this home, for all clients.

    Raises:
        ConfigError: it cannot be started, or one of its directories cannot be used.
    """
    secure_home(settings.home)
    own_directory(settings.logs, "Set XDG_STATE_HOME or STRONGROOM_HOME to a directory of your own.")
    errors = own_file(settings.logs / "daemon.err", os.O_WRONLY | os.O_TRUNC)
    try:
        reader, writer = os.pipe()
        try:
            return StartingBackground(reader, _spawn(["background", str(writer)], (writer,), errors))
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
    finally:
        os.close(errors)


def private_if_none_runs(settings: Settings) -> StartingPrivate | None:
    """Begin a private daemon; None where one runs that serves everybody."""
    return begin_private() if lock.running(settings) is None else None


def background_if_none_runs(settings: Settings) -> StartingBackground | None:
    """Begin the daemon of this home; None where it runs."""
    return begin_background(settings) if lock.running(settings) is None else None


def _spawn(arguments: Sequence[str], descriptors: tuple[int, ...], errors: int | None) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [*_MODULE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            env=environment_without_code(),
            start_new_session=True,
            pass_fds=descriptors,
        )
    except OSError as error:
        raise ConfigError(f"The daemon cannot be started: {error.strerror}.") from error
