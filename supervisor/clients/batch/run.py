"""`strongroom batch`: many conversations, a few at a time, a durable line for each.

Rule: nothing is lost and nothing runs twice. An item's session names the batch and the item in the journal, so a
batch that was killed finds it again: a finished session only has its line written, an interrupted turn is resumed
from its last fact, and calls with an unknown outcome are reported as such.

The daemon holds the conversations; here a thread waits for each. Results are read from the journal.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.batch.batch_plan import Plan, Use
from supervisor.clients.batch.items import Item, Result, summarize
from supervisor.clients.batch.outputs import OutputFile, ResultPrinter
from supervisor.clients.batch.resume import answered, begin, has_failed, origin_of
from supervisor.clients.connection import requests
from supervisor.clients.connection.attachments import blocks_of
from supervisor.clients.connection.link import Link
from supervisor.clients.connection.link_events import LinkEvent, decline
from supervisor.clients.connection.start import ConnectedDaemon, connect_or_private
from supervisor.config.settings import Settings
from supervisor.display.clock_time import clock_time
from supervisor.errors import DaemonLost, DaemonRefused
from supervisor.journal.journal import Journal, JournalEntry, open_journal
from supervisor.journal.suspended import suspended_in

_LOOK: Final = 1.0
"""Seconds after which a wait begins anew."""
_TOLD_AGAIN: Final = 600.0
"""Seconds that a wait must end later or earlier than the one that was told last, to be told as well."""
_LAST_WORDS: Final = 15.0
"""Seconds that the turns which run have to end when the batch is stopped."""


def run_batch(
    settings: Settings,
    items: Sequence[Item],
    output: Path | None,
    planned: Plan,
    *,
    resume: bool,
    concurrency: int,
    put: Callable[[str], None],
    done: Callable[[Result], None],
    note: Callable[[str], None],
    faults: Path | None = None,
    budget: dict[str, float] | None = None,
) -> list[str]:
    """Run the items that `output` has no result for; return the status of every item of the batch, in order.

    Where there is no output, `put` prints each result as a line, and the batch cannot be resumed. `done` is given each
    result after it is on the disk or printed; one at a time, in any thread. `note` is told what is waited for. With a
    fault plan the batch has a daemon of its own.

    Raises:
        ConfigError: a model or the output cannot be used, an item that was begun is not the same any more, or there is
            a fault plan and a daemon that runs.
        OutputError: a result could not be written; `--resume` writes it later.
        JournalError: something could not be recorded.
        OSError: nobody reads what is printed.
        DaemonLost: the daemon has ended; `--resume` resumes the batch.
        KeyboardInterrupt: the batch was stopped; `--resume` resumes it.
    """
    with connect_or_private(settings, _BatchListener(note).hear, "batch", faults) as connected:
        connected.warn()
        planned = _checked(connected, planned)
        place = "-" if output is None else str(output.absolute())
        with closing(ResultPrinter(put) if output is None else OutputFile(output, resume=resume)) as file:
            open_items = [item for item in items if str(item.id) not in file.statuses]
            try:
                with open_journal(settings.journal) as journal:
                    started = begin(journal, place, open_items, planned, budget, resume=resume)
                    batch = _Batch(
                        connected.link, journal, file, planned, started.run, started.sessions, done, started.budget
                    )
                    batch.run(open_items, concurrency)
            except DaemonLost as error:
                if output is None:
                    raise
                raise DaemonLost(f"{error} Run the same command with --resume to resume the batch.") from error
            return [file.statuses[str(item.id)] for item in items]


def _checked(connected: ConnectedDaemon, planned: Plan) -> Plan:
    """Return the plan with the names that the daemon's models really have.

    Raises:
        ConfigError: one of them cannot be used there.
    """
    names: dict[Use, str] = {}
    for using in dict.fromkeys(planned.values()):
        checked = connected.link.request(extensions.CHECK_METHOD, _options(using), extensions.SessionCheck)
        requests.same_root(using.profile, checked.root)
        names[using] = checked.model
    return {name: replace(using, model=names[using]) for name, using in planned.items()}


def _options(using: Use, origin: str = "batch", budget: dict[str, float] | None = None) -> extensions.SessionOptions:
    more = {"model": using.model, "mode": using.mode, "origin": origin, "attended": False}
    return requests.options(using.profile, **more, batch_budget=budget)


class _BatchListener:
    """Declines what is asked, and tells of each time that is waited for once, or about."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._until = 0.0
        """What was told last, in seconds since the epoch."""

    def hear(self, event: LinkEvent) -> None:
        decline(event)
        suspended = event.suspended if isinstance(event, extensions.TurnState) else None
        if suspended is not None and suspended.until and abs(suspended.until - self._until) > _TOLD_AGAIN:
            self._until = suspended.until
            self._note(f"waiting until {clock_time(self._until, time.time())}: {suspended.why}")


class _Stopped(Exception):
    """The batch is being stopped; the item has no result."""


@dataclass
class _Batch:
    """A batch while it runs. What several threads use is used under the lock, but for results."""

    link: Link
    journal: Journal
    file: OutputFile | ResultPrinter
    planned: Plan
    name: str
    sessions: Mapping[str, str]
    done: Callable[[Result], None]
    """Of the environment, for commands."""
    budget: dict[str, float] | None = None
    """In place of the configured one."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _telling: threading.Lock = field(default_factory=threading.Lock)
    """Held while a result is told."""
    _stopping: bool = False
    _left: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    """No item is left, or one has failed."""
    _read: dict[str, list[JournalEntry]] = field(default_factory=dict)
    """Read so far of the sessions that are open."""
    _suspended: list[Result] = field(default_factory=list)
    """Written at the end, where `--resume` takes them off again."""
    _talking: set[str] = field(default_factory=set)
    """Sessions that may have a turn under way."""

    def run(self, items: Sequence[Item], concurrency: int) -> None:
        """Run the items; when one fails, or the person stops it, the others are cancelled and ended first."""
        self._left = len(items)
        pool = ThreadPoolExecutor(concurrency, "strongroom batch")  # takes them up in their order
        running = [pool.submit(self._one, item) for item in items]
        try:
            while running and not self._ended.wait(_LOOK):
                continue  # and a signal that came just before the wait is seen
        finally:
            self._stop(running)
            pool.shutdown(wait=False, cancel_futures=True)
            for result in self._suspended:
                self._put(result)
        for future in running:
            if not future.cancelled() and (error := future.exception()) and not isinstance(error, _Stopped):
                raise error

    def _stop(self, running: Sequence["Future[None]"]) -> None:
        """Cancel the turns that run, and wait for their ends."""
        with self._lock:
            self._stopping = True
            talking = list(self._talking)
        for future in running:
            future.cancel()
        for session in talking:
            self.link.cancel(session)
        wait(running, _LAST_WORDS)

    def _one(self, item: Item) -> None:
        """Have one item's conversation, and write down what came of it; if that fails, no other item is begun."""
        try:
            self._run_one(item)
        except BaseException:
            with self._lock:
                self._stopping = True  # now: this thread takes up the next item before anybody else looks
            raise
        finally:
            with self._lock:
                self._left -= 1
                if self._stopping or not self._left:
                    self._ended.set()

    def _run_one(self, item: Item) -> None:
        using, origin = self.planned[str(item.id)], origin_of(self.name, item)
        session = self._open(using, origin)
        try:
            self._converse(item, session, begun=origin in self.sessions)
            result = summarize(item.id, session, self._entries(session))
        finally:
            with self._lock:
                self._talking.discard(session)
                self._read.pop(session, None)
        if result.status == "suspended":
            with self._lock:
                self._suspended.append(result)
        else:
            self._put(result)
        self.link.request("session/close", schema.SessionParams(session_id=session), msgspec.Raw)

    def _put(self, result: Result) -> None:
        self.file.write(result)
        with self._telling:
            self.done(result)

    def _open(self, using: Use, origin: str) -> str:
        """Open an item's session, the one that was begun or a new one; return its id."""
        meta, root = {extensions.OPTIONS: _options(using, origin, self.budget)}, using.profile.root
        session = self.sessions.get(origin)
        if session is None:
            new = schema.NewSessionParams(cwd=root, meta=meta)
            return self.link.request("session/new", new, schema.NewSessionResult).session_id
        begun = schema.ReopenParams(session_id=session, cwd=root, meta=meta)
        self.link.request("session/resume", begun, schema.SessionResult)
        return session

    def _converse(self, item: Item, session: str, *, begun: bool) -> None:
        """Go on with what was begun, and ask what was not; a turn that fails is the last."""
        if begun:
            before = suspended_in(self._entries(session))
            go = before is not None and before.kind != "budget" and not before.until
            self._turn(session, extensions.CONTINUE_METHOD, extensions.ContinueParams(session_id=session, go=go))
        done = answered(self._entries(session))
        for number, text in enumerate(item.turns[done:], done):
            if has_failed(self._entries(session)) or suspended_in(self._entries(session)) is not None:
                return
            attached = [] if number else blocks_of(item.images)
            asked = requests.prompt(session, text, item.schema, attached, check=item.check)
            self._turn(session, "session/prompt", asked)

    def _turn(self, session: str, method: str, params: extensions.ContinueParams | schema.PromptParams) -> None:
        """Wait for a turn's end; how it ended is in the journal."""
        before = answered(self._entries(session))
        with self._lock:
            if self._stopping:
                raise _Stopped
            self._talking.add(session)
            turn = self.link.submit(method, params)  # under the lock: whoever stops the batch cancels it
        try:
            turn.result()
        except DaemonRefused:
            if answered(self._entries(session)) == before:
                raise  # it is not the turn that failed
        if self._stopping:
            raise _Stopped

    def _entries(self, session: str) -> Sequence[JournalEntry]:
        """Return what a session has recorded; only what is new is read."""
        with self._lock:
            known = self._read.setdefault(session, [])
            known += self.journal.of_session(session, known[-1].seq if known else 0)
            return known
