"""Lines of a TOML text at which its keys stand.

Rule: for a text that is valid as a whole. Each statement is read by the standard library's reader, in the table that it
stands in; nothing here knows TOML besides.
"""

import tomllib
from collections.abc import Iterator
from typing import Any, Final

KeyPath = tuple[str | int, ...]
"""Keys, and numbers of a list's items that begin with 1, as in `config_errors`."""
_BLANK: Final = ("", "#")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1, at which each key and each table begins; of a key in several places the first."""
    found: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, statement in _statements(text):
        if statement.lstrip().startswith("["):
            table = _table(statement, counts)
            paths: Iterator[KeyPath] = iter(table[:end] for end in range(1, len(table) + 1))
        else:
            paths = _paths(tomllib.loads(statement), table)
        for path in paths:
            found.setdefault(path, line)
    return found


def line_of(lines: dict[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of a value, or of what it is part of; None where neither is in the text."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with the line that it begins at: as few lines as can be read by themselves."""
    begun, at = "", 1
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not begun:
            at = number
            if line.strip()[:1] in _BLANK:
                continue
        begun += line
        try:
            tomllib.loads(begun)
        except tomllib.TOMLDecodeError:
            continue
        yield at, begun
        begun = ""


def _table(header: str, counts: dict[KeyPath, int]) -> KeyPath:
    """Return the path of a table, of the last item where it is one of a list."""
    path: KeyPath = ()
    value: Any = tomllib.loads(header)
    is_item = header.lstrip().startswith("[[")
    while value:
        if isinstance(value, list):
            value = value[0]
            continue
        ((name, value),) = value.items()
        path = (*path, name)
        if is_item and value == [{}]:
            counts[path] = counts.get(path, 0) + 1
            value = {}
        if path in counts:
            path = (*path, counts[path])
    return path


def _paths(value: Any, above: KeyPath) -> Iterator[KeyPath]:
    for name, inner in value.items():
        yield (*above, name)
        if isinstance(inner, dict):
            yield from _paths(inner, (*above, name))
