"""Earlier runs of a batch, read from the journal.

Rule: an item that was started is resumed only with the same prompts, schema, root, profile, model and mode.

Facts ignored: BudgetChanged, BudgetReserved, CallDecided, CallEnded, CallStarted, Compacted, ContentsRefused,
FaultsAllowed, InstructionsRead, ModeChanged, ModelRetried, ModelSwitched, OptionChosen, Replied, ReplyCut, Rewound,
RuleRevoked, SessionChanged, SessionDeleted, ToolsChanged, TurnQuestioned, TurnResumed, TurnSuspended, Unreadable.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from supervisor.clients.batch.batch_plan import Plan, Use
from supervisor.clients.batch.items import Item
from supervisor.errors import ConfigError
from supervisor.journal.facts import BatchStarted, SessionOpened, TurnEnded, TurnStarted
from supervisor.journal.journal import Journal, JournalEntry


class BatchRun(NamedTuple):
    """A batch that may go on."""

    run: str
    sessions: Mapping[str, str]
    """Its sessions so far, by origin."""
    budget: dict[str, float] | None
    """In place of the configured one."""


def begin(
    journal: Journal,
    output: str,
    items: Sequence[Item],
    planned: Plan,
    budget: dict[str, float] | None = None,
    *,
    resume: bool,
) -> BatchRun:
    """Return the batch that writes to `output`, a new one or the one to resume.

    What its `budget` is said to be now goes before what it was.

    Raises:
        ConfigError: an item that was started has changed.
    """
    run, sessions = _earlier(journal, output) if resume else ("", {})
    if not run:
        run = secrets.token_hex(8)
        journal.append(_name(run), BatchStarted(run, output, budget))
        return BatchRun(run, {}, budget)
    for item in items:
        origin = origin_of(run, item)
        if origin in sessions:
            _check_same(item, planned[str(item.id)], journal.of_session(sessions[origin]))
    told = [entry.fact.budget for entry in journal.of_session(_name(run)) if isinstance(entry.fact, BatchStarted)]
    before = next((each for each in reversed(told) if each is not None), None)
    if budget is not None and (budget := {**(before or {}), **budget}) != before:
        journal.append(_name(run), BatchStarted(run, output, budget))
    return BatchRun(run, sessions, before if budget is None else budget)


def _name(run: str) -> str:
    """Return what a run's own facts stand under."""
    return f"batch-{run}"


def origin_of(run: str, item: Item) -> str:
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


def _check_same(item: Item, using: Use, entries: Sequence[JournalEntry]) -> None:
    """Make sure that an item which was started is still the same.

    Raises:
        ConfigError: it has another prompt, schema, root, profile, model or mode now.
    """
    opened = entries[0].fact
    asked = _submitted_lines(entries)
    same = isinstance(opened, SessionOpened) and (opened.profile, opened.context, opened.model, opened.mode) == (
        using.profile.name,
        using.profile.context(),
        using.model,
        using.mode,
    )
    turns = [entry.fact for entry in entries if isinstance(entry.fact, TurnStarted)]
    same &= all(turn.answer_schema == item.schema and item.check in (None, turn.check) for turn in turns)
    if not same or asked != list(item.turns[: len(asked)]):
        raise ConfigError(
            f"The item {item.id!r} was started with another prompt, schema, root, profile, model or mode, or with "
            f"another check (session {entries[0].session}). Resume it with the same, or write to another output."
        )


def _submitted_lines(entries: Sequence[JournalEntry]) -> list[str]:
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


def answered(entries: Sequence[JournalEntry]) -> int:
    """Return how many turns have an end other than cancelled: those are not asked again."""
    return sum(isinstance(entry.fact, TurnEnded) and entry.fact.status != "cancelled" for entry in entries)


def has_failed(entries: Sequence[JournalEntry]) -> bool:
    """Say whether the last turn that has ended has failed."""
    ends = [entry.fact for entry in entries if isinstance(entry.fact, TurnEnded)]
    return bool(ends) and ends[-1].status == "error"
