"""From bytes to characters.

Rule: a name from outside chooses among the charsets of the table and no others, for Python knows codecs that run code's
escapes or decompress; what is not in it counts as UTF-8. Decoding never fails: what cannot be read shows as U+FFFD.
"""

import codecs
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_LABELS: Final[Mapping[str, str]] = {
    "utf-8": "utf8 unicode-1-1-utf-8",
    "cp1252": "windows-1252 iso-8859-1 iso8859-1 latin1 latin-1 l1 ascii us-ascii ansi_x3.4-1968",
    "iso8859-2": "iso-8859-2 latin2",
    "iso8859-3": "iso-8859-3 latin3",
    "iso8859-4": "iso-8859-4 latin4",
    "iso8859-5": "iso-8859-5 cyrillic",
    "iso8859-6": "iso-8859-6 arabic",
    "iso8859-7": "iso-8859-7 greek",
    "iso8859-8": "iso-8859-8 iso-8859-8-i hebrew",
    "iso8859-10": "iso-8859-10 latin6",
    "iso8859-13": "iso-8859-13",
    "iso8859-14": "iso-8859-14",
    "iso8859-15": "iso-8859-15 latin-9 latin9",
    "iso8859-16": "iso-8859-16",
    "cp1250": "windows-1250",
    "cp1251": "windows-1251",
    "cp1253": "windows-1253",
    "cp1254": "windows-1254 iso-8859-9 latin5",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "cp1257": "windows-1257",
    "cp1258": "windows-1258",
    "cp874": "windows-874 tis-620 iso-8859-11",
    "cp866": "ibm866",
    "koi8-r": "koi8 koi8_r",
    "koi8-u": "koi8-ru",
    "mac-roman": "macintosh mac",
    "gb18030": "gbk gb2312 gb_2312-80 x-gbk chinese",
    "big5hkscs": "big5 big5-hkscs x-x-big5",
    "euc_jp": "euc-jp x-euc-jp",
    "iso2022_jp": "iso-2022-jp",
    "cp932": "shift_jis shift-jis sjis x-sjis windows-31j",
    "cp949": "euc-kr ks_c_5601-1987 korean windows-949",
    "utf-16-le": "utf-16 utf-16le",
    "utf-16-be": "utf-16be",
}
"""Python's codec, and what it is called elsewhere (https://encoding.spec.whatwg.org/#names-and-labels)."""

CODECS: Final[Mapping[str, str]] = MappingProxyType(
    {label: codec for codec, labels in _LABELS.items() for label in (codec, *labels.split())}
)

_OUR_OWN: Final = ("ascii", "latin-1", "idna", "unicode_escape")
"""What libraries use: for headers, for the name in TLS, for messages."""

_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))

_LOOKED_AT: Final = 1024
"""Bytes of a document in which it may name its charset."""

_NAMED: Final = re.compile(
    rb"""<(?:meta\s[^<>]{0,200}?charset|\?xml\s[^<>]{0,200}?encoding)\s{0,5}=\s{0,5}["']?([\w.:-]+)"""
)


def load_codecs() -> None:
    """Import every codec of the table, by using it: some load their tables when they first decode."""
    for codec in _LABELS:
        codecs.lookup(codec)
        b"a\x1b$B0!\x81@\xa1\xa1\xff".decode(codec, "replace")
    for codec in _OUR_OWN:
        codecs.lookup(codec)


def text_of(data: bytes, declared: str, *, markup: bool) -> str:
    """Decode a document: its byte order mark decides, then the `declared` charset, then what the markup says."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(codec, "replace")
    names = [declared]
    if markup and (found := _NAMED.search(data[:_LOOKED_AT].lower())):
        inside = found[1].decode("ascii", "replace")
        # A document whose markup could be read byte by byte is none of these (WHATWG HTML, 13.2.3.2).
        names.append("utf-8" if inside.startswith("utf-16") else inside)
    codec = next((CODECS[label] for name in names if (label := name.strip().lower()) in CODECS), "utf-8")
    return data.decode(codec, "replace")
