"""A stream cut into lines, whatever the chunks are."""

import pytest

from supervisor.acp.line_buffer import TOO_LONG, LineBuffer, TooLong

LIMIT = 8


def fed(*chunks: bytes, limit: int = LIMIT) -> list[bytes | TooLong]:
    buffer = LineBuffer(limit)
    return [line for chunk in chunks for line in buffer.feed(chunk)]


CUTS = {
    "one line": ((b"abc\n",), [b"abc"]),
    "nothing": ((b"",), []),
    "an empty line": ((b"\n",), [b""]),
    "a line without its end": ((b"abc",), []),
    "several lines in a chunk": ((b"a\nb\nc\n",), [b"a", b"b", b"c"]),
    "a line in several chunks": ((b"a", b"b", b"", b"c\n"), [b"abc"]),
    "an end in a chunk of its own": ((b"abc", b"\n"), [b"abc"]),
    "the rest of one and the beginning of the next": ((b"ab", b"c\nde", b"f\n"), [b"abc", b"def"]),
    "a carriage return stays": ((b"a\r\n",), [b"a\r"]),
    "bytes that are no text": ((b"\xff\x00\n",), [b"\xff\x00"]),
}


@pytest.mark.parametrize(("chunks", "lines"), CUTS.values(), ids=list(CUTS))
def test_lines_come_out_whole_however_they_went_in(chunks: tuple[bytes, ...], lines: list[bytes]) -> None:
    assert fed(*chunks) == lines


@pytest.mark.parametrize("size", range(1, 12))
def test_chunks_of_any_size_give_the_same_lines(size: int) -> None:
    data = b"ab\n\n1234567\nlong long long\n12345678\n"
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert fed(*chunks) == [b"ab", b"", b"1234567", TOO_LONG, b"12345678"]


LONG = {
    "exactly the limit": ((b"12345678\n",), [b"12345678"]),
    "one byte over it": ((b"123456789\n",), [TOO_LONG]),
    "over it in pieces": ((b"12345", b"6789", b"0", b"\n"), [TOO_LONG]),
    "the next one in the same chunk": ((b"123456789\nok\n",), [TOO_LONG, b"ok"]),
    "the next one in another chunk": ((b"123456789", b"\nok", b"\n"), [TOO_LONG, b"ok"]),
    "two in a row": ((b"123456789\n123456789\nok\n",), [TOO_LONG, TOO_LONG, b"ok"]),
    "an empty one after it": ((b"123456789\n\n",), [TOO_LONG, b""]),
}


@pytest.mark.parametrize(("chunks", "lines"), LONG.values(), ids=list(LONG))
def test_a_line_over_the_limit_costs_itself_alone(chunks: tuple[bytes, ...], lines: list[bytes | TooLong]) -> None:
    assert fed(*chunks) == lines


def test_a_line_without_end_is_reported_before_it_ends_and_only_once() -> None:
    buffer = LineBuffer(LIMIT)
    assert list(buffer.feed(b"123456789")) == [TOO_LONG]
    assert [line for _ in range(1000) for line in buffer.feed(b"x" * 1000)] == []


def test_a_line_that_was_given_up_is_not_held() -> None:
    buffer = LineBuffer(LIMIT)
    for _ in range(100):
        list(buffer.feed(b"x" * 1000))
    assert len(buffer._rest) <= LIMIT
