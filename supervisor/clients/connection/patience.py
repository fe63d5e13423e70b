"""Patience with a daemon: how it is introduced to, and what is said of one that does not answer or cannot be reached.

Rule: a daemon that does not answer is waited for, with a note to the person and a deadline; a private one is waited for
without, for it ends with its client. Messages say only what the kernel or the file system says now. A pid is named only
where the kernel says that this process holds the lock, for the advice is to signal it.
"""

import os
import stat
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from supervisor.acp import extensions
from supervisor.clients.connection.link import Link
from supervisor.config.settings import Settings
from supervisor.daemon.process.lock import holder, running
from supervisor.errors import ConfigError, DaemonLost
from supervisor.system.foreign_files import ADVICE, foreign_files
from supervisor.version import VERSION


class Patience(NamedTuple):
    """How long a daemon that holds the lock has to listen, to answer or to end, in seconds."""

    word: float = 5.0
    """After which the person is told that it does not answer."""
    end: float = 15.0
    """After which it is given up."""


USUAL: Final = Patience()
_STOPPED: Final = "T"
"""The state of a process that a signal has stopped, proc_pid_stat(5)."""
_ASK: Final = "`strongroom daemon --stop` asks it to end"


def introduce(link: Link, settings: Settings, client: str, patience: Patience, *, private: bool) -> tuple[str, ...]:
    """Say who we are, and what holds of the person's environment; return notes for the person about the daemon.

    Raises:
        DaemonLost: it does not answer.
        ConfigError: it is another home's.
    """

    def wait(answer: "Future[bytes]") -> bytes:
        try:
            return answer.result(None if private else patience.word)
        except TimeoutError:
            warn([silent(settings)])
        try:
            return answer.result(patience.end - patience.word)
        except TimeoutError:
            raise DaemonLost(mute(settings)) from None

    daemon = link.introduce(client, VERSION, wait)
    if not private:
        _same_home(settings, daemon)
    names = link.key_variables if link.is_same_user else ()
    keys = {name: value for name in names if (value := settings.variable(name))}
    link.notify(extensions.VARIABLES, extensions.ClientVariables(settings.person, keys))
    foreign = foreign_files()
    return (*version_notices(daemon.pid, daemon.version), *([f"{foreign} {ADVICE}"] if foreign else []))


def _same_home(settings: Settings, daemon: extensions.Daemon) -> None:
    """Make sure that a daemon is this home's; one that does not say is taken for it.

    Raises:
        ConfigError: it is another's.
    """
    if daemon.home in {"", str(settings.home)}:
        return
    with suppress(OSError):
        if os.path.samefile(daemon.home, settings.home):
            return
    raise ConfigError(
        f"The daemon that listens at this home's socket (pid {daemon.pid}) is that of the home {daemon.home}, and this "
        f"is {settings.home}. Both were given the same socket: end this home's with `strongroom daemon --stop`, and "
        "start it with a --socket of its own."
    )


def version_notices(pid: int, version: str) -> tuple[str, ...]:
    """Return what the person should know of a daemon that says it is of `version`; "" where it says nothing."""
    if version in {"", VERSION}:
        return ()
    who = f" (pid {pid})" if pid else ""
    notice = (
        f"The daemon that runs{who} is version {version}, this is {VERSION}. "
        "`strongroom daemon --stop` ends it when its turns are done; the next client starts the new one."
    )
    return (notice,)


def warn(notices: Sequence[str]) -> None:
    """Tell the person on stderr what there is to know, if anybody listens there."""
    if sys.stderr is not None:
        sys.stderr.writelines(f"note: {notice}\n" for notice in notices)


# --- what is said -----------------------------------------------------------------------------------------------------


def is_stopped(pid: int) -> bool:
    """Say whether a process is stopped, as SIGSTOP does it; False where that cannot be seen."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return words.rpartition(")")[2].split()[:1] == [_STOPPED]


def silent(settings: Settings) -> str:
    """Return what to say of a daemon that was connected to, and has not answered yet."""
    pid = _pid(settings)
    if is_stopped(pid):
        return f"{_who(pid)} does not answer: it is stopped, and `kill -CONT {pid}` lets it go on."
    return f"{_who(pid)} does not answer. It may be stopped or busy; waiting for it."


def mute(settings: Settings) -> str:
    """Return what to say of a daemon that was connected to, and has not answered for too long."""
    pid = _pid(settings)
    if is_stopped(pid):
        what = f": it is stopped, and `kill -CONT {pid}` lets it go on."
    elif pid:
        what = (
            f". It may be very busy, or hang: try again later, or end it. {_ASK}, and `kill -KILL {pid}` ends it in "
            "any case; nothing that is recorded is lost."
        )
    else:
        what = f". It may be stopped, very busy, or hang: try again later. {_held_by(settings)}"
    return f"{_who(pid)} does not answer{what} {_log(settings)}"


def unreachable(settings: Settings, problem: OSError | None) -> str:
    """Return what to say of a daemon that takes no clients.

    Args:
        settings: say where its lock is.
        problem: why its socket could not be connected to, if that was tried.
    """
    found = running(settings)
    if found is None or not found.pid:
        return unknown(settings)
    who = _who(found.pid)
    if not found.socket:
        return (
            f"{who} takes no clients. It is stopping, and turns of it are still running: try again later, or cut them "
            f"off with `kill {found.pid}`, twice. {_log(settings)}"
        )
    if isinstance(problem, BlockingIOError):
        return mute(settings)
    return f"{who} runs, but {_place(Path(found.socket))} {_ASK}. {_log(settings)}"


def unknown(settings: Settings) -> str:
    """Return what to say of a lock whose holder does not say who it is, or says what cannot be."""
    return (
        f"A daemon holds {settings.lock}, and that file does not say who it is and where it listens: it is just "
        "starting or ending, or runs where its process cannot be seen from here, or somebody has changed the file, "
        f"which a daemon puts right within seconds. If this stays so: {_held_by(settings)} {_log(settings)}"
    )


def _place(path: Path) -> str:
    """Say what is wrong with the name of a socket that cannot be connected to."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return (
            f"its socket {path} is gone: somebody has removed it. It listens there again within seconds, unless "
            "something keeps it from that, as its log tells."
        )
    if not stat.S_ISSOCK(mode):
        return f"what is at {path} is not its socket any more. Move that away, and it listens there again in seconds."
    return f"nobody listens at its socket {path}: it is another's, or was put there by hand. Remove it."


def _pid(settings: Settings) -> int:
    found = running(settings)
    return found.pid if found is not None else 0


def _who(pid: int) -> str:
    return f"The daemon (pid {pid})" if pid else "The daemon"


def _held_by(settings: Settings) -> str:
    pid = holder(settings)
    if pid:
        return f"the kernel says that process {pid} holds the lock; `kill {pid}` ends it."
    return f"`fuser -v {settings.lock}` shows which process holds the lock."


def _log(settings: Settings) -> str:
    return f"Its log is in {settings.logs}."
