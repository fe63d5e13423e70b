"""Makes the facts of all tasks of an event loop durable: those that wait at the same time in one commit.

Rule: journal, then act, then show. `append` returns when the facts are on the disk, and what is to be shown of them is
told in the journal's order. Whoever waits alone is committed for in place, since a thread would cost as much again;
several, one with much to write, and any while the disk is slow are committed for in a thread, and others get ready
meanwhile. Nobody can be cancelled here: what may be durable already is taken into account before anything else.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import outcome
import trio

from supervisor.errors import JournalError
from supervisor.journal.database import encoded
from supervisor.journal.facts import Fact
from supervisor.journal.journal import Journal

_LARGE: Final = 2**19
"""Bytes that are digested and written in some milliseconds."""
_SLOW_S: Final = 0.001
"""Seconds of a commit of little: from there on a thread costs next to nothing, and nobody else stands still."""
_LONG: Final = ("content", "arguments", "text", "answer")
"""The texts of facts that can be long."""


class _Append:
    """What one task wants recorded; `end` says how that went."""

    def __init__(self, session: str, new: tuple[Fact, ...], then: Callable[[], None]) -> None:
        self.session, self.new, self.then = session, new, then
        self.task = trio.lowlevel.current_task()
        self.end: outcome.Maybe[None] | None = None


class JournalWriter:
    """Writes a journal on behalf of tasks; one a journal and event loop."""

    def __init__(self, journal: Journal, clock: Callable[[], float] = time.perf_counter) -> None:
        self.journal = journal
        self._clock = clock
        self._took_s = 0.0
        """How long the last commit of little took."""
        self._waiting: list[_Append] = []
        self._is_led = False
        """Whether one of those who wait, or who did, commits for them."""
        self._in_thread = False
        self._told = trio.lowlevel.ParkingLot()

    async def append(self, session: str, *new: Fact, then: Callable[[], None] = lambda: None) -> None:
        """Make facts durable, all or none; then call `then`, before anything else happens. Cannot be cancelled.

        Raises:
            JournalError: they are not recorded; nothing may act on them, and `then` was not called.
        """
        mine = _Append(session, new, then)
        self._waiting.append(mine)
        if self._is_led:
            await trio.lowlevel.wait_task_rescheduled(_goes_on)
        if mine.end is None:
            self._is_led = True
            await trio.lowlevel.cancel_shielded_checkpoint()  # who is ready now writes with us
            group, self._waiting = self._waiting, []
            await self._commit(group)
            for each in (*group[1:], *self._waiting[:1]):  # the latter commits for the others now
                trio.lowlevel.reschedule(each.task)
            self._is_led = bool(self._waiting)
        assert mine.end is not None
        mine.end.unwrap()

    async def told(self) -> None:
        """Return when there is no fact in the journal of which `then` is still to be called."""
        while self._in_thread:
            await self._told.park()

    async def _commit(self, group: list[_Append]) -> None:
        """Make all of these durable, and set their ends."""
        try:
            is_little = len(group) == 1 and _size(group[0].new) <= _LARGE
            began = self._clock()
            if is_little and self._took_s < _SLOW_S:
                self.journal.append(group[0].session, *group[0].new)
            else:
                await self._commit_in_thread(group)
            if is_little:
                self._took_s = self._clock() - began
        except BaseException as error:  # noqa: BLE001 - each of those who wait is told
            for each in group:
                each.end = outcome.Error(_of_its_own(error))
        for each in group:
            each.end = each.end or outcome.capture(each.then)
        self._in_thread = False
        self._told.unpark_all()

    async def _commit_in_thread(self, group: list[_Append]) -> None:
        rows = []
        for each in group:
            try:
                rows.append((each.session, encoded(each.new)))
            except JournalError as error:
                each.end = outcome.Error(error)
        work = self.journal.commit
        if sum(len(body) for _, bodies in rows for body in bodies) <= _LARGE:
            self.journal.begin(rows)
        else:
            work = partial(_write, self.journal, rows)
        self._in_thread = True
        task, token = trio.lowlevel.current_task(), trio.lowlevel.current_trio_token()
        try:
            trio.lowlevel.start_thread_soon(work, lambda end: token.run_sync_soon(trio.lowlevel.reschedule, task, end))
        except (RuntimeError, MemoryError):  # no thread can be started
            work()
        else:
            await trio.lowlevel.wait_task_rescheduled(_goes_on)


def _write(journal: Journal, rows: list[tuple[str, list[bytes]]]) -> None:
    journal.begin(rows)
    journal.commit()


def _size(new: Sequence[Fact]) -> int:
    """Return about how many characters facts have: those of the texts that can be long."""
    return sum(len(text) for fact in new for name in _LONG if isinstance(text := getattr(fact, name, None), str))


def _goes_on(_cancelled: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED


def _of_its_own(error: BaseException) -> BaseException:
    """Return an error for one of several tasks: what one adds to it is not the others'."""
    if not isinstance(error, JournalError):
        return error
    own = JournalError(error.kind, str(error))
    own.__cause__ = error.__cause__
    return own
