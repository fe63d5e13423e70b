"""A call of a program as the line that a person reads and edits. Pure.

Rule: the line and the call say the same, to the character: words are quoted where they must be, and no shell reads
them. A call that no line can say has none. How long it may take is no part of the line, and stays with the call.
"""

import json
import math
import shlex
from collections.abc import Iterable
from typing import Any, Final

from supervisor.display.escape import name, one_line
from supervisor.display.unique_names import unique_names
from workers.catalog import find_tool

_TEXTS: Final = ("content", "new")
"""Arguments that are new text of a file."""


def words_of(tool: str, arguments: str) -> str | None:
    """Return the words of a call of a program as one line; None for any other call."""
    row = find_tool(tool)
    if row is None or row.runs != "program":
        return None
    match _untimed(arguments)[0]:
        case {"command": str(command), **rest} if set(rest) <= {"args"}:
            given = rest.get("args", [])
            if isinstance(given, list) and all(isinstance(each, str) for each in given):
                return " ".join(map(_quoted, [command, *given]))
    return None


def _quoted(word: str) -> str:
    """Return a word as `shlex.split` reads it back, with as few quotes as there can be."""
    if "'" not in word:
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def as_arguments(words: str, before: str = "{}") -> str:
    """Return the arguments that a line of words says, as JSON; with the time of those that they were `before`.

    Raises:
        ValueError: a quote is not closed, or there is no word.
    """
    command, *args = shlex.split(words) or [""]
    if not command:
        raise ValueError("there is no program")
    return json.dumps({"command": command, "args": args, **time_of(before)}, ensure_ascii=False)


def typed_call(line: str, tools: Iterable[str]) -> tuple[str, str] | None:
    """Return the call, a tool and its arguments, that runs a line which a person typed; None where no tool runs any.

    Raises:
        ValueError: as `as_arguments`.
    """
    for tool in tools:
        row = find_tool(tool)
        if row is not None and row.runs == "script":
            return tool, json.dumps({"command": line}, ensure_ascii=False)
        if row is not None and row.runs == "program":
            return tool, as_arguments(line)
    return None


def text_of(tool: str, arguments: str) -> str:
    """Return what a call runs as a person reads it; where it runs nothing, its arguments."""
    words = words_of(tool, arguments)
    if words is not None:
        return words
    row = find_tool(tool)
    match _untimed(arguments)[0]:
        case {"command": str(script), **rest} if row is not None and row.runs == "script" and not rest:
            return script
    return arguments


def title_of(tool: str, arguments: str, width: int = 100) -> str:
    """Return a call in a few words, safe to show: its tool, and what it is about."""
    about: Any = words_of(tool, arguments)
    if about is not None:
        return one_line(f"{tool} {name(about)}", width)
    row = find_tool(tool)
    about = _object(arguments).get(row.subject) if row is not None else None
    return one_line(f"{tool} {name(about)}" if isinstance(about, str) else tool, width)


def text_argument(tool: str, arguments: str) -> tuple[str, dict[str, str]] | None:
    """Return which argument of a call is new text of a file, and all of them; None where there is no such text."""
    row, given = find_tool(tool), _object(arguments)
    if row is None or row.kind != "edit" or not all(isinstance(each, str) for each in given.values()):
        return None
    return next(((key, given) for key in _TEXTS if key in given), None)


def time_of(arguments: str) -> dict[str, float]:
    """Return what of a command's arguments says how long it may take; nothing where that is no number."""
    return _untimed(arguments)[1]


def _untimed(arguments: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Return a command's arguments without their time, and that."""
    given = _object(arguments)
    time = given.pop("timeout_s", None)
    if isinstance(time, int | float) and not isinstance(time, bool) and 0 < time < math.inf:
        return given, {"timeout_s": time}
    return _object(arguments), {}


def _object(arguments: str) -> dict[str, Any]:
    try:
        found = json.loads(arguments or "{}", object_pairs_hook=unique_names)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
