"""`strongroom batch`: many conversations, a few at a time, a durable line for each.

Rule: nothing is lost and nothing runs twice. An item's session names the batch and the item in the journal, so a
batch that was killed finds it again: a finished session only has its line written, an interrupted turn goes on
from its last fact, and calls whose outcome nobody saw are reported so.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import trio

from supervisor.agent.model import Model
from supervisor.agent.models import open_model
from supervisor.config import Settings
from supervisor.core import Core, with_core
from supervisor.errors import ConfigError
from supervisor.facts import (
    BatchStarted,
    CallEnded,
    CallStarted,
    Replied,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from supervisor.journal import Entry, Journal
from supervisor.profiles import Profile, holds, resolve
from supervisor.programs.items import CallLine, Item, OutputFile, Result
from supervisor.session import Session, new_id

Plan = Mapping[str, tuple[Profile, Model]]
"""What each item runs with, by its id."""


def plan(
    settings: Settings,
    items: Sequence[Item],
    output: Path,
    profile: str | None,
    root: str | None,
    model: str | None,
) -> Plan:
    """Resolve every item's profile, root and model before anything runs. Items with the same share one model.

    Raises:
        ConfigError: one of them cannot be used, or an agent could write the output.
    """
    models: dict[str | None, Model] = {}
    found: dict[str, tuple[Profile, Model]] = {}
    for item in items:
        name = item.model or model
        if name not in models:
            models[name] = open_model(name, settings)
        using = resolve(settings, item.profile or profile, item.root or root)
        if using.writable and holds(Path(using.root), output):
            raise ConfigError(f"The output {str(output)!r} lies in the root {using.root!r}, where the agent writes.")
        found[str(item.id)] = (using, models[name])
    return found


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

    `done` is given each result after it is on the disk.

    Raises:
        ConfigError: the output cannot be used, or an item that was begun is not the same any more.
        OutputError: a result could not be written; `--resume` writes it later.
        JournalError: something could not be recorded.
        KeyboardInterrupt: the batch was stopped; `--resume` goes on with it.
    """
    file = OutputFile(output, resume=resume)
    try:
        open_items = [item for item in items if str(item.id) not in file.statuses]

        async def use(core: Core) -> None:
            run, sessions = _begin(core.journal, str(output.absolute()), open_items, planned, resume=resume)
            left = Counter(planned[str(item.id)][0] for item in open_items)
            for model in {id(model): model for _, model in planned.values()}.values():
                core.adopt(model)
            free = trio.Semaphore(concurrency)

            async def one(item: Item) -> None:
                origin = _origin(run, item)
                profile, model = planned[str(item.id)]
                result = await _converse(core, item, profile, model, origin, sessions.get(origin))
                file.write(result)
                done(result)
                free.release()
                left[profile] -= 1
                if not left[profile]:
                    await core.release(profile)

            async with trio.open_nursery() as nursery:
                for item in open_items:  # begun in their order: a task that waits its turn would not be
                    await free.acquire()
                    nursery.start_soon(one, item)

        trio.run(with_core, settings, use)
        return [file.statuses[str(item.id)] for item in items]
    finally:
        file.close()


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
        journal.append(new_id(), BatchStarted(run, output))
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


def _check_same(item: Item, using: tuple[Profile, Model], entries: Sequence[Entry]) -> None:
    """Make sure that an item which was begun is still the same.

    Raises:
        ConfigError: it would go on with another question, root, profile or model.
    """
    profile, model = using
    opened = entries[0].fact
    asked = _asked(entries)
    same = isinstance(opened, SessionOpened) and (opened.profile, opened.context, opened.model) == (
        profile.name,
        profile.context(),
        model.name,
    )
    if not same or asked != list(item.turns[: len(asked)]):
        raise ConfigError(
            f"The item {item.id!r} was begun with another prompt, root, profile or model (session "
            f"{entries[0].session}). Resume it with the same, or write to another output."
        )


async def _converse(core: Core, item: Item, profile: Profile, model: Model, origin: str, earlier: str | None) -> Result:
    config = core.settings.config
    session = Session(
        core.journal,
        core.pools(profile),
        profile,
        model,
        origin=origin,
        session=earlier,
        max_steps=config.max_steps,
        degraded=config.allow_degraded,
    )
    ended = await session.resume() or _last_end(core.journal.of_session(session.id))
    for text in item.turns[_answered(core.journal.of_session(session.id)) :]:
        if ended is not None and ended.status == "error":
            break
        ended = await session.ask(text)
    return summarize(item.id, session.id, core.journal.of_session(session.id))


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


def _last_end(entries: Sequence[Entry]) -> TurnEnded | None:
    """Return how the last turn of a session that is taken up again had ended."""
    return next((entry.fact for entry in reversed(entries) if isinstance(entry.fact, TurnEnded)), None)


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
