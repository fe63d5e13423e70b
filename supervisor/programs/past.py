"""What has been: `strongroom sessions`, `history` and `verify`, read from the journal alone.

Rule: reading changes nothing. Formats are pure functions of a session's entries.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from supervisor.agent.model import Message
from supervisor.agent.transcript import Transcript, shown, text_of
from supervisor.config import Settings
from supervisor.errors import ConfigError
from supervisor.facts import (
    CallEnded,
    CallStarted,
    Fact,
    ModelRetried,
    Replied,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from supervisor.journal import Entry, Verdict, open_journal
from supervisor.render import document, one_line, visible

_WIDTH: Final = 100


class SessionLine(msgspec.Struct, frozen=True):
    """One session in a listing."""

    session: str
    opened: str
    profile: str
    model: str
    root: str
    turns: int
    title: str
    state: str
    """"open" while a turn has no end (running, or interrupted), else how the last turn ended."""


def sessions(settings: Settings) -> list[SessionLine]:
    """Return all sessions, oldest first.

    Raises:
        JournalError: the journal cannot be read.
    """
    if not settings.journal.exists():
        return []
    with open_journal(settings.journal) as journal:
        found: dict[str, _Summary] = {}
        for entry in journal.everything():
            if isinstance(entry.fact, SessionOpened):
                found[entry.session] = _Summary(entry, entry.fact)
            elif entry.session in found:
                found[entry.session].add(entry.fact)
    return [summary.line() for summary in found.values()]


class _Summary:
    """What a listing needs of one session, folded fact by fact: a journal may be larger than memory."""

    def __init__(self, entry: Entry, opened: SessionOpened) -> None:
        self._entry = entry
        self._opened = opened
        self._asked = 0
        self._first = ""
        self._calls = 0
        self._tools: dict[str, None] = {}
        self._state = "-"

    def add(self, fact: Fact) -> None:
        match fact:
            case TurnStarted():
                self._asked += 1
                self._first = self._first or one_line(fact.text, _WIDTH)
                self._state = "open"
            case TurnEnded():
                self._state = fact.status
            case CallStarted():
                self._calls += 1
                self._tools[fact.tool] = None
            case _:
                return

    def line(self) -> SessionLine:
        calls = f"{self._calls} calls: {', '.join(self._tools)}" if self._calls else ""
        return SessionLine(
            self._entry.session,
            time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(self._entry.at)),
            self._opened.profile,
            self._opened.model,
            self._opened.context.working_directory,
            self._asked,
            self._first or one_line(calls, _WIDTH),
            self._state,
        )


def history(settings: Settings, wanted: str, form: str) -> str:
    """Return a session in one of `FORMATS`. `wanted` is its id, or the end of it where that is unique.

    Raises:
        ConfigError: no such session, or several.
        JournalError: the journal cannot be read.
    """
    if not settings.journal.exists():
        raise ConfigError(f"No session {wanted!r}: there is no journal yet.")
    with open_journal(settings.journal) as journal:
        entries = journal.of_session(wanted)
        if not entries:
            ids = [entry.session for entry in journal.opened() if entry.session.endswith(wanted)]
            if len(ids) != 1:
                problem = f"{len(ids)} sessions end in" if ids else "No session"
                raise ConfigError(f"{problem} {wanted!r}. `strongroom sessions` lists them.")
            entries = journal.of_session(ids[0])
    return FORMATS[form](entries)


def _as_text(entries: Sequence[Entry]) -> str:
    """Return an account whose lines cannot be mistaken: only what Strongroom says itself stands at the margin."""
    lines: list[str] = []
    running: dict[str, str] = {}
    for fact in [entry.fact for entry in entries]:
        match fact:
            case SessionOpened():
                using = one_line(f"profile {fact.profile}, model {fact.model or 'none'}", _WIDTH * 2)
                lines.append(f"session {entries[0].session}, {using}")
                lines.append(f"root {one_line(fact.context.working_directory, 4096)}")
            case TurnStarted():
                lines += ["", *_prefixed("> ", fact.text)]
            case Replied():
                lines += _prefixed("  ", text_of(fact.content).strip())
            case ModelRetried():
                lines.append(f"(asked the model again after {fact.kind}: {one_line(fact.message, _WIDTH)})")
            case CallStarted():
                running[fact.call] = f"* {one_line(fact.tool, _WIDTH)} {one_line(fact.arguments, _WIDTH)}"
            case CallEnded():
                lines.append(running.pop(fact.call, f"* {one_line(fact.tool, _WIDTH)}"))
                mark = "ok" if fact.ok else str(fact.kind)
                lines.append(f"    {mark}: {one_line(shown(fact) if fact.ok else fact.content, _WIDTH)}")
            case TurnEnded() if fact.status != "ok":
                why = f", {fact.kind}: {one_line(fact.message, _WIDTH)}" if fact.message else ""
                lines.append(f"(turn ended: {fact.status}{why})")
            case _:
                continue
    lines += [f"{call}\n    (no outcome: it runs, or nobody saw it end)" for call in running.values()]
    if Transcript(entry.fact for entry in entries).open_turn is not None:
        lines.append("(open: this turn has no end)")
    return "\n".join(lines)


def _prefixed(mark: str, text: str) -> list[str]:
    return [mark + line for line in visible(text).split("\n")] if text else []


def _messages(entries: Sequence[Entry]) -> list[Message]:
    """Return the messages as an API takes them: what was left open is shown closed."""
    transcript = Transcript(entry.fact for entry in entries)
    for fact in transcript.closed():
        transcript.apply(fact)
    return transcript.messages


def _as_json(entries: Sequence[Entry]) -> str:
    rows = [{"seq": entry.seq, "at": entry.at, "session": entry.session, "fact": entry.fact} for entry in entries]
    return document(rows)


def _as_anthropic(entries: Sequence[Entry]) -> str:
    return document(_messages(entries))


def _as_gemini(entries: Sequence[Entry]) -> str:
    """Return `contents` as in https://ai.google.dev/api/caching#Content."""
    names: dict[str, str] = {}
    contents = []
    for message in _messages(entries):
        role = "model" if message["role"] == "assistant" else "user"
        contents.append({"role": role, "parts": [_part(block, names) for block in message["content"]]})
    return document(contents)


def _part(block: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    match block["type"]:
        case "text":
            return {"text": block["text"]}
        case "tool_use":
            names[block["id"]] = block["name"]
            return {"functionCall": {"id": block["id"], "name": block["name"], "args": block["input"]}}
        case "tool_result":
            key = "error" if block.get("is_error") else "output"
            name = names.get(block["tool_use_id"], "")
            response = {key: block["content"]}
            return {"functionResponse": {"id": block["tool_use_id"], "name": name, "response": response}}
        case other:
            return {"text": f"({other})"}


FORMATS: Final[Mapping[str, Callable[[Sequence[Entry]], str]]] = MappingProxyType(
    {"text": _as_text, "json": _as_json, "anthropic": _as_anthropic, "gemini": _as_gemini}
)


def verify(settings: Settings) -> Verdict:
    """Check the whole journal.

    Raises:
        ConfigError: there is none.
        JournalError: it cannot be opened.
    """
    path = settings.journal
    if not path.exists():
        raise ConfigError(f"There is no journal yet at {path}.")
    with open_journal(path) as journal:
        return journal.verify()
