"""`strongroom daemon --stop`: ends the daemon of this home, and returns when it has ended.

Rule: a signal goes to the process that holds the lock, or to none: its number alone may be another's by now.
"""

import os
import select
import signal
import time
from typing import Final

from supervisor.config import Settings
from supervisor.daemon.lock import running
from supervisor.errors import StrongroomError

_STEP: Final = 0.01


def stop(settings: Settings) -> int | None:
    """Ask the daemon to end, wait until it has, and return its pid; None where none runs.

    Raises:
        StrongroomError: it runs where it cannot be reached, such as in another PID namespace.
        KeyboardInterrupt: the person waits no longer; it ends nevertheless.
    """
    found = running(settings)
    while found is not None and not found.pid:  # it is just starting or ending
        time.sleep(_STEP)
        found = running(settings)
    if found is None:
        return None
    try:
        process = os.pidfd_open(found.pid)
    except OSError as error:
        raise StrongroomError(f"The daemon (pid {found.pid}) cannot be reached: {error.strerror}.") from error
    try:
        if running(settings) != found:
            return found.pid
        signal.pidfd_send_signal(process, signal.SIGTERM)
        ended = select.poll()
        ended.register(process, select.POLLIN)
        ended.poll()
    except OSError as error:
        raise StrongroomError(f"The daemon (pid {found.pid}) cannot be signalled: {error.strerror}.") from error
    finally:
        os.close(process)
    return found.pid
