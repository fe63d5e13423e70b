"""Result of a batch item, folded from its session's facts. Pure.

Facts ignored: BatchStarted, CallDecided, FaultsAllowed, ModelRetried, SessionChanged, SessionDeleted, SessionOpened,
ToolsChanged, TurnResumed, TurnStarted.
"""

from collections.abc import Sequence

import msgspec

from supervisor.clients.batch.items import CallLine, Result
from supervisor.journal.facts import CallEnded, CallStarted, Replied, TurnEnded, TurnStarted
from supervisor.journal.journal import JournalEntry


def summarize(item: str | int, session: str, entries: Sequence[JournalEntry]) -> Result:
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
