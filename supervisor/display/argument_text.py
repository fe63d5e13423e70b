"""Arguments of a call as people read them: text as text, every other value as JSON. Pure.

Rule: all of it is visible (`supervisor.display.escape`), and values are as they were written. A name stands at the
margin, and a text of several lines below it, further in. What is no object of JSON is shown as it was written.
"""

import json
from typing import Final

import msgspec

from supervisor.display.escape import document, json_line, name, visible
from supervisor.display.unique_names import unique_names

_FURTHER: Final = "  "
_LINE: Final = 80
"""Characters of a value that stands on one line."""


def argument_text(arguments: str) -> str:
    """Return the arguments of a call, raw JSON, to be read."""
    try:
        given = json.loads(arguments or "{}", object_pairs_hook=unique_names)
        raw = msgspec.json.decode(arguments or "{}", type=dict[str, msgspec.Raw])
        return "\n".join(_argument(name(key), given[key], value) for key, value in raw.items())
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return visible(arguments)


def _argument(key: str, value: object, raw: msgspec.Raw) -> str:
    if not isinstance(value, str) or not value.strip() or _is_json(value):
        line = json_line(raw).removesuffix("\n")
        return f"{key}: {line if len(line) <= _LINE else document(raw)}".replace("\n", f"\n{_FURTHER}")
    if "\n" not in value:
        return f"{key}: {visible(value)}"
    lines = visible(value).removesuffix("\n").split("\n")
    return "\n".join([f"{key}:", *(f"{_FURTHER}{line}" for line in lines)])


def _is_json(text: str) -> bool:
    """Say whether a text could be taken for another value than itself."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
