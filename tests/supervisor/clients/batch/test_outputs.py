"""Where a batch may write its results: standard output, or a regular file outside of what an agent writes."""

import errno
import json
import os
import resource
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from supervisor.clients.batch.items import Result, Status
from supervisor.clients.batch.outputs import OutputFile, ResultPrinter
from supervisor.errors import ConfigError, OutputError
from supervisor.journal.facts import CallEnded, CallStarted
from tests.supervisor.clients.shared import Guest
from tests.supervisor.command import HANG_GUARD, Strongroom, wait_until
from tests.supervisor.histories import call, fault_in_facts, script

# the file ----------------------------------------------------------------------------------------------------------


def result(name: str | int, status: Status = "ok") -> Result:
    return Result(name, status, "yes", "s", 1, [], {}, 0.5)


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


# what is no file that keeps results --------------------------------------------------------------------------------


def the_full_device(file: Path) -> None:
    file.symlink_to("/dev/full")


@pytest.mark.parametrize("options", [(), ("--resume",)], ids=["begun", "resumed"])
@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, the_full_device])
def test_an_output_that_keeps_nothing_is_refused_before_anything_runs(
    strongroom: Strongroom, root: Path, make: Callable[[Path], None], options: tuple[str, ...]
) -> None:
    make(strongroom.folder / "out.jsonl")
    strongroom.batch("write b: 1", *options).assert_refused("The output 'out.jsonl' ")
    assert not (root / "b").exists()
    assert not strongroom.has_done_anything


def test_a_fifo_that_is_read_is_refused_too(strongroom: Strongroom, root: Path) -> None:
    fifo = strongroom.folder / "out.jsonl"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    strongroom.batch("write b: 1").assert_refused("is not a regular file")
    os.close(reader)
    assert not (root / "b").exists()


# an output that an agent could write ---------------------------------------------------------------------------


INSIDE: Final = {
    "directly": "root/out.jsonl",
    "by a detour": "root/../root/out.jsonl",
    "by its absolute name": "{here}/root/out.jsonl",
    "by a link": "link/out.jsonl",
}


@pytest.mark.parametrize("place", INSIDE.values(), ids=INSIDE)
def test_an_output_in_a_root_that_is_written_is_refused(strongroom: Strongroom, root: Path, place: str) -> None:
    (strongroom.folder / "link").symlink_to("root")
    done = strongroom.batch("write b: 1", output=place.format(here=strongroom.folder))
    done.assert_refused("where the agent writes")
    assert os.listdir(root) == ["a.txt"]
    assert not strongroom.has_done_anything


def test_an_output_in_the_root_of_one_item_among_several_is_refused(strongroom: Strongroom, root: Path) -> None:
    (strongroom.folder / "other").mkdir()
    items = '{"id": 1, "prompt": "write b: 1"}\n{"id": 2, "prompt": "ls *", "root": "other"}'
    strongroom.batch(items, output="other/out.jsonl").assert_refused("where the agent writes")
    assert not (root / "b").exists()


def test_an_output_in_a_root_that_is_only_read_is_fine(strongroom: Strongroom, root: Path) -> None:
    strongroom.configure("[profiles.vault]\nwritable = false\n")
    assert strongroom.batch("read a.txt", output="root/out.jsonl").code == 0
    assert json.loads((root / "out.jsonl").read_text())["answer"] == "read_file a.txt:\nhello\n"


# standard output -------------------------------------------------------------------------------------------------


def test_results_are_printed_as_they_end_and_no_file_is_made(guest: Guest, root: Path) -> None:
    done = guest.batch(one_fails(guest), output="-")
    assert (done.code, done.err) == (1, "1 of 2 items failed\n")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert {each["id"]: each["status"] for each in lines} == {1: "ok", 2: "error"}
    assert not (guest.folder / "-").exists()


def test_a_printed_line_hides_nothing_from_a_terminal() -> None:
    lines: list[str] = []
    printed = ResultPrinter(lines.append)
    printed.write(Result("a", "ok", "\x9b2J\u202e", "s", 1, [], {}, 0.5))
    assert lines == [result("a").line().decode().strip().replace("yes", "\\u009b2J\\u202e")]
    assert printed.statuses == {"a": "ok"}


def test_a_batch_whose_results_nobody_reads_any_more_ends(guest: Guest, root: Path) -> None:
    with open("/dev/full", "w") as full:
        done = guest.run(*guest.batch_of("ls *\n" * 5, output="-"), stdout=full.fileno())
    assert (done.code, done.err) == (1, "error: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("option", ["--resume", "--json"])
def test_what_needs_a_file_is_refused_where_results_are_printed(guest: Guest, option: str) -> None:
    guest.batch("ls *", option, output="-").assert_refused("Name a file with --output")


# a disk that is full ---------------------------------------------------------------------------------------------


EDIT: Final = call("edit_file", path="a.txt", old="hello", new="hello hello")


@pytest.mark.parametrize("left", [0, 1, 40], ids=["nothing fits", "one byte fits", "a part fits"])
def test_a_result_that_does_not_fit_on_the_disk_is_written_later(strongroom: Strongroom, root: Path, left: int) -> None:
    model = f"scripted:{script(strongroom.folder, {'calls': [EDIT]}, {'text': 'yes'})}"
    arguments = strongroom.batch_of("first\nsecond\n", model=model)
    done = strongroom.run(*arguments, program=("tests.supervisor.dying", f"full{left}", "1"))
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: The output cannot be written: File too large. Use --resume later.\n"
    assert (strongroom.folder / "out.jsonl").stat().st_size == left
    assert strongroom.asked == ["first"]

    (root / "a.txt").write_text("marked hello\n")  # what the first item did must not be done again
    assert strongroom.run(*arguments, "--resume").code == 0
    found, facts = strongroom.results, strongroom.facts
    assert [(each["id"], each["status"], each["answer"]) for each in found] == [("1", "ok", "yes"), ("2", "ok", "yes")]
    assert strongroom.asked == ["first", "second"]
    assert len([fact for fact in facts if isinstance(fact, CallStarted)]) == 2
    assert [fact.ok for fact in facts if isinstance(fact, CallEnded)] == [True, True]
    assert (root / "a.txt").read_text() == "marked hello hello\n"
    assert {fault_in_facts(strongroom.sessions[each["session"]]) for each in found} == {None}


# what is said at the end -----------------------------------------------------------------------------------------


def one_fails(strongroom: Strongroom) -> str:
    model = f"scripted:{script(strongroom.folder, {'fault': 'api_error'})}"
    return json.dumps({"id": 1, "prompt": "read a.txt"}) + "\n" + json.dumps({"id": 2, "prompt": "x", "model": model})


def test_a_batch_with_failures_says_so_on_stderr(guest: Guest, root: Path) -> None:
    done = guest.batch(one_fails(guest))
    assert (done.code, done.out, done.err) == (1, "", "1 of 2 items failed; see out.jsonl\n")


def test_a_batch_prints_one_document_if_asked_for(guest: Guest, root: Path) -> None:
    done = guest.batch(one_fails(guest), "--json")
    assert (done.code, done.json) == (1, {"items": 2, "ok": 1, "output": "out.jsonl"})
    again = guest.batch("read a.txt", "--json", output="other.jsonl")
    assert (again.code, again.json) == (0, {"items": 1, "ok": 1, "output": "other.jsonl"})
