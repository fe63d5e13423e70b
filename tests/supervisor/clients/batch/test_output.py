"""Where a batch may write its results: a regular file, outside of what an agent writes, and never in vain."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.journal.facts import CallEnded, CallStarted, TurnStarted
from tests.supervisor.clients.shared import Guest
from tests.supervisor.command import Done, Strongroom
from tests.supervisor.histories import call, fault_in_facts, script


def batch(strongroom: Strongroom, text: str, output: str, *options: str, model: str = "offline") -> Done:
    (strongroom.folder / "in").write_text(text)
    return strongroom.run("batch", "in", "--output", output, "--root", "root", "--model", model, *options)


def results(strongroom: Strongroom) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (strongroom.folder / "out.jsonl").read_text().splitlines()]


def assert_refused(done: Done, words: str) -> None:
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "Traceback" not in done.err


def a_fifo(file: Path) -> None:
    os.mkfifo(file)


def a_directory(file: Path) -> None:
    file.mkdir()


def the_full_device(file: Path) -> None:
    file.symlink_to("/dev/full")


@pytest.mark.parametrize("options", [(), ("--resume",)], ids=["begun", "resumed"])
@pytest.mark.parametrize("make", [a_fifo, a_directory, the_full_device])
def test_an_output_that_keeps_nothing_is_refused_before_anything_runs(
    strongroom: Strongroom, root: Path, make: Callable[[Path], None], options: tuple[str, ...]
) -> None:
    make(strongroom.folder / "out.jsonl")
    assert_refused(batch(strongroom, "write b: 1", "out.jsonl", *options), "The output 'out.jsonl' ")
    assert not (root / "b").exists()
    assert not strongroom.has_done_anything


def test_a_fifo_that_is_read_is_refused_too(strongroom: Strongroom, root: Path) -> None:
    fifo = strongroom.folder / "out.jsonl"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    assert_refused(batch(strongroom, "write b: 1", "out.jsonl"), "is not a regular file")
    os.close(reader)
    assert not (root / "b").exists()


# an output that an agent could write ---------------------------------------------------------------------------


def by_a_link(strongroom: Strongroom) -> str:
    (strongroom.folder / "link").symlink_to("root")
    return "link/out.jsonl"


INSIDE: Final[list[tuple[str, Callable[[Strongroom], str]]]] = [
    ("directly", lambda _: "root/out.jsonl"),
    ("by a detour", lambda _: "root/../root/out.jsonl"),
    ("by its absolute name", lambda each: str(each.folder / "root" / "out.jsonl")),
    ("by a link", by_a_link),
]


@pytest.mark.parametrize("place", [each[1] for each in INSIDE], ids=[each[0] for each in INSIDE])
def test_an_output_in_a_root_that_is_written_is_refused(
    strongroom: Strongroom, root: Path, place: Callable[[Strongroom], str]
) -> None:
    assert_refused(batch(strongroom, "write b: 1", place(strongroom)), "where the agent writes")
    assert os.listdir(root) == ["a.txt"]
    assert not strongroom.has_done_anything


def test_an_output_in_the_root_of_one_item_among_several_is_refused(strongroom: Strongroom, root: Path) -> None:
    (strongroom.folder / "other").mkdir()
    items = '{"id": 1, "prompt": "write b: 1"}\n{"id": 2, "prompt": "ls *", "root": "other"}'
    assert_refused(batch(strongroom, items, "other/out.jsonl"), "where the agent writes")
    assert not (root / "b").exists()


def test_an_output_in_a_root_that_is_only_read_is_fine(strongroom: Strongroom, root: Path) -> None:
    strongroom.home.mkdir(mode=0o700)
    (strongroom.home / "config.toml").write_text("[profiles.vault]\nwritable = false\n")
    assert batch(strongroom, "read a.txt", "root/out.jsonl").code == 0
    assert json.loads((root / "out.jsonl").read_text())["answer"] == "read_file a.txt:\nhello\n"


# a disk that is full ---------------------------------------------------------------------------------------------


EDIT: Final = call("edit_file", path="a.txt", old="hello", new="hello hello")


@pytest.mark.parametrize("left", [0, 1, 40], ids=["nothing fits", "one byte fits", "a part fits"])
def test_a_result_that_does_not_fit_on_the_disk_is_written_later(strongroom: Strongroom, root: Path, left: int) -> None:
    model = f"scripted:{script(strongroom.folder, {'calls': [EDIT]}, {'text': 'yes'})}"
    (strongroom.folder / "in").write_text("first\nsecond\n")
    arguments = ("batch", "in", "--output", "out.jsonl", "--root", "root", "--model", model)
    done = strongroom.run(*arguments, program=("tests.supervisor.dying", f"full{left}", "1"))
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: The output cannot be written: File too large. Use --resume later.\n"
    assert (strongroom.folder / "out.jsonl").stat().st_size == left
    assert [fact.text for fact in strongroom.facts if isinstance(fact, TurnStarted)] == ["first"]

    (root / "a.txt").write_text("marked hello\n")  # what the first item did must not be done again
    assert strongroom.run(*arguments, "--resume").code == 0
    assert [(each["id"], each["status"], each["answer"]) for each in results(strongroom)] == [
        ("1", "ok", "yes"),
        ("2", "ok", "yes"),
    ]
    facts = strongroom.facts
    assert [fact.text for fact in facts if isinstance(fact, TurnStarted)] == ["first", "second"]
    assert len([fact for fact in facts if isinstance(fact, CallStarted)]) == 2
    assert [fact.ok for fact in facts if isinstance(fact, CallEnded)] == [True, True]
    assert (root / "a.txt").read_text() == "marked hello hello\n"
    assert {fault_in_facts(strongroom.sessions[each["session"]]) for each in results(strongroom)} == {None}


# what is said at the end -----------------------------------------------------------------------------------------


BOTH: Final = '{{"id": 1, "prompt": "read a.txt"}}\n{{"id": 2, "prompt": "x", "model": "{bad}"}}'


def one_fails(strongroom: Strongroom) -> str:
    return BOTH.format(bad=f"scripted:{script(strongroom.folder, {'fault': 'overloaded'})}")


def test_a_batch_with_failures_says_so_on_stderr(guest: Guest, root: Path) -> None:
    done = batch(guest, one_fails(guest), "out.jsonl")
    assert (done.code, done.out) == (1, "")
    assert done.err == "1 of 2 items failed; see out.jsonl\n"


def test_a_batch_prints_one_document_if_asked_for(guest: Guest, root: Path) -> None:
    done = batch(guest, one_fails(guest), "out.jsonl", "--json")
    assert (done.code, done.json) == (1, {"items": 2, "ok": 1, "output": "out.jsonl"})
    again = batch(guest, "read a.txt", "other.jsonl", "--json")
    assert (again.code, again.json) == (0, {"items": 1, "ok": 1, "output": "other.jsonl"})


@pytest.mark.parametrize("text", ["read a.txt", '{"id": "1", "prompt": "read a.txt"}'], ids=["text", "JSON"])
def test_a_byte_order_mark_before_the_items_is_ignored(guest: Guest, root: Path, text: str) -> None:
    assert batch(guest, f"\ufeff{text}", "out.jsonl").code == 0
    assert results(guest)[0]["answer"] == "read_file a.txt:\nhello\n"
    options = ("batch", "-", "--output", "other.jsonl", "--root", "root", "--model", "offline")
    assert guest.run(*options, stdin=f"\ufeff{text}").code == 0
    (one,) = [fact.text for fact in guest.facts if isinstance(fact, TurnStarted)][1:]
    assert one == "read a.txt"
