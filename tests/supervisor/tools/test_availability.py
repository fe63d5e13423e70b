"""Tools whose workers have failed are not offered until they work again; the model is told, and nobody is asked."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio

from supervisor.agent.models.model import ModelRequest, Progress, Reply, ToolUse
from supervisor.agent.transcript import Transcript
from supervisor.config.profiles import Profile
from supervisor.journal.facts import CallEnded, Fact
from supervisor.journal.journal import Journal, open_journal
from supervisor.journal.journal_writer import JournalWriter
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec, Restart
from supervisor.session.earlier_session import read_earlier
from supervisor.session.session import Session
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from tests.fake_worker import fake
from tests.supervisor.bench import begun
from tests.supervisor.pool.harness import HANG, until

FILES = ("read_file", "write_file")
TOOLS = (*FILES, "find_files")


class Recorder:
    """A model that notes what it is offered; each of its replies is preceded by an act, and calls some tools."""

    name = "recorder"

    def __init__(self, *steps: tuple[Callable[[], object] | None, tuple[str, ...]]) -> None:
        self.steps = steps
        self.requests: list[ModelRequest] = []

    async def warm(self) -> None: ...

    async def aclose(self) -> None: ...

    async def reply(self, request: ModelRequest, _show: Callable[[Progress], None]) -> Reply:
        step = len(self.requests)
        self.requests.append(ModelRequest(request.system, request.tools, [*request.messages], request.step))
        if step >= len(self.steps):
            return Reply([{"type": "text", "text": "done"}], "end_turn", {})
        claim, tools = self.steps[step]
        if claim is not None:
            await until(claim)
        calls = [ToolUse(f"c{step}_{number}", tool, "{}") for number, tool in enumerate(tools)]
        content = [{"type": "tool_use", "id": call.id, "name": call.name, "input": {}} for call in calls]
        return Reply(content, "tool_use", {}, calls)

    @property
    def offered(self) -> list[tuple[str, ...]]:
        return [tuple(tool["name"] for tool in request.tools) for request in self.requests]

    def told(self, step: int) -> str:
        """Return the texts of the last message of a request."""
        content = self.requests[step].messages[-1]["content"]
        return "\n".join(block["text"] for block in content if block["type"] == "text")


class Place:
    """Two categories of fake workers: those of files start once they are cured, those of search at once."""

    def __init__(self, folder: Path, journal: Journal, nursery: trio.Nursery) -> None:
        self.cured = folder / "cured"
        self.journal = journal
        self.asked: list[str] = []
        self.profile = Profile("vault", str(folder), TOOLS, ("write_file",))
        bad = fake([{"at_start": {"exit": 1}}], cured=self.cured)
        fakes = {"files": bad, "shell": bad, "search": fake([])}
        self.pools = Pools(
            str(folder),
            lambda category: ChildSpec(
                category,
                self.profile.context(),
                **fakes[category],
                workers=1,
                call_timeout=HANG,
                restart=Restart(intensity=0, pause=0.05, first_backoff=0.01),
            ),
            nursery,
        )

    async def approve(self, ask: ApprovalQuestion) -> ApprovalDecision:
        self.asked.append(ask.call.tool)
        return ApprovalDecision(True, by="test")

    def session(self, model: Recorder, session: str | None = None) -> Session:
        if session:
            earlier = read_earlier(self.journal, session)
        else:
            earlier = begun(self.journal, self.profile, model, attended=True)
        writer = JournalWriter(self.journal)
        return Session(writer, self.pools, self.profile, model, earlier, approve=self.approve)

    def works(self) -> bool:
        """Let the workers of files start; say whether they do."""
        self.cured.touch()
        return self.pools.pool("files").checkout.failure is None

    def facts(self, session: Session) -> list[Fact]:
        return [entry.fact for entry in self.journal.of_session(session.id)]


@pytest.fixture
async def place(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Place]:
    with open_journal(tmp_path / "journal.db") as journal:
        place = Place(tmp_path, journal, nursery)
        yield place
        await place.pools.close()


async def ask(session: Session) -> None:
    with trio.fail_after(HANG):
        assert (await session.conversation.run_turn("go")).answer == "done"


async def test_tools_of_a_failed_category_are_gone_with_a_reason_and_come_back_by_themselves(place: Place) -> None:
    model = Recorder(
        (None, ("read_file",)),
        (None, ("read_file", "write_file", "find_files")),
        (place.works, ("find_files",)),
        (None, ("find_files",)),
    )
    session = place.session(model)
    await ask(session)

    assert model.offered[0] in (TOOLS, ("find_files",))  # the first start may have failed by now
    assert model.offered[1:] == [("find_files",), ("find_files",), TOOLS, TOOLS]
    assert {request.system for request in model.requests} == {model.requests[0].system}
    said = "\n".join(model.told(step) for step in (0, 1))
    assert said.count("cannot be called for now and will be restored automatically: read_file, write_file.") == 1
    assert "The files workers are out of order: died too often, the last one exited with code 1" in said
    assert "tried again" in said
    assert model.told(2) == ""
    assert model.told(3) == "(These tools work again and can be called: read_file, write_file.)"
    assert model.told(4) == ""

    ends = [fact for fact in place.facts(session) if isinstance(fact, CallEnded)]
    assert sorted((end.tool, end.kind) for end in ends if not end.ok) == [
        ("read_file", "worker_unavailable"),
        ("read_file", "worker_unavailable"),
        ("write_file", "worker_unavailable"),
    ]
    assert all("out of order" in end.content and "tried again" in end.content for end in ends if not end.ok)
    assert [end.ok for end in ends if end.tool == "find_files"] == [True, True, True]

    again = Transcript(place.facts(session))
    assert (again.messages, again.unavailable) == (session.conversation.transcript.messages, {})


async def test_a_conversation_that_is_taken_up_again_says_what_has_changed_meanwhile(place: Place) -> None:
    first = Recorder((None, ("read_file",)))
    session = place.session(first)
    await ask(session)
    assert Transcript(place.facts(session)).unavailable == {"files": FILES}
    await until(place.works)

    second = Recorder()
    await ask(place.session(second, session.id))
    assert second.offered == [TOOLS]
    assert second.told(0).startswith("go\n(These tools work again")


async def test_nobody_is_asked_about_a_call_that_no_worker_could_run(place: Place) -> None:
    place.profile = Profile("operator", place.profile.root, ("run_cmd",), ("run_cmd",))
    session = place.session(Recorder())
    await until(lambda: place.pools.pool("shell").checkout.failure)
    with trio.fail_after(HANG):
        ended = await session.call("run_cmd", '{"command": "ls"}')
    assert (ended.kind, place.asked) == ("worker_unavailable", [])
    assert "out of order" in ended.content


async def test_people_see_which_tools_are_out_of_order_and_why(place: Place) -> None:
    session = place.session(Recorder())
    await until(lambda: session.unavailable_tools)
    assert tuple(session.unavailable_tools) == FILES
    assert "exited with code 1" in session.unavailable_tools["read_file"]
    await until(place.works)
    assert session.unavailable_tools == {}
