"""A whole history told to one client, at the pace at which it reads.

Rule: long parts are read in a thread and sent with waits in between; what is left at the end is read and sent without
any, so that nothing can happen between the last update and the answer that follows it.
"""

from typing import Final

import trio

from supervisor.acp import schema
from supervisor.daemon.protocol.connection import Connection
from supervisor.daemon.protocol.updates import Projection
from supervisor.daemon.sessions.journal_reader import JournalReader
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.journal.journal import Journal

_SHORT: Final = 100
"""Facts that may be read and sent without a wait."""
_PAUSE_EVERY: Final = 50
"""Facts after which others get their turn."""


async def replay(session: OpenSession, client: Connection, reader: JournalReader, journal: Journal) -> None:
    """Send the session's facts so far as updates, then what is only half said.

    Raises:
        JournalError: the journal cannot be read.
    """
    projection = Projection(session.subscribers.projection.prices)
    seen = 0
    more = True
    while more:
        entries = await reader.entries(session.id, seen)
        more = len(entries) > _SHORT
        for number, entry in enumerate(entries):
            for update in projection.of_fact(entry.fact):
                client.send(session.subscribers.line(update))
                await client.wait_until_read()
            seen = entry.seq
            if number % _PAUSE_EVERY == 0:
                await trio.lowlevel.checkpoint()
    rest = [update for entry in journal.of_session(session.id, seen) for update in projection.of_fact(entry.fact)]
    for update in [*rest, *_half_said(session), *projection.usage()]:
        client.send(session.subscribers.line(update))


def _half_said(session: OpenSession) -> list[schema.Update]:
    if not (session.busy and session.subscribers.projection.partial):
        return []
    text = schema.Text(text=session.subscribers.projection.partial)
    return [schema.AgentMessageChunk(content=text, message_id=session.subscribers.projection.message_id)]
