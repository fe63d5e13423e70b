"""Loops are noticed exactly: told of at the third time, suspended at the fifth, and never where anything is new."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest
import trio

from supervisor.agent.loop_counter import SUSPENDED_AT, TOLD_AT
from supervisor.agent.models.model import Model, ModelRequest, Progress, Reply
from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import State, SuspendedTurn
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    Replied,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
)
from supervisor.session.session import Session
from tests.each_row import each_row
from tests.supervisor.bench import Bench, kinds
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import call, fault_in_facts, scripted
from workers.changes.effects import Change, Effects, What

READ: Final = {"calls": [call("read_file", path="a.txt")]}
YES: Final = {"text": "yes"}
TIMES: Final = SUSPENDED_AT


def effects(*what: What) -> Effects:
    return Effects(tuple(Change("x", each) for each in what), dict.fromkeys(what, 1), b"")


class Call(NamedTuple):
    """One call of a history, in a reply of its own unless it is `beside` the one before."""

    arguments: str = '{"a":1,"b":2}'
    content: str = "same"
    ok: bool = True
    committed: bool = False
    effects: Effects | None = None
    beside: bool = False
    cut: bool = False
    """It was never judged."""
    tool: str = "look"
    others: bool = False
    """Others have changed something meanwhile."""


SAME: Final = Call()
CHANGES: Final = Call("{}", committed=True, effects=effects("modified"), tool="write")
TOUCHES: Final = CHANGES._replace(effects=effects("times"))
LOOKS: Final = CHANGES._replace(effects=effects())


class Row(NamedTuple):
    name: str
    calls: list[Call]
    told: list[int]
    """Which of them the model is told of, from 0."""
    found: bool


ROWS: Final = [
    Row("twice", [SAME] * 2, [], found=False),
    Row("three times", [SAME] * 3, [2], found=False),
    Row("four times", [SAME] * 4, [2], found=False),
    Row("five times", [SAME] * 5, [2], found=True),
    Row("arguments in another order", [SAME, Call('{"b": 2, "a": 1}')] * 2 + [SAME], [2], found=True),
    Row("other arguments", [Call(f'{{"a":{n}}}') for n in range(9)], [], found=False),
    Row("arguments that are no JSON", [Call("{")] * 5, [2], found=True),
    Row("another tool", [SAME._replace(tool=f"t{n}") for n in range(9)], [], found=False),
    Row("polling, with other output", [Call(content=f"{n} %") for n in range(9)], [], found=False),
    Row("other output in between", [SAME, SAME, Call(content="new"), SAME, SAME, SAME, SAME], [5], found=False),
    Row("the same error", [Call(ok=False)] * 5, [2], found=True),
    Row("an error with the result's words", [SAME, Call(ok=False)] * 4, [], found=False),
    Row("two by turns", [SAME, Call("[]")] * 5, [4, 5], found=True),
    Row("a change in between", [SAME, SAME, CHANGES, SAME, SAME, SAME, SAME], [5], found=False),
    Row("a change after the fifth, in its reply", [*[SAME] * 5, CHANGES._replace(beside=True)], [2], found=False),
    Row("a commit that changed nothing in between", [SAME, SAME, LOOKS, SAME, SAME, SAME], [3], found=True),
    Row("a commit of times alone in between", [SAME, SAME, TOUCHES, SAME, SAME, SAME], [3], found=True),
    Row(
        "a commit of which nothing is known",
        [SAME, SAME, CHANGES._replace(effects=None), *[SAME] * 4],
        [5],
        found=False,
    ),
    Row("commands that change nothing", [LOOKS] * 5, [2], found=True),
    Row("writes that change something", [CHANGES] * 9, [], found=False),
    Row("beside each other", [SAME, *[Call(beside=True)] * 9], [], found=False),
    Row("beside each other, five times", [SAME, Call(beside=True)] * 5, [4], found=True),
    Row("a change of others in between", [SAME, SAME, SAME._replace(others=True), *[SAME] * 3], [4], found=False),
    Row("a change of others before the fifth", [*[SAME] * 4, SAME._replace(others=True)], [2], found=False),
    Row("cut before they were judged", [Call(cut=True)] * 9, [], found=False),
]


def history(calls: list[Call]) -> list[Fact]:
    facts: list[Fact] = [TurnStarted(1, "go")]
    replies: list[list[int]] = []
    for number, each in enumerate(calls):
        if each.beside:
            replies[-1].append(number)
        else:
            replies.append([number])
    for step, wanted in enumerate(replies):
        uses = [{"type": "tool_use", "id": f"c{n}", "name": calls[n].tool, "input": {}} for n in wanted]
        facts.append(Replied(1, step, uses, "tool_use", {}))
        for n in wanted:
            each, name = calls[n], f"c{n}"
            if not each.cut:
                facts.append(
                    CallStarted(1, name, each.tool, each.arguments, each.committed, "allow", "", rehearsed=True)
                )
            if each.committed:
                facts.append(CallDecided(1, name, "allow", "", True, each.effects))
            ended = CallEnded(1, name, each.tool, each.ok, each.content, kind=None if each.ok else "not_found")
            facts.append(msgspec.structs.replace(ended, changed_by_others=each.others))
    return facts


def told(transcript: Transcript) -> list[str]:
    """Return the ids of the calls beside whose result the model is told that it repeats."""
    blocks = [block for message in transcript.messages if message["role"] == "user" for block in message["content"]]
    return [each["tool_use_id"] for each in blocks if each["type"] == "tool_result" and "third time" in each["content"]]


@each_row("row", ROWS, ids=[row.name for row in ROWS])
def test_what_repeats_is_noticed_exactly(row: Row) -> None:
    transcript = Transcript(history(row.calls))
    assert told(transcript) == [f"c{number}" for number in row.told]
    assert bool(transcript.loops.found) == row.found


def test_the_next_turn_counts_anew() -> None:
    facts = history([SAME] * 4)
    again = [TurnEnded(1, "ok", ""), TurnStarted(2, "again"), *history([SAME])[1:]]
    assert not Transcript([*facts, *again]).loops.found


@pytest.mark.parametrize(("by", "found"), [("", True), ("console", False)])
def test_a_persons_word_counts_anew_and_a_crash_does_not(by: str, found: bool) -> None:
    facts = history([SAME] * 5)
    assert bool(Transcript([*facts, TurnSuspended(1, "loop", "so"), TurnResumed(1, by)]).loops.found) is found


async def suspended(bench: Bench, session: Session, text: str = "go") -> TurnSuspended:
    with trio.fail_after(HANG_GUARD), pytest.raises(SuspendedTurn) as found:
        await session.conversation.run_turn(text)
    assert bench.states[-1] == State.SUSPENDED.value
    return found.value.fact


async def test_a_turn_that_repeats_a_call_is_suspended_with_what_was_seen(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, *[READ] * 9, YES))
    fact = await suspended(bench, session)
    assert fact.kind == "loop"
    assert 'read_file {"path":"a.txt"} had the same result 5 times, ok:' in fact.why
    assert kinds(bench.facts(session)).count("CallEnded") == TIMES
    assert kinds(bench.facts(session))[-1] == "TurnSuspended"
    assert len(told(session.conversation.transcript)) == 1


def requests(session: Session) -> int:
    return session.conversation.transcript.step


@dataclass
class Meanwhile:
    """A model that lets something be done before one of its replies."""

    model: Model
    at: int
    do: Callable[[], Awaitable[object]]
    name: str = "m"
    replies: int = 0

    async def warm(self) -> None:
        await self.model.warm()

    async def aclose(self) -> None:
        await self.model.aclose()

    async def reply(self, request: ModelRequest, show: Callable[[Progress], None]) -> Reply:
        self.replies += 1
        if self.replies == self.at:
            await self.do()
        return await self.model.reply(request, show)


def change_later(file: Path) -> None:
    """Change a file so that its time says so: the kernel's clock of files goes in steps."""
    began = time.time()
    while file.stat().st_ctime <= began:
        file.write_text("more")


WRITES: Final = {"calls": [call("write_file", path="b.txt", content="new")]}
LISTS: Final = {"calls": [call("list_files", pattern="*")]}


@pytest.mark.parametrize(
    ("line", "at", "times"),
    [(WRITES, 1, TIMES), (WRITES, 3, TIMES + 2), (WRITES, 5, TIMES + 4), (LISTS, 3, TIMES)],
    ids=["before the first", "before the third", "before the fifth", "which changes nothing"],
)
async def test_what_another_session_changes_on_the_root_counts_as_a_change(
    bench: Bench, tmp_path: Path, line: Any, at: int, times: int
) -> None:
    (tmp_path / "other").mkdir()
    other = bench.session(scripted(tmp_path / "other", line, YES))
    model = Meanwhile(scripted(tmp_path, *[READ] * 15, YES), at, partial(other.conversation.run_turn, "go"))
    session = bench.session(model)
    await suspended(bench, session)
    facts = bench.facts(session)
    assert kinds(facts).count("CallEnded") == times
    assert sum(isinstance(fact, CallEnded) and fact.changed_by_others for fact in facts) == (times > TIMES)
    assert Transcript(facts).loops.found == session.conversation.transcript.loops.found != ""


@pytest.mark.parametrize(("at", "times"), [(1, TIMES), (3, TIMES + 2), (5, TIMES + 4)])
async def test_what_another_program_changes_beneath_the_root_counts_as_a_change(
    bench: Bench, tmp_path: Path, at: int, times: int
) -> None:
    log = bench.root / "deep" / "log"

    async def write() -> None:
        change_later(log)

    log.parent.mkdir()
    log.write_text("some")
    session = bench.session(Meanwhile(scripted(tmp_path, *[READ] * 15, YES), at, write))
    await suspended(bench, session)
    facts = bench.facts(session)
    assert kinds(facts).count("CallEnded") == times
    assert sum(isinstance(fact, CallEnded) and fact.changed_by_others for fact in facts) == (times > TIMES)


async def test_it_stays_suspended_after_a_crash_and_nothing_is_recorded(bench: Bench, tmp_path: Path) -> None:
    model = scripted(tmp_path, *[READ] * 9, YES)
    dead = bench.session(model)
    await suspended(bench, dead)
    before = bench.facts(dead)
    session = bench.session(model, session=dead.id)
    with pytest.raises(SuspendedTurn):
        await session.conversation.resume()
    assert bench.facts(session) == before
    assert (requests(session), TOLD_AT) == (TIMES, 3)


async def test_killed_between_the_fifth_result_and_its_suspension_it_is_suspended_all_the_same(
    bench: Bench, tmp_path: Path
) -> None:
    model = scripted(tmp_path, *[READ] * 9, YES)
    dead = bench.session(model)
    await suspended(bench, dead)
    facts = bench.facts(dead)[1:-1]
    session = bench.session(model)
    bench.journal.append(session.id, *facts)
    again = bench.session(model, session=session.id)
    with pytest.raises(SuspendedTurn):
        await again.conversation.resume()
    assert kinds(bench.facts(again)).count("CallEnded") == TIMES


async def test_at_a_persons_word_it_goes_on_for_as_many_calls(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, *[READ] * 7, YES))
    await suspended(bench, session)
    with trio.fail_after(HANG_GUARD):
        end = await session.conversation.resume("console")
    assert end is not None
    assert (end.status, end.answer) == ("ok", "yes")
    facts = bench.facts(session)
    assert [fact.by for fact in facts if isinstance(fact, TurnResumed)] == ["console"]
    assert fault_in_facts(facts) is None


async def test_the_next_line_ends_a_suspended_turn_and_what_it_did_stays(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, *[READ] * 5, YES))
    await suspended(bench, session)
    with trio.fail_after(HANG_GUARD):
        end = await session.conversation.run_turn("try otherwise")
    assert end.answer == "yes"
    facts = bench.facts(session)
    ends: list[Any] = [(fact.status, fact.kind) for fact in facts if isinstance(fact, TurnEnded)]
    assert ends == [("cancelled", "cancelled"), ("ok", "")]
    assert fault_in_facts(facts) is None
