"""The comparable part of a text: what survives rewriting it for an address. Pure.

Rule: each step takes time that grows with the length of the text alone.
"""

import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_ASCII_LEFT_OUT: Final = bytes(each for each in range(128) if not chr(each).isalnum())
_NO_LETTERS: Final = re.compile("[\U00032000-\U000dffff\U000e0080-\U0010ffff]+")
"""Planes without letters: so many characters would take long to look at one by one."""
_LONGEST_FOLD: Final = 3
"""Letters that one character may stand for: some stand for whole sentences."""
_LOOKALIKES: Final[Mapping[str, str]] = MappingProxyType(
    dict(zip("аеорсухкмтвніѕјԁԛԝһԍ", "aeopcyxkmtbhisjdqwhg", strict=True))
    | dict(zip("αβεικνορτυχγωμη", "abeikvoptuxywun", strict=True))
    | {chr(0xE0000 + each): chr(each) for each in range(0x20, 0x7F)}
)
"""Cyrillic and Greek letters that pass for Latin ones, and the tag characters, which nobody sees."""


def comparable(text: str) -> str:
    """Return the letters and digits of `text`, without case and accents: what survives rewriting it for a URL."""
    if not text.isascii():
        text = _NO_LETTERS.sub("", text)
        text = text.translate({ord(char): _folded(char) for char in set(text) if not char.isascii()})
    return text.encode("utf-8", "ignore").lower().translate(None, _ASCII_LEFT_OUT).decode()


def _folded(char: str) -> str:
    """Return what a character that is not ASCII is compared as; nothing where it is no letter or digit."""
    decomposes = bool(unicodedata.decomposition(char))
    if not (decomposes or char.isalnum()):
        return _LOOKALIKES.get(char, "")
    plain = unicodedata.normalize("NFKD", char) if decomposes else char
    letters = (_LOOKALIKES.get(each, each) for each in plain.casefold())
    return "".join(each for each in letters if each.isalnum())[:_LONGEST_FOLD]
