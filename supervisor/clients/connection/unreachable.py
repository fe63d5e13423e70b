"""Messages about a daemon that cannot be reached or does not answer: the state, and what to do.

Rule: they say only what the kernel or the file system says now. A pid is named only where the kernel says that this
process holds the lock, for the advice is to signal it.
"""

import os
import stat
from pathlib import Path
from typing import Final

from supervisor.config.settings import Settings
from supervisor.daemon.process.lock import Published, holder, running

_STOPPED: Final = "T"
"""The state of a process that a signal has stopped, proc_pid_stat(5)."""
_ASK: Final = "`strongroom daemon --stop` asks it to end"


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


def unreachable(settings: Settings, found: Published, problem: OSError | None) -> str:
    """Return what to say of a daemon that takes no clients.

    Args:
        settings: say where its lock is.
        found: what it says of itself.
        problem: why its socket could not be connected to, if that was tried.
    """
    if not found.pid:
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
