"""A batch's input and output as data: what is an item, what is refused, and what a kill leaves behind."""

import errno
import json
import os
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.clients.batch.items import CallLine, Item, OutputFile, Result, read_items
from supervisor.errors import ConfigError, OutputError
from tests.supervisor.command import HANG_GUARD, wait_until

ITEMS: Final[list[tuple[str, list[Item]]]] = [
    ("one\ntwo\n", [Item("1", "one"), Item("2", "two")]),
    ("one", [Item("1", "one")]),
    ("\n one \r\n\n\ntwo\u2028and\n", [Item("2", "one"), Item("5", "two\u2028and")]),
    ('{"id": "a", "prompt": "x"}\n{"id": 2, "prompts": ["y", "z"]}\n', [Item("a", "x"), Item(2, prompts=("y", "z"))]),
    ('{"id": "a", "prompt": "x", "profile": "p", "root": "r", "model": "m"}', [Item("a", "x", None, "p", "r", "m")]),
    ("a { line", [Item("1", "a { line")]),
    ("\ufeffone\n\ufefftwo", [Item("1", "one"), Item("2", "\ufefftwo")]),
    ('\ufeff{"id": "a", "prompt": "\ufeffx"}', [Item("a", "\ufeffx")]),
]


@pytest.mark.parametrize(("text", "items"), ITEMS, ids=[repr(text[:20]) for text, _ in ITEMS])
def test_an_input_becomes_items(tmp_path: Path, text: str, items: list[Item]) -> None:
    (tmp_path / "in").write_bytes(text.encode())
    assert read_items(str(tmp_path / "in")) == items


def test_an_item_has_its_turns() -> None:
    assert Item(1, "x").turns == ("x",)
    assert Item(1, prompts=("x", "y")).turns == ("x", "y")


BAD: Final[list[tuple[bytes, str]]] = [
    (b"", "holds no prompts"),
    (b" \n\t\n", "holds no prompts"),
    (b"\xff", "is not UTF-8"),
    (b'{"id": "a", "prompt": "x"}\nplain', "line 2: "),
    (b'{"prompt": "x"}', "line 1: Object missing required field `id`"),
    (b'{"id": "a"}', "an item has either a `prompt` or `prompts`"),
    (b'{"id": "a", "prompt": "x", "prompts": ["y"]}', "an item has either a `prompt` or `prompts`"),
    (b'{"id": "a", "prompt": " "}', "none is empty"),
    (b'{"id": "a", "prompts": ["x", ""]}', "none is empty"),
    (b'{"id": "a", "prompts": []}', "none is empty"),
    (b'{"id": 1.5, "prompt": "x"}', "Expected `int | str`"),
    (b'{"id": "a", "prompt": "x", "mode": "y"}', "unknown field `mode`"),
    (b'{"id": "1", "prompt": "x"}\n{"id": 1, "prompt": "y"}', "the id 1 occurs twice"),
    (b'{"id": "a", "prompt": "\\ud800"}', "line 1: "),
    (b'{"id": "a", "prompt": "x", "images": ["/none.png"]}', "line 1: '/none.png' is not PNG, JPEG, GIF, WebP or PDF"),
]


@pytest.mark.parametrize(("content", "words"), BAD, ids=[repr(content[:40]) for content, _ in BAD])
def test_an_input_that_is_none_is_refused_with_its_line(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "in").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_items(str(tmp_path / "in"))
    assert words in str(caught.value)
    assert str(tmp_path / "in") in str(caught.value)


def test_an_input_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for name in ("missing", "."):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_items(str(tmp_path / name))


# the output --------------------------------------------------------------------------------------------------


def result(name: str | int, status: Any = "ok", **more: Any) -> Result:
    return Result(name, status, "yes", "s", 1, [CallLine("read_file", {"path": "a"}, True)], {"t": 1}, 0.5, **more)


def test_a_line_has_every_field() -> None:
    line = {"id": "a", "status": "ok", "answer": "yes", "session": "s", "steps": 1, "usage": {"t": 1}, "seconds": 0.5}
    call = {"tool": "read_file", "arguments": {"path": "a"}, "ok": True, "error_kind": None}
    error = {"kind": "x", "message": "y"}
    assert json.loads(result("a").line()) == {**line, "tool_calls": [call]}
    failed = json.loads(result("a", "error", error=error).line())
    assert failed == {**line, "tool_calls": [call], "status": "error", "error": error}


def test_results_are_read_back_on_resume(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with closing(OutputFile(path, resume=False)) as first:
        first.write(result("a"))
        first.write(result(2, "error"))
    with closing(OutputFile(path, resume=True)) as again:
        assert again.statuses == {"a": "ok", "2": "error"}
        again.write(result("c"))
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["a", 2, "c"]


@pytest.mark.parametrize("kept", [1, 4, 6, 7, 30, -1])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "out"
    path.write_bytes(result("a").line() + result("b").line()[:kept])
    with closing(OutputFile(path, resume=True)) as file:
        assert file.statuses == {"a": "ok"}
    assert path.read_bytes() == result("a").line()


FOREIGN: Final = [
    b"somebody's notes",
    b"somebody's notes\n",
    b"somebody's notes\nand more",
    b'{"id": "x"}\n',
    b"[1]\n",
    b'{"other": 1',
    b'{"id":1,"status":"ok"}\nnotes without a line end',
]


def test_a_file_of_somebody_else_and_without_resume_one_of_results_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "out"
    rows = [(content, True, "nothing was changed") for content in FOREIGN]
    for content, resume, words in [*rows, (result("a").line(), False, "already exists")]:
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=words):
            OutputFile(path, resume=resume)
        assert path.read_bytes() == content


def test_two_batches_cannot_write_one_output(tmp_path: Path) -> None:
    output = OutputFile(tmp_path / "out", resume=False)
    with closing(output), pytest.raises(ConfigError, match="Another batch is writing to"):
        OutputFile(tmp_path / "out", resume=True)
    OutputFile(tmp_path / "out", resume=True).close()


@pytest.mark.parametrize("place", [".", "missing/out", "/dev/full/x"])
def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        OutputFile(tmp_path / place, resume=False)


def test_results_that_wait_for_the_disk_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    begun, may_end = threading.Event(), threading.Event()

    def sync(file: int) -> None:
        syncs.append(file)
        begun.set()
        assert may_end.wait(HANG_GUARD)

    monkeypatch.setattr(os, "fsync", sync)
    with closing(OutputFile(tmp_path / "out", resume=False)) as file, ThreadPoolExecutor(8) as pool:
        first = pool.submit(file.write, result(0))
        assert begun.wait(HANG_GUARD)
        others = [pool.submit(file.write, result(number)) for number in range(1, 8)]
        wait_until(lambda: file._written == 8)
        may_end.set()
        for each in (first, *others):
            each.result(HANG_GUARD)
    assert (len(syncs), len(file.statuses)) == (2, 8)


def test_no_result_is_durable_after_a_sync_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError(errno.EIO, "I/O error")]

    def sync(_file: int) -> None:
        if failures:
            raise failures.pop()

    monkeypatch.setattr(os, "fsync", sync)
    with closing(OutputFile(tmp_path / "out", resume=False)) as file:
        for number in range(2):  # the kernel tells a failure once
            with pytest.raises(OutputError, match="--resume"):
                file.write(result(number))
        assert file.statuses == {}


def test_no_result_follows_a_torn_one(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(OutputFile(tmp_path / "out", resume=False)) as file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
        try:
            with pytest.raises(OutputError, match="--resume"):
                file.write(result(0))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        with pytest.raises(OutputError, match="--resume"):
            file.write(result(1))
    with closing(OutputFile(tmp_path / "out", resume=True)) as file:
        file.write(result(0))
        assert file.statuses == {"0": "ok"}
