"""What keeps a session busy for as long as a test wants, and tells when the index was looked at."""

from collections.abc import Callable, Sequence
from contextlib import suppress

import trio

from supervisor.daemon.protocol.connection import RequestError
from supervisor.daemon.sessions.journal_reader import JournalReader
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.journal.index import SessionIndex, Summary
from supervisor.journal.journal import Journal
from supervisor.undo.undo_plan import UndoStep


class WatchedReader(JournalReader):
    """Tells when the index has been looked at, and the chain compared."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self.looked = trio.Event()
        self.compared = trio.Event()

    async def index(self, find: Callable[[SessionIndex], list[Summary]]) -> list[Summary]:
        found = await super().index(find)
        self.looked.set()
        return found

    async def check_on(self) -> None:
        await super().check_on()
        self.compared.set()


class Undo:
    """An undo that finds out what to do until it is let go on, and then does nothing.

    Args:
        stubborn: whether it cannot be cut off meanwhile.
    """

    def __init__(self, *, stubborn: bool = False) -> None:
        self.may_go_on = trio.Event()
        self._stubborn = stubborn

    async def plan(self) -> Sequence[UndoStep]:
        with trio.CancelScope(shield=self._stubborn):
            await self.may_go_on.wait()
        return []

    async def run(self, session: OpenSession) -> None:
        with suppress(RequestError):  # it was cut off
            await session.undo(self.plan, force=False, by="a test")
