"""The pruning of sessions: those that nobody has used for long are deleted, all but what somebody may go on with.

Rule: whether one stays is judged anew while nobody can open it, for what was old a moment ago may be in use now. One
that is open, here or elsewhere, and one with a turn or a change that has no end, stays, and is told with its reason.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from supervisor.acp import extensions
from supervisor.daemon.protocol.connection import RequestError
from supervisor.daemon.sessions.registry import SessionRegistry


async def prune(registry: SessionRegistry, before: float, *, dry_run: bool) -> list[extensions.OldSession]:
    """Delete the sessions that nobody has used since a time; return those, and the ones that stay, oldest first.

    Args:
        registry: of the open sessions.
        before: the time, in seconds since the epoch.
        dry_run: say what would be done, and change nothing.

    Raises:
        JournalError: the journal cannot be read or written; those before are deleted.
    """
    found = await registry.reader.index(
        lambda index: [each for each in index if not each.deleted and each.updated_at < before]
    )
    told = list[extensions.OldSession]()
    for each in found:
        if registry.closing:
            break
        async with _held(registry, each.session) as in_use:
            old = await _judged(registry, each.session, before, in_use)
            if old is not None and not old.stays and not dry_run:
                with trio.CancelScope(shield=True):  # what is recorded is gone through with, whoever has left
                    await registry.hide(old.session_id)
        told += [] if old is None else [old]
    return told


@asynccontextmanager
async def _held(registry: SessionRegistry, session: str) -> AsyncIterator[str]:
    """Keep a session from everybody else, and give a reason, a clause, where somebody has it already; else ""."""
    async with registry.opening_right.alone(session):
        if session in registry.sessions:
            yield "it is open"
            return
        try:
            await registry.opening_right.lease(session, patience=0)
        except RequestError:
            yield "it is open in another process"
            return
        try:
            yield ""
        finally:
            registry.opening_right.release(session)


async def _judged(registry: SessionRegistry, session: str, before: float, in_use: str) -> extensions.OldSession | None:
    """Return a session, and why it stays if it does; None where somebody has used or deleted it meanwhile."""
    for summary in await registry.reader.index(lambda index: [each for each in [index.get(session)] if each]):
        if summary.deleted or summary.updated_at >= before:
            break
        stays = in_use
        if not stays and summary.open_turn:
            stays = f"its last turn {'is suspended' if summary.state == 'suspended' else 'was interrupted'}"
        elif not stays and summary.unsettled:
            stays = "a change that it made has no end yet"
        return extensions.OldSession(session, summary.title, summary.updated_at, stays)
    return None
