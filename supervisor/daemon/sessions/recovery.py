"""After a crash: resumes the turns that the last daemon could not finish, and removes packs that nobody needs.

Rule: a failure concerns its session alone. A turn that was resumed several times without progress is closed; old turns
and those of batches (`--resume` resumes them) stay as they are, and none is finished by another model.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from supervisor.acp import extensions
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.daemon.sessions.settling import settle_killed
from supervisor.errors import StrongroomError
from supervisor.journal.facts import CallDecided
from supervisor.journal.index import SessionIndex, Summary
from supervisor.journal.journal import Journal

_log: Final = logging.getLogger("strongroom.daemon")

_RESUMED_AT_MOST: Final = 3
"""Times that an interrupted turn is resumed without progress before it is closed."""
_HOUR: Final = 3600.0


async def resume_interrupted(registry: SessionRegistry) -> None:
    """Resume every interrupted turn, one after the other; where a call or an undo runs, after its end.

    One that is suspended goes on only where nothing holds it any more.

    A commit that was cut off is settled when its session is reopened; those of other sessions follow.
    """
    since = time.time() - registry.settings.config.daemon.resume_within_h * _HOUR

    def interrupted(index: SessionIndex) -> list[Summary]:
        return index.listing(
            where=lambda each: (
                each.open_turn
                and (each.updated_at >= since or each.state == "suspended")
                and not each.origin.startswith("batch:")
            )
        )

    for session in tuple(registry.sessions.values()):
        session.go_on()

    found = await registry.reader.index(interrupted)
    async with trio.open_nursery() as waiting:
        for summary in found:
            if registry.closing:
                break
            with _logging_failures(summary):
                session, _ = await registry.reopen(summary.session, extensions.SessionOptions(), recorded=True)
                if session.busy and session.suspended is None:
                    waiting.start_soon(_resume_when_idle, registry, session, summary)
                elif not session.busy:  # at once: who asks next is to find the turn running
                    _resume(registry, session, summary)
        await settle_killed(registry)


async def forget_undecided(registry: SessionRegistry) -> None:
    """Remove what was kept for calls that were never decided about."""

    def forget(journal: Journal) -> int:
        def is_named(session: str, pack: str) -> bool:
            facts = [entry.fact for entry in journal.of_session(session)]
            return not facts or any(isinstance(fact, CallDecided) and fact.kept == pack for fact in facts)

        return registry.resources.packs.forget_undecided(is_named)

    if removed := await registry.reader.run(forget):
        _log.info("removed what was kept for %d calls that were never decided about", removed)


async def _resume_when_idle(registry: SessionRegistry, session: OpenSession, summary: Summary) -> None:
    """Wait for a call or an undo: it would take back what a turn writes meanwhile."""
    with _logging_failures(summary):
        await session.wait_until_idle()
        _resume(registry, session, summary)


def _resume(registry: SessionRegistry, session: OpenSession, summary: Summary) -> None:
    if registry.closing or session.closing or not session.interrupted:
        return
    if session.substituted:
        _log.warning("left a turn of session %s open: %s", summary.session, session.substituted)
    elif summary.resumed >= _RESUMED_AT_MOST:
        _log.error(
            "closed an interrupted turn of session %s: it was resumed several times without progress", summary.session
        )
        session.session.conversation.interrupt()
    elif session.suspended is None or not session.session.conversation.resumption.holds():
        _log.info("resuming session %s", summary.session)
        session.start_turn(None)
    elif session.session.conversation.resumption.ends_by_itself:
        session.start_turn(None)  # which waits


@contextmanager
def _logging_failures(summary: Summary) -> Iterator[None]:
    """Log why a session cannot be resumed; the others are not affected."""
    try:
        yield
    except StrongroomError as error:
        _log.warning("cannot resume session %s: %s", summary.session, error)
    except Exception:  # noqa: BLE001 - the session boundary: a bug costs this one
        _log.exception("cannot resume session %s", summary.session)
