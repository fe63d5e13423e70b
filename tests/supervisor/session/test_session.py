"""A session that is taken up again, and one that changes its profile or model between turns."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from supervisor.agent.models.model import ModelRequest, Reply, ToolUse
from supervisor.errors import JournalError, WorkerUnavailable
from supervisor.journal.facts import CallEnded, Fact, Replied, SessionChanged, TurnStarted
from supervisor.journal.journal_writer import JournalWriter
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from supervisor.session.earlier_session import read_earlier
from supervisor.session.session import Session
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from tests.supervisor.bench import Bench, begun, kinds, vault
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import Memory, call, fault_in_facts, scripted

READ: Final = call("read_file", path="a.txt")
WRITE: Final = call("write_file", path="new.txt", content="new")
YES: Final = {"text": "yes"}


class Listening:
    """A model that keeps what it is asked, and answers once it is let go."""

    name = "listening"

    def __init__(self, *, waits: bool = False) -> None:
        self.requests: list[ModelRequest] = []
        self.asked = trio.Event()
        self.let_go = trio.Event()
        if not waits:
            self.let_go.set()

    async def warm(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def reply(self, request: ModelRequest, _show: object) -> Reply:
        self.requests.append(request)
        self.asked.set()
        await self.let_go.wait()
        return Reply([{"type": "text", "text": "heard"}], "end_turn", {}, [])


def reader(root: Path) -> Any:
    return replace(vault(root), name="reader", own_tools=("read_file",))


def names(tools: Sequence[dict[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools]


# change ------------------------------------------------------------------------------------------------------


async def test_the_next_turn_uses_what_was_chosen_and_remembers_what_was_said(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, {"calls": [WRITE]}, YES))
    await session.conversation.run_turn("one")
    model = Listening()
    session.change(reader(bench.root), bench.pools, model)
    end = await session.conversation.run_turn("two")
    (request,) = model.requests
    assert (end.turn, end.answer) == (2, "heard")
    assert names(request.tools) == ["read_file"]
    assert "You cannot change files" in request.system
    assert request.messages[0]["content"] == [{"type": "text", "text": "one"}]
    assert fault_in_facts(bench.facts(session)) is None


async def test_a_change_is_recorded_and_shown(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, YES))
    session.change(reader(bench.root), bench.pools, Listening())
    changed = SessionChanged("reader", "listening", vault(bench.root).context(), ("read_file",))
    assert bench.facts(session)[1:] == [changed]
    assert bench.events == [changed]
    assert session.profile.name == "reader"


async def test_a_tool_of_the_profile_before_is_gone_for_models_and_single_calls(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, YES))
    folder = tmp_path / "again"
    folder.mkdir()
    session.change(reader(bench.root), bench.pools, scripted(folder, {"calls": [WRITE]}, YES))
    await session.conversation.run_turn("go")
    assert bench.errors == ["unknown_tool"]
    assert (await session.call("write_file", '{"path": "new.txt", "content": ""}')).kind == "unknown_tool"
    assert not (bench.root / "new.txt").exists()


async def test_the_person_is_still_asked_after_a_change(bench: Bench, tmp_path: Path) -> None:
    asked: list[str] = []

    async def approve(ask: ApprovalQuestion) -> ApprovalDecision:
        await trio.lowlevel.checkpoint()
        asked.append(ask.call.tool)
        return ApprovalDecision(approved=False)

    session = bench.session(scripted(tmp_path, {"calls": [WRITE]}, YES), approve=approve)
    session.change(vault(bench.root, ("write_file",)), bench.pools, scripted(tmp_path, {"calls": [WRITE]}, YES))
    await session.conversation.run_turn("go")
    assert (asked, bench.errors) == (["write_file"], ["denied"])


async def test_a_change_and_a_second_turn_are_refused_while_one_runs(bench: Bench) -> None:
    model = Listening(waits=True)
    session = bench.session(model)
    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.conversation.run_turn, "go")
            await model.asked.wait()
            with pytest.raises(ValueError, match="runs"):
                session.change(reader(bench.root), bench.pools, model)
            with pytest.raises(ValueError, match="runs"):
                await session.conversation.run_turn("and this")
            with pytest.raises(ValueError, match="runs"):
                await session.conversation.resume()
            model.let_go.set()
    assert session.profile.name == "vault"
    assert kinds(bench.facts(session)) == ["SessionOpened", "TurnStarted", "Replied", "TurnEnded"]
    session.change(reader(bench.root), bench.pools, model)


async def test_a_turn_that_was_cancelled_makes_room_for_a_change(bench: Bench) -> None:
    model = Listening(waits=True)
    session = bench.session(model)
    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.conversation.run_turn, "go")
            await model.asked.wait()
            nursery.cancel_scope.cancel()
    session.change(reader(bench.root), bench.pools, Listening())
    assert (await session.conversation.run_turn("again")).answer == "heard"


async def test_a_change_that_cannot_be_recorded_changes_nothing(bench: Bench, tmp_path: Path) -> None:
    journal = Memory(tmp_path, refused=[2])
    session = bench.session(scripted(tmp_path, {"calls": [WRITE]}, YES), journal=journal.as_journal())
    with pytest.raises(JournalError):
        session.change(reader(bench.root), bench.pools, Listening())
    assert session.profile.name == "vault"
    assert (await session.conversation.run_turn("go")).answer == "yes"
    assert (bench.root / "new.txt").exists()


async def test_a_change_to_workers_that_were_stopped_changes_nothing(
    bench: Bench, tmp_path: Path, nursery: trio.Nursery
) -> None:
    session = bench.session(scripted(tmp_path, YES))
    stopped = Pools(str(bench.root), lambda category: ChildSpec(category, vault(bench.root).context()), nursery)
    await stopped.close()
    with pytest.raises(WorkerUnavailable):
        session.change(reader(bench.root), stopped, Listening())
    assert kinds(bench.facts(session)) == ["SessionOpened"]
    assert (await session.conversation.run_turn("go")).answer == "yes"


# taken up again ----------------------------------------------------------------------------------------------


def single(bench: Bench, session: str | None = None) -> Session:
    profile = vault(bench.root)
    earlier = read_earlier(bench.journal, session) if session else begun(bench.journal, profile, None)
    return Session(JournalWriter(bench.journal), bench.pools, profile, None, earlier)


async def calls_of(session: Session, bench: Bench, count: int) -> list[str]:
    for _ in range(count):
        await session.call("nothing", "{}")
    return [fact.call for fact in bench.facts(session) if isinstance(fact, CallEnded)]


async def test_single_calls_of_a_session_that_is_taken_up_again_have_new_ids(bench: Bench) -> None:
    first = single(bench)
    await calls_of(first, bench, 2)
    found = await calls_of(single(bench, first.id), bench, 2)
    assert found == ["call_1", "call_2", "call_3", "call_4"]


async def test_single_calls_take_no_id_of_a_models_call(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path))
    use = {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {}}
    bench.journal.append(session.id, TurnStarted(1, "go"), Replied(1, 0, [use], "tool_use", {}))
    again = bench.session(scripted(tmp_path), session=session.id)
    await again.call("nothing", "{}")
    assert [fact.call for fact in bench.facts(again) if isinstance(fact, CallEnded)] == ["call_2"]


async def test_a_models_call_takes_no_id_of_a_single_one(bench: Bench) -> None:
    class Repeating(Listening):
        async def reply(self, request: ModelRequest, _show: object) -> Reply:
            await super().reply(request, _show)
            if len(self.requests) > 1:
                return Reply([{"type": "text", "text": "done"}], "end_turn", {}, [])
            use = {"type": "tool_use", "id": "call_1", "name": "nothing", "input": {}}
            return Reply([use], "tool_use", {}, [ToolUse("call_1", "nothing", "{}")])

    session = bench.session(Repeating())
    await session.call("nothing", "{}")
    await session.conversation.run_turn("go")
    found = [fact.call for fact in bench.facts(session) if isinstance(fact, CallEnded)]
    assert len(set(found)) == 2


class Stopping(JournalWriter):
    """Lets nobody go on once a call's end is recorded, as a daemon that is killed there."""

    async def append(self, session: str, *new: Fact, then: Callable[[], None] = lambda: None) -> None:
        await super().append(session, *new, then=then)
        if any(isinstance(fact, CallEnded) for fact in new):
            raise KeyboardInterrupt


async def test_the_end_of_a_single_call_is_told_before_anybody_goes_on(bench: Bench) -> None:
    profile, told = vault(bench.root), list[CallEnded]()
    session = Session(Stopping(bench.journal), bench.pools, profile, None, begun(bench.journal, profile, None))
    with pytest.raises(KeyboardInterrupt):
        await session.call("nothing", "{}", told.append)
    assert told == bench.facts(session)[-1:]


async def test_the_end_of_a_single_call_that_is_cut_off_is_told(bench: Bench) -> None:
    profile, told = vault(bench.root, ask=("write_file",)), list[CallEnded]()

    async def cut(_question: ApprovalQuestion) -> ApprovalDecision:
        scope.cancel()
        await trio.sleep_forever()
        raise AssertionError

    earlier = begun(bench.journal, profile, None, attended=True)
    session = Session(JournalWriter(bench.journal), bench.pools, profile, None, earlier, approve=cut)
    with trio.CancelScope() as scope:
        await session.call("write_file", '{"path": "new.txt", "content": "new"}', told.append)
    assert [ended.kind for ended in told] == ["cancelled"]
    assert told == bench.facts(session)[-1:]


async def test_a_session_keeps_the_directory_it_was_opened_in(bench: Bench, tmp_path: Path) -> None:
    model = scripted(tmp_path)
    profile, writer = vault(bench.root), JournalWriter(bench.journal)
    first = Session(writer, bench.pools, profile, model, begun(bench.journal, profile, model, cwd="/home/me"))
    again = Session(writer, bench.pools, profile, model, read_earlier(bench.journal, first.id))
    assert [each.opened.cwd for each in (first, again)] == ["/home/me", "/home/me"]
