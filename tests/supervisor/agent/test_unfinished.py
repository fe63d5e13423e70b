"""Calls that nobody saw end, replies that were cut, turns that were taken up again: what is said of them."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import trio
import trio.testing

from supervisor.agent.turn import Event, State
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Fact, Replied, TurnEnded, TurnStarted
from supervisor.session.session import Session
from supervisor.tools.outcomes import UNKNOWN, as_error
from tests.supervisor.bench import Bench, Person, cancelled_at, kinds
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import call, fault_in_facts, scripted

READ: Final = call("read_file", path="a.txt")
WRITE: Final = call("write_file", path="new.txt", content="new")
EXECUTES: Final = State.EXECUTING
NOTHING: Final = call("nothing")
"""A call that ends without a worker."""
YES: Final = {"text": "yes"}


def outcomes(facts: Sequence[Fact]) -> dict[str, str | None]:
    return {fact.tool: fact.kind for fact in facts if isinstance(fact, CallEnded)}


async def with_hung_workers(
    bench: Bench, folder: Path, *calls: dict[str, Any], at: Callable[[Event], bool] = lambda event: event is EXECUTES
) -> Session:
    """Return a session whose next turn makes these calls, on workers that hang from an event on."""
    session = bench.session(scripted(folder, {"calls": [READ]}, YES, {"calls": list(calls)}, YES))
    with trio.fail_after(HANG_GUARD):
        await session.conversation.run_turn("warm up")
        await bench.all_workers_ready()

    def hang(event: Event) -> None:
        if at(event):
            bench.stop_workers()

    bench.hooks.append(hang)
    return session


def commits(event: Event) -> bool:
    return isinstance(event, CallDecided) and event.committed


async def asked_and_cancelled(bench: Bench, session: Session, at: Callable[[Event], bool]) -> list[Fact]:
    """Ask, and cancel once nothing moves after the event; return the facts."""
    reached = trio.Event()
    bench.hooks.append(lambda event: reached.set() if at(event) else None)
    await cancelled_at(session, reached)
    return bench.facts(session)


async def test_a_call_cut_off_by_an_internal_error_has_changed_nothing_before_its_commit(
    bench: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(event: Event) -> None:
        if isinstance(event, CallEnded) and event.tool == "nothing":
            raise KeyError("a bug in the listener")

    session = await with_hung_workers(bench, tmp_path, WRITE, READ, NOTHING)
    bench.hooks.append(stumble)
    with trio.fail_after(HANG_GUARD), caplog.at_level(logging.CRITICAL, "strongroom.agent"):
        end = await session.conversation.run_turn("go")
    facts = bench.facts(session)
    assert (end.status, end.kind) == ("error", "internal")
    assert outcomes(facts) == {"nothing": "unknown_tool", "write_file": "cancelled", "read_file": "internal"}
    (write,) = [fact for fact in facts if isinstance(fact, CallEnded) and fact.tool == "write_file"]
    assert write.content.startswith("An internal error ended the turn. Nothing of it was committed.")
    assert fault_in_facts(facts) is None


CANCELLED: Final = {
    "one call": [WRITE],
    "two calls": [READ, WRITE],
    "more calls than workers": [WRITE] * 6,
    "a call that has ended": [WRITE, READ, NOTHING],
}


@pytest.mark.parametrize("calls", CANCELLED.values(), ids=CANCELLED)
async def test_calls_cut_off_by_cancelling_before_a_commit_are_cancelled_and_the_next_turn_works(
    bench: Bench, tmp_path: Path, calls: list[Any]
) -> None:
    session = await with_hung_workers(bench, tmp_path, *calls)
    facts = await asked_and_cancelled(bench, session, lambda event: event is EXECUTES)
    assert bench.states[-1] == "Done"
    assert facts[-1] == TurnEnded(2, "cancelled", "", kind="cancelled")
    ends = [(each["tool"], "unknown_tool" if each is NOTHING else "cancelled") for each in calls]
    assert sorted((fact.tool, fact.kind or "") for fact in facts if isinstance(fact, CallEnded)) == sorted(
        [("read_file", ""), *ends]
    )
    assert fault_in_facts(facts) is None
    with trio.fail_after(HANG_GUARD):
        end = await session.conversation.run_turn("again")
    assert (end.turn, end.status) == (3, "ok")
    assert fault_in_facts(bench.facts(session)) is None


async def test_a_call_cut_off_in_its_commit_has_an_unknown_outcome(bench: Bench, tmp_path: Path) -> None:
    session = await with_hung_workers(bench, tmp_path, WRITE, at=commits)
    facts = await asked_and_cancelled(bench, session, commits)
    assert outcomes(facts) == {"read_file": None, "write_file": "outcome_unknown"}
    (write,) = [fact for fact in facts if isinstance(fact, CallEnded) and fact.tool == "write_file"]
    assert UNKNOWN in write.content
    assert fault_in_facts(facts) is None


async def test_a_commit_that_has_begun_ends_before_its_turn_is_cancelled(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, {"calls": [WRITE]}, YES))
    with trio.fail_after(HANG_GUARD):
        with trio.CancelScope() as scope:
            bench.hooks.append(lambda event: scope.cancel() if commits(event) else None)
            await session.conversation.run_turn("go")
    facts = bench.facts(session)
    assert outcomes(facts) == {"write_file": None}
    assert isinstance(facts[-1], TurnEnded)
    assert facts[-1].status == "cancelled"
    assert (bench.root / "new.txt").read_text() == "new"


SINGLE: Final = [("read_file", '{"path": "a.txt"}'), ("write_file", "{}")]


@pytest.mark.parametrize(("tool", "arguments"), SINGLE, ids=[each[0] for each in SINGLE])
async def test_a_single_call_that_is_cancelled_before_it_changes_anything_is_cancelled(
    bench: Bench, tmp_path: Path, tool: str, arguments: str
) -> None:
    session = bench.session(scripted(tmp_path))
    with trio.fail_after(HANG_GUARD):
        await session.call("list_files", '{"pattern": "*"}')
        await bench.all_workers_ready()
        bench.stop_workers()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.call, tool, arguments)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert outcomes(bench.facts(session)) == {"list_files": None, tool: "cancelled"}


async def test_a_single_call_with_a_bug_in_its_way_is_recorded_too(bench: Bench, tmp_path: Path) -> None:
    class Broken:
        def pool(self, _category: str) -> None:
            raise KeyError("a bug")

    session = bench.session(scripted(tmp_path))
    router: Any = session._router
    router.execution._pools = Broken()
    with pytest.raises(KeyError):
        await session.call("write_file", "{}")
    assert outcomes(bench.facts(session)) == {"write_file": "cancelled"}


# cut at the token limit ----------------------------------------------------------------------------------------


async def test_nobody_is_asked_about_a_call_that_was_cut(bench: Bench, tmp_path: Path) -> None:
    person = Person(approved=True)
    model = scripted(tmp_path, {"calls": [WRITE, READ], "stop_reason": "max_tokens"}, YES)
    session = bench.session(model, ask=("write_file", "read_file"), approve=person.approve)
    end = await session.conversation.run_turn("go")
    facts = bench.facts(session)
    assert (end.status, person.asked) == ("ok", [])
    assert bench.states == ["Input", "Thinking", "Finalizing", "Done"]
    assert outcomes(facts) == {"write_file": "invalid_arguments", "read_file": "invalid_arguments"}
    assert kinds(facts) == ["SessionOpened", "TurnStarted", "Replied", "CallEnded", "CallEnded", "Replied", "TurnEnded"]
    assert not (bench.root / "new.txt").exists()
    assert fault_in_facts(facts) is None


# steps -------------------------------------------------------------------------------------------------------


def step(number: int) -> list[Fact]:
    """A reply that read a file, and its outcome."""
    name = f"call_{number}_0"
    use = {"type": "tool_use", "id": name, "name": "read_file", "input": {"path": "a.txt"}}
    return [
        Replied(1, number, [use], "tool_use", {}),
        CallStarted(1, name, "read_file", '{"path":"a.txt"}', False, "allow", ""),
        CallEnded(1, name, "read_file", True, "hello\n"),
    ]


@pytest.mark.parametrize(("max_steps", "status", "replies"), [(2, "error", 2), (3, "ok", 3), (1, "error", 2)])
async def test_steps_made_before_a_turn_was_taken_up_again_count(
    bench: Bench, tmp_path: Path, max_steps: int, status: str, replies: int
) -> None:
    model = scripted(tmp_path, {}, {}, YES)
    dead = bench.session(model)
    bench.journal.append(dead.id, TurnStarted(1, "go"), *step(0), *step(1))
    end = await bench.session(model, session=dead.id, max_steps=max_steps).conversation.resume()
    assert end is not None
    assert (end.status, end.kind) == (status, "" if status == "ok" else "too_many_steps")
    facts = bench.facts(dead)
    assert len([fact for fact in facts if isinstance(fact, Replied)]) == replies
    assert fault_in_facts(facts) is None


async def test_steps_of_an_earlier_turn_do_not_count(bench: Bench, tmp_path: Path) -> None:
    session = bench.session(scripted(tmp_path, {"calls": [READ]}, YES, {"calls": [READ]}, YES), max_steps=2)
    assert [(await session.conversation.run_turn(line)).status for line in ("one", "two")] == ["ok", "ok"]


# what a worker says about an error -----------------------------------------------------------------------------


def test_details_of_a_worker_cannot_replace_what_happened() -> None:
    details: dict[str, str | int] = {"kind": "denied", "message": "All is well.", "path": "x", "size": 7}
    ended = CallEnded(1, "c", "read_file", False, "It failed.", kind="not_found", details=details)
    assert as_error(ended) == {"kind": "not_found", "message": "It failed.", "path": "x", "size": 7}
