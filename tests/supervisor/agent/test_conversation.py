"""Turns through real sessions, real workers and a real journal; the model replays a script."""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import pytest
import trio
import trio.testing

from supervisor.agent.models.immediate import ImmediateModel
from supervisor.agent.models.model import (
    Model,
    ModelRequest,
    Progress,
    Reply,
    Retrying,
    TextDelta,
    ThoughtDelta,
    message_text,
)
from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import Event, State
from supervisor.errors import ConfigError, JournalError, ModelError
from supervisor.journal.database import encoded
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    ModelRetried,
    Replied,
    ReplyCut,
    SessionOpened,
    TurnEnded,
    TurnQuestioned,
    TurnStarted,
)
from supervisor.journal.journal import Journal, open_journal
from supervisor.session.session import Session
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from supervisor.tools.outcome_bounds import CALLS_AT_MOST, size_of, within
from tests.supervisor.bench import Bench, Person, cancelled_at, kinds
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import Line, Memory, call, fault_in_facts, scripted

READ: Final = call("read_file", path="a.txt")
ARGUMENTS: Final = {"path": "new.txt", "content": "new"}
WRITE: Final = call("write_file", **ARGUMENTS)
YES: Final = {"text": "yes"}


async def ran(bench: Bench, folder: Path, *lines: Line, **options: Any) -> Session:
    """Return a session that has run one turn with a model that replays lines."""
    session = bench.session(scripted(folder, *lines), **options)
    with trio.fail_after(HANG_GUARD):
        await session.conversation.run_turn("go")
    return session


def taken_up(bench: Bench, model: Model, *facts: Fact) -> Session:
    """Return a session anew whose process was killed in its first turn, after these facts."""
    dead = bench.session(model)
    bench.journal.append(dead.id, TurnStarted(1, "go"), *facts)
    return bench.session(model, session=dead.id)


def wanted(tool: str, **given: Any) -> Replied:
    return Replied(1, 0, [{"type": "tool_use", "id": "c", "name": tool, "input": given}], "tool_use", {})


def outcomes(facts: Sequence[Fact]) -> list[str | None]:
    return [fact.kind for fact in facts if isinstance(fact, CallEnded)]


class Turn(NamedTuple):
    name: str
    lines: list[Line]
    states: str
    errors: list[str | None]
    """Each call's outcome, None for a good one."""
    kind: str = ""
    """Of the error that it ends as, if it is one."""
    answer: str = "yes"
    max_steps: int = 50


def wants(*calls: dict[str, Any], stop_reason: str = "tool_use", **more: Any) -> Line:
    return {"calls": calls, "stop_reason": stop_reason, **more}


def raw(arguments: str) -> dict[str, Any]:
    return {"tool": "read_file", "raw": arguments}


NO_STEP: Final = "Input Thinking Done"
ONE_STEP: Final = "Input Thinking ReviewAction Executing Finalizing Done"
NOT_RUN: Final = "Input Thinking ReviewAction Finalizing Done"
TWO_STEPS: Final = "Input Thinking ReviewAction Executing Finalizing ReviewAction Executing Finalizing Done"
PAUSED_AFTER: Final = "Input Thinking ReviewAction Executing Finalizing Finalizing Done"
TOO_MANY: Final = "Input Thinking ReviewAction Executing Finalizing ReviewAction Executing Done"
CUT_ANSWER: Final = "yes\n\n[truncated: the reply reached its token limit]"
INVALID: Final = "invalid_arguments"
UNKNOWN: Final = "unknown_tool"
MISSING: Final = call("read_file", path="missing")
SUDO: Final = call("read_file", path="a.txt", sudo=True)
PAUSE: Final = {"text": "p", "stop_reason": "pause_turn"}
REFUSAL: Final = {"text": "no", "stop_reason": "refusal"}
CUT_CALLS: Final = wants(WRITE, WRITE, stop_reason="max_tokens")
LOST: Final = {"fault": "overloaded"}
FULL_CONTEXT: Final = wants(WRITE, stop_reason="model_context_window_exceeded", text="so")

TURNS: Final = [
    Turn("an answer", [YES], NO_STEP, []),
    Turn("one call", [wants(READ), YES], ONE_STEP, [None]),
    Turn("a call with words before it", [wants(READ, text="I look."), YES], ONE_STEP, [None]),
    Turn("two steps", [wants(READ), wants(WRITE), YES], TWO_STEPS, [None, None]),
    Turn("parallel calls", [wants(READ, WRITE, READ), YES], ONE_STEP, [None, None, None]),
    Turn("one of several fails", [wants(READ, MISSING, READ), YES], ONE_STEP, [None, "not_found", None]),
    Turn("a way out of the root", [wants(call("read_file", path="../x")), YES], ONE_STEP, ["path_escape"]),
    Turn("an unknown tool", [wants(call("delete_everything")), YES], NOT_RUN, [UNKNOWN]),
    Turn("a tool with a name that is none", [wants(call("rm -rf /")), YES], NOT_RUN, [UNKNOWN]),
    Turn("a tool of another profile", [wants(call("exec_shell", command="ls")), YES], NOT_RUN, [UNKNOWN]),
    Turn("a known tool among unknown ones", [wants(call("x"), READ), YES], ONE_STEP, [UNKNOWN, None]),
    Turn("arguments that are not JSON", [wants(raw('{"path": ')), YES], ONE_STEP, [INVALID]),
    Turn("arguments that are no object", [wants(raw("[1]")), YES], ONE_STEP, [INVALID]),
    Turn("no arguments", [wants(raw("")), YES], ONE_STEP, [INVALID]),
    Turn("a wrong type", [wants(call("read_file", path=7)), YES], ONE_STEP, [INVALID]),
    Turn("an argument too many", [wants(SUDO), YES], ONE_STEP, [INVALID]),
    Turn("an empty reply", [{}], NO_STEP, [], answer=""),
    Turn("an empty reply after tools", [wants(READ), {"text": " "}], ONE_STEP, [None], answer=""),
    Turn("stop_sequence", [{**YES, "stop_reason": "stop_sequence"}], NO_STEP, []),
    Turn("a stop reason nobody knows", [{**YES, "stop_reason": "never_seen"}], NO_STEP, []),
    Turn("a call with end_turn", [wants(READ, stop_reason="end_turn"), YES], ONE_STEP, [None]),
    Turn("max_tokens", [{**YES, "stop_reason": "max_tokens"}], NO_STEP, [], answer=CUT_ANSWER),
    Turn("max_tokens inside a call", [CUT_CALLS, YES], "Input Thinking Finalizing Done", [INVALID, INVALID]),
    Turn("refusal", [REFUSAL], NO_STEP, [], "refusal", "no"),
    Turn("refusal inside a call", [wants(WRITE, stop_reason="refusal")], NO_STEP, ["cancelled"], "refusal", ""),
    Turn("a full context", [FULL_CONTEXT], NO_STEP, ["cancelled"], "context_full", "so"),
    Turn("a pause", [PAUSE, YES], "Input Thinking Thinking Done", []),
    Turn("a pause after tools", [wants(READ), PAUSE, YES], PAUSED_AFTER, [None]),
    Turn("endless pauses", [PAUSE] * 9, "Input Thinking Thinking Thinking Done", [], "too_many_steps", "", 3),
    Turn("endless calls", [wants(READ)] * 9, TOO_MANY, [None, None], "too_many_steps", "", 2),
    Turn("a model that cannot be reached", [{"fault": "connection"}], NO_STEP, [], "connection", ""),
    Turn("a model that is lost after tools", [wants(WRITE), LOST], ONE_STEP, [None], "overloaded", ""),
    Turn("a request that is made again", [{"fault": "rate_limited", "times": 2, **YES}], NO_STEP, []),
]


async def test_a_turn_ends_with_what_it_wrote_and_the_person_will_run(bench: Bench, tmp_path: Path) -> None:
    paths = ("Makefile", "notes/a.md", "w\u202e/package.json", "a, you may run b/Makefile")
    writes = [call("write_file", path=path, content="x") for path in paths]
    session = await ran(bench, tmp_path, {"calls": writes}, YES)
    (end,) = [fact for fact in bench.facts(session) if isinstance(fact, TurnEnded)]
    assert end.note == 'You will run these: Makefile, "w\\u202e/package.json", "a, you may run b/Makefile".'
    assert session.conversation.transcript.messages[-1]["content"] == [{"type": "text", "text": "yes"}]


@pytest.mark.parametrize("turn", TURNS, ids=[turn.name for turn in TURNS])
async def test_a_turn_ends_as_it_should_and_what_is_shown_is_durable_by_then(
    bench: Bench, tmp_path: Path, turn: Turn
) -> None:
    missing: list[Event] = []

    def look(event: Event) -> None:
        if not isinstance(event, State | Retrying | TextDelta):
            missing.extend(fact for fact in [event] if fact not in [entry.fact for entry in other.everything()])

    bench.hooks.append(look)
    with trio.fail_after(HANG_GUARD), open_journal(bench.journal.path) as other:
        session = bench.session(scripted(tmp_path, *turn.lines), max_steps=turn.max_steps)
        end = await session.conversation.run_turn("go")
    assert (end.status, end.kind, end.answer) == ("error" if turn.kind else "ok", turn.kind, turn.answer)
    assert bench.states == turn.states.split()
    assert bench.errors == turn.errors
    assert fault_in_facts(bench.facts(session)) is None
    assert missing == []


async def test_facts_come_in_the_order_of_what_happened(bench: Bench, tmp_path: Path) -> None:
    session = await ran(bench, tmp_path, {"fault": "overloaded", "times": 2, "calls": [READ]}, YES)
    steps = ["ModelRetried", "ModelRetried", "Replied", "CallStarted", "CallEnded", "Replied"]
    assert kinds(bench.facts(session)) == ["SessionOpened", "TurnStarted", *steps, "TurnEnded"]
    retries = [fact for fact in bench.facts(session) if isinstance(fact, ModelRetried)]
    assert [(retry.attempt, retry.kind) for retry in retries] == [(1, "overloaded"), (2, "overloaded")]


async def test_facts_carry_what_a_reader_needs(bench: Bench, tmp_path: Path) -> None:
    session = await ran(bench, tmp_path, {"text": "I look.", "calls": [READ]}, YES)
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


async def test_as_many_parallel_calls_as_a_reply_may_make_have_their_own_results(bench: Bench, tmp_path: Path) -> None:
    for number in range(CALLS_AT_MOST):
        (bench.root / f"{number}.txt").write_text(str(number))
    calls = [call("read_file", path=f"{number}.txt") for number in range(CALLS_AT_MOST)]
    session = await ran(bench, tmp_path, {"calls": calls}, YES)
    results = session.conversation.transcript.messages[2]["content"]
    assert [block["content"] for block in results] == [str(number) for number in range(CALLS_AT_MOST)]
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
        bench.kill_stopped()

    bench.hooks.append(hang)
    with trio.fail_after(HANG_GUARD):
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


async def refused(bench: Bench, folder: Path, appends: Sequence[int], *lines: Line) -> tuple[Session, Memory]:
    """Return a session in whose first turn the journal refused these appends."""
    journal = Memory(folder, refused=appends)
    session = bench.session(scripted(folder, *lines), journal=journal.as_journal())
    with trio.fail_after(HANG_GUARD), pytest.raises(JournalError, match="disk is full"):
        await session.conversation.run_turn("go")
    return session, journal


@pytest.mark.parametrize("full", FULL, ids=[full.name for full in FULL])
async def test_a_fact_that_cannot_be_recorded_is_not_acted_on(bench: Bench, tmp_path: Path, full: Full) -> None:
    await refused(bench, tmp_path, [full.append], {"calls": [WRITE]}, YES)
    assert (bench.root / "new.txt").exists() == full.written
    assert [type(event).__name__ for event in bench.events if hasattr(event, "turn")] == full.shown
    assert "Done" not in bench.states


@pytest.mark.parametrize("full", FULL[1:], ids=[full.name for full in FULL[1:]])
async def test_a_session_goes_on_when_the_journal_does(bench: Bench, tmp_path: Path, full: Full) -> None:
    session, journal = await refused(bench, tmp_path, [full.append], {"calls": [WRITE]}, YES, YES)
    with trio.fail_after(HANG_GUARD):
        end = await session.conversation.run_turn("again")
    assert end.turn == 2
    assert next(fact.kind for fact in journal.facts if isinstance(fact, TurnEnded)) == "interrupted"
    shown = [fact.text for fact in journal.facts if isinstance(fact, ReplyCut)]
    assert shown == (["yes"] if full.name == "the answer" else [])
    assert fault_in_facts(journal.facts) is None


async def test_an_outcome_that_cannot_be_recorded_is_unknown_later(bench: Bench, tmp_path: Path) -> None:
    session, journal = await refused(bench, tmp_path, [5], {"calls": [WRITE]}, YES)
    assert await session.conversation.resume() is not None
    assert outcomes(journal.facts) == ["outcome_unknown"]


@pytest.mark.parametrize("appends", [range(4, 99), range(5, 99), [4]], ids=["all from the calls", "their ends", "one"])
async def test_parallel_calls_fail_as_one_and_do_not_go_on_when_the_journal_refuses(
    bench: Bench, tmp_path: Path, appends: Sequence[int]
) -> None:
    _, journal = await refused(bench, tmp_path, appends, {"calls": [READ, READ]}, YES)
    assert "TurnEnded" not in kinds(journal.facts)


async def test_a_retry_that_cannot_be_recorded_ends_the_turn(bench: Bench, tmp_path: Path) -> None:
    await refused(bench, tmp_path, [3], {"fault": "overloaded", "times": 1, **YES})
    assert not [event for event in bench.events if isinstance(event, Retrying)]


# cancelled ---------------------------------------------------------------------------------------------------


class Slow(ImmediateModel):
    """A model that shows something and never comes to an end, or fails."""

    def __init__(self, *shown: Progress, error: ModelError | None = None) -> None:
        self.name = "slow"
        self.asked = trio.Event()
        self._shown = shown
        self._error = error

    async def reply(self, _request: ModelRequest, show: Callable[[Progress], None]) -> Reply:
        for each in self._shown:
            show(each)
        self.asked.set()
        if self._error is not None:
            raise self._error
        await trio.sleep_forever()
        raise AssertionError


HALF: Final = (ThoughtDelta("Hm."), TextDelta("I am "), TextDelta("th"))
MARKED: Final = "I am th\n\n(This reply was cut here: {}. So far the person has read it.)"
AGAIN: Final = Retrying(1, "overloaded", "wait", 0.0)


def said(session: Session) -> str:
    """Return what the model is shown of its last reply."""
    return message_text(session.conversation.transcript.messages[-1]["content"])


@pytest.mark.parametrize(
    ("shown", "recorded", "answer"),
    [
        pytest.param(HALF, [ReplyCut(1, 0, "I am th", "Hm.")], MARKED.format("cancelled"), id="in mid-sentence"),
        pytest.param((), [], "(This turn ended without an answer: cancelled.)", id="before the first word"),
        pytest.param(
            (*HALF, AGAIN),
            [ModelRetried(1, 1, "overloaded", "wait", 0.0, "I am th", "Hm.")],
            MARKED.format("cancelled"),
            id="before the first word of another try",
        ),
    ],
)
async def test_of_a_turn_that_is_cancelled_what_was_shown_is_kept(
    bench: Bench, shown: Sequence[Progress], recorded: list[Fact], answer: str
) -> None:
    model = Slow(*shown)
    session = bench.session(model)
    await cancelled_at(session, model.asked)
    assert bench.facts(session)[2:-1] == recorded
    assert said(session) == answer
    assert fault_in_facts(bench.facts(session)) is None
    assert Transcript(bench.facts(session)).messages == session.conversation.transcript.messages


@pytest.mark.parametrize("whole", [True, False])
async def test_a_reply_that_is_recorded_is_not_cut_in_the_next_turn(bench: Bench, tmp_path: Path, whole: bool) -> None:
    error = ModelError("stream_truncated", "no more")
    session = bench.session(scripted(tmp_path, YES) if whole else Slow(*HALF, error=error))
    with trio.fail_after(HANG_GUARD):
        await session.conversation.run_turn("go")
    session.conversation.model = model = Slow()
    await cancelled_at(session, model.asked)
    recorded = "Replied" if whole else "ReplyCut"
    assert kinds(bench.facts(session))[2:] == [recorded, "TurnEnded", "TurnStarted", "TurnEnded"]


async def test_of_a_reply_that_fails_what_was_shown_is_kept(bench: Bench) -> None:
    session = bench.session(Slow(*HALF, error=ModelError("stream_truncated", "no more")))
    with trio.fail_after(HANG_GUARD):
        end = await session.conversation.run_turn("go")
    assert bench.facts(session)[2:] == [ReplyCut(1, 0, "I am th", "Hm."), end]
    assert said(session) == MARKED.format("stream_truncated")


async def test_of_a_turn_that_is_left_open_it_is_kept_and_asked_for_again(bench: Bench, tmp_path: Path) -> None:
    model = Slow(*HALF)
    left = bench.session(model)
    left.conversation.leave_open()
    await cancelled_at(left, model.asked)
    assert bench.facts(left)[2:] == [ReplyCut(1, 0, "I am th", "Hm.")]
    session = bench.session(scripted(tmp_path, YES), session=left.id)
    with trio.fail_after(HANG_GUARD):
        await session.conversation.resume()
    assert kinds(bench.facts(session))[2:] == ["ReplyCut", "TurnResumed", "Replied", "TurnEnded"]
    texts = [message["content"][0]["text"] for message in session.conversation.transcript.messages]
    assert texts == ["go", MARKED.format("interrupted"), texts[2], "yes"]


# asked -------------------------------------------------------------------------------------------------------


TWICE: Final = "Input Thinking ReviewAction Executing ReviewAction Executing Finalizing Done"
ANSWERS: Final = [
    ("yes", True, None, TWICE),
    ("no", False, "denied", TWICE),
    ("nobody is there", None, "denied", ONE_STEP),
]


@pytest.mark.parametrize(("approved", "error", "states"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
async def test_a_call_that_is_asked_about_waits_for_the_answer(
    bench: Bench, tmp_path: Path, approved: bool | None, error: str | None, states: str
) -> None:
    existed: list[bool] = []
    person = Person(approved=bool(approved), look=lambda: existed.append((bench.root / "new.txt").exists()))
    approve = None if approved is None else person.approve
    session = await ran(bench, tmp_path, {"calls": [WRITE]}, YES, ask=("write_file",), approve=approve)
    assert existed == ([] if approved is None else [False])
    assert bench.errors == [error]
    assert bench.states == states.split()
    assert (bench.root / "new.txt").exists() == (error is None)
    assert len(person.asked) == (approved is not None)
    (decided,) = [fact for fact in bench.facts(session) if isinstance(fact, CallDecided)]
    assert (decided.decision, decided.approved, decided.committed) == ("ask", approved, bool(approved))
    (end,) = [fact for fact in bench.facts(session) if isinstance(fact, TurnEnded)]
    assert end.status == "ok"


GOING_ON: Final = [
    ("go on", lambda stage: stage == "turn", ["effects"] * 3 + ["turn", "effects"], "ok", [True]),
    ("stop", lambda _stage: False, ["effects"] * 3 + ["turn"], "cancelled", [False]),
    ("nobody is there", None, [], "ok", []),
]


@pytest.mark.parametrize(
    ("says", "stages", "status", "recorded"), [row[1:] for row in GOING_ON], ids=[row[0] for row in GOING_ON]
)
async def test_after_three_rejections_a_person_is_asked_once_whether_the_turn_goes_on(
    bench: Bench,
    tmp_path: Path,
    says: Callable[[str], bool] | None,
    stages: list[str],
    status: str,
    recorded: list[bool],
) -> None:
    asked: list[str] = []

    async def approve(question: ApprovalQuestion) -> ApprovalDecision:
        assert says is not None
        asked.append(question.stage)
        return ApprovalDecision(approved=says(question.stage), by="console")

    replies: list[Line] = [{"calls": [WRITE]}, {"calls": [WRITE, WRITE]}, {"calls": [WRITE]}, YES]
    session = await ran(bench, tmp_path, *replies, ask=("write_file",), approve=None if says is None else approve)
    facts = bench.facts(session)
    assert asked == stages
    assert [fact.approved for fact in facts if isinstance(fact, TurnQuestioned)] == recorded
    assert isinstance(facts[-1], TurnEnded)
    assert facts[-1].status == status
    assert fault_in_facts(facts) is None


async def test_a_person_is_shown_what_a_call_would_change(bench: Bench, tmp_path: Path) -> None:
    person = Person(approved=False)
    edit = call("edit_file", path="a.txt", old="hello", new="bye")
    await ran(bench, tmp_path, {"calls": [edit]}, YES, ask=("edit_file",), approve=person.approve)
    ((stage, effects),) = [(each.stage, each.effects) for each in person.asked]
    assert effects is not None
    ((path, diff),) = [(each.path, each.diff) for each in effects.changes]
    assert (stage, path) == ("effects", "a.txt")
    assert "-hello\n+bye\n" in diff


async def test_nothing_of_a_reply_runs_before_all_its_texts_are_decided(bench: Bench, tmp_path: Path) -> None:
    shown: list[str] = []
    person = Person(approved=False, look=lambda: shown.extend(type(event).__name__ for event in bench.events))
    calls = {"calls": [WRITE, READ]}
    session = await ran(bench, tmp_path, calls, YES, ask=("read_file",), approve=person.approve)
    assert person.asked
    assert "CallEnded" not in shown
    assert sorted(bench.errors, key=str) == [None, "denied"]
    assert fault_in_facts(bench.facts(session)) is None


async def test_calls_that_change_something_see_what_those_before_them_changed(bench: Bench, tmp_path: Path) -> None:
    edits = [call("edit_file", path="new.txt", old=old, new=new) for old, new in ("ab", "bc", "cd")]
    write = call("write_file", path="new.txt", content="a")
    await ran(bench, tmp_path, {"calls": [write, *edits]}, YES)
    assert bench.errors == [None] * 4
    assert (bench.root / "new.txt").read_text() == "d"


async def test_a_question_that_is_cancelled_runs_nothing(bench: Bench, tmp_path: Path) -> None:
    asked = trio.Event()

    async def approve(_ask: ApprovalQuestion) -> ApprovalDecision:
        asked.set()
        await trio.sleep_forever()

    session = bench.session(scripted(tmp_path, {"calls": [WRITE]}, YES), ask=("write_file",), approve=approve)
    await cancelled_at(session, asked)
    assert outcomes(bench.facts(session)) == ["cancelled"]
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


# taken up again ----------------------------------------------------------------------------------------------


RUNNING: Final = (wanted("write_file"), CallStarted(1, "c", "write_file", '{"path": "new.txt"}', True, "allow", ""))


async def test_a_call_that_was_running_is_unknown_and_not_repeated(bench: Bench, tmp_path: Path) -> None:
    session = taken_up(bench, scripted(tmp_path, {"calls": [WRITE]}, YES), *RUNNING)
    end = await session.conversation.resume()
    assert end is not None
    assert (end.status, end.answer) == ("ok", "yes")
    assert bench.states == ["Input", "Finalizing", "Done"]
    assert outcomes(bench.facts(session)) == ["outcome_unknown"]
    assert not (bench.root / "new.txt").exists()


async def test_taking_a_turn_up_is_recorded_before_anything_else(bench: Bench, tmp_path: Path) -> None:
    session = taken_up(bench, scripted(tmp_path, {"calls": [WRITE]}, YES), *RUNNING)
    await session.conversation.resume()
    assert kinds(bench.facts(session))[4:] == ["TurnResumed", "CallEnded", "Replied", "TurnEnded"]


class NoEnd:
    """A journal whose process is killed before the end of a turn is recorded."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.path, self.of_session, self.commit = journal.path, journal.of_session, journal.commit

    def append(self, session: str, *new: Fact) -> None:
        self.begin([(session, encoded(new))])
        self.commit()

    def begin(self, appends: Iterable[tuple[str, Sequence[bytes]]]) -> None:
        rows = [*appends]
        if any(TurnEnded.__name__.encode() in body for _, bodies in rows for body in bodies):
            raise JournalError("journal_io", "killed")
        self._journal.begin(rows)

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
    started = CallStarted(1, "c", "write_file", json.dumps(ARGUMENTS), True, "allow", "", rehearsed=True)
    decided = CallDecided(1, "c", "ask", "it is asked about", committed=bool(said), approved=said)
    facts = [started] if said is None else [started, decided]
    session = taken_up(bench, scripted(tmp_path, {"calls": [WRITE]}, YES), wanted("write_file", **ARGUMENTS), *facts)
    with trio.fail_after(HANG_GUARD):
        end = await session.conversation.resume()
    assert end is not None
    assert end.status == "ok"
    assert outcomes(bench.facts(session)) == [kind]
    assert (bench.root / "new.txt").exists() == written
    assert fault_in_facts(bench.facts(session)) is None


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


async def test_a_call_that_was_denied_has_no_unknown_outcome(bench: Bench, tmp_path: Path) -> None:
    started = CallStarted(1, "c", "x", "{}", False, "deny", "")
    session = taken_up(bench, scripted(tmp_path, {}, YES), wanted("x"), started)
    await session.conversation.resume()
    assert outcomes(bench.facts(session)) == ["cancelled"]


async def test_a_turn_without_a_reply_is_asked_again(bench: Bench, tmp_path: Path) -> None:
    end = await taken_up(bench, scripted(tmp_path, YES)).conversation.resume()
    assert end is not None
    assert (end.turn, end.answer) == (1, "yes")
    assert bench.states == ["Input", "Thinking", "Done"]


async def test_a_session_at_rest_has_nothing_to_resume(bench: Bench, tmp_path: Path) -> None:
    session = await ran(bench, tmp_path, YES)
    assert await session.conversation.resume() is None
    assert "TurnResumed" not in kinds(bench.facts(session))


async def test_a_new_line_closes_the_turn_that_was_open(bench: Bench, tmp_path: Path) -> None:
    session = taken_up(bench, scripted(tmp_path, YES))
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
    session = bench.session(scripted(tmp_path), journal=Memory(tmp_path, refused=[2]).as_journal())
    with pytest.raises(JournalError):
        await session.call("write_file", '{"path": "new.txt", "content": ""}')
    assert not (bench.root / "new.txt").exists()


# bounds ------------------------------------------------------------------------------------------------------


async def test_of_a_reply_with_too_many_calls_the_first_run_and_each_other_is_refused(
    bench: Bench, tmp_path: Path
) -> None:
    writes = [call("write_file", path=f"{number}.md", content="x") for number in range(CALLS_AT_MOST + 3)]
    session = bench.session(scripted(tmp_path, {"calls": writes}, {"text": "done"}))
    with trio.fail_after(HANG_GUARD):
        ended = await session.conversation.run_turn("write them all")
    assert ended.answer == "done"
    assert bench.errors == [None] * CALLS_AT_MOST + ["resource_limit"] * 3
    assert len(list(bench.root.glob("*.md"))) == CALLS_AT_MOST
    assert fault_in_facts(bench.facts(session)) is None


async def test_results_of_a_turn_beyond_its_room_are_left_out_and_what_was_done_stands(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.agent.turn.RESULTS_AT_MOST", 3500)
    monkeypatch.setattr("supervisor.agent.conversation._MUCH", 1000)
    (bench.root / "long.txt").write_text("é" * 500)
    reads = [call("read_file", path="long.txt")] * 3
    lines: list[Line] = [
        {"calls": reads},
        {"calls": [*reads, call("write_file", path="new.txt", content="x")]},
        {"text": "done"},
    ]
    session = bench.session(scripted(tmp_path, *lines, {"calls": reads[:1]}, {"text": "again"}))
    with trio.fail_after(HANG_GUARD):
        await session.conversation.run_turn("read")
        assert bench.errors == [None] * 3 + ["resource_limit"] * 3 + [None]
        await session.conversation.run_turn("and again")
    assert bench.errors[-1] is None
    ends = [fact for fact in bench.facts(session) if isinstance(fact, CallEnded)]
    assert [len(end.content) for end in ends if end.tool == "read_file" and end.ok] == [500] * 4
    assert all("ask for less" in end.content for end in ends if not end.ok)
    assert (bench.root / "new.txt").read_text() == "x"


def test_a_call_that_changed_something_keeps_its_outcome_and_little_of_what_it_printed() -> None:
    started = CallStarted(1, "a", "run_cmd", "{}", True, "allow", "")
    ended = CallEnded(1, "a", "run_cmd", True, "y" * 5000, form="json", details={"stdout": "z" * 5000, "exit_code": 3})
    kept = within(started, ended, 0)
    assert (kept.ok, kept.kind, kept.form, kept.details) == (True, None, "text", {"exit_code": 3})
    assert size_of(kept) < 800
    assert within(started, ended, 10_000) == ended
