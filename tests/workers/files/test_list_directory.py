import importlib
import os
import socket
from pathlib import Path

import pytest

from tests.tool_calls import refusal, told
from workers.files.list_directory import list_directory
from workers.tool import ToolContext

module = importlib.import_module("workers.files.list_directory")


def listed(context: ToolContext, path: str = ".") -> tuple[list[tuple[str, str]], str]:
    rows, note = told(list_directory, context, path=path)
    return [(row["name"], row["kind"]) for row in rows], note


def test_names_come_sorted_with_their_kinds_hidden_ones_too(context: ToolContext, root: Path) -> None:
    (root / "b").mkdir()
    for name in ("c", ".a", "b/x"):
        (root / name).write_text("")
    assert listed(context) == ([(".a", "file"), ("b", "dir"), ("c", "file")], "")
    assert listed(context, "b/") == ([("x", "file")], "")


def test_a_link_inside_is_shown_as_what_it_points_to(context: ToolContext, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/f").write_text("")
    (root / "d/up").symlink_to("../d")
    (root / "d/file").symlink_to("f")
    assert listed(context, "d") == ([("f", "file"), ("file", "file"), ("up", "dir")], "")


def test_an_entry_that_cannot_be_opened_is_counted(context: ToolContext, root: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to("..")
    (root / "absolute").symlink_to(root)
    (root / "gone").symlink_to("nowhere")
    (root / "null").symlink_to("/dev/null")
    os.mkfifo(root / "pipe")
    (root / "to_pipe").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.open(root, os.O_PATH)
        bound.bind(f"/proc/self/fd/{here}/sock")
        os.close(here)
    rows, note = listed(context)
    assert rows == []
    assert note == "7 names are left out: links out of the root, FIFOs, sockets or devices"


def test_drafts_are_not_shown_and_names_that_are_not_utf8_are_counted(context: ToolContext, root: Path) -> None:
    (root / ".strongroom-0123456789abcdef.tmp").write_text("")
    Path(os.fsdecode(os.fsencode(root) + b"/bad\xff")).write_text("")
    assert listed(context) == ([], "1 names that are not UTF-8 are left out")


def test_the_answer_ends_at_the_limit_with_a_note(
    context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENTRIES_LIMIT", 2)
    for name in "ab":
        (root / name).write_text("")
    assert listed(context)[1] == ""
    (root / "c").write_text("")
    rows, note = listed(context)
    assert [name for name, _ in rows] == ["a", "b"]
    assert note == "only the first 2 of at least 3 names are listed"


@pytest.mark.parametrize(("path", "kind"), [("f", "not_a_directory"), ("gone", "not_found"), ("..", "path_escape")])
def test_a_path_that_is_no_directory_beneath_the_root_is_refused(
    context: ToolContext, root: Path, path: str, kind: str
) -> None:
    (root / "f").write_text("")
    assert refusal(listed, context, path).kind == kind
