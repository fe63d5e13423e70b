"""A stand-in that needs no key and no network: it turns plain commands into real tool calls.

Rule: it is not a language model and says so. Its reply depends on the request alone. What it says it did, a tool
result in the request shows.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import msgspec

from supervisor.agent.models.model import (
    NO_STEP,
    Block,
    Message,
    Model,
    ModelRequest,
    Progress,
    Reply,
    TextDelta,
    ToolUse,
)
from supervisor.agent.models.provider import Provider
from supervisor.config.settings import Settings
from supervisor.display.escape import one_line
from supervisor.errors import ModelError

_COMMANDS: Final = (
    (re.compile(r"^(?:read|show|cat)\s+(?P<path>.+)$", re.IGNORECASE), "read_file"),
    (re.compile(r"^(?:list|ls)\s+(?P<pattern>\S.*)$", re.IGNORECASE), "list_files"),
    (re.compile(r"^(?:list|ls)\s+(?P<path>\S.*)$", re.IGNORECASE), "list_directory"),
    (re.compile(r"^write\s+(?P<path>[^:]+):\s?(?P<content>.*)$", re.IGNORECASE | re.DOTALL), "write_file"),
    (re.compile(r"^fetch\s+(?P<url>\S+)$", re.IGNORECASE), "fetch_url"),
    (re.compile(r"^search\s+(?P<query>.+)$", re.IGNORECASE), "search_files"),
)
"""A command, and the tool that it becomes; the first whose tool the profile has is taken."""

_DIGEST: Final = re.compile(r"^digest\s+(?P<pattern>\S.*?)\s+into\s+(?P<target>\S.*)$", re.IGNORECASE)
_MANY: Final = re.compile(r"\s*;\s*")
_NOTICE: Final = re.compile(r"\((?:These tools|Meanwhile the person) ")
"""How what the transcript tells besides the person's lines begins."""
_DIGEST_MOST: Final = 40
_LISTS: Final = ("list_files", "list_directory", "search_files")
"""Tools whose result is a JSON list."""
_SHOWN: Final = 400
"""Characters of a text result."""
_LINES: Final = 20
"""Rows of a listing or a search, and characters of each."""
_WIDTH: Final = 160

_HELP: Final = (
    "I am Strongroom's offline stand-in, not a language model: I only turn plain commands into tool calls. "
    "Try: read PATH, list PATTERN, write PATH: TEXT, digest PATTERN into PATH, fetch URL, search WORD. "
    "Several commands are separated by a semicolon. With a key, use --model claude-..."
)


def answer(request: ModelRequest, show: Callable[[Progress], None]) -> Reply:
    """Return tool calls for a command, or a plain account of their results."""
    if request.step == NO_STEP:
        raise ModelError("bad_response", "The offline model writes no summaries.", billed=False)
    tools = {tool["name"] for tool in request.tools}
    line, results = _this_turn(request.messages)
    digest = _DIGEST.match(line)
    if digest:
        wanted, text = _digest(digest["pattern"], digest["target"], results, tools)
    elif results:
        wanted, text = [], "\n".join(_call_text(call, result) for call, result in results)
    else:
        wanted, text = _calls(line, tools)
    if text:
        show(TextDelta(text))
    calls = [
        (ToolUse(f"offline_{request.step}_{number}", name, msgspec.json.encode(given).decode()), dict(given))
        for number, (name, given) in enumerate(wanted)
    ]
    return Reply.at_once(text, calls, {"input_tokens": 0, "output_tokens": 0})


_Call = tuple[str, Mapping[str, str]]
_Pair = tuple[Block, Block]
"""A tool_use block and its tool_result."""


def _this_turn(messages: Sequence[Message]) -> tuple[str, list[_Pair]]:
    """Return the user's last line, and what tools returned since; what was before it is not looked at."""
    since = list(takewhile(lambda message: not _persons_line(message), reversed(messages)))[::-1]
    calls = {block["id"]: block for message in since for block in message["content"] if block["type"] == "tool_use"}
    results = [block for message in since for block in message["content"] if block["type"] == "tool_result"]
    line = _persons_line(messages[-len(since) - 1]) if len(since) < len(messages) else ""
    return line, [(calls[block["tool_use_id"]], block) for block in results]


def _persons_line(message: Message) -> str:
    """Return what the user says in a message; empty where it is not theirs, or has only results and notices."""
    blocks = message["content"] if message["role"] == "user" else ()
    lines = [block["text"].strip() for block in blocks if block["type"] == "text" and not _NOTICE.match(block["text"])]
    return lines[-1] if lines else ""


def _calls(line: str, tools: set[str]) -> tuple[list[_Call], str]:
    parts = [line] if re.match(r"write\s", line, re.IGNORECASE) else _MANY.split(line)
    calls: list[_Call] = []
    for part in filter(None, parts):
        fitting = [(found, tool) for pattern, tool in _COMMANDS if (found := pattern.match(part))]
        usable = [(found, tool) for found, tool in fitting if tool in tools]
        if usable:
            found, tool = usable[0]
            calls.append((tool, found.groupdict()))
        elif fitting:
            return [], f"I have no tool {fitting[0][1]} here, so I cannot: {part}"
        else:
            return [], _HELP
    return calls, "" if calls else _HELP


def _call_text(call: Block, result: Block) -> str:
    """Say what became of one call, for people."""
    given = call["input"]
    what = given.get("path") or given.get("pattern") or given.get("url") or given.get("query") or ""
    text: str = result["content"]
    if result.get("is_error"):
        error = msgspec.json.decode(text)["error"]
        return f"{call['name']} {what} failed: {error['message']} ({error['kind']})"
    rows, note = _rows(text) if call["name"] in _LISTS else (None, "")
    if rows is None:
        return f"{call['name']} {what}:\n{text if len(text) <= _SHOWN else text[:_SHOWN] + ' ...'}"
    more = [f"... and {len(rows) - _LINES} more"] if len(rows) > _LINES else []
    notes = [f"({note})"] if note else []
    return "\n".join([f"{call['name']} {what}:", *map(_line, rows[:_LINES]), *more, *notes])


def _rows(text: str) -> tuple[list[Any] | None, str]:
    """Return the rows of a result that is a JSON list, and its note; None where it is text."""
    body, _, note = text.partition("\n\n[")
    try:
        rows = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None, ""
    return rows if isinstance(rows, list) else None, note.removesuffix("]")


def _line(row: Any) -> str:
    """Return one row of a listing or a search on one line."""
    match row:
        case {"path": path, "line": number, "text": text}:
            line = f"{path}:{number}: {text}"
        case dict():
            line = "  ".join(map(str, row.values()))
        case _:
            line = str(row)
    return one_line(line, _WIDTH)


def _digest(pattern: str, target: str, results: Sequence[_Pair], tools: set[str]) -> tuple[list[_Call], str]:
    """List, read, write: one step each, chosen by what the results so far are of."""
    missing = {"list_files", "read_file", "write_file"} - tools
    if missing:
        return [], f"I have no tool {', '.join(sorted(missing))} here, so I cannot write a digest."
    if not results:
        return [("list_files", {"pattern": pattern})], "First, what is there."
    last = [pair for pair in results if pair[0]["name"] == results[-1][0]["name"]]
    if last[0][0]["name"] != "read_file" and last[0][1].get("is_error"):
        return [], _call_text(*last[0])
    match last[0][0]["name"]:
        case "list_files":
            rows, _ = _rows(last[0][1]["content"])
            paths = [path for path in rows or () if path != target][:_DIGEST_MOST]
            said = f"I read {len(paths)} notes." if paths else f"No file matches {pattern}: there is nothing to digest."
            return [("read_file", {"path": path}) for path in paths], said
        case "read_file":
            return [("write_file", {"path": target, "content": _summary(last)})], "I write the digest."
        case _:
            return [], f"The digest is in {target}. {last[0][1]['content']}"


def _summary(reads: Sequence[_Pair]) -> str:
    """Return the title and the first paragraph of each note that could be read."""
    lines = ["# Digest", ""]
    for call, result in reads:
        path = call["input"]["path"]
        if result.get("is_error"):
            lines.append(f"- {path}: could not be read")
            continue
        paragraphs = [part.strip() for part in result["content"].split("\n\n") if part.strip()]
        title = next((part.lstrip("# ").splitlines()[0] for part in paragraphs if part.startswith("#")), path)
        first = next((" ".join(part.split()) for part in paragraphs if not part.startswith("#")), "")
        lines += [f"## {title}", "", f"{first} ([{path}])", ""]
    return "\n".join(lines).rstrip() + "\n"


def _open(name: str, _settings: Settings) -> Model:
    from supervisor.agent.models.immediate import ImmediateModel

    return ImmediateModel(name, answer)


PROVIDER: Final = Provider(prefix="offline", open=_open)
