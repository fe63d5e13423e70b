from pathlib import Path

import pytest

from tests.tool_calls import refusal, refused, told
from workers.files import atomic
from workers.files.edit_file import edit_file
from workers.files.text_limits import WRITE_LIMIT
from workers.tool import ToolContext


def edit(context: ToolContext, old: str, new: str, path: str = "f") -> str:
    return str(told(edit_file, context, path=path, old=old, new=new)[0])


def test_one_exact_piece_is_replaced_and_the_line_told(context: ToolContext, root: Path) -> None:
    (root / "f").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    assert edit(context, "two", "zwei") == "Edited f at line 2: 18 bytes before, 19 now."
    assert (root / "f").read_bytes() == b"\xef\xbb\xbfone\r\nzwei\r\nthree"


def test_a_piece_can_be_taken_out(context: ToolContext, root: Path) -> None:
    (root / "f").write_text("a b c")
    edit(context, " b", "")
    assert (root / "f").read_text() == "a c"


@pytest.mark.parametrize(("text", "old", "count"), [("a a a", "a", 3), ("aaa", "aa", 2), ("x\nx\n", "x\n", 2)])
def test_several_places_are_counted_and_none_is_changed(
    context: ToolContext, root: Path, text: str, old: str, count: int
) -> None:
    (root / "f").write_text(text)
    error = refusal(edit, context, old, "new")
    assert (error.kind, error.details["count"]) == ("no_match", count)
    assert "unique" in error.message
    assert (root / "f").read_text() == text


@pytest.mark.parametrize(
    ("data", "old", "hint"),
    [
        (b"one\r\ntwo\r\n", "one\ntwo", "CRLF"),
        (b"one\ntwo\n", "one\r\ntwo", "CRLF"),
        (b"one", " one\n", "white space"),
        (b"one", "two", "Read the file"),
        (b"one", " \n ", "Read the file"),
    ],
)
def test_no_place_comes_with_a_hint(context: ToolContext, root: Path, data: bytes, old: str, hint: str) -> None:
    (root / "f").write_bytes(data)
    with refused("no_match", hint):
        edit(context, old, "new")


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("x", "x"), ("\ud800", "x"), ("x", "\udfff")])
def test_arguments_that_change_nothing_are_invalid(context: ToolContext, root: Path, old: str, new: str) -> None:
    (root / "f").write_text("x")
    assert refusal(edit, context, old, new).kind == "invalid_arguments"


@pytest.mark.parametrize("data", [b"a\0b", b"a\xffb"])
def test_a_file_that_is_not_text_is_not_edited(context: ToolContext, root: Path, data: bytes) -> None:
    (root / "f").write_bytes(data)
    assert refusal(edit, context, "a", "b").kind == "not_text"


def test_a_file_that_is_not_there_is_not_found(context: ToolContext, root: Path) -> None:
    assert refusal(edit, context, "a", "b", "gone").kind == "not_found"


def test_a_file_or_a_result_that_is_too_large_is_refused(context: ToolContext, root: Path) -> None:
    (root / "f").write_bytes(b"a" + b"x" * (WRITE_LIMIT - 1))
    assert refusal(edit, context, "a", "bb").kind == "too_large"
    (root / "f").write_bytes(b"a" + b"x" * WRITE_LIMIT)
    assert refusal(edit, context, "a", "b").kind == "too_large"


@pytest.mark.parametrize("how", ["appended", "exchanged", "removed"])
def test_a_file_changed_meanwhile_is_left_as_it_is(
    context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    target = root / "f"
    target.write_text("old")
    real = atomic._write

    def meanwhile(file: int, data: bytes) -> None:
        real(file, data)
        if how == "appended":
            target.write_text("old and more")
            return
        target.unlink()
        if how == "exchanged":
            target.write_text("other")

    monkeypatch.setattr(atomic, "_write", meanwhile)
    with refused("conflict", "Read it again"):
        edit(context, "old", "new")
    left = {path.name: path.read_text() for path in root.iterdir()}
    assert left == {"appended": {"f": "old and more"}, "exchanged": {"f": "other"}, "removed": {}}[how]
