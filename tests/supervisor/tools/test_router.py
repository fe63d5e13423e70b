"""A tool call's way through policy, person and worker: always one outcome with a kind, never an exception."""

import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import trio

from supervisor.config.profiles import Profile
from supervisor.journal.facts import CallEnded
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec, Restart
from supervisor.tools.approval import ApprovalDecision, Approve
from supervisor.tools.outcomes import allowed, as_error
from supervisor.tools.router import Router
from tests.fake_worker import fake
from tests.raw_worker import forked
from tests.supervisor.bench import Bench, vault
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.recording_context import RecordingContext
from workers.wire import frames, messages

Run = Callable[..., Awaitable[CallEnded]]


def router(bench: Bench, profile: Profile | None = None, approve: Approve | None = None) -> Router:
    return Router(profile or vault(bench.root), bench.pools, approve)


async def outcome(router: Router, tool: str, arguments: str) -> CallEnded:
    with trio.fail_after(HANG_GUARD):
        call = router.judge(1, "c", tool, arguments)
        return await router.run(
            await router.request_approval(call) if call.decision == "ask" else call, RecordingContext()
        )


class Way(NamedTuple):
    name: str
    tool: str
    arguments: str
    kind: str | None
    words: str


WAYS: Final = [
    Way("good", "read_file", '{"path": "a.txt"}', None, "hello\n"),
    Way("JSON result", "list_files", '{"pattern": "*"}', None, '["a.txt"]'),
    Way("missing", "read_file", '{"path": "b.txt"}', "not_found", "b.txt"),
    Way("escape", "read_file", '{"path": "../b"}', "path_escape", "Access denied: path outside sandbox directory"),
    Way("directory", "read_file", '{"path": "."}', "not_a_file", "directory"),
    Way("no object", "read_file", "7", "invalid_arguments", "Send one JSON object with: path, offset, limit"),
    Way("no JSON", "read_file", "{", "invalid_arguments", "Invalid arguments for read_file"),
    Way("nothing", "read_file", "", "invalid_arguments", "path"),
    Way("half a character", "read_file", '{"path": "\ud800"}', "invalid_arguments", "read_file"),
    Way("deep JSON", "read_file", "[" * 100_000, "invalid_arguments", "read_file"),
    Way("unknown", "rm", "{}", "unknown_tool", "There is no tool 'rm' here. Use: read_file"),
    Way("unknown and long", "x" * 500, "{}", "unknown_tool", "'" + "x" * 80 + "'"),
    Way("too large", "write_file", '"' + "x" * frames.FRAME_LIMIT + '"', "too_large", "Send less."),
]


async def test_a_call_has_its_outcome_whatever_came_before(bench: Bench) -> None:
    calls = router(bench)
    for way in (*WAYS, WAYS[0]):
        ended = await outcome(calls, way.tool, way.arguments)
        assert (ended.turn, ended.call, ended.tool) == (1, "c", way.tool)
        assert (ended.ok, ended.kind) == (way.kind is None, way.kind), way.name
        assert way.words in ended.content, way.name
    assert ended.seconds > 0
    ended = await outcome(calls, "read_file", '{"path": "../b"}')
    error = as_error(ended)
    assert (error["kind"], error["path"], error["message"]) == ("path_escape", "../b", ended.content)


# the person --------------------------------------------------------------------------------------------------


async def yes(_call: object) -> ApprovalDecision:
    await trio.lowlevel.checkpoint()
    return ApprovalDecision(approved=True)


async def no(_call: object) -> ApprovalDecision:
    await trio.lowlevel.checkpoint()
    return ApprovalDecision(approved=False)


PEOPLE: Final[list[tuple[str, Approve | None, str | None, str]]] = [
    ("yes", yes, None, "hello"),
    ("no", no, "denied", "the person declined"),
    ("nobody", None, "denied", "nobody is here to be asked"),
]


async def test_a_call_that_is_asked_about_runs_after_a_yes(bench: Bench) -> None:
    for name, approve, kind, words in PEOPLE:
        calls = router(bench, vault(bench.root, ("read_file",)), approve)
        ended = await outcome(calls, "read_file", '{"path": "a.txt"}')
        assert ended.kind == kind, name
        assert words in ended.content, name


async def test_a_question_without_an_answer_is_no(bench: Bench) -> None:
    calls = router(bench, vault(bench.root, ("read_file",)), yes)
    unanswered = calls.judge(1, "c", "read_file", '{"path": "a.txt"}')
    assert not allowed(unanswered)
    assert (await calls.run(unanswered, RecordingContext())).kind == "denied"


async def test_a_yes_does_not_undo_a_denial(bench: Bench) -> None:
    profile = Profile("narrow", str(bench.root), ("read_file",))
    calls = router(bench, profile, yes)
    denied = await calls.request_approval(calls.judge(1, "c", "write_file", '{"path": "x", "content": ""}'))
    assert not allowed(denied)
    assert (await calls.run(denied, RecordingContext())).kind == "unknown_tool"
    assert not (bench.root / "x").exists()


# workers that fail -------------------------------------------------------------------------------------------


class Fault(NamedTuple):
    name: str
    steps: list[dict[str, Any]]
    reading: str
    """The kind when the call has no effect."""
    writing: str
    words: str


HANGING: Final[dict[str, Any]] = {"hang": True}
FAULTS: Final = [
    Fault("exits", [{"exit": 3}], "worker_crashed", "outcome_unknown", "exited with code 3"),
    Fault("is killed", [{"signal": "SIGKILL"}], "worker_crashed", "outcome_unknown", "was killed by SIGKILL"),
    Fault("hangs", [HANGING], "timeout", "timeout", "did not end within 0.3 s"),
    Fault("uses up its time", [{"signal": "SIGXCPU"}], "resource_limit", "resource_limit", "processor time"),
    Fault("sends no frame", [{"raw_text": "hello, world"}], "worker_crashed", "outcome_unknown", "broke the protocol"),
]


@pytest.fixture
async def faulty(nursery: trio.Nursery, root: Path) -> Any:
    """Return a function that makes a router on workers that take these steps."""
    opened = []

    def make(steps: list[dict[str, Any]]) -> Router:
        def spec(category: str) -> ChildSpec:
            return ChildSpec(category, vault(root).context(), restart=Restart(intensity=99), **fake(steps))

        opened.append(Pools(str(root), spec, nursery))
        return Router(vault(root), opened[0], None)

    yield make
    for pools in opened:
        await pools.close()


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
async def test_a_failing_worker_is_an_outcome_that_says_what_is_known_of_its_effect(
    faulty: Callable[..., Router], fault: Fault
) -> None:
    calls = faulty(fault.steps)
    pool = calls.pools.pool("files")
    patient = pool.spec
    unknown, untouched = "It may have had its effect or not: look before you repeat it.", "Nothing of it was committed."
    for tool, kind, said in (
        ("read_file", fault.reading, fault.words),
        ("write_file", fault.writing, unknown),
        ("edit_file", fault.reading, untouched),  # it fails before the commit
    ):
        if HANGING in fault.steps:
            await pool.ready()
            commits = tool == "write_file"  # the others hang in the call itself
            short = replace(patient, decide_timeout=0.3) if commits else replace(patient, call_timeout=0.3)
            pool.spec = pool.checkout.spec = short
        ended = await outcome(calls, tool, "{}")
        assert ended.kind == kind
        assert said in ended.content
        assert (unknown in ended.content) == (tool == "write_file")


async def test_no_worker_is_an_outcome(faulty: Callable[..., Router]) -> None:
    ended = await outcome(faulty([{"at_start": {"confine_fails": True}}]), "write_file", "{}")
    assert ended.kind == "worker_unavailable"
    assert "Nothing was done" in ended.content


async def test_a_call_after_the_workers_were_stopped_is_an_outcome(nursery: trio.Nursery, root: Path) -> None:
    pools = Pools(str(root), lambda category: forked(ChildSpec(category, vault(root).context())), nursery)
    calls = Router(vault(root), pools, None)
    assert (await outcome(calls, "read_file", '{"path": "a.txt"}')).ok
    await pools.close()
    ended = await outcome(calls, "write_file", '{"path": "x", "content": ""}')
    assert (ended.ok, ended.kind) == (False, "worker_unavailable")
    assert "Nothing was done" in ended.content
    assert not (root / "x").exists()


# roots that are not where they were ---------------------------------------------------------------------------


DELETED: Final = [
    ("read_file", '{"path": "a.txt"}'),
    ("list_files", '{"pattern": "*"}'),
    ("write_file", '{"path": "new.txt", "content": ""}'),
    ("search_files", '{"query": "hello"}'),
    ("fetch_url", '{"url": "https://example.com/"}'),
    ("exec_shell", '{"command": "ls"}'),
]


async def never(_ask: object) -> ApprovalDecision:
    await trio.lowlevel.checkpoint()
    raise AssertionError("nobody is asked")


@pytest.mark.parametrize("ask", [False, True], ids=["unasked", "asked about"])
async def test_every_call_on_a_root_that_was_deleted_says_so(bench: Bench, ask: bool) -> None:
    tools = tuple(tool for tool, _arguments in DELETED)
    calls = router(bench, Profile("any", str(bench.root), tools, tools if ask else ()), never)
    shutil.rmtree(bench.root)
    bench.root.mkdir()
    for tool, arguments in DELETED:
        ended = await outcome(calls, tool, arguments)
        assert ended.kind == "not_found"
        assert f"The root directory '{bench.root}' of this session is gone" in ended.content
        assert ended.content.endswith("Open a new session. Nothing was done.")
    assert list(bench.root.iterdir()) == []


async def test_remains_of_a_commit_in_a_root_that_was_moved_are_told(faulty: Callable[..., Router], root: Path) -> None:
    calls = faulty([{"exit": 3}])
    (root / ".strongroom-00000000000000aa.tmp").mkdir()
    root.rename(root.with_name("moved"))
    ended = await outcome(calls, "write_file", "{}")
    assert ended.kind == "outcome_unknown"
    assert ended.content.count(".strongroom-00000000000000aa.tmp") == 1


async def test_a_commit_that_fails_on_a_root_that_was_deleted_meanwhile_is_an_outcome(
    faulty: Callable[..., Router], root: Path, tmp_path: Path
) -> None:
    calls = faulty([{"exit": 3}])
    calls.execution._pools.pool("files")
    context = RecordingContext()
    record = context.record

    async def record_and_delete(*facts: Any) -> None:
        await record(*facts)
        shutil.rmtree(root)

    context.record = record_and_delete  # type: ignore[method-assign]
    with trio.fail_after(HANG_GUARD):
        ended = await calls.run(calls.judge(1, "c", "write_file", "{}"), context)
    assert ended.kind == "outcome_unknown"


async def test_an_answer_that_is_not_the_json_it_claims_to_be_is_internal(bench: Bench) -> None:
    class Liar:
        spec = bench.pools.pool("files").spec

        async def call(self, *_: object, **__: object) -> messages.Done:
            await trio.lowlevel.checkpoint()
            return messages.Done(1, "{not json", "json")

    class Liars:
        def pool(self, _category: str) -> Liar:
            return Liar()

    calls: Any = Router(vault(bench.root), bench.pools, None)
    calls.pools = Liars()
    assert (await outcome(calls, "list_files", '{"pattern": "*"}')).kind == "internal"
