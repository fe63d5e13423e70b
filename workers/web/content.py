"""Conversion of a response's body to text.

Rule: text is what its type says is text; anything else is refused by name and never guessed at, unless there is no
type. The result is for a reader: no control characters but line ends and tabs.
"""

import re
from typing import Final

from workers.errors import ToolError
from workers.url import Url
from workers.web.charset import text_of
from workers.web.html_to_flat_text import flat_text
from workers.web.html_to_markdown import markdown

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_NAMES: Final = (
    "json xml yaml x-yaml toml javascript x-javascript ecmascript typescript sql graphql x-sh x-ndjson "
    "jsonl x-httpd-php xml-dtd x-tex x-latex x-python x-ruby x-perl manifest+json http rtx"
)
_TEXT: Final = frozenset(_TEXT_NAMES.split())
"""Subtypes of application/ that are text."""

_SUFFIXES: Final = ("+json", "+xml", "+yaml", "+text")
_TYPE: Final = re.compile(r"\s*([a-z0-9!#$&^_.+-]{1,80}/[a-z0-9!#$&^_.+-]{1,80})\s*(?:;|,|$)")
_CHARSET: Final = re.compile(r"""charset\s{0,5}=\s{0,5}["']?([a-z0-9_.:-]{1,40})""")
_HTML_BEGINS: Final = re.compile(r"\s{0,200}(?:<!doctype html|<html|<head|<body)", re.IGNORECASE)
_HARMFUL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

_PIECE: Final = 300
"""Characters of an error's page that its message repeats."""


def readable(data: bytes, content_type: str, url: Url, seconds: float) -> tuple[str, str]:
    """Return the text of a body, and a note; HTML becomes Markdown in about `seconds`.

    Raises:
        ToolError: `not_text`, with the type; `fetch_failed` for what is compressed once more.
    """
    kind, charset = _parts(content_type)
    if kind and not (kind in _HTML or _is_text(kind)):
        raise _not_text(url, f"of the type {kind}", kind)
    if data.startswith(b"\x1f\x8b"):
        raise ToolError("fetch_failed", f"The page at {url.host} is still compressed. Fetch another page.")
    text = text_of(data, charset, markup=kind in _HTML or "xml" in kind or not kind)
    if "\0" in text:
        raise _not_text(url, f"binary, though it claims to be {kind or 'nothing'}", kind)
    if kind in _HTML or (not kind and _HTML_BEGINS.match(text)):
        text, note = markdown(text, url, seconds)
        return harmless(text), note
    return harmless(text), ""


def piece_of(data: bytes, content_type: str) -> str:
    """Return the beginning of an error's page in one line; nothing where it is no text."""
    kind, charset = _parts(content_type)
    if kind and not (kind in _HTML or _is_text(kind)):
        return ""
    text = text_of(data, charset, markup=kind in _HTML)
    words = " ".join(harmless(flat_text(text)[0] if kind in _HTML else text).split())
    return words[:_PIECE] + ("..." if len(words) > _PIECE else "")


def harmless(text: str) -> str:
    """Return `text` with plain line ends, and with U+FFFD for every other control character and half of a pair."""
    return _HARMFUL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def _parts(content_type: str) -> tuple[str, str]:
    """Return the type and the charset of a header Content-Type, in lower case; what it lacks is empty."""
    lower = content_type[:1000].lower()
    kind = _TYPE.match(lower)
    charset = _CHARSET.search(lower)
    return kind[1] if kind else "", charset[1] if charset else ""


def _is_text(kind: str) -> bool:
    family, _, name = kind.partition("/")
    return family == "text" or (family == "application" and name in _TEXT) or kind.endswith(_SUFFIXES)


def _not_text(url: Url, what: str, kind: str) -> ToolError:
    message = f"The page at {url.host} is {what}. Only text can be fetched: HTML, plain text, JSON, XML, source code."
    return ToolError("not_text", message, content_type=kind)
