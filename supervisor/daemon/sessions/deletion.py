"""The deletion of sessions: one that a person names, or those that nobody has used for long.

Rule: no listing shows a deleted session, and what is kept for it goes, but the journal forgets nothing. Whoever deletes
one has it alone, here and among processes: a pack that a commit under way, or cut off, may need is never removed. Of
old ones only those go that a person has seen, and each is judged anew: what somebody may go on with stays. What was
kept for one whose deletion was cut off, with its process, goes with the next.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import trio

from supervisor.acp import extensions
from supervisor.agent.shown_reply import file_of, remove
from supervisor.daemon.protocol.connection import RequestError
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.facts import SessionDeleted
from supervisor.journal.index import Summary
from supervisor.journal.search_index import clear_deleted
from supervisor.system.plain_name import plain

_log: Final = logging.getLogger("strongroom.daemon")


async def delete(registry: SessionRegistry, session: str) -> None:
    """Hide a session from listings, and remove what is kept for it, after what runs in it was cancelled.

    One that is hidden already, or that never was, is no error ("Semantics" of session/delete). Cancelling the caller
    leaves it going on.

    Raises:
        RequestError: another process has it open.
        JournalError: it cannot be recorded.
    """
    await registry.closing_tasks.run("delete", session, partial(_delete, registry, session))
    await trio.to_thread.run_sync(clear_deleted, registry.resources.writer.journal.path)


async def _delete(registry: SessionRegistry, session: str) -> None:
    async with registry.opening_right.alone(session):  # and nobody opens it again before it is recorded
        if (opened := registry.sessions.get(session)) is not None:
            await registry.close_alone(opened)
        known = await _known(registry, session)
        if known is None or known.deleted:
            return
        async with registry.opening_right.leased(session, patience=0):
            if known.unsettled:
                try:
                    await registry.settle_alone(session)
                except StrongroomError as error:
                    _log.warning("deleted a session whose commits are unsettled: %s", error, extra={"session": session})
            await _hide(registry, session)


async def prune(registry: SessionRegistry, before: float, agreed: Sequence[str] | None) -> list[extensions.OldSession]:
    """Return the sessions that nobody has used since a time, and which stay; or delete some, and return those.

    Args:
        registry: of the open sessions.
        before: the time, in seconds since the epoch.
        agreed: the sessions to delete; None changes nothing.

    Raises:
        JournalError: the journal cannot be read or written; those before are deleted.
    """
    await forget_deleted(registry)
    wanted = None if agreed is None else frozenset(agreed)
    found = await registry.reader.index(
        lambda index: [
            each
            for each in index
            if not each.deleted and each.updated_at < before and (wanted is None or each.session in wanted)
        ]
    )
    kept = await trio.to_thread.run_sync(_sizes, registry)
    told = list[extensions.OldSession]()
    for each in found:
        if registry.closing:
            break
        async with _held(registry, each.session) as in_use:
            old = await _judged(registry, each.session, before, in_use, kept)
            if old is not None and not old.stays and wanted is not None:
                with trio.CancelScope(shield=True):  # what is recorded is gone through with, whoever has left
                    await _hide(registry, old.session_id)
        told += [] if old is None else [old]
    if wanted is not None:
        await trio.to_thread.run_sync(clear_deleted, registry.resources.writer.journal.path)
    return sorted(told, key=lambda old: old.updated_at)


async def _hide(registry: SessionRegistry, session: str) -> None:
    """Record that a session is deleted, and remove what is kept for it; the caller alone has it, and it is not open.

    Raises:
        JournalError: it cannot be recorded; all is as it was.
    """
    await registry.resources.writer.append(session, SessionDeleted())
    await _forget(registry, session)


async def _forget(registry: SessionRegistry, session: str) -> None:
    """Remove what is kept for a deleted session."""
    resources = registry.resources
    if resources.services.rule_store is not None:
        with suppress(ConfigError):  # then they stay listed, and count in no session
            resources.services.rule_store.end(session)
    remove(file_of(resources.writer.journal.path, session))
    await trio.to_thread.run_sync(resources.contents.forget, session)
    known = await _known(registry, session)
    if known is None or not known.unsettled:
        await trio.to_thread.run_sync(resources.packs.forget, session)


async def forget_deleted(registry: SessionRegistry) -> None:
    """Remove what is still kept for deleted sessions: the process that deleted them was killed.

    Raises:
        JournalError: the journal cannot be read.
    """
    kept, journal = await trio.to_thread.run_sync(_sizes, registry), registry.resources.writer.journal.path
    deleted = [
        each.session for each in await registry.reader.index(lambda index: [each for each in index if each.deleted])
    ]
    left = [each for each in deleted if plain(each) in kept or file_of(journal, each).exists()]
    for each in left:
        await _forget(registry, each)
    if left:
        await trio.to_thread.run_sync(clear_deleted, journal)


async def _known(registry: SessionRegistry, session: str) -> Summary | None:
    """Return what is known of a session now."""
    return next(iter(await registry.reader.index(lambda index: [each for each in [index.get(session)] if each])), None)


def _sizes(registry: SessionRegistry) -> Mapping[str, int]:
    """Return the bytes of what is kept for each session alone, by its plain id; 0 where it shares all of it."""
    contents, packs = registry.resources.contents.sizes(), registry.resources.packs.sizes()
    return {each: contents.get(each, 0) + packs.get(each, 0) for each in (*contents, *packs)}


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


async def _judged(
    registry: SessionRegistry, session: str, before: float, in_use: str, kept: Mapping[str, int]
) -> extensions.OldSession | None:
    """Return a session, and why it stays if it does; None where somebody has used or deleted it meanwhile."""
    known = await _known(registry, session)
    if known is None or known.deleted or known.updated_at >= before:
        return None
    stays = in_use
    if not stays and known.open_turn:
        stays = f"its last turn {'is suspended' if known.state == 'suspended' else 'was interrupted'}"
    elif not stays and known.state == "damaged":
        stays = "how it ended cannot be read"
    elif not stays and known.unsettled:
        stays = "a change that it made has no end yet"
    return extensions.OldSession(session, known.title, known.updated_at, kept.get(plain(session), 0), stays)
