"""Introduce a client to a daemon that it has reached: with patience, and to the daemon of its own home only.

Rule: a daemon that does not answer is waited for, with a note to the person and a deadline; a private one is waited for
without, for it ends with its client.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, NamedTuple

from supervisor.acp import extensions
from supervisor.clients.connection import unreachable
from supervisor.clients.connection.link import Link
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, DaemonLost
from supervisor.version import VERSION


class Patience(NamedTuple):
    """How long a daemon that holds the lock has to listen, to answer or to end, in seconds."""

    word: float = 5.0
    """After which the person is told that it does not answer."""
    end: float = 15.0
    """After which it is given up."""


USUAL: Final = Patience()


def introduce(link: Link, settings: Settings, client: str, patience: Patience, *, private: bool) -> tuple[str, ...]:
    """Say who we are; return notes for the person about the daemon.

    Raises:
        DaemonLost: it does not answer.
        ConfigError: it is another home's.
    """

    def wait(answer: "Future[bytes]") -> bytes:
        try:
            return answer.result(None if private else patience.word)
        except TimeoutError:
            warn([unreachable.silent(settings)])
        try:
            return answer.result(patience.end - patience.word)
        except TimeoutError:
            raise DaemonLost(unreachable.mute(settings)) from None

    daemon = link.introduce(client, VERSION, wait)
    if not private:
        _same_home(settings, daemon)
    return version_notices(daemon.pid, daemon.version)


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
