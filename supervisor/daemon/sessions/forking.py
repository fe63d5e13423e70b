"""The forking of a session: a new one goes on with its conversation from the end of a turn, whatever runs in it.

Rule: the other session stays as it was, and nothing of it is copied: the new one names it, and the row up to which it
counts. It begins with the profile, the model, the mode and the choices that held then, on the root of then; rules that
were made for that session alone do not count in it, and what it has changed is undone there.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from supervisor.acp import extensions, jsonrpc
from supervisor.agent.story_transcript import transcript_of
from supervisor.daemon.protocol.connection import RequestError
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.opened_at import from_journal, person_of
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.errors import ConfigError
from supervisor.journal.facts import CallEnded, ForkPoint, ModeChanged, SessionChanged, SessionOpened, TurnStarted
from supervisor.journal.journal import Journal, JournalEntry
from supervisor.journal.lineage import story, turn_line
from supervisor.session.earlier_session import EarlierSession, new_id
from supervisor.version import VERSION


class _Forked(NamedTuple):
    """What a new session begins with, and how it is opened."""

    point: ForkPoint
    entries: list[JournalEntry]
    opened: SessionOpened


async def fork(
    registry: SessionRegistry,
    session: str,
    turn: int | None,
    cwd: str,
    options: extensions.SessionOptions,
    keys: Mapping[str, str],
) -> tuple[OpenSession, list[str]]:
    """Fork a session; return the new one, and what the person should know.

    Args:
        registry: of the open sessions.
        session: an id.
        turn: at whose end; by default that of the last one that has ended.
        cwd: the client's directory.
        options: the origin, and whether people can be asked.
        keys: those that the client told.

    Raises:
        RequestError: there is no such session.
        ConfigError: it has no such turn, or its profile or root cannot be used any more.
        JournalError: it cannot be read or recorded.
    """
    known = await registry.reader.index(lambda index: [each for each in [index.get(session)] if each is not None])
    if not known or known[0].deleted:
        raise RequestError(jsonrpc.NOT_FOUND, f"No session {session[:80]!r}.", "not_found")
    title = known[0].title
    forked = await registry.reader.run(lambda journal: _forked(journal, session, turn, title))
    resources, opened = registry.resources, forked.opened
    before = EarlierSession("", forked.entries, opened, transcript_of(forked.entries), set())
    place = replace(from_journal(before, registry.settings), person=person_of(options), keys=keys)
    resources.pools(place.last_profile(registry.settings, before))  # where it cannot be opened, nothing is recorded
    opened = SessionOpened(
        opened.profile,
        opened.model,
        opened.context,
        opened.tools,
        options.origin,
        VERSION,
        registry.settings.config.allow_degraded,
        cwd,
        options.attended,
        opened.mode,
        forked.point,
    )
    made = new_id()
    resources.contents.share(made, _contents(forked.entries))
    await resources.writer.append(made, opened)
    return await registry.reopen(made, options, keys)


def _forked(journal: Journal, session: str, turn: int | None, title: str) -> _Forked:
    """Find out what a fork begins with.

    Raises:
        ConfigError: the session has no such turn.
        JournalError: the journal cannot be read.
    """
    entries = story(journal, session)
    line = turn_line(entries)
    at = line.last if turn is None else turn
    if turn is None and not at:
        raise ConfigError(f"No turn of the session {session} has ended yet: there is nothing to go on with.")
    row = line.end_of(at, session)
    entries = [entry for entry in entries if entry.seq <= row]
    using = [entry.fact for entry in entries if isinstance(entry.fact, SessionOpened | SessionChanged)]
    modes = [entry.fact.mode for entry in entries if isinstance(entry.fact, SessionOpened | ModeChanged)]
    if not using or not using[-1].model:
        raise ConfigError(f"The session {session} has no conversation that could be forked.")
    last = using[-1]
    opened = SessionOpened(last.profile, last.model, last.context, last.tools, "", "", cwd=_cwd(using), mode=modes[-1])
    return _Forked(ForkPoint(entries[-1].session, at, row, title), entries, opened)


def _cwd(using: list[SessionOpened | SessionChanged]) -> str:
    return next((each.cwd for each in reversed(using) if isinstance(each, SessionOpened)), "")


def _contents(entries: list[JournalEntry]) -> list[str]:
    facts = (entry.fact for entry in entries)
    return [each.digest for fact in facts if isinstance(fact, TurnStarted | CallEnded) for each in fact.contents]
