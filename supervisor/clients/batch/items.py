"""A batch's input and output: items in, result lines out, each folded from its session's facts.

Rule: a result line is written whole and synced before the next; a torn last line (the process was killed) is cut
off on resume, never repaired by guessing. Items that are suspended stand at the end, and are taken up again on resume.
Bad input is refused with its line before anything runs.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, CallDecided, FaultsAllowed, ModeChanged, ModelRetried,
ModelSwitched, OptionChosen, RuleRevoked, SessionChanged, SessionDeleted, SessionOpened, ToolsChanged, TurnQuestioned,
TurnResumed, TurnStarted, TurnSuspended, Unreadable.
"""

import errno
import fcntl
import os
import stat
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from supervisor.agent.amount import UNIT
from supervisor.clients.connection.attachments import type_at
from supervisor.errors import ConfigError, OutputError, reason
from supervisor.journal.facts import CallEnded, CallStarted, Replied, TurnEnded, TurnStarted
from supervisor.journal.journal import JournalEntry
from supervisor.journal.suspended import suspended_in
from supervisor.rules.modes import PLANNED
from workers.wire.media_types import TYPES

_LINE_START: Final = b'{"id":'
"""The beginning of each result line, which tells a torn line from somebody else's file."""


_WHERE_THERE_IS: Final = frozenset({"error", "note", "data", "cost"})
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

    def line(self) -> bytes:
        """Return the line, with every field that is not one of the last, and these where there are any."""
        fields = {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if name not in _WHERE_THERE_IS or getattr(self, name)
        }
        return msgspec.json.encode(fields) + b"\n"


def read_items(source: str, schema: dict[str, Any] | None = None) -> list[Item]:
    """Read the items of a file, or of standard input ("-"): JSON lines, or plain text with a prompt a line.

    Those that name no schema have `schema`.

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
    items = [msgspec.structs.replace(item, schema=item.schema or schema) for item in items]
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
    calls = dict[str, CallLine]()
    for entry in entries:
        match entry.fact:
            case Replied() as fact:
                steps, cost = steps + 1, cost + fact.cost
                for name, count in fact.usage.items():
                    usage[name] = usage.get(name, 0) + count
            case CallStarted() as fact:
                calls[fact.call] = CallLine(fact.tool, _parsed(fact.arguments), False)
            case CallEnded() as fact:
                arguments = calls[fact.call].arguments if fact.call in calls else None
                calls[fact.call] = CallLine(fact.tool, arguments, fact.ok, fact.kind, _would_change(fact))
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
    return Result(item, status, end.answer, session, *did, error, end.note, data, cost / UNIT)


def _would_change(ended: CallEnded) -> str | msgspec.UnsetType:
    _, planned, would_change = (ended.note if ended.ok else ended.content).partition(f"{PLANNED}. ")
    return would_change if planned else msgspec.UNSET


def _parsed(arguments: str) -> object:
    try:
        return msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return arguments


class OutputFile:
    """The results on the disk.

    Args:
        path: the file; made where it does not exist.
        resume: keep the results that are there; else a file that holds any is refused.

    Raises:
        ConfigError: it cannot be written, or already holds results.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.statuses: dict[str, str] = {}
        self._writing, self._syncing = threading.Lock(), threading.Lock()
        self._written = self._synced = 0
        """Results, and those of them that are durable."""
        self._failed = self._torn = False
        try:
            self._file = open(path, "ab+", buffering=0, opener=_open)  # noqa: SIM115 - closed by `close`
        except (OSError, ValueError) as error:
            raise ConfigError(f"The output {str(path)!r} cannot be written: {reason(error)}.") from error
        try:
            self._begin(path, resume)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, path: Path, resume: bool) -> None:
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            raise ConfigError(f"The output {str(path)!r} is not a regular file; results must be kept.")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until the file is closed
            self._file.seek(0)
            content = self._file.read()
        except BlockingIOError as error:
            raise ConfigError(f"Another batch is writing to {str(path)!r}. Let it end, or stop it first.") from error
        except OSError as error:
            raise ConfigError(f"The output {str(path)!r} cannot be read: {error.strerror or error}.") from error
        if content and not resume:
            raise ConfigError(
                f"The output {str(path)!r} already exists. Use --resume to resume its batch, or name another file."
            )
        whole = content.rfind(b"\n") + 1
        ended = self._read(path, content[:whole].splitlines(keepends=True))
        torn = content[whole:]
        if not (torn.startswith(_LINE_START) or _LINE_START.startswith(torn)):
            raise ConfigError(f"{path} does not end in a result of a batch; nothing was changed.")
        if len(content) > ended:
            self._file.truncate(ended)

    def _read(self, path: Path, lines: Sequence[bytes]) -> int:
        """Read the results; return how many bytes are of items that are not suspended, which come first."""
        ended = seen = 0
        for number, line in enumerate(lines, 1):
            seen += len(line)
            try:
                result = msgspec.json.decode(line)
                if result["status"] != "suspended":
                    self.statuses[str(result["id"])] = result["status"]
                    ended = seen
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError) as error:
                raise ConfigError(f"{path}, line {number} is not a result of a batch; nothing was changed.") from error
        return ended

    def write(self, result: Result) -> None:
        """Append one result, durable when this returns, in any thread: those that wait share one sync.

        Raises:
            OutputError: the disk does not take it.
        """
        try:
            with self._writing:
                self._append(result.line())
                mine = self._written
            with self._syncing:
                if self._synced < mine:
                    self._sync()
        except OSError as error:
            raise OutputError(f"The output cannot be written: {error.strerror}. Use --resume later.") from error
        self.statuses[str(result.id)] = result.status

    def _append(self, line: bytes) -> None:
        """Write a line; none follows a part of one, which could not be resumed."""
        if self._torn:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rest, self._torn = memoryview(line), True
        while rest:
            rest = rest[self._file.write(rest) :]
        self._torn = False
        self._written += 1

    def _sync(self) -> None:
        """Make durable what is written. What a sync has failed for is lost, and the next one may not say so."""
        if self._failed:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        covered, self._failed = self._written, True
        os.fsync(self._file.fileno())
        self._synced, self._failed = covered, False

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _open(path: str, flags: int) -> int:
    """Open without waiting for the other end of a FIFO; what is no file is refused afterwards."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
