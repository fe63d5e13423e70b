"""Reads the journal in a thread, on a connection of its own, so that nobody has to wait.

Rule: one read at a time. Reads that may be long happen here; short ones may use the main connection.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import trio

from supervisor.config.config_file import Price
from supervisor.daemon.protocol.updates import Projection
from supervisor.journal.index import SessionIndex, Summary
from supervisor.journal.journal import Journal, JournalEntry
from supervisor.session.session import EarlierSession, read_earlier

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

    async def earlier(self, session: str, prices: dict[str, Price]) -> tuple[EarlierSession, Projection]:
        """Return an earlier session, and how its clients are told of it from here on.

        Raises:
            ConfigError: there is none of that id.
            JournalError: the journal cannot be read.
        """
        return await self._in_thread(partial(_read, self._journal, session, prices))

    async def entries(self, session: str, after: int) -> list[JournalEntry]:
        """Return a session's entries after row `after`.

        Raises:
            JournalError: the journal cannot be read.
        """
        return await self._in_thread(partial(self._journal.of_session, session, after))

    async def index(self, find: Callable[[SessionIndex], list[Summary]]) -> list[Summary]:
        """Return what `find` finds in the index of all sessions, brought up to date.

        Raises:
            JournalError: the journal cannot be read.
        """

        def refreshed() -> list[Summary]:
            self._index.refresh()
            return find(self._index)

        return await self._in_thread(refreshed)

    async def run(self, read: Callable[[Journal], _T]) -> _T:
        """Return what `read` makes of the journal."""
        return await self._in_thread(partial(read, self._journal))

    async def _in_thread(self, read: Callable[[], _T]) -> _T:
        async with self._turn:
            return await trio.to_thread.run_sync(read)


def _read(journal: Journal, session: str, prices: dict[str, Price]) -> tuple[EarlierSession, Projection]:
    earlier = read_earlier(journal, session)
    projection = Projection(prices)
    for entry in earlier.entries:
        projection.of_fact(entry.fact)
    return earlier, projection
