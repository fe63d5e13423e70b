"""`strongroom daemon --stop`: end the daemon of this home, and return when it has ended.

Rule: a signal goes to the process that holds the lock, as the kernel says, or to none: a pid alone may be another's by
now, and the lock's file may hold anything. Each wait has a deadline, and a long one a note to the person.
"""

import os
import select
import signal
import time
from typing import Final

from supervisor.clients.connection.patience import USUAL, Patience, is_stopped, unknown, warn
from supervisor.config.settings import Settings
from supervisor.daemon.process.lock import running
from supervisor.errors import StrongroomError

_STEP: Final = 0.01


def stop(settings: Settings, patience: Patience = USUAL) -> int | None:
    """Ask the daemon to end, wait until it has, and return its pid; None where none runs.

    Raises:
        StrongroomError: who it is cannot be told, or it does not end.
        KeyboardInterrupt: the person waits no longer; it ends nevertheless.
    """
    deadline = time.monotonic() + patience.end
    found = running(settings)
    while found is not None and not found.pid:  # it is just starting or ending
        if time.monotonic() > deadline:
            raise StrongroomError(unknown(settings))
        time.sleep(_STEP)
        found = running(settings)
    if found is None:
        return None
    try:
        process = os.pidfd_open(found.pid)
    except OSError as error:
        raise StrongroomError(f"The daemon (pid {found.pid}) cannot be reached: {error.strerror}.") from error
    try:
        now = running(settings)
        if now is None or now.pid != found.pid:
            return found.pid
        signal.pidfd_send_signal(process, signal.SIGTERM)
        _await_end(process, found.pid, settings, patience)
    except OSError as error:
        raise StrongroomError(f"The daemon (pid {found.pid}) cannot be signalled: {error.strerror}.") from error
    finally:
        os.close(process)
    return found.pid


def _await_end(process: int, pid: int, settings: Settings, patience: Patience) -> None:
    """Wait for the end of a process that was asked to end.

    Raises:
        StrongroomError: it is stopped, or takes longer than a daemon may.
    """
    drain = settings.config.daemon.drain_s
    deadline = time.monotonic() + drain + 2 * patience.end
    ended = select.poll()
    ended.register(process, select.POLLIN)
    told = False
    while not is_stopped(pid):
        if ended.poll(patience.word * 1000):
            return
        if time.monotonic() > deadline:
            raise StrongroomError(
                f"The daemon (pid {pid}) was asked to end, and has not. It may hang, or have more time for its turns "
                f"than the {drain:g} s of this configuration: wait, or end it at once with `kill -KILL {pid}`; nothing "
                f"that is recorded is lost. Its log is in {settings.logs}."
            )
        if not told and not is_stopped(pid):
            warn([f"The daemon (pid {pid}) was asked to end; turns that run have {drain:g} s to finish."])
        told = True
    raise StrongroomError(
        f"The daemon (pid {pid}) is stopped, and does nothing until `kill -CONT {pid}` lets it go on. It was asked to "
        "end, and then does."
    )
