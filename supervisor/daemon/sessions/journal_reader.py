"""Reads the journal in a thread, on a connection of its own, so that nobody has to wait.

Rule: one read at a time. Reads that may be long happen here; short ones may use the main connection. A history that is
told to a client, at the pace at which it reads, is read in both ways: long parts in a thread, and sent with waits in
between; what is left at the end without any, so that nothing can happen between the last update and the answer that
follows it.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import trio

from supervisor.acp import schema
from supervisor.agent.models.model_facts import ModelFacts
from supervisor.daemon.protocol.connection import Connection
from supervisor.daemon.protocol.fact_notices import shown_to
from supervisor.daemon.protocol.updates import Projection
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.errors import JournalError, KeptError
from supervisor.journal.chain_check import ChainCheck
from supervisor.journal.contents import ContentStore
from supervisor.journal.facts import CallEnded, Fact, Replied, SessionChanged, SessionOpened
from supervisor.journal.index import SessionIndex, Summary
from supervisor.journal.journal import Journal, JournalEntry
from supervisor.journal.journal_writer import JournalWriter
from supervisor.journal.kept_content import KeptContent
from supervisor.journal.lineage import story, turn_line
from supervisor.journal.rows import ANCHOR
from supervisor.session.earlier_session import EarlierSession, read_earlier

_SHORT: Final = 100
"""Facts of a history that may be read and sent without a wait."""
_PAUSE_EVERY: Final = 50
"""Facts after which others get their turn."""

_CHECKED: Final = 5_000
"""Rows that are compared with the chain at once: some hundredths of a second."""
_CHECKED_AGAIN_S: Final = 86_400.0
_UNCHECKED: Final = ChainCheck(0, 0, ANCHOR.hex())
_log: Final = logging.getLogger("strongroom.daemon")

_T = TypeVar("_T")


class JournalReader:
    """Reads on behalf of tasks.

    Args:
        journal: a connection that nobody else uses.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._index = SessionIndex(journal)
        self._turn = trio.Lock()
        self.checked = self._check = _UNCHECKED
        """What comparing the whole chain in the background has last come to."""
        self.checked_at = 0.0
        """When that was, seconds since the epoch."""
        self._check_began = time.time()

    async def earlier(self, session: str, facts_of: Callable[[str], ModelFacts]) -> tuple[EarlierSession, Projection]:
        """Return an earlier session, and how its clients are told of it from here on.

        Raises:
            ConfigError: there is none of that id.
            JournalError: the journal cannot be read.
        """
        return await self.run(lambda journal: _read(journal, session, facts_of))

    async def entries(self, session: str, after: int) -> list[JournalEntry]:
        """Return a session's entries after row `after`.

        Raises:
            JournalError: the journal cannot be read.
        """
        return await self.run(lambda journal: journal.of_session(session, after))

    async def index(self, find: Callable[[SessionIndex], list[Summary]]) -> list[Summary]:
        """Return what `find` finds in the index of all sessions, brought up to date.

        Raises:
            JournalError: the journal cannot be read.
        """

        def refreshed(_journal: Journal) -> list[Summary]:
            self._index.refresh()
            return find(self._index)

        return await self.run(refreshed)

    async def keep_up(self) -> None:
        """Bring the index up to date for whoever asks next, who is told if that cannot be done."""
        with suppress(JournalError):
            await self.index(lambda _index: [])

    async def check_on(self) -> None:
        """Compare the next rows with the chain; after a day, all of them anew.

        Raises:
            JournalError: a file of the journal was cut short.
        """
        if time.time() - self._check_began > _CHECKED_AGAIN_S:
            self._check, self._check_began = _UNCHECKED, time.time()
        before = self._check
        if before.problem:
            return
        self._check = await self.run(lambda journal: journal.verify_part(before, _CHECKED, set()))
        if self._check.problem:
            _log.error("the journal is broken at row %d: %s", self._check.broken_at, self._check.problem)
        if self._check.problem or self._check.rows == before.rows:
            self.checked, self.checked_at = self._check, time.time()

    async def run(self, read: Callable[[Journal], _T]) -> _T:
        """Return what `read` makes of the journal, in a thread."""
        async with self._turn:
            return await trio.to_thread.run_sync(read, self._journal)


def _read(journal: Journal, session: str, facts_of: Callable[[str], ModelFacts]) -> tuple[EarlierSession, Projection]:
    earlier = read_earlier(journal, session)
    projection = Projection(facts_of)
    for entry, stands in zip(story := earlier.story, turn_line(story).stands, strict=True):
        if stands:
            projection.of_fact(entry.fact)
        elif isinstance(entry.fact, SessionOpened | SessionChanged | Replied):
            context = projection.usage.context
            projection.apply(entry.fact)  # what it has cost was spent
            projection.usage.context = context
    return earlier, projection


def _kept_entries(journal: Journal, session: str) -> tuple[list[JournalEntry], int]:
    """Return the entries of a session's story that stand, and the last row that was read."""
    entries = story(journal, session)
    found = [entry for entry, stands in zip(entries, turn_line(entries).stands, strict=True) if stands]
    return found, entries[-1].seq if entries else 0


async def replay(session: OpenSession, client: Connection, reader: JournalReader, writer: JournalWriter) -> None:
    """Send what stands of the session's facts so far as updates, then what is only half said.

    Raises:
        JournalError: the journal cannot be read.
    """
    known = session.subscribers.projection
    projection = Projection(known.facts_of, known.contents)
    entries, seen = await reader.run(lambda journal: _kept_entries(journal, session.id))
    while entries:
        for number, entry in enumerate(entries):
            for update in await _updates_of(entry.fact, projection):
                client.send(session.subscribers.line(shown_to(client.capabilities, update)))
                await client.outbox.wait_until_read()
            if number % _PAUSE_EVERY == 0:
                await trio.lowlevel.checkpoint()
        if len(entries) <= _SHORT:
            break
        entries = await reader.entries(session.id, seen)
        seen = entries[-1].seq if entries else seen
    await writer.told()  # what is durable then has been shown, and what comes later will be
    rest = writer.journal.of_session(session.id, seen)
    told = [update for entry in rest for update in projection.of_fact(entry.fact)]
    for update in [*told, *_half_said(session), *projection.of_usage()]:
        client.send(session.subscribers.line(shown_to(client.capabilities, update)))


async def _updates_of(fact: Fact, projection: Projection) -> list[schema.Update]:
    """Return what is told of a fact, with the images that a call has found, as when it happened."""
    store = projection.contents
    if store is None or not isinstance(fact, CallEnded) or not fact.contents:
        return projection.of_fact(fact)
    with store.in_use():
        await trio.to_thread.run_sync(_have_at_hand, store, fact.contents)
        return projection.of_fact(fact)


def _have_at_hand(store: ContentStore, named: Sequence[KeptContent]) -> None:
    with suppress(KeptError):
        for each in named:
            store.encoded(each.digest)


def _half_said(session: OpenSession) -> list[schema.Update]:
    said = session.subscribers.projection
    return [schema.AgentMessageChunk.of(said.partial, said.message_id)] if session.busy and said.partial else []
