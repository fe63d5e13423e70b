import os
from pathlib import Path
from typing import Any

import pytest

from tests.each_row import each_row
from tests.raw_worker import open_worker
from tests.tool_calls import refusal, told
from workers.files.read_file import read_file
from workers.files.text_limits import CHUNK, READ_LIMIT
from workers.tool import ToolContext
from workers.wire import messages


def read(context: ToolContext, **arguments: Any) -> tuple[str, str]:
    return told(read_file, context, path="f", **arguments)


@pytest.mark.parametrize("data", [b"", b"a", b"\xef\xbb\xbfhi", b"a\r\nb\r", b"a\n\n\n", "é世\u2028x".encode()])
def test_text_comes_back_byte_for_byte(context: ToolContext, root: Path, data: bytes) -> None:
    (root / "f").write_bytes(data)
    assert read(context)[0].encode() == data
    assert read(context, offset=1)[0].encode() == data


@pytest.mark.parametrize("bad", [b"\xe9", b"\xff", b"\0c"])
@pytest.mark.parametrize("where", [{}, {"offset": 2}], ids=["as a whole", "in a range"])
def test_text_that_is_none_is_refused_with_its_offset_in_the_file(
    context: ToolContext, root: Path, bad: bytes, where: dict[str, int]
) -> None:
    (root / "f").write_bytes(b"line\nab" + bad)
    error = refusal(read, context, **where)
    assert (error.kind, error.details["offset"]) == ("not_text", 7)


def test_the_largest_whole_text_passes(context: ToolContext, root: Path) -> None:
    (root / "f").write_bytes(b"x" * READ_LIMIT)
    assert len(read(context)[0]) == READ_LIMIT


def test_one_byte_more_is_too_large_and_says_how_to_read_on(context: ToolContext, root: Path) -> None:
    (root / "f").write_bytes(b"x" * (READ_LIMIT + 1))
    error = refusal(read, context)
    assert (error.kind, error.details["size"]) == ("too_large", READ_LIMIT + 1)
    assert "offset" in error.message


def test_a_range_says_where_to_go_on(context: ToolContext, root: Path) -> None:
    (root / "f").write_text("".join(f"{number}\n" for number in range(1, 501)))
    assert read(context, limit=2) == ("1\n2\n", "lines 1 to 2 of more; go on with offset=3")
    assert read(context, offset=499, limit=2) == ("499\n500\n", "lines 499 to 500, the last")


def test_a_last_line_without_an_end_counts_and_all_lines_by_limit_need_no_note(
    context: ToolContext, root: Path
) -> None:
    (root / "f").write_text("1\n2\n3")
    assert read(context, limit=3) == ("1\n2\n3", "")
    assert read(context, offset=3) == ("3", "lines 3 to 3, the last")


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("1", 1), ("1\n", 1), ("1\n2", 2), ("1\n2\n", 2)])
def test_an_offset_past_the_end_tells_the_number_of_lines(
    context: ToolContext, root: Path, text: str, lines: int
) -> None:
    (root / "f").write_text(text)
    past = max(2, lines + 1)
    assert read(context, offset=past) == ("", f"the file has {lines} lines; offset={past} is past its end")
    assert read(context, offset=10**30)[0] == ""


def test_ranges_put_together_are_the_file(context: ToolContext, root: Path) -> None:
    data = "".join(f"{'é' * (number % 97)}\n" for number in range(20_000)) + "end"
    (root / "f").write_text(data)
    parts, offset = [], 1
    while (text := read(context, offset=offset, limit=777)[0]) != "":
        parts.append(text)
        offset += 777
    assert "".join(parts) == data


def test_a_range_beyond_the_limit_is_cut_at_a_lines_end(context: ToolContext, root: Path) -> None:
    line = "x" * 999 + "\n"
    (root / "f").write_text(line * 5000)
    text, note = read(context, offset=1)
    whole = READ_LIMIT // 1000
    assert text == line * whole
    assert note.endswith(f"go on with offset={whole + 1}")


def test_a_line_beyond_the_limit_is_too_large_and_says_so(context: ToolContext, root: Path) -> None:
    (root / "f").write_text("short\n" + "x" * (READ_LIMIT + 1) + "\nshort\n")
    assert read(context, limit=1)[0] == "short\n"
    error = refusal(read, context, offset=2)
    assert (error.kind, error.details["line"]) == ("too_large", 2)
    assert read(context, offset=3)[0] == "short\n"


@pytest.mark.parametrize("size", [CHUNK - 1, CHUNK, CHUNK + 1])
def test_line_ends_at_the_edge_of_a_chunk_are_counted_once(context: ToolContext, root: Path, size: int) -> None:
    (root / "f").write_text("x" * (size - 1) + "\n" + "second\n")
    assert read(context, offset=2) == ("second\n", "lines 2 to 2, the last")
    assert read(context, limit=1)[1] == "lines 1 to 1 of more; go on with offset=2"


def test_a_huge_sparse_file_ends_at_its_first_bytes(context: ToolContext, root: Path) -> None:
    with (root / "f").open("wb") as file:
        file.truncate(8 * 2**30)
    assert refusal(read, context, offset=10**9, limit=1).kind == "not_text"


@each_row("field", ["offset", "limit"])
@each_row("value", [b"0", b"-1", b"1.5", b'"1"', b"true"])
def test_offset_and_limit_are_whole_numbers_from_one(field: str, value: bytes) -> None:
    arguments = b'{"path": "f", "%s": %s}' % (field.encode(), value)
    assert refusal(read_file.decode, arguments).kind == "invalid_arguments"


def test_a_terminal_in_the_root_does_not_become_the_workers() -> None:
    """Whoever opens one without a word against it may be sent signals from there."""
    ours, theirs = os.openpty()
    terminal = Path(os.ttyname(theirs))
    try:
        with open_worker(terminal.parent) as worker:
            assert isinstance(worker.call("read_file", {"path": terminal.name}), messages.Failed)
            fields = Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()
    finally:
        os.close(ours)
        os.close(theirs)
    session, of_terminal = fields[3:5]
    assert (session, of_terminal) == (str(worker.process.pid), "0")
