"""Turns through real sessions, real workers and a real journal; the model replays a script."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import pytest
import trio
import trio.testing

from supervisor.agent.events import Event
from supervisor.agent.models.model import ModelRequest, Progress, Reply, Retrying, TextDelta
from supervisor.agent.states import State
from supervisor.agent.transcript import Transcript
from supervisor.errors import ConfigError, JournalError
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    ModelRetried,
    Replied,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from supervisor.journal.journal import Journal, open_journal
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from tests.supervisor.bench import Bench, kinds
from tests.supervisor.histories import Line, Memory, call, fault_in_facts, scripted

READ: Final = call("read_file", path="a.txt")
ARGUMENTS: Final = {"path": "new.txt", "content": "new"}
WRITE: Final = call("write_file", **ARGUMENTS)
YES: Final = {"text": "yes"}


class Turn(NamedTuple):
    name: str
    lines: list[Line]
    states: str
    errors: list[str | None]
    """Each call's outcome, None for a good one."""
    status: str = "ok"
    kind: str = ""
    answer: str = "yes"
    max_steps: int = 50


ONE_STEP: Final = "Input Thinking ReviewAction Executing Finalizing Done"
NOT_RUN: Final = "Input Thinking ReviewAction Finalizing Done"
TWO_STEPS: Final = "Input Thinking ReviewAction Executing Finalizing ReviewAction Executing Finalizing Done"

TURNS: Final = [
    Turn("an answer", [YES], "Input Thinking Done", []),
    Turn("one call", [{"calls": [READ]}, YES], ONE_STEP, [None]),
    Turn("a call with words before it", [{"text": "I look.", "calls": [READ]}, YES], ONE_STEP, [None]),
    Turn("two steps", [{"calls": [READ]}, {"calls": [WRITE]}, YES], TWO_STEPS, [None, None]),
    Turn("parallel calls", [{"calls": [READ, WRITE, READ]}, YES], ONE_STEP, [None, None, None]),
    Turn(
        "one of several fails",
        [{"calls": [READ, call("read_file", path="missing"), READ]}, YES],
        ONE_STEP,
        [None, "not_found", None],
    ),
    Turn("a way out of the root", [{"calls": [call("read_file", path="../x")]}, YES], ONE_STEP, ["path_escape"]),
    Turn("an unknown tool", [{"calls": [call("delete_everything")]}, YES], NOT_RUN, ["unknown_tool"]),
    Turn("a tool with a name that is none", [{"calls": [call("rm -rf /")]}, YES], NOT_RUN, ["unknown_tool"]),
    Turn("a tool of another profile", [{"calls": [call("exec_shell", command="ls")]}, YES], NOT_RUN, ["unknown_tool"]),
    Turn("a known tool among unknown ones", [{"calls": [call("x"), READ]}, YES], ONE_STEP, ["unknown_tool", None]),
    Turn(
        "arguments that are not JSON",
        [{"calls": [{"tool": "read_file", "raw": '{"path": '}]}, YES],
        ONE_STEP,
        ["invalid_arguments"],
    ),
    Turn(
        "arguments that are no object",
        [{"calls": [{"tool": "read_file", "raw": "[1]"}]}, YES],
        ONE_STEP,
        ["invalid_arguments"],
    ),
    Turn("no arguments", [{"calls": [{"tool": "read_file", "raw": ""}]}, YES], ONE_STEP, ["invalid_arguments"]),
    Turn("a wrong type", [{"calls": [call("read_file", path=7)]}, YES], ONE_STEP, ["invalid_arguments"]),
    Turn(
        "an argument too many",
        [{"calls": [call("read_file", path="a.txt", sudo=True)]}, YES],
        ONE_STEP,
        ["invalid_arguments"],
    ),
    Turn("an empty reply", [{}], "Input Thinking Done", [], answer=""),
    Turn("an empty reply after tools", [{"calls": [READ]}, {"text": " "}], ONE_STEP, [None], answer=""),
    Turn("stop_sequence", [{**YES, "stop_reason": "stop_sequence"}], "Input Thinking Done", []),
    Turn("a stop reason nobody knows", [{**YES, "stop_reason": "never_seen"}], "Input Thinking Done", []),
    Turn("a call with end_turn", [{"calls": [READ], "stop_reason": "end_turn"}, YES], ONE_STEP, [None]),
    Turn(
        "max_tokens",
        [{**YES, "stop_reason": "max_tokens"}],
        "Input Thinking Done",
        [],
        answer="yes\n\n[truncated: the reply reached its token limit]",
    ),
    Turn(
        "max_tokens inside a call",
        [{"calls": [WRITE, WRITE], "stop_reason": "max_tokens"}, YES],
        "Input Thinking Finalizing Done",
        ["invalid_arguments", "invalid_arguments"],
    ),
    Turn(
        "refusal",
        [{"text": "no", "stop_reason": "refusal"}],
        "Input Thinking Done",
        [],
        status="error",
        kind="refusal",
        answer="no",
    ),
    Turn(
        "refusal inside a call",
        [{"calls": [WRITE], "stop_reason": "refusal"}],
        "Input Thinking Done",
        ["cancelled"],
        status="error",
        kind="refusal",
        answer="",
    ),
    Turn(
        "a full context",
        [{"text": "so", "calls": [WRITE], "stop_reason": "model_context_window_exceeded"}],
        "Input Thinking Done",
        ["cancelled"],
        status="error",
        kind="context_full",
        answer="so",
    ),
    Turn("a pause", [{"text": "p", "stop_reason": "pause_turn"}, YES], "Input Thinking Thinking Done", []),
    Turn(
        "a pause after tools",
        [{"calls": [READ]}, {"text": "p", "stop_reason": "pause_turn"}, YES],
        "Input Thinking ReviewAction Executing Finalizing Finalizing Done",
        [None],
    ),
    Turn(
        "endless pauses",
        [{"text": "p", "stop_reason": "pause_turn"}] * 9,
        "Input Thinking Thinking Thinking Done",
        [],
        status="error",
        kind="too_many_steps",
        answer="",
        max_steps=3,
    ),
    Turn(
        "endless calls",
        [{"calls": [READ]}] * 9,
        "Input Thinking ReviewAction Executing Finalizing ReviewAction Executing Done",
        [None, None],
        status="error",
        kind="too_many_steps",
        answer="",
        max_steps=2,
    ),
    Turn(
        "a model that cannot be reached",
        [{"fault": "connection"}],
        "Input Thinking Done",
        [],
        status="error",
        kind="connection",
        answer="",
    ),
    Turn(
        "a model that is lost after tools",
        [{"calls": [WRITE]}, {"fault": "overloaded"}],
        ONE_STEP,
        [None],
        status="error",
        kind="overloaded",
        answer="",
    ),
    Turn("a request that is made again", [{"fault": "rate_limited", "times": 2, **YES}], "Input Thinking Done", []),
]


@pytest.mark.parametrize("turn", TURNS, ids=[turn.name for turn in TURNS])
async def test_a_turn_ends_as_it_should_and_what_is_shown_is_durable_by_then(
    bench: Bench, tmp_path: Path, turn: Turn
) -> None:
    missing: list[Event] = []

    def look(event: Event) -> None:
        if not isinstance(event, State | Retrying | TextDelta):
            missing.extend(fact for fact in [event] if fact not in [entry.fact for entry in other.everything()])

    bench.hooks.append(look)
    with trio.fail_after(10), open_journal(bench.journal.path) as other:
        session = bench.session(scripted(tmp_path, *turn.lines), max_steps=turn.max_steps)
        end = await session.conversation.run_turn("go")
    assert (end.status, end.kind, end.answer) == (turn.status, turn.kind, turn.answer)
    assert bench.states == turn.states.split()
    assert bench.errors == turn.errors
    assert fault_in_facts(bench.facts(session)) is None
    assert missing == []


async def test_facts_come_in_the_order_of_what_happened(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, {"fault": "overloaded", "times": 1, "calls": [READ]}, YES))
    await session.conversation.run_turn("go")
    assert kinds(bench.facts(session)) == [
        "SessionOpened",
        "TurnStarted",
        "ModelRetried",
        "Replied",
        "CallStarted",
        "CallEnded",
        "Replied",
        "TurnEnded",
    ]


async def test_facts_carry_what_a_reader_needs(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, {"text": "I look.", "calls": [READ]}, YES))
    await session.conversation.run_turn("go")
    opened, turn, replied, started, ended, _, end = bench.facts(session)
    assert isinstance(opened, SessionOpened)
    assert (opened.profile, opened.origin, opened.context.working_directory) == ("vault", "test", str(bench.root))
    assert turn == TurnStarted(1, "go")
    assert isinstance(replied, Replied)
    assert [block["type"] for block in replied.content] == ["text", "tool_use"]
    assert isinstance(started, CallStarted)
    assert (started.tool, started.arguments, started.decision) == ("read_file", '{"path":"a.txt"}', "allow")
    assert isinstance(ended, CallEnded)
    assert (ended.call, ended.ok, ended.content) == (started.call, True, "hello\n")
    assert end == TurnEnded(1, "ok", "yes", "end_turn")


async def test_retries_are_in_the_journal(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, {"fault": "rate_limited", "times": 2, **YES}))
    await session.conversation.run_turn("go")
    retries = [fact for fact in bench.facts(session) if isinstance(fact, ModelRetried)]
    assert [(retry.attempt, retry.kind) for retry in retries] == [(1, "rate_limited"), (2, "rate_limited")]


async def test_turns_of_a_session_are_numbered_and_remembered(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, YES, {"fault": "overloaded"}, {"text": "three"}))
    ends = [await session.conversation.run_turn(line) for line in ("one", "two", "three")]
    assert [(end.turn, end.status) for end in ends] == [(1, "ok"), (2, "error"), (3, "ok")]
    assert fault_in_facts(bench.facts(session)) is None


async def test_a_session_that_is_opened_again_goes_on(bench: Bench, tmp_path: Path) -> None:
    model = scripted(tmp_path, {"calls": [READ]}, YES, {"text": "more"})
    first = bench.session(model)
    await first.conversation.run_turn("one")
    again = bench.session(model, session=first.id)
    end = await again.conversation.run_turn("two")
    assert (end.turn, end.answer) == (2, "more")
    assert kinds(bench.facts(first)).count("SessionOpened") == 1


async def test_a_session_that_never_was_cannot_be_opened_again(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No session 'nobody'"):
        bench.session(scripted(tmp_path, YES), session="nobody")


async def test_a_hundred_parallel_calls_all_have_their_own_result(bench: Bench, tmp_path: Path) -> None:
    for number in range(100):
        (bench.root / f"{number}.txt").write_text(str(number))
    calls = [call("read_file", path=f"{number}.txt") for number in range(100)]
    session = bench.session(scripted(tmp_path, {"calls": calls}, YES))
    with trio.fail_after(20):
        await session.conversation.run_turn("go")
    results = session.conversation.transcript.messages[2]["content"]
    assert [block["content"] for block in results] == [str(number) for number in range(100)]
    assert bench.pools.pool("files").spec.workers == 4
    assert len(bench.pools.pool("files").workers.slots) <= 5


DEATHS: Final[list[tuple[dict[str, Any], str | None]]] = [(READ, None), (WRITE, "worker_crashed")]


@pytest.mark.parametrize(("wanted", "error"), DEATHS, ids=["without an effect", "with an effect"])
async def test_a_worker_killed_in_mid_call_is_one_calls_outcome(
    bench: Bench, tmp_path: Path, wanted: dict[str, Any], error: str | None
) -> None:
    session = bench.session(scripted(tmp_path, {"calls": [READ]}, {"calls": [wanted]}, {"calls": [READ]}, YES))
    hung = trio.Event()

    def hang(event: Event) -> None:
        if bench.states.count("Executing") == 2 and not hung.is_set():
            bench.stop_workers()
            hung.set()

    async def kill() -> None:
        await hung.wait()
        await trio.testing.wait_all_tasks_blocked()
        bench.kill_workers()

    bench.hooks.append(hang)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kill)
            end = await session.conversation.run_turn("go")
    assert end.status == "ok"
    assert bench.errors == [None, error, None]
    assert not (bench.root / "new.txt").exists()
    assert fault_in_facts(bench.facts(session)) is None


# journal, then act, then show --------------------------------------------------------------------------------


class Full(NamedTuple):
    name: str
    append: int
    """The one that the journal refuses; 1 opens the session."""
    written: bool
    shown: list[str]
    """The facts that were shown by then."""


FULL: Final = [
    Full("the line", 2, written=False, shown=[]),
    Full("the reply and its calls", 3, written=False, shown=["TurnStarted"]),
    Full("the decision", 4, written=False, shown=["TurnStarted", "Replied", "CallStarted"]),
    Full("the outcome", 5, written=True, shown=["TurnStarted", "Replied", "CallStarted", "CallDecided"]),
    Full("the answer", 6, written=True, shown=["TurnStarted", "Replied", "CallStarted", "CallDecided", "CallEnded"]),
]


@pytest.mark.parametrize("full", FULL, ids=[full.name for full in FULL])
async def test_what_cannot_be_recorded_is_not_acted_on(bench: Bench, tmp_path: Path, full: Full) -> None:
    journal = Memory(refused=[full.append])
    session = bench.session(scripted(tmp_path, {"calls": [WRITE]}, YES), journal=journal.as_journal())
    with trio.fail_after(10), pytest.raises(JournalError, match="disk is full"):
        await session.conversation.run_turn("go")
    assert (bench.root / "new.txt").exists() == full.written
    assert [type(event).__name__ for event in bench.events if hasattr(event, "turn")] == full.shown
    assert "Done" not in bench.states


@pytest.mark.parametrize("full", FULL[1:], ids=[full.name for full in FULL[1:]])
async def test_a_session_goes_on_when_the_journal_does(bench: Bench, tmp_path: Path, full: Full) -> None:
    journal = Memory(refused=[full.append])
    session = bench.session(scripted(tmp_path, {"calls": [WRITE]}, YES, YES), journal=journal.as_journal())
    with trio.fail_after(10):
        with pytest.raises(JournalError):
            await session.conversation.run_turn("go")
        end = await session.conversation.run_turn("again")
    assert end.turn == 2
    assert next(fact.kind for fact in journal.facts if isinstance(fact, TurnEnded)) == "interrupted"
    assert fault_in_facts(journal.facts) is None


async def test_an_outcome_that_cannot_be_recorded_is_unknown_later(bench: Bench, tmp_path: Path) -> None:
    journal = Memory(refused=[5])
    session = bench.session(scripted(tmp_path, {"calls": [WRITE]}, YES), journal=journal.as_journal())
    with pytest.raises(JournalError):
        await session.conversation.run_turn("go")
    end = await session.conversation.resume()
    assert end is not None
    assert [fact.kind for fact in journal.facts if isinstance(fact, CallEnded)] == ["outcome_unknown"]


@pytest.mark.parametrize("refused", [4, 5])
async def test_parallel_calls_fail_as_one_when_the_journal_does(bench: Bench, tmp_path: Path, refused: int) -> None:
    journal = Memory(refused=range(refused, 99))
    session = bench.session(scripted(tmp_path, {"calls": [READ, READ]}, YES), journal=journal.as_journal())
    with trio.fail_after(10), pytest.raises(JournalError):
        await session.conversation.run_turn("go")


async def test_parallel_calls_do_not_go_on_after_one_refused_append(bench: Bench, tmp_path: Path) -> None:
    journal = Memory(refused=[4])
    session = bench.session(scripted(tmp_path, {"calls": [READ, READ]}, YES), journal=journal.as_journal())
    with trio.fail_after(10), pytest.raises(JournalError):
        await session.conversation.run_turn("go")
    assert "TurnEnded" not in kinds(journal.facts)


async def test_a_retry_that_cannot_be_recorded_ends_the_turn(bench: Bench, tmp_path: Path) -> None:
    journal = Memory(refused=[3])
    session = bench.session(
        scripted(tmp_path, {"fault": "overloaded", "times": 1, **YES}), journal=journal.as_journal()
    )
    with pytest.raises(JournalError):
        await session.conversation.run_turn("go")
    assert not [event for event in bench.events if isinstance(event, Retrying)]


# cancelled ---------------------------------------------------------------------------------------------------


async def cancelled_in_a_call(bench: Bench, folder: Path, *calls: dict[str, Any]) -> Any:
    """Ask, let the workers hang once the calls run, cancel; return the session."""
    session = bench.session(scripted(folder, {"calls": [READ]}, YES, {"calls": list(calls)}, YES, YES))
    with trio.fail_after(10):
        await session.conversation.run_turn("warm up")
        hung = trio.Event()

        def hang(event: Event) -> None:
            if event is State.EXECUTING:
                bench.stop_workers()
                hung.set()

        async def give_up(scope: trio.CancelScope) -> None:
            await hung.wait()
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()

        bench.hooks.append(hang)
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                nursery.start_soon(give_up, scope)
                await session.conversation.run_turn("go")
        bench.hooks.clear()
    return session


CANCELLED: Final = [[WRITE], [READ, WRITE], [WRITE] * 6]


@pytest.mark.parametrize("calls", CANCELLED, ids=["one call", "two calls", "more calls than workers"])
async def test_a_cancelled_turn_is_recorded_as_such(bench: Bench, tmp_path: Path, calls: list[Any]) -> None:
    session = await cancelled_in_a_call(bench, tmp_path, *calls)
    assert bench.states[-1] == "Done"
    facts = bench.facts(session)
    assert facts[-1] == TurnEnded(2, "cancelled", "", kind="cancelled")
    kinds = [None, *["cancelled" for _ in calls]]
    assert [fact.kind for fact in facts if isinstance(fact, CallEnded)] == kinds
    assert fault_in_facts(facts) is None


@pytest.mark.parametrize("calls", CANCELLED, ids=["one call", "two calls", "more calls than workers"])
async def test_the_turn_after_a_cancelled_one_works(bench: Bench, tmp_path: Path, calls: list[Any]) -> None:
    session = await cancelled_in_a_call(bench, tmp_path, *calls)
    with trio.fail_after(10):
        end = await session.conversation.run_turn("again")
    assert (end.turn, end.status) == (3, "ok")
    assert fault_in_facts(bench.facts(session)) is None


class Slow:
    """A model that never answers."""

    name = "slow"

    def __init__(self) -> None:
        self.asked = trio.Event()

    async def warm(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def reply(self, _request: ModelRequest, show: Callable[[Progress], None]) -> Reply:
        show(TextDelta("I am th"))
        self.asked.set()
        await trio.sleep_forever()
        raise AssertionError


async def test_a_turn_cancelled_while_the_model_talks_keeps_none_of_it(bench: Bench) -> None:
    model = Slow()
    session = bench.session(model)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.conversation.run_turn, "go")
            await model.asked.wait()
            nursery.cancel_scope.cancel()
    assert kinds(bench.facts(session)) == ["SessionOpened", "TurnStarted", "TurnEnded"]
    assert fault_in_facts(bench.facts(session)) is None


# asked -------------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    name: str
    approved: bool | None
    error: str | None
    states: str


ANSWERS: Final = [
    Answer("yes", True, None, "Input Thinking ReviewAction Executing ReviewAction Executing Finalizing Done"),
    Answer("no", False, "denied", "Input Thinking ReviewAction Executing ReviewAction Executing Finalizing Done"),
    Answer("nobody is there", None, "denied", ONE_STEP),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer.name for answer in ANSWERS])
async def test_a_call_that_is_asked_about_waits_for_the_answer(bench: Bench, tmp_path: Path, answer: Answer) -> None:
    asked: list[ApprovalQuestion] = []

    async def approve(ask: ApprovalQuestion) -> ApprovalDecision:
        await trio.lowlevel.checkpoint()
        asked.append(ask)
        assert not (bench.root / "new.txt").exists()
        return ApprovalDecision(approved=bool(answer.approved))

    person = None if answer.approved is None else approve
    session = bench.session(scripted(tmp_path, {"calls": [WRITE]}, YES), ask=("write_file",), approve=person)
    end = await session.conversation.run_turn("go")
    assert end.status == "ok"
    assert bench.errors == [answer.error]
    assert bench.states == answer.states.split()
    assert (bench.root / "new.txt").exists() == (answer.error is None)
    assert len(asked) == (answer.approved is not None)
    (decided,) = [fact for fact in bench.facts(session) if isinstance(fact, CallDecided)]
    assert (decided.decision, decided.approved, decided.committed) == ("ask", answer.approved, bool(answer.approved))


async def test_a_person_is_shown_what_a_call_would_change(bench: Bench, tmp_path: Path) -> None:
    asked: list[ApprovalQuestion] = []

    async def approve(ask: ApprovalQuestion) -> ApprovalDecision:
        await trio.lowlevel.checkpoint()
        asked.append(ask)
        return ApprovalDecision(approved=False)

    edit = call("edit_file", path="a.txt", old="hello", new="bye")
    session = bench.session(scripted(tmp_path, {"calls": [edit]}, YES), ask=("edit_file",), approve=approve)
    await session.conversation.run_turn("go")
    ((stage, effects),) = [(each.stage, each.effects) for each in asked]
    assert effects is not None
    ((path, diff),) = [(each.path, each.diff) for each in effects.changes]
    assert (stage, path) == ("effects", "a.txt")
    assert "-hello\n+bye\n" in diff


async def test_nothing_of_a_reply_runs_before_all_its_texts_are_decided(bench: Bench, tmp_path: Path) -> None:
    async def approve(_ask: ApprovalQuestion) -> ApprovalDecision:
        await trio.lowlevel.checkpoint()
        assert "CallEnded" not in [type(event).__name__ for event in bench.events]
        return ApprovalDecision(approved=False)

    session = bench.session(scripted(tmp_path, {"calls": [WRITE, READ]}, YES), ask=("read_file",), approve=approve)
    await session.conversation.run_turn("go")
    assert sorted(bench.errors, key=str) == [None, "denied"]
    assert fault_in_facts(bench.facts(session)) is None


async def test_calls_that_change_something_see_what_those_before_them_changed(bench: Bench, tmp_path: Path) -> None:
    edits = [call("edit_file", path="new.txt", old=old, new=new) for old, new in ("ab", "bc", "cd")]
    write = call("write_file", path="new.txt", content="a")
    session = bench.session(scripted(tmp_path, {"calls": [write, *edits]}, YES))
    await session.conversation.run_turn("go")
    assert bench.errors == [None] * 4
    assert (bench.root / "new.txt").read_text() == "d"


async def test_a_question_that_is_cancelled_runs_nothing(bench: Bench, tmp_path: Path) -> None:
    asked = trio.Event()

    async def approve(_ask: ApprovalQuestion) -> ApprovalDecision:
        asked.set()
        await trio.sleep_forever()

    session = bench.session(scripted(tmp_path, {"calls": [WRITE]}, YES), ask=("write_file",), approve=approve)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.conversation.run_turn, "go")
            await asked.wait()
            nursery.cancel_scope.cancel()
    assert [fact.kind for fact in bench.facts(session) if isinstance(fact, CallEnded)] == ["cancelled"]
    assert not (bench.root / "new.txt").exists()
    assert fault_in_facts(bench.facts(session)) is None


# bugs --------------------------------------------------------------------------------------------------------


async def test_a_bug_ends_the_turn_and_nothing_else(
    bench: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def approve(_ask: ApprovalQuestion) -> ApprovalDecision:
        await trio.lowlevel.checkpoint()
        raise KeyError("a bug in the client")

    lines: list[Line] = [{"calls": [READ, WRITE]}, YES]
    session = bench.session(scripted(tmp_path, *lines), ask=("write_file",), approve=approve)
    with caplog.at_level(logging.CRITICAL, "strongroom.agent"):
        end = await session.conversation.run_turn("go")
    assert (end.status, end.kind) == ("error", "internal")
    assert "a bug" not in end.message
    assert not (bench.root / "new.txt").exists()
    assert fault_in_facts(bench.facts(session)) is None
    assert (await session.conversation.run_turn("again")).status == "ok"


async def test_a_bug_in_a_listener_ends_the_turn_only(
    bench: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(event: Event) -> None:
        if event is State.EXECUTING:
            raise KeyError("a bug in the listener")

    bench.hooks.append(stumble)
    session = bench.session(scripted(tmp_path, {"calls": [READ]}, YES))
    with caplog.at_level(logging.CRITICAL, "strongroom.agent"):
        end = await session.conversation.run_turn("go")
    assert (end.status, end.kind) == ("error", "internal")
    assert fault_in_facts(bench.facts(session)) is None


# taken up again ----------------------------------------------------------------------------------------------


async def test_a_call_that_was_running_is_unknown_and_not_repeated(bench: Bench, tmp_path: Path) -> None:
    model = scripted(tmp_path, {"calls": [WRITE]}, YES)
    dead = bench.session(model)
    started = CallStarted(1, "call_0_0", "write_file", '{"path": "new.txt"}', True, "allow", "")
    use = {"type": "tool_use", "id": "call_0_0", "name": "write_file", "input": {}}
    bench.journal.append(dead.id, TurnStarted(1, "go"), Replied(1, 0, [use], "tool_use", {}), started)
    session = bench.session(model, session=dead.id)
    end = await session.conversation.resume()
    assert end is not None
    assert (end.status, end.answer) == ("ok", "yes")
    assert bench.states == ["Input", "Finalizing", "Done"]
    assert [fact.kind for fact in bench.facts(session) if isinstance(fact, CallEnded)] == ["outcome_unknown"]
    assert not (bench.root / "new.txt").exists()


class NoEnd:
    """A journal whose process is killed before the end of a turn is recorded."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.of_session = journal.of_session

    def append(self, session: str, *new: Fact) -> None:
        if any(isinstance(fact, TurnEnded) for fact in new):
            raise JournalError("journal_io", "killed")
        self._journal.append(session, *new)

    def as_journal(self) -> Journal:
        return cast("Journal", self)


REHEARSED: Final = [
    ("nobody had decided", None, True, None),
    ("a yes was recorded", True, False, "outcome_unknown"),
    ("a no was recorded", False, False, "denied"),
]


@pytest.mark.parametrize(("said", "written", "kind"), [row[1:] for row in REHEARSED], ids=[row[0] for row in REHEARSED])
async def test_a_rehearsed_call_is_taken_up_where_it_was(
    bench: Bench, tmp_path: Path, said: bool | None, written: bool, kind: str | None
) -> None:
    model = scripted(tmp_path, {"calls": [WRITE]}, YES)
    dead = bench.session(model)
    facts: list[Fact] = [TurnStarted(1, "go")]
    facts.append(
        Replied(1, 0, [{"type": "tool_use", "id": "c", "name": "write_file", "input": ARGUMENTS}], "tool_use", {})
    )
    facts.append(CallStarted(1, "c", "write_file", json.dumps(ARGUMENTS), True, "allow", "", rehearsed=True))
    if said is not None:
        facts.append(CallDecided(1, "c", "ask", "it is asked about", committed=said, approved=said))
    bench.journal.append(dead.id, *facts)
    session = bench.session(model, session=dead.id)
    with trio.fail_after(10):
        end = await session.conversation.resume()
    assert end is not None
    assert end.status == "ok"
    assert [fact.kind for fact in bench.facts(session) if isinstance(fact, CallEnded)] == [kind]
    assert (bench.root / "new.txt").exists() == written
    assert fault_in_facts(bench.facts(session)) is None


async def test_taking_a_turn_up_is_recorded_before_anything_else(bench: Bench, tmp_path: Path) -> None:
    model = scripted(tmp_path, {"calls": [WRITE]}, YES)
    dead = bench.session(model)
    started = CallStarted(1, "call_0_0", "write_file", '{"path": "new.txt"}', True, "allow", "")
    use = {"type": "tool_use", "id": "call_0_0", "name": "write_file", "input": {}}
    bench.journal.append(dead.id, TurnStarted(1, "go"), Replied(1, 0, [use], "tool_use", {}), started)
    session = bench.session(model, session=dead.id)
    await session.conversation.resume()
    assert kinds(bench.facts(session))[4:] == ["TurnResumed", "CallEnded", "Replied", "TurnEnded"]


async def test_a_turn_that_ends_every_process_is_counted(bench: Bench, tmp_path: Path) -> None:
    dead = bench.session(Slow())
    bench.journal.append(dead.id, TurnStarted(1, "go"))
    for count in (1, 2, 3):
        session = bench.session(Slow(), session=dead.id, journal=NoEnd(bench.journal).as_journal())
        with trio.move_on_after(0), pytest.raises(JournalError):
            await session.conversation.resume()
        assert Transcript(bench.facts(dead)).resumed == count
    assert (await bench.session(scripted(tmp_path, YES), session=dead.id).conversation.resume()) is not None
    assert Transcript(bench.facts(dead)).resumed == 0


async def test_a_session_at_rest_records_no_resumption(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, YES))
    await session.conversation.run_turn("go")
    await session.conversation.resume()
    assert "TurnResumed" not in kinds(bench.facts(session))


async def test_a_call_that_was_denied_has_no_unknown_outcome(bench: Bench, tmp_path: Path) -> None:
    model = scripted(tmp_path, {}, YES)
    dead = bench.session(model)
    started = CallStarted(1, "a", "x", "{}", False, "deny", "")
    use = {"type": "tool_use", "id": "a", "name": "x", "input": {}}
    bench.journal.append(dead.id, TurnStarted(1, "go"), Replied(1, 0, [use], "tool_use", {}), started)
    session = bench.session(model, session=dead.id)
    await session.conversation.resume()
    assert [fact.kind for fact in bench.facts(session) if isinstance(fact, CallEnded)] == ["cancelled"]


async def test_a_turn_without_a_reply_is_asked_again(bench: Bench, tmp_path: Path) -> None:
    model = scripted(tmp_path, YES)
    dead = bench.session(model)
    bench.journal.append(dead.id, TurnStarted(1, "go"))
    end = await bench.session(model, session=dead.id).conversation.resume()
    assert end is not None
    assert (end.turn, end.answer) == (1, "yes")
    assert bench.states == ["Input", "Thinking", "Done"]


async def test_a_session_at_rest_has_nothing_to_resume(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, YES))
    await session.conversation.run_turn("go")
    assert await session.conversation.resume() is None


async def test_a_new_line_closes_the_turn_that_was_open(bench: Bench, tmp_path: Path) -> None:
    model = scripted(tmp_path, YES)
    dead = bench.session(model)
    bench.journal.append(dead.id, TurnStarted(1, "go"))
    session = bench.session(model, session=dead.id)
    await session.conversation.run_turn("something else")
    ends = [(fact.turn, fact.kind) for fact in bench.facts(session) if isinstance(fact, TurnEnded)]
    assert ends == [(1, "interrupted"), (2, "")]
    assert fault_in_facts(bench.facts(session)) is None


# single calls ------------------------------------------------------------------------------------------------


async def test_a_session_of_single_calls_records_them_alike(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path))
    ended = await session.call("read_file", '{"path": "a.txt"}')
    assert (ended.ok, ended.content) == (True, "hello\n")
    assert kinds(bench.facts(session)) == ["SessionOpened", "CallStarted", "CallEnded"]


async def test_a_single_call_that_cannot_be_recorded_is_not_made(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path), journal=Memory(refused=[2]).as_journal())
    with pytest.raises(JournalError):
        await session.call("write_file", '{"path": "new.txt", "content": ""}')
    assert not (bench.root / "new.txt").exists()
