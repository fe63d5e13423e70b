"""Text for a terminal from anything, safely.

Rule: no byte of a model, a file or a tool reaches a terminal unescaped, and nothing in it is there unseen. Control
characters, escape sequences, and whatever Unicode leaves out of a display or shows as a blank are written out as
escapes; newlines and tabs stay, and so do the joiners and selectors that emoji and some scripts are spelt with. In a
name those are escapes as well, and a word whose letters are not what they look like is told.
"""

import re
import unicodedata
from typing import Any, Final

import msgspec

_ON_ONE_LINE: Final = str.maketrans("\n\r\t", "   ")
_FILLERS: Final = "\u115f\u1160\u3164\uffa0"
"""Letters of Hangul without ink; a terminal may leave room for them."""
_SPACES: Final = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Zs of Unicode's general categories, but for the space."""
_BLANKS: Final = f"[ \t\n\r{_SPACES}\u2800{_FILLERS}]{{17,}}"
"""More of them in a row than anybody needs for a layout; whatever follows could be off the screen."""
_SELECTORS: Final = "\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_WITHOUT_WIDTH: Final = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters without width: with the fillers, Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties."""
_CONTROLS: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u2028\u2029\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U00013455\ud800-\udfff"
)
"""Cc, Cf, Cs, Zl and Zp, as far as they are not among the others, and the blanks of hieroglyphs."""
_UNASSIGNED: Final = "\ue000-\uf8ff\ufdd0-\ufdef\U000f0000-\U0010ffff" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0xF0000, 0x10000)
)
"""Private use, and what is never a character."""
_INKLESS: Final = f"\u2800{_FILLERS}\ufffc\U0001d159\U00016fe4"
"""Blanks under other names: a pattern of Braille, fillers, an object that is not there, a note's missing head."""
_HIDDEN: Final = f"{_CONTROLS}{_WITHOUT_WIDTH}{_UNASSIGNED}{_INKLESS}"

_PICTURE: Final = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d"
    "\u3297\u3299\U0001f000-\U0001faff"
)
_JOINED: Final = (
    "\u05d0-\u05ea\u0620-\u064a\u066e-\u06d3\u0710-\u074f\u0750-\u077f\u0900-\u0dff\u0f40-\u109f\u1780-\u17b3"
    "\u1820-\u1878"
)
"""Letters and vowels of scripts whose spelling needs joiners between them."""
_ILLEGAL: Final = (
    f"(?<![{_PICTURE}]\\ufe0f)(?!(?<=[0-9#*]\\ufe0f)\\u20e3)(?!(?<=[{_PICTURE}]\\u200d)[{_PICTURE}])"
    f"(?!(?<=[{_PICTURE}]\\ufe0f\\u200d)[{_PICTURE}])(?!(?<=[{_JOINED}][\\u200c\\u200d])[{_JOINED}])"
)
"""Behind a joiner or a selector: it is none of those that emoji and words are spelt with."""
_MARKS: Final = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_PILED: Final = f"(?<=[{_MARKS}]{{4}})[{_MARKS}]+"
"""Marks above and below marks: they leave their line, and cover others."""
_LONE: Final = re.compile("(?<!\\S)[^\x00-\u02ff]\\S*")
"""Words that may begin with a mark, which is drawn upon the blank before it."""
_FOREIGN: Final = re.compile("[^\x00-\u02ff]")
_UNSEEN: Final = f"[{_HIDDEN}{_SPACES}]{_ILLEGAL}"
# Patterns of many ranges are compiled, by `re`, when they are first needed: most text is ASCII.
_ASCII_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_UNSEEN_IN_PROSE: Final = f"[{_HIDDEN}]{_ILLEGAL}"
_UNSEEN_IN_NAMES: Final = f"[{_HIDDEN}{_SPACES}\u2044\u2215\u29f8\uff0f\u2024\u2571]| (?=[\r\n]|\\Z)|\\A "
"""Also what looks like a slash or a dot, and blanks at the ends."""
_LEFT_OUT: Final = f"[{_WITHOUT_WIDTH}]+"
_SMUGGLED: Final = f"[\U000e0000-\U000e0fff{_SELECTORS}]{_ILLEGAL}|[{_WITHOUT_WIDTH}]{{8,}}"
"""Tags, selectors that select nothing, and runs of characters without width: text for models that people do not see."""


def visible(text: str, *, prose: bool = False) -> str:
    """Return `text` with everything that a terminal would act on, or nobody would see, written out as an escape.

    In prose blanks of other widths stay.
    """
    if text.isascii():
        return text if text.isprintable() else _ASCII_CONTROLS.sub(_escaped, text)
    seen = re.sub(_UNSEEN_IN_PROSE if prose else _UNSEEN, _escaped, text)
    if _FOREIGN.search(seen):
        seen = re.sub(_PILED, _escaped, _LONE.sub(_with_base, seen))
    return seen


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
    beginning = text[: 64 * width + 4096]  # of a text of megabytes no more than can be shown, blanks and all
    flat = " ".join(visible(beginning).split())
    whole = len(flat) <= width and len(beginning) == len(text)
    return flat if whole else flat[: max(0, width - 3)] + "..."


def name(text: str) -> str:
    """Return `text` as one line that hides nothing: what is not seen as escapes, long runs of blanks counted.

    So are line ends and tabs, and joiners: with and without one, two names look the same. Words whose letters are of
    several scripts, or all look like those of another, are told behind it.
    """
    if text.isascii() and text.isprintable() and text.strip() == text and "  " not in text:
        return text
    counted = re.sub(_BLANKS, lambda run: f" [{len(run[0])} blanks] ", text)
    seen = visible(re.sub(_UNSEEN_IN_NAMES, _escaped, counted), prose=True)
    told = _disguised(seen)
    return seen.replace("\n", "\\n").replace("\t", "\\t") + (f" [{told}]" if told else "")


def written_out(text: str, *, json: bool = False) -> tuple[str, int]:
    """Return a tool's result with what is hidden in it for a model alone written out, and how many characters it was.

    In a result that is `json` the escapes are of its strings.
    """
    if text.isascii():
        return text, 0
    count = 0

    def escaped(found: re.Match[str]) -> str:
        nonlocal count
        count += len(found[0])
        return "".join(f"{backslash}U{ord(char):08X}" for char in found[0])

    backslash = "\\\\" if json else "\\"
    return re.sub(_SMUGGLED, escaped, text), count


def is_padded(text: str) -> bool:
    """Say whether a run of blanks may push off the screen what follows it; what has no width does not end a run."""
    return re.search(_BLANKS, re.sub(_LEFT_OUT, "", text)) is not None


def _json_visible(text: str) -> str:
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(_UNSEEN_IN_PROSE, _json_escaped, text)


def _disguised(text: str) -> str:
    if text.isascii():
        return ""
    from supervisor.display.scripts import disguised

    return disguised(text)


def _with_base(word: re.Match[str]) -> str:
    """Return a word with the marks that it begins with as escapes."""
    text = word[0]
    marks = next((at for at, char in enumerate(text) if not unicodedata.category(char).startswith("M")), len(text))
    return text[:marks].encode("unicode_escape").decode() + text[marks:]


def _escaped(found: re.Match[str]) -> str:
    chars = found[0]
    return "\\x20" if chars == " " else chars.encode("unicode_escape", "surrogatepass").decode("ascii")


def _json_escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
