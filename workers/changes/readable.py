"""Bytes as a text that people can read: decoded, with what is no text of its encoding as escapes; or none at all.

Rule: pure. The first `HEAD` bytes decide, so that a picture costs as much as a note. UTF-8 wins where it is possible;
what was decoded otherwise says so. Bytes that do not belong to an encoding stand as `\\x` and two digits. Decoders are
those of the interpreter itself: a worker that is locked in finds no module of `encodings`.
"""

import codecs
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from workers.changes.diff import LINES, TEXT, Budget, Diff, unified

HEAD: Final = 2**14
"""Bytes that decide what the rest is."""

_DECODERS: Final[Mapping[str, Callable[[bytes, str, bool], tuple[str, int]]]] = {
    "utf-16-le": codecs.utf_16_le_decode,
    "utf-16-be": codecs.utf_16_be_decode,
    "utf-32-le": codecs.utf_32_le_decode,
    "utf-32-be": codecs.utf_32_be_decode,
}
_WINDOWS: Final = (
    "".join(map(chr, range(0x80)))
    + "\u20ac\ufffe\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\ufffe\u017d\ufffe"
    + "\ufffe\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\ufffe\u017e\u0178"
    + "".join(map(chr, range(0xA0, 0x100)))
)
"""What each byte is in Windows-1252, by its table at unicode.org; U+FFFE for none."""
_MARKS: Final = (
    (b"\xff\xfe\0\0", "utf-32-le", "UTF-32 LE"),
    (b"\0\0\xfe\xff", "utf-32-be", "UTF-32 BE"),
    (b"\xff\xfe", "utf-16-le", "UTF-16 LE"),
    (b"\xfe\xff", "utf-16-be", "UTF-16 BE"),
)
"""Byte order marks, Unicode 23.8."""
_WESTERN: Final = ("cp1252", "Latin-1 (Windows-1252), decoded")
_STRAY: Final = "UTF-8 with stray bytes, written as \\x.."
_ASCII: Final = re.compile(rb"[ -~]{32}")
"""No text of two bytes a character has this; where it begins as one, other programs read something else there."""
_LAYOUT: Final = frozenset("\t\n\v\f\r\b\x1b")
"""Controls that texts are laid out with."""
_CONTROL: Final = re.compile(rb"[\0-\x07\x0e-\x1a\x1c-\x1f\x7f]")
"""The others among ASCII."""
_NO_TEXT: Final = frozenset({"Cc", "Cs", "Co", "Cn"})
_LETTERS: Final = frozenset(range(0xC0, 0xFF)) - {0xD7, 0xF7} | {0x8A, 0x8C, 0x8E, 0x9A, 0x9C, 0x9E, 0x9F}
_SIGNS: Final = frozenset(
    b"\x82\x84\x85\x91\x92\x93\x94\x95\x96\x97\xa0\xa1\xa3\xa7\xa9\xaa\xab\xae\xb0\xb2\xb3\xb4\xb5\xb7\xba\xbb\xbf"
)
"""Bytes of Windows-1252 that Western texts have: letters beside letters, and signs."""
_FEW: Final = 4
_SOME: Final = 10
"""One in so many may be no text."""
_SEVERAL: Final = 8
"""Characters from which on a text is known by where its characters lie."""
_RANGES: Final = (
    ("\u0370", "\u03ff"),
    ("\u0400", "\u052f"),
    ("\u0590", "\u06ff"),
    ("\u3005", "\u9fff"),
    ("\uac00", "\ud7a3"),
)
_BETWEEN: Final = frozenset("\n\r -.,!?\u3000\u3001\u3002\uff0c\uff01\uff1f")


class Readable(msgspec.Struct, frozen=True):
    """A text; `how` says what it was decoded from, "" for UTF-8."""

    text: str
    how: str = ""


class Encoding(msgspec.Struct, frozen=True):
    """What a text is decoded with, after `skip` bytes; `how` says so to people."""

    codec: str = "utf-8"
    how: str = ""
    skip: int = 0

    def decoded(self, data: bytes) -> Readable:
        """Return bytes as the text that they are."""
        if self.codec == "utf-8" or (self.codec != _WESTERN[0] and _ASCII.search(data)):
            try:
                return Readable(data.decode())
            except UnicodeDecodeError:
                return Readable(data.decode("utf-8", "backslashreplace"), _STRAY)
        if self.codec == _WESTERN[0]:
            return Readable(codecs.charmap_decode(data, "backslashreplace", _WINDOWS)[0], self.how)
        return Readable(_DECODERS[self.codec](data[self.skip :], "backslashreplace", True)[0], self.how)


_UTF8: Final = Encoding()


def encoding_of(head: bytes, *, whole: bool) -> Encoding | None:
    """Return what the first bytes say that a file is: an encoding, or None for no text.

    Args:
        head: the first `HEAD` bytes, or all.
        whole: whether that is all; else the last character may be cut.
    """
    if head.isascii() and not _CONTROL.search(head):
        return _UTF8  # nearly all files, and to look at each character takes a hundred times as long
    for mark, codec, how in _MARKS:
        if head.startswith(mark):
            fits = _no_text(_decoded(head[len(mark) :], codec)) * _SOME <= len(head) // 2
            return Encoding(codec, f"{how} with a byte order mark, decoded", len(mark)) if fits else None
    text = head.decode("utf-8", "surrogateescape")
    if not whole:
        text = text.rstrip("".join(map(chr, range(0xDC80, 0xDD00)))) if len(head) - len(text) < 3 else text  # noqa: PLR2004
    stray = sum("\udc80" <= char <= "\udcff" for char in text) if not text.isascii() else 0
    odd = stray + sum(char not in _LAYOUT for char in text if char < " " or "\x7f" <= char < "\xa0")
    if not odd:
        return _UTF8
    if (wide := _wide(head)) is not None:
        return wide
    if stray and stray == sum(byte > 0x7F for byte in head) and (odd - stray) * _SOME <= len(head) and _western(head):  # noqa: PLR2004
        return Encoding(*_WESTERN)
    return Encoding() if odd * _SOME <= len(head) or (odd <= _FEW and odd * 2 <= len(head)) else None


class Compared(msgspec.Struct, frozen=True):
    """The difference of two files; `why` says what is not shown of it, `how` what it was decoded from."""

    diff: Diff
    why: str = ""
    how: str = ""


Side = Readable | str | None
"""A file as a text, or why it cannot be shown; None where there is none."""


def compare(old: Side, new: Side, limit: int, budget: Budget) -> Compared:
    """Return the difference of two files, what weighs at most `limit` of it."""
    for side in (new, old):
        if isinstance(side, str):
            return Compared(Diff("", 0), side)
    assert not isinstance(old, str)
    assert not isinstance(new, str)
    before, after = old or Readable(""), new or Readable("")
    lines = max(before.text.count("\n"), after.text.count("\n"))
    if lines > LINES:
        return Compared(Diff("", 0), f"a text of {lines} lines is not compared; the most is {LINES}")
    diff = unified(before.text, after.text, limit, budget)
    how = before.how if new is None else after.how
    if old is not None and new is not None and before.how != after.how:
        how = f"was {before.how or 'UTF-8'}; is {after.how or 'UTF-8'}"
    elif not diff.text and not diff.left_out and old is not None and new is not None:
        return Compared(diff, "its bytes differ, and are shown alike", how)
    return Compared(diff, left_out(diff), how)


def left_out(diff: Diff) -> str:
    """Return how much of a difference is not shown."""
    return f"{diff.left_out} lines are left out" if diff.left_out else ""


def side_of(data: bytes) -> Readable | str:
    """Return a file's whole content as a text, or why it cannot be shown."""
    encoding = encoding_of(data[:HEAD], whole=len(data) <= HEAD)
    return binary(len(data)) if encoding is None else encoding.decoded(data)


def binary(size: int) -> str:
    """Return why a file of that size is not shown that is no text."""
    return f"binary, {size} bytes, cannot be shown"


def too_large(size: int) -> str:
    """Return why a file of that size is not shown; "" if it is."""
    return f"a file of {size} bytes is not compared; the most is {TEXT}" if size > TEXT else ""


def _decoded(head: bytes, codec: str) -> str:
    return _DECODERS[codec](head[: len(head) & ~3 if "32" in codec else len(head) & ~1], "replace", True)[0]


def _no_text(text: str) -> int:
    """Return how many characters are none of a text."""
    return sum(
        char == "\ufffd" or (char not in _LAYOUT and unicodedata.category(char) in _NO_TEXT)
        for char in text
        if not " " <= char <= "~"
    )


def _wide(head: bytes) -> Encoding | None:
    """Return an encoding of several bytes a character, without a mark, that makes a text of it."""
    best: tuple[float, Encoding] | None = None
    for _, codec, how in _MARKS:
        text = _decoded(head, codec)
        if not text or len(head) % 2 or _no_text(text) * 2 * _SOME > len(text):
            continue
        plain = sum(char < "\u0100" for char in text) / len(text)
        if "32" in codec or plain * 4 >= 3 or _is_of_one_script(text):  # noqa: PLR2004
            best = max(
                best or (-1.0, Encoding()), (plain, Encoding(codec, f"{how}, decoded")), key=lambda pair: pair[0]
            )
    return best[1] if best is not None else None


def _is_of_one_script(text: str) -> bool:
    """Say whether nearly all letters lie as those of one script do, with something between words or sentences."""
    found = max(sum(first <= char <= last or char in _BETWEEN for char in text) for first, last in _RANGES)
    return len(text) >= _SEVERAL and found * 2 * _SOME >= len(text) * (2 * _SOME - 1) and not _BETWEEN.isdisjoint(text)


def _western(head: bytes) -> bool:
    """Say whether nearly all bytes above ASCII stand where texts of Western languages have them."""
    likely = high = 0
    for at, byte in enumerate(head):
        if byte > 0x7F:  # noqa: PLR2004
            high += 1
            beside = head[max(0, at - 1) : at] + head[at + 1 : at + 2]
            likely += byte in _SIGNS or (
                byte in _LETTERS and any(each in _LETTERS or _is_letter(each) for each in beside)
            )
    return likely * _SOME >= high * (_SOME - 1)


def _is_letter(byte: int) -> bool:
    return 0x41 <= byte & 0xDF <= 0x5A  # noqa: PLR2004 - A to Z
