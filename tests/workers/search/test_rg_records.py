"""ripgrep's records, cut anywhere and of any length, are the same matches."""

import base64
import json
from typing import Any

import pytest

from tests.each_row import each_row
from workers.search import rg_records as module
from workers.search.rg_records import Finished, Match, Records, cut_around


def said(text: bytes) -> dict[str, str]:
    """Return a text as ripgrep tells it."""
    try:
        return {"text": text.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(text).decode()}


def record(path: bytes, line: bytes, number: int, match: bytes) -> bytes:
    start = line.find(match)
    submatch = {"match": said(match), "start": start, "end": start + len(match)}
    data = {"path": said(path), "lines": said(line), "line_number": number, "absolute_offset": 7}
    data["submatches"] = [submatch]
    return json.dumps({"type": "match", "data": data}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


BEGIN = b'{"type":"begin","data":{"path":{"text":"./a"}}}\n'
END = b'{"type":"end","data":{"path":{"text":"./a"},"binary_offset":null,"stats":{}}}\n'
SUMMARY = b'{"data":{"elapsed_total":{"human":"0s","nanos":1,"secs":0},"stats":{}},"type":"summary"}\n'

STREAM = (
    BEGIN
    + record(b"./a", b"a needle\n", 1, b"needle")
    + record(b"./\xff", b"needle\n", 2, b"needle")
    + record(b"./\xc3\xa9", b"caf\xe9 needle\n", 3, b"needle")
    + record(b'./q"\\\n', b'"},"line_number":9 needle\n', 4, b"needle")
    + END
    + SUMMARY
)
MATCHES: list[Match | Finished] = [
    Match("./a", 1, "a needle"),
    Match(None, 2, "needle"),
    Match("./é", 3, "caf\ufffd needle"),
    Match('./q"\\\n', 4, '"},"line_number":9 needle'),
    Finished(),
]


def fed(stream: bytes, size: int) -> list[Match | Finished]:
    records = Records()
    return [found for at in range(0, len(stream), size) for found in records.feed(stream[at : at + size])]


@pytest.mark.parametrize("size", [1, 7, 100, 10**6])
def test_a_stream_may_be_cut_anywhere(size: int) -> None:
    assert fed(STREAM, size) == MATCHES


@pytest.mark.parametrize("size", [1, 7, 100])
def test_of_a_long_record_the_match_is_left(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORD_LIMIT", 150)
    padded = STREAM.replace(b"needle\\n", b"needle" + b"." * 200 + b"\\n").replace(base64.b64encode(b"caf"), b"A" * 200)
    found = fed(padded, size)
    assert [each.text for each in found if isinstance(each, Match)] == ["...needle..."] * 4
    assert [each[:2] for each in found] == [each[:2] for each in MATCHES]


CUT = [
    ("text", ("é" * 9000).encode(), "..." + "é" * 300 + "..."),
    ("not UTF-8", b"\xff" * 9000, "..." + "\ufffd" * 300 + "..."),
    ("escapes", b"\x01" * 9000, "..." + "\x01" * 300 + "..."),
]


@pytest.mark.parametrize(("name", "match", "shown"), CUT, ids=[name for name, _, _ in CUT])
def test_a_long_match_is_cut(name: str, match: bytes, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORD_LIMIT", 0)
    for size in (11, 64, 4096):
        assert fed(record(b"./a", match, 5, match), size) == [Match("./a", 5, shown)]


def test_the_part_kept_of_a_long_record_is_bounded() -> None:
    records = Records()
    head = record(b"./a", b"x" * 10, 1, b"x")
    at = head.index(b"xxxx")
    assert list(records.feed(head[:at])) == []
    for _ in range(100):
        assert list(records.feed(b"x" * 2**20)) == []
        kept = [each for each in _strings(records) if len(each) > 2**18]
        assert sum(map(len, kept)) <= 2 * 2**20
    assert list(records.feed(head[at:])) == [Match("./a", 1, "...x...")]


def _strings(thing: Any) -> list[bytes]:
    values = vars(thing).values()
    return [each for each in values if isinstance(each, bytes)] + [
        each for value in values if hasattr(value, "__dict__") for each in _strings(value)
    ]


def test_output_that_is_not_ripgreps_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORD_LIMIT", 0)
    with pytest.raises(ValueError, match="not ripgrep's"):
        fed(b'{"type":"match","data":{"surprise":1}}\n', 8)


@each_row("length", [0, 299, 300, 301, 1000])
@each_row("share", [0.0, 0.3, 0.9])
def test_the_shown_part_of_a_line_holds_the_beginning_of_the_match(length: int, share: float) -> None:
    text = "".join(chr(0x4E00 + number) for number in range(length))
    at = int(length * share)
    shown = cut_around(text, at)
    assert shown.strip(".") in text
    assert text[at : at + 1] in shown
    assert len(shown) <= module.LINE_LIMIT + 6
    assert (shown == text) == (length <= module.LINE_LIMIT)
