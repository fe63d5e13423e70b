"""Text for a terminal from anything, safely.

Rule: no byte of a model, a file or a tool reaches a terminal unescaped. Control characters, escape sequences and
bidirectional overrides are shown as what they are, newlines and tabs stay. In a name, what nobody sees is shown too.
"""

import re
import unicodedata
from typing import Any, Final

import msgspec

_KEPT: Final = frozenset("\n\t")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_ON_ONE_LINE: Final = str.maketrans("\n\r\t", "   ")
_FILLERS: Final = "\u115f\u1160\u3164\uffa0"
"""Letters of Hangul without ink; a terminal may leave room for them."""
_BLANKS: Final = re.compile(f"[ \t\n\r\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u2800{_FILLERS}]{{17,}}")
"""More of them in a row than anybody needs for a layout; whatever follows could be off the screen."""
_JOINERS: Final = frozenset("\u200c\u200d\ufe0f")
"""Format characters that ordinary text of some languages, and emoji, need."""
_WITHOUT_WIDTH: Final = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters without width: with the fillers, Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties."""
_LEFT_OUT: Final = re.compile(f"[{_WITHOUT_WIDTH}]+")
_UNSEEN: Final = re.compile(f"[{_WITHOUT_WIDTH}{_FILLERS}]")


def visible(text: str) -> str:
    """Return `text` with everything that a terminal would act on written out as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _harmless(char) else _escaped(char) for char in text)


def document(value: Any) -> str:
    """Return `value` as a JSON document to read, with what a terminal would act on as \\u escapes."""
    return _json_visible(msgspec.json.format(msgspec.json.encode(value)).decode())


def json_line(value: Any) -> str:
    """Return `value` as JSON on one line, with its end, and with the same escapes as a document's.

    What was JSON already (`msgspec.Raw`) may hold line ends between its values; within strings they are escaped.
    """
    return _json_visible(msgspec.json.encode(value).decode().translate(_ON_ONE_LINE)) + "\n"


def one_line(text: str, width: int) -> str:
    """Return `text` on one line, at most `width` characters, safe to show."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= width else flat[: max(0, width - 3)] + "..."


def name(text: str) -> str:
    """Return `text` as one line that hides nothing: what is not seen as escapes, long runs of blanks counted.

    So are line ends and tabs, and joiners: with and without one, two names look the same.
    """
    counted = _BLANKS.sub(lambda run: f" [{len(run[0])} blanks] ", text)
    seen = _UNSEEN.sub(lambda char: _escaped(char[0]), visible(counted))
    return seen.replace("\n", "\\n").replace("\t", "\\t")


def is_padded(text: str) -> bool:
    """Say whether a run of blanks may push off the screen what follows it; what has no width does not end a run."""
    return _BLANKS.search(_LEFT_OUT.sub("", text)) is not None


def _json_visible(text: str) -> str:
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(char if _harmless(char) else _json_escaped(char) for char in text)


def _harmless(char: str) -> bool:
    return char in _KEPT or char in _JOINERS or unicodedata.category(char) not in _HIDDEN


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def _json_escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
