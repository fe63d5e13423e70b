"""Guard of the daemon's address: its socket at its name, and its entry in the lock's file.

Rule: whoever takes either away keeps clients out for seconds only. What has taken the socket's place is left there, and
a home that is not ours any more gets no socket.
"""

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import trio

from supervisor.daemon.process.listener import Listening, listening
from supervisor.daemon.process.lock import Lock
from supervisor.errors import StrongroomError

_log: Final = logging.getLogger("strongroom.daemon")

_EVERY: Final = 5.0
"""Seconds after which it is looked again; well below what clients wait."""


async def until_unnamed(place: Listening, lock: Lock) -> None:
    """Return when the socket's name leads here no more; until then, keep the lock's file saying who we are."""
    said = ""
    while place.is_named():
        said = _renew(lock, said)
        await trio.sleep(_EVERY)
    _log.warning("somebody has removed or replaced the socket %s, where clients find this daemon", place.path)


async def listening_again(stack: ExitStack, path: Path, lock: Lock) -> Listening:
    """Listen at `path` again, as soon as nothing is in the way and the home is still ours; the stack ends it."""
    said = ""
    while True:
        try:
            if lock.is_named():
                place = stack.enter_context(listening(path))
                _log.info("listening at %s again", path)
                return place
            why = f"{lock.path} is gone, or another's: the home was moved or removed."
        except StrongroomError as error:
            why = str(error)
        if why != said:
            _log.error("no client can find this daemon: %s", why)
        said = why
        await trio.sleep(_EVERY)


def _renew(lock: Lock, said: str) -> str:
    """Put the lock's file right; return what is in the way, and log it unless it was `said` before."""
    try:
        if lock.reclaim():
            _log.warning("somebody has removed or replaced %s; there is one again, and it is held", lock.path)
        elif lock.renew():
            _log.warning("somebody has changed %s; it says again where this daemon listens", lock.path)
    except (StrongroomError, OSError) as error:
        why = f"{lock.path} was changed or taken away, and cannot be put right: {error}"
        if why != said:
            _log.warning("%s", why)
        return why
    return ""
