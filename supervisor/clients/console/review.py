"""A call that waits for a person, as a text that can be edited. Pure.

Rule: what is shown is what runs, to the character. A text with anything in it that would not be seen is shown as JSON,
where such characters stand as \\u escapes; where a person puts one in, the text is shown again before it is sent.
"""

import json
from typing import Any, Final

from supervisor.acp import ours
from supervisor.clients.console.text import pretty
from supervisor.render import visible

_ON_ONE_LINE: Final = str.maketrans("\n\r\t", "   ")
_AGAIN: Final = "This held characters that cannot be seen; they are written out now. Enter runs it."


class Form:
    """One question's text.

    `text` is what to put into the box; `label` says what it is; `key` is the argument whose value it is, "" where it is
    the arguments as JSON.
    """

    def __init__(self, review: ours.Review) -> None:
        self.review = review
        self.key, self.text = _laid_out(review.arguments)
        self.edited: str | None = None
        self._given = self.text

    @property
    def label(self) -> str:
        """What the text is."""
        return self.key or "arguments, JSON"

    def settle(self, text: str) -> str:
        """Take the text as it stands in the box; return why it cannot run so, "" if it can.

        After "" `edited` is the arguments' JSON to send, None where nothing was changed. After anything else `text` is
        what shall stand in the box.
        """
        self.text = text
        self.edited = None
        if text == self._given:
            return ""
        if not self.review.editable:
            self.text = self._given
            return "This call cannot be edited."
        return self._settle_value(text) if self.key else self._settle_object(text)

    def _settle_value(self, text: str) -> str:
        arguments = json.dumps({self.key: text}, ensure_ascii=False)
        if _seen(text):
            self.edited = arguments
            return ""
        self.key, self.text = "", pretty(_ascii(arguments)) or _ascii(arguments)
        return _AGAIN

    def _settle_object(self, text: str) -> str:
        try:
            found = json.loads(text, object_pairs_hook=_once, parse_constant=_refused)
        except (ValueError, RecursionError) as error:
            return f"This is not JSON: {error}."
        if not isinstance(found, dict):
            return "The arguments must be a JSON object, {...}."
        if not _seen(text.translate(_ON_ONE_LINE)):
            self.text = pretty(text) or _ascii(text)
            return _AGAIN
        self.edited = text.translate(_ON_ONE_LINE)
        return ""


def _laid_out(arguments: str) -> tuple[str, str]:
    """Return the one argument that is edited by itself, and the text for the box."""
    try:
        given = json.loads(arguments or "{}", object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return "", pretty(arguments) or visible(arguments)
    if isinstance(given, dict) and len(given) == 1:
        [(key, value)] = given.items()
        if isinstance(value, str) and _seen(value) and _seen(key) and key:
            return key, value
    return "", pretty(arguments or "{}") or visible(arguments)


def _seen(text: str) -> bool:
    """Return whether every character of a text can be seen in the box."""
    return "\t" not in text and visible(text) == text


def _ascii(text: str) -> str:
    return "".join(char if _seen(char) or char == "\n" else json.dumps(char)[1:-1] for char in text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
