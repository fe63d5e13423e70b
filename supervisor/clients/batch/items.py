"""A batch's items and results: items in, a result of each, folded from its session's facts.

Rule: bad input is refused with its line before anything runs.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, CallDecided, FaultsAllowed, InstructionsRead, ModeChanged,
ModelRetried, ModelSwitched, OptionChosen, ReplyCut, Rewound, RuleRevoked, SessionChanged, SessionDeleted,
SessionOpened, ToolsChanged, TurnQuestioned, TurnResumed, TurnStarted, TurnSuspended, Unreadable.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from supervisor.agent.amount import UNIT
from supervisor.agent.models.answering_model import answered_by
from supervisor.clients.connection.attachments import type_at
from supervisor.errors import ConfigError
from supervisor.journal.facts import CallEnded, CallStarted, Compacted, ContentsRefused, Replied, TurnEnded, TurnStarted
from supervisor.journal.journal import JournalEntry
from supervisor.journal.receipt import Receipt
from supervisor.journal.suspended import suspended_in
from supervisor.rules.modes import PLANNED
from supervisor.tools.content_words import refusal_notice
from workers.wire.media_types import TYPES

_WHERE_THERE_IS: Final = frozenset({"error", "note", "data", "cost", "receipt"})
"""Fields that a result has only where they hold something."""

Status = Literal["ok", "error", "cancelled", "suspended"]


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One conversation to have: one prompt, or several turns."""

    id: str | int
    prompt: str | None = None
    prompts: tuple[str, ...] | None = None
    profile: str | None = None
    root: str | None = None
    model: str | None = None
    group: str | None = None
    technology: str | None = None
    environment: str | None = None
    schema: dict[str, Any] | None = None
    """The JSON Schema that its answers must be valid by."""
    check: str | None = None
    """The command that must pass where a turn changes something; None leaves it to the profile."""
    images: tuple[str, ...] = ()
    """Paths of images and documents that go along with the first prompt."""

    @property
    def turns(self) -> tuple[str, ...]:
        """The lines to ask, in order."""
        return self.prompts if self.prompts is not None else (self.prompt or "",)


class CallLine(msgspec.Struct, frozen=True):
    """One tool call in a result. `arguments` is the JSON object, or the raw text where it is none."""

    tool: str
    arguments: Any
    ok: bool
    error_kind: str | None = None
    would_change: str | msgspec.UnsetType = msgspec.UNSET
    """In plan mode, what it would have changed; else the line has no such field."""


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the output."""

    id: str | int
    status: Status
    answer: str
    session: str
    steps: int
    tool_calls: list[CallLine]
    usage: dict[str, int]
    seconds: float
    error: dict[str, str] | None = None
    note: str = ""
    """What the person is to know of it."""
    data: msgspec.Raw | None = None
    """The answer as JSON, where a schema asks for it."""
    cost: float = 0.0
    """Of its replies, in the currency of the budgets, where prices are known."""
    receipt: Receipt | None = None
    """What its last turn did, and what the answer claims without that."""

    def line(self) -> bytes:
        """Return the line, with every field that is not one of the last, and these where there are any."""
        fields = {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if name not in _WHERE_THERE_IS or getattr(self, name)
        }
        return msgspec.json.encode(fields) + b"\n"


def read_items(source: str, schema: dict[str, Any] | None = None, check: str | None = None) -> list[Item]:
    """Read the items of a file, or of standard input ("-"): JSON lines, or plain text with a prompt a line.

    Those that name no schema have `schema`, and those that name no check `check`.

    Raises:
        ConfigError: unreadable, not UTF-8, no items, a bad line, or an id that occurs twice.
    """
    name = "standard input" if source == "-" else source
    if source == "-" and sys.stdin is None:
        raise ConfigError("Standard input is closed.")
    try:
        text = (sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is not UTF-8: {error}.") from error
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise ConfigError(f"{name} holds no prompts.")
    as_json = lines[0][1].startswith("{")
    items = [_json_item(name, number, line) if as_json else Item(str(number), line) for number, line in lines]
    checks = [check if item.check is None else item.check for item in items]
    items = [
        msgspec.structs.replace(item, schema=schema if item.schema is None else item.schema, check=own)
        for item, own in zip(items, checks, strict=True)
    ]
    seen: set[str] = set()
    for item in items:
        if str(item.id) in seen:
            raise ConfigError(f"{name}: the id {item.id!r} occurs twice; each item needs its own.")
        seen.add(str(item.id))
    return items


def _json_item(name: str, number: int, line: str) -> Item:
    try:
        item = msgspec.json.decode(line, type=Item)
    except msgspec.DecodeError as error:
        raise ConfigError(f'{name}, line {number}: {error}. A line is {{"id", "prompt"}}, see --help.') from error
    if (item.prompt is None) == (item.prompts is None) or not all(turn.strip() for turn in item.turns or ("",)):
        raise ConfigError(f"{name}, line {number}: an item has either a `prompt` or `prompts`, and none is empty.")
    if bad := [path for path in item.images if not type_at(path)]:
        raise ConfigError(f"{name}, line {number}: {bad[0]!r} is not {TYPES}, or cannot be read.")
    return item


def summarize(item: str | int, session: str, entries: Sequence[JournalEntry]) -> Result:
    """Return an item's result from its session's facts: the last turn's answer, and all that was done."""
    end = TurnEnded(0, "error", "", kind="interrupted", message="The turn has no end.")
    steps, cost, usage = 0, 0, dict[str, int]()
    calls, checks, notes = dict[str, CallLine](), set[str](), list[str]()
    for entry in entries:
        match entry.fact:
            case Replied() | Compacted() as fact:
                cost += fact.cost
                for name, count in fact.usage.items():
                    usage[name] = usage.get(name, 0) + count
                steps, origin = (steps + 1, fact.origin) if isinstance(fact, Replied) else (steps, None)
                notes += [answered_by(origin)] if origin is not None else []
            case CallStarted(check=True) as fact:
                checks.add(fact.call)
            case CallStarted() as fact:
                calls[fact.call] = CallLine(fact.tool, _parsed(fact.arguments), False)
            case CallEnded() as fact if fact.call not in checks:
                arguments = calls[fact.call].arguments if fact.call in calls else None
                calls[fact.call] = CallLine(fact.tool, arguments, fact.ok, fact.kind, _would_change(fact))
            case ContentsRefused() as fact:
                notes.append(refusal_notice(fact))
            case TurnEnded() as fact:
                end = fact
            case _:
                continue
    began = next((entry.at for entry in entries if isinstance(entry.fact, TurnStarted)), 0.0)
    seconds = round(entries[-1].at - began, 3) if entries and began else 0.0
    asked = any(isinstance(entry.fact, TurnStarted) and entry.fact.answer_schema is not None for entry in entries)
    data = msgspec.Raw(b" ".join(end.answer.encode().splitlines())) if asked and end.status == "ok" else None
    status: Status = end.status
    error = None if status == "ok" else {"kind": end.kind, "message": end.message}
    if (suspended := suspended_in(entries)) is not None:
        status, error = "suspended", {"kind": suspended.kind, "message": suspended.why}
    did = steps, list(calls.values()), usage, seconds
    return Result(
        item,
        status,
        end.answer,
        session,
        *did,
        error,
        " ".join(filter(None, dict.fromkeys([*notes, end.note]))),
        data,
        cost / UNIT,
        end.receipt,
    )


def _would_change(ended: CallEnded) -> str | msgspec.UnsetType:
    _, planned, would_change = (ended.note if ended.ok else ended.content).partition(f"{PLANNED}. ")
    return would_change if planned else msgspec.UNSET


def _parsed(arguments: str) -> object:
    try:
        return msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return arguments
