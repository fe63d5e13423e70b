"""The head of a Markdown file: lines of keys and values between two lines of three hyphens. Pure.

Rule: of YAML only `key: value` on one line is read, with quotes or without; anything else in a head is left alone.
"""

import re
from typing import Final, NamedTuple

_HEAD: Final = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_KEY: Final = re.compile(r"^([a-z][a-z-]*)[ \t]*:(.*)$", re.MULTILINE)


class MarkdownText(NamedTuple):
    """The keys of a file's head, and the text after it."""

    keys: dict[str, str]
    text: str


def without_head(text: str) -> MarkdownText:
    """Return a file as its head, if it has one, and its text."""
    text = text.replace("\r\n", "\n")
    head = _HEAD.match(text)
    if head is None:
        return MarkdownText({}, text)
    keys = {key: value.strip(" \t").strip("'\"") for key, value in _KEY.findall(head[1])}
    return MarkdownText(keys, text[head.end() :])
