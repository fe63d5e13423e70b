"""`strongroom batch`: many conversations, a few at a time, a durable line for each.

Rule: nothing is lost and nothing runs twice. An item's session names the batch and the item in the journal, so a
batch that was killed finds it again: a finished session only has its line written, an interrupted turn goes on
from its last fact, and calls whose outcome nobody saw are reported so.

The conversations are the daemon's; here a thread waits for each. What they come to is read in the journal.
"""

import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from supervisor.acp import ours, schema
from supervisor.clients.items import CallLine, Item, OutputFile, Result
from supervisor.clients.link import Deaf, Link
from supervisor.clients.start import Connected, connect_or_private
from supervisor.config import DEFAULT_MODEL, Settings
from supervisor.errors import ConfigError, DaemonLost, DaemonRefused
from supervisor.facts import (
    BatchStarted,
    CallEnded,
    CallStarted,
    Replied,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from supervisor.journal import Entry, Journal, open_journal
from supervisor.profiles import Profile, holds, resolve

_LAST_WORDS: Final = 15.0
"""Seconds that the turns which run have to end when the batch is stopped."""


@dataclass(frozen=True)
class Use:
    """What an item runs with."""

    profile: Profile
    model: str


Plan = Mapping[str, Use]
"""What each item runs with, by its id."""


def plan(
    settings: Settings,
    items: Sequence[Item],
    output: Path,
    profile: str | None,
    root: str | None,
    model: str | None,
) -> Plan:
    """Resolve every item's profile, root and model before anything runs.

    Raises:
        ConfigError: one of them cannot be used, or an agent could write the output.
    """
    found: dict[str, Use] = {}
    for item in items:
        using = resolve(settings, item.profile or profile, item.root or root)
        if using.writable and holds(Path(using.root), output):
            raise ConfigError(f"The output {str(output)!r} lies in the root {using.root!r}, where the agent writes.")
        found[str(item.id)] = Use(using, _model(item.model or model or settings.config.model or DEFAULT_MODEL))
    return found


def _model(name: str) -> str:
    """Return a model's name as the daemon understands it, which stands in another directory."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"No model {name!r}. Its name must be UTF-8.") from error
    if "\0" in name:
        raise ConfigError(f"No model {name!r}. A name holds no zero byte.")
    kind, colon, file = name.partition(":")
    return f"{kind}:{os.path.abspath(file)}" if kind == "scripted" and colon else name


def run_batch(
    settings: Settings,
    items: Sequence[Item],
    output: Path,
    planned: Plan,
    *,
    resume: bool,
    concurrency: int,
    done: Callable[[Result], None],
) -> list[str]:
    """Run the items that `output` has no result for; return the status of every item of the batch, in order.

    `done` is given each result after it is on the disk; one at a time, in any thread.

    Raises:
        ConfigError: a model or the output cannot be used, or an item that was begun is not the same any more.
        OutputError: a result could not be written; `--resume` writes it later.
        JournalError: something could not be recorded.
        DaemonLost: the daemon has ended; `--resume` goes on with the batch.
        KeyboardInterrupt: the batch was stopped; `--resume` goes on with it.
    """
    with connect_or_private(settings, Deaf(), "batch") as connected:
        connected.warn()
        planned = _checked(settings, connected, planned)
        file = OutputFile(output, resume=resume)
        try:
            open_items = [item for item in items if str(item.id) not in file.statuses]
            with open_journal(settings.journal) as journal:
                run, sessions = _begin(journal, str(output.absolute()), open_items, planned, resume=resume)
                batch = _Batch(connected.link, journal, file, planned, run, sessions, done)
                batch.run(open_items, concurrency)
            return [file.statuses[str(item.id)] for item in items]
        except DaemonLost as error:
            raise DaemonLost(f"{error} The same command with --resume goes on with the batch.") from error
        finally:
            file.close()


def _checked(settings: Settings, connected: Connected, planned: Plan) -> Plan:
    """Return the plan with the names that the daemon's models really have.

    Raises:
        ConfigError: one of them cannot be used there.
    """
    names: dict[Use, str] = {}
    for using in planned.values():
        if using in names:
            continue
        try:
            names[using] = connected.link.request(ours.CHECK_METHOD, _options(using), ours.CheckResult).model
        except ConfigError as error:
            daemon = connected.link.daemon
            if connected.private or daemon is None or (settings.api_key is None and settings.base_url is None):
                raise
            raise ConfigError(
                f"{error} The daemon that runs (pid {daemon.pid}) has the environment that it was started in, not this "
                "one; `strongroom daemon --stop` ends it."
            ) from error
    return {name: Use(using.profile, names[using]) for name, using in planned.items()}


def _options(using: Use, origin: str = "batch") -> ours.SessionOptions:
    return ours.SessionOptions(
        profile=using.profile.name, root=using.profile.root, model=using.model, origin=origin, attended=False
    )


def _begin(
    journal: Journal, output: str, items: Sequence[Item], planned: Plan, *, resume: bool
) -> tuple[str, Mapping[str, str]]:
    """Return the run that writes to `output`, a new one or the one to go on with, and its sessions by origin.

    Raises:
        ConfigError: an item that was begun is not the same any more.
    """
    run, sessions = _earlier(journal, output) if resume else ("", {})
    if not run:
        run = secrets.token_hex(8)
        journal.append(f"batch-{run}", BatchStarted(run, output))
        return run, {}
    for item in items:
        origin = _origin(run, item)
        if origin in sessions:
            _check_same(item, planned[str(item.id)], journal.of_session(sessions[origin]))
    return run, sessions


def _origin(run: str, item: Item) -> str:
    """Return what a session says it is for, when it is for this item of this run."""
    return f"batch:{run}:{item.id}"


def _earlier(journal: Journal, output: str) -> tuple[str, Mapping[str, str]]:
    """Return the last run that wrote to `output`, and its sessions by origin."""
    run, sessions = "", {}
    for entry in journal.opened():
        match entry.fact:
            case BatchStarted(run=known, output=path) if path == output:
                run = known
            case SessionOpened(origin=origin):
                sessions[origin] = entry.session
    return run, sessions


def _check_same(item: Item, using: Use, entries: Sequence[Entry]) -> None:
    """Make sure that an item which was begun is still the same.

    Raises:
        ConfigError: it would go on with another question, root, profile or model.
    """
    opened = entries[0].fact
    asked = _asked(entries)
    same = isinstance(opened, SessionOpened) and (opened.profile, opened.context, opened.model) == (
        using.profile.name,
        using.profile.context(),
        using.model,
    )
    if not same or asked != list(item.turns[: len(asked)]):
        raise ConfigError(
            f"The item {item.id!r} was begun with another prompt, root, profile or model (session "
            f"{entries[0].session}). Resume it with the same, or write to another output."
        )


class _Stopped(Exception):
    """The batch is being stopped; the item has no result."""


class _Batch:
    """A batch while it runs. What several threads use is used under the lock."""

    def __init__(
        self,
        link: Link,
        journal: Journal,
        file: OutputFile,
        planned: Plan,
        run: str,
        sessions: Mapping[str, str],
        done: Callable[[Result], None],
    ) -> None:
        self._link = link
        self._journal = journal
        self._file = file
        self._planned = planned
        self._run = run
        self._sessions = sessions
        self._done = done
        self._lock = threading.Lock()
        self._stopping = False
        self._talking: set[str] = set()
        """Sessions that may have a turn under way."""

    def run(self, items: Sequence[Item], concurrency: int) -> None:
        """Run the items; when one fails, or the person stops it, the others are cancelled and ended first."""
        pool = ThreadPoolExecutor(concurrency, "strongroom batch")  # takes them up in their order
        running = [pool.submit(self._one, item) for item in items]
        try:
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            self._stop(running)
            pool.shutdown(wait=False, cancel_futures=True)
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
            self._link.cancel(session)
        wait(running, _LAST_WORDS)

    def _one(self, item: Item) -> None:
        """Have one item's conversation, and write down what came of it."""
        using, origin = self._planned[str(item.id)], _origin(self._run, item)
        session = self._sessions.get(origin, "")
        if session:
            self._take_up(session, using, origin)
        else:
            session = self._new(using, origin)
        try:
            self._converse(item, session, begun=origin in self._sessions)
            result = summarize(item.id, session, self._entries(session))
        finally:
            with self._lock:
                self._talking.discard(session)
        with self._lock:
            self._file.write(result)
            self._done(result)
        self._link.request("session/close", schema.SessionParams(session_id=session), msgspec.Raw)

    def _new(self, using: Use, origin: str) -> str:
        params = schema.NewSessionParams(cwd=using.profile.root, meta={ours.OPTIONS: _options(using, origin)})
        return self._link.request("session/new", params, schema.NewSessionResult).session_id

    def _take_up(self, session: str, using: Use, origin: str) -> None:
        options = {ours.OPTIONS: _options(using, origin)}
        params = schema.TakeUpParams(session_id=session, cwd=using.profile.root, meta=options)
        self._link.request("session/resume", params, schema.SessionResult)

    def _converse(self, item: Item, session: str, *, begun: bool) -> None:
        """Go on with what was begun, and ask what was not; a turn that fails is the last."""
        if begun:
            self._turn(session, ours.CONTINUE_METHOD, schema.SessionParams(session_id=session))
        entries = self._entries(session)
        for text in item.turns[_answered(entries) :]:
            if _failed(entries):
                return
            prompt = schema.PromptParams(session_id=session, prompt=[{"type": "text", "text": text}])
            self._turn(session, "session/prompt", prompt)
            entries = self._entries(session)

    def _turn(self, session: str, method: str, params: schema.SessionParams | schema.PromptParams) -> None:
        """Wait for a turn's end; how it ended is in the journal."""
        before = _answered(self._entries(session))
        with self._lock:
            if self._stopping:
                raise _Stopped
            self._talking.add(session)
            turn = self._link.submit(method, params)  # under the lock: whoever stops the batch cancels it
        try:
            turn.result()
        except DaemonRefused:
            if _answered(self._entries(session)) == before:
                raise  # it is not the turn that failed
        if self._stopping:
            raise _Stopped

    def _entries(self, session: str) -> Sequence[Entry]:
        with self._lock:
            return self._journal.of_session(session)


def _asked(entries: Sequence[Entry]) -> list[str]:
    """Return the lines that were asked; a turn that was cancelled and asked again counts once."""
    asked: list[str] = []
    cancelled = False
    for entry in entries:
        match entry.fact:
            case TurnStarted(text=text):
                asked[len(asked) - cancelled :] = [text]
                cancelled = False
            case TurnEnded(status=status):
                cancelled = status == "cancelled"
            case _:
                continue
    return asked


def _answered(entries: Sequence[Entry]) -> int:
    """Return how many turns have an end other than cancelled: those are not asked again."""
    return sum(isinstance(entry.fact, TurnEnded) and entry.fact.status != "cancelled" for entry in entries)


def _failed(entries: Sequence[Entry]) -> bool:
    """Say whether the last turn that has ended has failed."""
    ends = [entry.fact for entry in entries if isinstance(entry.fact, TurnEnded)]
    return bool(ends) and ends[-1].status == "error"


def summarize(item: str | int, session: str, entries: Sequence[Entry]) -> Result:
    """Return an item's result from its session's facts: the last turn's answer, and all that was done."""
    end = TurnEnded(0, "error", "", kind="interrupted", message="The turn has no end.")
    steps, usage = 0, dict[str, int]()
    calls = dict[str, CallLine]()
    for entry in entries:
        match entry.fact:
            case Replied() as fact:
                steps += 1
                for name, count in fact.usage.items():
                    usage[name] = usage.get(name, 0) + count
            case CallStarted() as fact:
                calls[fact.call] = CallLine(fact.tool, _parsed(fact.arguments), False)
            case CallEnded() as fact:
                arguments = calls[fact.call].arguments if fact.call in calls else None
                calls[fact.call] = CallLine(fact.tool, arguments, fact.ok, fact.kind)
            case TurnEnded() as fact:
                end = fact
            case _:
                continue
    began = next((entry.at for entry in entries if isinstance(entry.fact, TurnStarted)), 0.0)
    seconds = round(entries[-1].at - began, 3) if entries and began else 0.0
    error = None if end.status == "ok" else {"kind": end.kind, "message": end.message}
    return Result(item, end.status, end.answer, session, steps, list(calls.values()), usage, seconds, error)


def _parsed(arguments: str) -> object:
    try:
        return msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return arguments
