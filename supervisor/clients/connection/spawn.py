"""Start the processes of daemons.

Rule: this imports light. A program that finds no daemon begins one here at once, and imports what it speaks with while
that one starts, which takes five times as long; the command line does so before it has read what it is to do. So a
daemon that is begun imports, and does nothing else until it is let go on: by a line on its standard input. Where that
ends without one, nobody wants it.
"""

import os
import socket
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from fcntl import LOCK_NB, LOCK_SH, flock
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from supervisor.config.base_directories import Places, places
from supervisor.system.isolated import environment_without_code, isolated, libraries

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from supervisor.config.settings import Settings

_COMPLETING: Final = "_STRONGROOM_COMPLETE"
"""Is set where a shell asks what can be typed."""
_OURS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""As `safe_files.NO_LINK`, for a file of our own."""


class StartingPrivate(NamedTuple):
    """A private daemon that may still be starting, and our end of its socket pair; the process is ours to wait for."""

    connection: socket.socket
    process: "subprocess.Popen[bytes]"


class StartingBackground(NamedTuple):
    """A daemon that is starting, and the pipe on which it says that it listens, or why not; both are ours to end."""

    word: int
    process: "subprocess.Popen[bytes]"
    """Ends when it has left a child of nobody."""


Starting = StartingPrivate | StartingBackground
_Begun = TypeVar("_Begun", StartingPrivate, StartingBackground)


def begin_early(*, private: bool) -> Starting | None:
    """Begin a daemon for a program that is about to need one, if none runs.

    What cannot be done is left for the time when it is needed, when it can be said why.
    """
    environment = environment_without_code()
    here = places(environment)
    with suppress(OSError):
        if _COMPLETING not in environment and _is_free(here.lock):
            return _begin_private(None) if private else _begin_with_errors(here)
    return None


def _is_free(lock: str) -> bool:
    """Say whether nobody holds a lock, as `lock.running` does."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | _OURS)
    except FileNotFoundError:
        return True
    try:
        flock(descriptor, LOCK_SH | LOCK_NB)
    finally:
        os.close(descriptor)
    return True


def _begin_with_errors(here: Places) -> StartingBackground | None:
    """Begin the daemon of a home where there is a file for its errors already."""
    errors = os.open(here.errors, os.O_WRONLY | os.O_APPEND | _OURS)
    try:
        status = os.fstat(errors)
        ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        return _begin_background(errors) if ours else None
    finally:
        os.close(errors)


def begin_private(faults: "Path | None" = None) -> StartingPrivate:
    """Begin a daemon for this process alone.

    Raises:
        ConfigError: it cannot be started.
    """
    return _let_go_on(_or_why(lambda: _begin_private(faults)))


def begin_background(settings: "Settings", early: StartingBackground | None = None) -> StartingBackground:
    """Begin the daemon of this home, for all clients, or let the one go on that was begun `early`.

    Raises:
        ConfigError: it cannot be started, or one of its directories cannot be used.
    """
    from supervisor.system.safe_files import own_directory, own_file, secure_home

    secure_home(settings.home)
    own_directory(settings.logs, "Set XDG_STATE_HOME or STRONGROOM_HOME to a directory of your own.")
    errors = own_file(settings.logs / "daemon.err", os.O_WRONLY | os.O_TRUNC | os.O_APPEND)
    try:
        return _let_go_on(early or _or_why(lambda: _begin_background(errors, settings.home_variables)))
    finally:
        os.close(errors)


def private_if_none_runs(settings: "Settings", early: Starting | None = None) -> StartingPrivate | None:
    """Begin a private daemon, or let the one go on that was begun `early`; None where one runs that serves all."""
    from supervisor.daemon.process.lock import running

    if running(settings, named=False) is not None:
        forget(early)
        return None
    return _let_go_on(early) if isinstance(early, StartingPrivate) else begin_private()


def background_if_none_runs(settings: "Settings", early: Starting | None = None) -> StartingBackground | None:
    """Begin the daemon of this home, or let the one go on that was begun `early`; None where it runs."""
    from supervisor.daemon.process.lock import running

    if running(settings, named=False) is not None:
        forget(early)
        return None
    return begin_background(settings, early if isinstance(early, StartingBackground) else None)


def forget(early: Starting | None) -> None:
    """End a daemon that was begun and is not needed; it has done nothing."""
    match early:
        case StartingPrivate(connection, process):
            connection.close()
        case StartingBackground(word, process):
            os.close(word)
        case _:
            return
    process.kill()
    process.communicate()


def _let_go_on(starting: _Begun) -> _Begun:
    """Let a daemon that was begun go on; it logs as much as the command that runs."""
    import logging

    assert starting.process.stdin
    with suppress(BrokenPipeError), starting.process.stdin as line:  # one that has ended is found out by what it says
        line.write(b"%d\n" % logging.getLogger("strongroom").getEffectiveLevel())
    return starting


def _or_why(begin: Callable[[], _Begun]) -> _Begun:
    from supervisor.errors import ConfigError

    try:
        return begin()
    except OSError as error:
        raise ConfigError(f"The daemon cannot be started: {error.strerror}.") from error


def _begin_private(faults: "Path | None") -> StartingPrivate:
    ours, theirs = socket.socketpair()
    with ExitStack() as undo, theirs:
        undo.callback(ours.close)
        arguments = ["private", str(theirs.fileno()), str(os.getpid()), *([] if faults is None else [str(faults)])]
        starting = StartingPrivate(ours, _spawn(arguments, (theirs.fileno(),), None))
        undo.pop_all()
    return starting


def _begin_background(errors: int, variables: Sequence[tuple[str, str]] = ()) -> StartingBackground:
    """Begin it; `variables` say where its home is, where this process's own do not."""
    reader, writer = os.pipe()
    with ExitStack() as undo:
        undo.callback(os.close, reader)
        try:
            starting = StartingBackground(reader, _spawn(["background", str(writer)], (writer,), errors, variables))
        finally:
            os.close(writer)
        undo.pop_all()
    return starting


def _spawn(
    arguments: Sequence[str],
    descriptors: tuple[int, ...],
    errors: int | None,
    variables: Sequence[tuple[str, str]] = (),
) -> "subprocess.Popen[bytes]":
    import subprocess  # not for those who find a daemon that runs: it takes 2 ms

    environment = environment_without_code() | dict(variables)
    if home := environment.get("STRONGROOM_HOME"):  # which is relative to another directory there
        environment["STRONGROOM_HOME"] = os.path.join(os.getcwd(), home)
    return subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [*_command(), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        cwd="/",
        env=environment,
        start_new_session=True,
        pass_fds=descriptors,
    )


def _command() -> Sequence[str]:
    """Return the command of a daemon, up to its arguments."""
    return isolated("from supervisor.daemon.__main__ import begin; begin()", "daemon", libraries())
