"""The settling of commits that no process saw end: at the start of a daemon, and where a root still has remains of one.

Rule: a session that is open, here or in another process, is left alone: what runs there is seen to its end there.
"""

import logging
from contextlib import suppress
from typing import Final

from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.errors import StrongroomError
from supervisor.pool.open_root import OpenRoot
from workers.tree.drafts import drafts_in

_log: Final = logging.getLogger("strongroom.daemon")


async def settle_killed(registry: SessionRegistry) -> None:
    """Settle every commit that the journal let be made and has no end of, however old."""
    for summary in await registry.reader.index(lambda index: index.listing(where=lambda each: bool(each.unsettled))):
        if registry.closing:
            break
        try:
            await registry.settle(summary.session)
        except StrongroomError as error:
            _log.info("left commits of session %s unsettled: %s", summary.session, error)
        except Exception:  # noqa: BLE001 - the session boundary: a bug costs this one
            _log.exception("cannot settle commits of session %s", summary.session)


async def settle_remains(registry: SessionRegistry, root: OpenRoot) -> None:
    """Do the same where something in the root says that a commit was killed there: before a new session uses it."""
    remains: list[str] = []
    with suppress(OSError):
        remains = drafts_in(root.place)
    if remains:
        await settle_killed(registry)
