"""A fault plan against real workers under their real confinement: a row a fault, with what must become of the call.

After each row the same holds: the call has one end, of a kind that the row names; another category answered meanwhile;
no process and no descriptor is left; the root holds the old content or the new one, as the journal says; the next call
is answered. All rows share their workers, whose pools live in a thread of their own.
"""

import logging
import os
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import msgspec
import pytest
import trio

from supervisor.categories.restore import UndoConfig
from supervisor.config.config_keys import Config
from supervisor.config.fault_plan import FaultEntry, FaultPlan, RunningFaultPlan
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.journal.facts import CallEnded, CallStarted, Fact
from supervisor.journal.journal import Journal, open_journal
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_template import WorkerTemplate
from supervisor.session.child_specs import child_spec
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from supervisor.tools.catalog import unoffered
from supervisor.tools.router import Router
from supervisor.tools.services import ChangeServices
from supervisor.undo.packs import PackStore
from tests.raw_worker import template_of
from tests.supervisor.pool.harness import HANG, QUICK, descriptors, until
from tests.supervisor.recording_context import RecordingContext
from workers.faults.kinds import FAULTS, MOMENTS
from workers.wire.messages import Moment

SILENCE: Final = 0.5
"""Seconds that a call, or a commit, has in rows that end in a timeout."""

TOOLS: Final = {"files": "write_file", "search": "find_files", "web": "fetch_url", "shell": "exec_shell"}
LIMITS: Final = {"memory_mb": 128, "file_mb": 1, "processes": 24}
OF_A_WORKER: Final = 4
"""Descriptors that the supervisor holds of one worker: two pipes, stderr, its pidfd; with a broker one more."""


class Row(NamedTuple):
    """One fault of one call.

    `root` is what it holds afterwards. `log` is what is said of the worker; "" where none is lost.
    """

    category: str
    fault: str
    at: Moment
    ends: str
    root: str = "old"
    log: str = ""
    tool: str = ""
    times: int = 1


EXITED: Final = "exited with code 70"
REFUSED: Final = "(?s)Operation not permitted.*|Permission denied.*"
KILLED: Final = r"killed by SIGKILL$"
IN_TIME: Final = r"SIGKILL \(timeout\)"
BROKE: Final = "broke the protocol"
REPLACED: Final = "is replaced"
CLOSED: Final = "closed its output"

ROWS: Final = [
    # A call that is rehearsed: whatever happens before the commit, nothing has changed.
    Row("files", "exit", "call", "worker_crashed", log=EXITED),
    Row("files", "sigkill", "call", "worker_crashed", log=KILLED),
    Row("files", "sigstop", "call", "timeout", log=IN_TIME),
    Row("files", "sigsegv", "call", "worker_crashed", log="SIGSEGV"),
    Row("files", "hang", "call", "timeout", log=IN_TIME),
    Row("files", "spin", "call", "timeout", log=IN_TIME),
    Row("files", "ignore_sigterm", "call", "timeout", log=IN_TIME),
    Row("files", "allocate", "call", "resource_limit", log=REPLACED),
    Row("files", "fork_bomb", "call", "worker_crashed", log=REFUSED),
    Row("files", "open_files", "call", "resource_limit", log=REPLACED),
    Row("files", "fill_disk", "call", "ok", "new"),
    Row("files", "flood_stderr", "call", "ok", "new"),
    Row("files", "print_stdout", "call", "ok", "new"),
    Row("files", "close_pipe", "call", "worker_crashed", log=CLOSED),
    Row("files", "grandchild_holds_pipe", "call", "worker_crashed", log=REFUSED),
    Row("files", "error_10mb", "call", "internal"),
    Row("files", "frame_truncated", "answer", "worker_crashed", log=EXITED),
    Row("files", "frame_oversized", "answer", "worker_crashed", log=BROKE),
    Row("files", "frame_garbage", "answer", "worker_crashed", log=BROKE),
    Row("files", "frame_wrong_id", "answer", "worker_crashed", log=BROKE),
    Row("files", "frame_duplicated", "answer", "ok", "new", log="dropped a stray frame"),
    Row("files", "one_byte_at_a_time", "answer", "ok", "new"),
    # While it is held, and what it replaces is kept: it is rehearsed anew.
    Row("files", "exit", "proposed", "ok", "new", log=EXITED),
    Row("files", "sigkill", "keep", "ok", "new", log=KILLED),
    Row("files", "frame_garbage", "keep", "ok", "new", log=BROKE),
    Row("files", "frame_late", "answer", "ok", "new", log=BROKE),
    Row("files", "frame_duplicated", "keep", "ok", "new", log="dropped a stray frame"),
    Row("files", "one_byte_at_a_time", "keep", "ok", "new"),
    Row("shell", "one_byte_at_a_time", "keep", "ok", "new"),
    # From the commit on, it is settled: everything was changed, or nothing, and then it is made once more.
    Row("files", "exit", "decided", "ok", "new", log=EXITED),
    Row("files", "sigkill", "decided", "worker_crashed", log=KILLED, times=2),
    Row("files", "hang", "decided", "worker_crashed", log=IN_TIME),
    Row("files", "sigkill", "committed", "ok", "new", log=KILLED),
    Row("files", "frame_truncated", "committed", "ok", "new", log=EXITED),
    Row("files", "frame_wrong_id", "committed", "ok", "new", log=BROKE),
    Row("files", "one_byte_at_a_time", "committed", "ok", "new"),
    # A call that changes nothing is made once more.
    Row("files", "exit", "call", "ok", log=EXITED, tool="read_file"),
    Row("files", "exit", "call", "worker_crashed", log=EXITED, tool="read_file", times=2),
    Row("files", "frame_late", "answer", "ok", log=BROKE, tool="read_file"),
    # Workers that do not become ready.
    Row("files", "exit", "start", "ok", log=EXITED, tool="read_file"),
    Row("files", "frame_garbage", "start", "ok", log=BROKE, tool="read_file"),
    # What may fork a little, and write nowhere.
    Row("search", "fork_bomb", "call", "timeout", log=IN_TIME),
    Row("search", "grandchild_holds_pipe", "call", "ok", log=EXITED),
    Row("search", "fill_disk", "call", "ok", log=REFUSED),
    Row("search", "sigkill", "call", "ok", log=KILLED),
    Row("search", "allocate", "call", "resource_limit", log=REPLACED),
    Row("search", "frame_oversized", "answer", "ok", log=BROKE),
    # What may do next to nothing.
    Row("web", "fork_bomb", "call", "ok", log=REFUSED),
    Row("web", "open_files", "call", "ok", log=REFUSED),
    Row("web", "fill_disk", "call", "ok", log=REFUSED),
    Row("web", "hang", "call", "timeout", log=IN_TIME),
    # What is a process beside the one that was spawned.
    Row("shell", "exit", "call", "worker_crashed", log=EXITED),
    Row("shell", "sigkill", "answer", "worker_crashed", log=KILLED),
    Row("shell", "hang", "call", "timeout", log=IN_TIME),
    Row("shell", "fork_bomb", "call", "timeout", log=IN_TIME),
    Row("shell", "grandchild_holds_pipe", "call", "worker_crashed", log=EXITED),
    Row("shell", "sigsegv", "proposed", "ok", "new", log=f"SIGSEGV|{CLOSED}"),
    Row("shell", "exit", "decided", "ok", "new", log=EXITED),
    Row("shell", "frame_garbage", "committed", "ok", "new", log=BROKE),
    # What restores.
    Row("restore", "sigkill", "call", "worker_crashed", log=KILLED),
    Row("restore", "exit", "decided", "ok", "new", log=EXITED),
    Row("restore", "exit", "committed", "ok", "new", log=EXITED),
]


class RecordedCall(RecordingContext):
    """A call's owner, who records in a real journal."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    async def record(self, *facts: Fact) -> None:
        self._journal.append("s", *facts)
        await super().record(*facts)

    @property
    def committed(self) -> bool:
        return any(fact.committed for fact in self.decided)

    @property
    def pack(self) -> str:
        return self.decided[-1].kept


class Replaceable(RunningFaultPlan):
    """Faults whose plan is the row's."""

    def take(self, *entries: FaultEntry) -> None:
        super().__init__(FaultPlan(Path("row"), "", 0, entries))


async def _yes(_ask: ApprovalQuestion) -> ApprovalDecision:
    await trio.lowlevel.checkpoint()
    return ApprovalDecision(approved=True, by="test")


class Place:
    """A root, its workers of every category, and a journal."""

    def __init__(self, root: Path, journal: Journal, pools: Pools, faults: Replaceable, router: Router) -> None:
        self.root = root
        self.journal = journal
        self.pools = pools
        self.faults = faults
        self._router = router
        self._calls = 0
        self._idle = len(descriptors())
        """Descriptors of this process without any worker of the place."""
        self._others = set(worker_processes())
        """Workers that other tests share."""

    @property
    def content(self) -> str:
        return (self.root / "a.md").read_text()

    async def call(self, tool: str, **arguments: Any) -> tuple[CallEnded, RecordedCall]:
        started = self._router.judge(1, self._name(), tool, msgspec.json.encode(arguments).decode())
        return await self._run(started, lambda context: self._router.run(started, context))

    async def undo(self, pack: str) -> tuple[CallEnded, RecordedCall]:
        arguments = msgspec.json.encode({"pack": pack}).decode()
        started = CallStarted(1, self._name(), "undo", arguments, True, "allow", "asked", rehearsed=True)
        execution, offer = self._router.execution, unoffered("undo")
        return await self._run(started, lambda context: execution.run(started, offer, context, undoes=("w",)))

    async def of_category(self, category: str, tool: str = "") -> tuple[CallEnded, RecordedCall]:
        """Make a call of one category, that changes `a.md` where the category can change anything."""
        new = f"content {self._calls}"
        match tool or category:
            case "files":
                return await self.call("write_file", path="a.md", content=new)
            case "shell":
                (self.root / "new.md").write_text(new)
                return await self.call("exec_shell", command="cp", args=["new.md", "a.md"])
            case "read_file":
                return await self.call("read_file", path="a.md")
            case "search":
                return await self.call("find_files", pattern="*.md")
            case _:
                return await self.call("fetch_url", url="https://not.example/")

    async def _run(
        self, started: CallStarted, run: Callable[[RecordedCall], Awaitable[CallEnded]]
    ) -> tuple[CallEnded, RecordedCall]:
        context = RecordedCall(self.journal)
        self.journal.append("s", started)
        with trio.fail_after(HANG):
            ended = await run(context)
        self.journal.append("s", ended)
        return ended, context

    def _name(self) -> str:
        self._calls += 1
        return f"c{self._calls}"

    def at_rest(self) -> bool:
        """Say whether every process of ours is a worker that is kept, or one of its own, and no descriptor is over."""
        kept = {
            slot.process.pid: pool.spec.broker is not None
            for pool in self.pools.opened.values()
            for slot in pool.workers.slots
            if slot.process is not None
        }
        family = worker_processes()
        known = {*kept, *self._others}
        alone = [pid for pid in family if known.isdisjoint(ancestors(pid, family))]
        watched = sum(
            bool(pool.workers.slots) for pool in self.pools.opened.values()
        )  # each pool that has had a worker
        expected = self._idle + watched + len(kept) * OF_A_WORKER + sum(kept.values())
        return not alone and len(descriptors()) == expected


def worker_processes() -> dict[int, int]:
    """Return the processes that run a worker's code for this process, each with its parent."""
    found = {}
    ours = f"\0{os.getpid()}\0".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            if (folder / "cmdline").read_bytes().endswith(ours):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    found[int(folder.name)] = int(fields[1])
    return found


def ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        yield pid
        pid = parents[pid]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, trio.lowlevel.TrioToken]]:
    """Open a place whose pools live in a thread, so that rows share them; no process of it is left."""
    ready: SimpleQueue[tuple[Place, trio.lowlevel.TrioToken, trio.Event]] = SimpleQueue()
    template = template_of(worker_command())  # here: it ends with the thread that started it
    thread = threading.Thread(target=trio.run, args=(_live, tmp_path_factory.mktemp("plan"), ready, template))
    before = set(worker_processes())
    thread.start()
    place, token, stop = ready.get(timeout=HANG)
    yield place, token
    token.run_sync_soon(stop.set)
    thread.join(HANG)
    assert set(worker_processes()) <= before


async def _live(
    folder: Path, ready: "SimpleQueue[tuple[Place, trio.lowlevel.TrioToken, trio.Event]]", template: WorkerTemplate
) -> None:
    root, home = folder / "root", folder / "home"
    root.mkdir()
    home.mkdir()
    (root / "a.md").write_text("at first")
    settings = Settings(Config(), folder / "config.toml", home)
    profile = Profile("faults", str(root), ("read_file", *TOOLS.values()))
    faults, stop = Replaceable(FaultPlan(Path("none"), "", 0, ())), trio.Event()

    def spec(category: str) -> ChildSpec:
        usual = replace(child_spec(settings, profile, category), template=template)
        limits = msgspec.structs.replace(usual.limits, **LIMITS)
        restart = replace(QUICK, intensity=1000)
        return replace(usual, faults=faults, limits=limits, call_timeout=HANG, decide_timeout=HANG, restart=restart)

    with open_journal(home / "journal.db") as journal:
        async with trio.open_nursery() as nursery:
            pools = Pools(str(root), spec, nursery)
            router = Router(profile, pools, _yes, "s", ChangeServices(packs=PackStore(home / "kept", UndoConfig())))
            place = Place(root, journal, pools, faults, router)
            ready.put((place, trio.lowlevel.current_trio_token(), stop))
            await stop.wait()
            await pools.close()


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.category}-{row.tool}-{row.fault}-{row.at}" for row in ROWS])
def test_a_fault_ends_as_its_row_says(
    row: Row, opened: tuple[Place, trio.lowlevel.TrioToken], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strongroom.pool")
    place, token = opened

    def heard() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "strongroom.pool"]

    trio.from_thread.run(_judge, row, place, heard, trio_token=token)


async def _judge(row: Row, place: Place, heard: Callable[[], list[str]]) -> None:
    pool = place.pools.pool(row.category)
    patient = pool.spec
    with trio.fail_after(HANG):
        await pool.ready()
    pack = (await place.of_category("files"))[1].pack if row.category == "restore" else ""
    old, rows = place.content, len(list(place.journal.everything()))
    place.faults.take(*_entries(row))
    if row.log == IN_TIME:
        calls, decides = (SILENCE, HANG) if row.at == "call" else (HANG, SILENCE)
        pool.spec = pool.checkout.spec = replace(patient, call_timeout=calls, decide_timeout=decides)
    answers: list[CallEnded] = []

    async def meanwhile() -> None:
        category = "search" if row.category == "files" else "files"
        tool = "" if row.category == "files" else "read_file"
        answers.append((await place.of_category(category, tool))[0])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(meanwhile)
        ended, context = await (place.undo(pack) if pack else place.of_category(row.category, row.tool))
    pool.spec = pool.checkout.spec = patient
    await until(lambda: place.faults.happened[row.fault] == row.times)
    place.faults.take()

    assert row.ends == ("ok" if answers_well(ended) else ended.kind), ended
    assert len(ended.content) <= 2**16
    assert [answers_well(each) for each in answers] == [True]
    assert (place.content == old) == (row.root == "old")
    assert context.committed or place.content == old
    await _next_call_answers(row, place)
    if row.log:
        await until(lambda: re.search(row.log, "\n".join(heard())))
    else:
        assert [line for line in heard() if row.category in line] == []
    await until(place.at_rest)
    assert place.journal.verify().problem == ""
    facts = [entry.fact for entry in place.journal.everything()][rows:]
    begun = [fact.call for fact in facts if isinstance(fact, CallStarted) and not fact.again]
    assert sorted(begun) == sorted(fact.call for fact in facts if isinstance(fact, CallEnded))


def _entries(row: Row) -> list[FaultEntry]:
    entry = FaultEntry(row.category, row.fault, at=row.at, times=row.times)
    first = FaultEntry(row.category, "sigsegv", call=1)  # so that there is a start
    return [first, entry] if row.at == "start" else [entry]


def answers_well(ended: CallEnded) -> bool:
    """Say whether a call has its tool's own answer; that of the web is that it may not go there."""
    return ended.ok or (ended.tool == "fetch_url" and ended.kind == "domain_not_allowed")


async def _next_call_answers(row: Row, place: Place) -> None:
    if row.category == "restore":
        pack = (await place.of_category("files"))[1].pack
        ended, _ = await place.undo(pack)
    else:
        ended, _ = await place.of_category(row.category, row.tool)
    assert answers_well(ended), ended


def test_every_fault_and_every_moment_has_a_row() -> None:
    assert {row.fault for row in ROWS} == set(FAULTS)
    assert {row.at for row in ROWS} == set(MOMENTS)
