"""What has been: `strongroom sessions`, `history` and `verify`, read from the journal alone.

Rule: reading changes nothing. Formats are pure functions of a session's entries.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from supervisor.agent.transcript import Transcript, shown, text_of
from supervisor.config import Settings
from supervisor.errors import ConfigError
from supervisor.facts import (
    CallEnded,
    CallStarted,
    ModelRetried,
    Replied,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from supervisor.journal import Entry, Verdict, open_journal
from supervisor.programs.render import document, one_line, visible

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
        found: dict[str, list[Entry]] = {}
        for entry in journal.everything():
            found.setdefault(entry.session, []).append(entry)
    return [line for entries in found.values() if (line := _line(entries)) is not None]


def _line(entries: Sequence[Entry]) -> SessionLine | None:
    opened = entries[0].fact
    if not isinstance(opened, SessionOpened):
        return None
    asked = [entry.fact.text for entry in entries if isinstance(entry.fact, TurnStarted)]
    ends = [entry.fact.status for entry in entries if isinstance(entry.fact, TurnEnded)]
    calls = [entry.fact.tool for entry in entries if isinstance(entry.fact, CallStarted)]
    title = asked[0] if asked else f"{len(calls)} calls: {', '.join(dict.fromkeys(calls))}" if calls else ""
    state = "open" if len(ends) < len(asked) else ends[-1] if ends else "-"
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entries[0].at))
    root = opened.context.working_directory
    return SessionLine(
        entries[0].session,
        when,
        opened.profile,
        opened.model,
        root,
        len(asked),
        one_line(title, _WIDTH),
        state,
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
    lines: list[str] = []
    running: dict[str, str] = {}
    for entry in entries:
        match entry.fact:
            case SessionOpened() as fact:
                lines.append(f"session {entry.session}, profile {fact.profile}, model {fact.model or 'none'}")
                lines.append(f"root {visible(fact.context.working_directory)}")
            case TurnStarted() as fact:
                lines += ["", f"> {visible(fact.text)}"]
            case Replied() as fact:
                text = text_of(fact.content)
                lines += [visible(text)] if text.strip() else []
            case ModelRetried() as fact:
                lines.append(f"  (asked the model again after {fact.kind}: {one_line(fact.message, _WIDTH)})")
            case CallStarted() as fact:
                running[fact.call] = f"  {visible(fact.tool)} {one_line(fact.arguments, _WIDTH)}"
            case CallEnded() as fact:
                lines.append(running.pop(fact.call, f"  {visible(fact.tool)}"))
                mark = "ok" if fact.ok else str(fact.kind)
                lines.append(f"    {mark}: {one_line(shown(fact) if fact.ok else fact.content, _WIDTH)}")
            case TurnEnded() as fact if fact.status != "ok":
                lines.append(f"  (turn ended: {fact.status}, {fact.kind}. {visible(fact.message)})")
            case _:
                continue
    lines += [f"{call}  (no outcome)" for call in running.values()]
    if Transcript(entry.fact for entry in entries).open_turn is not None:
        lines.append("  (interrupted: this turn has no end)")
    return "\n".join(lines)


def _as_json(entries: Sequence[Entry]) -> str:
    rows = [{"seq": entry.seq, "at": entry.at, "session": entry.session, "fact": entry.fact} for entry in entries]
    return document(rows)


def _as_anthropic(entries: Sequence[Entry]) -> str:
    return document(Transcript(entry.fact for entry in entries).messages)


def _as_gemini(entries: Sequence[Entry]) -> str:
    """Return `contents` as in https://ai.google.dev/api/caching#Content."""
    names: dict[str, str] = {}
    contents = []
    for message in Transcript(entry.fact for entry in entries).messages:
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
