"""Every fault of a model's server that decides a turn, through the real client library, real HTTP and real workers.

Rows: tests/corpus/frames.json, side "model". Those about HTTP and the stream alone are the client's own tests.
"""

import json
import os
import signal
import threading
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import trio

from supervisor.agent.models.messages_api import messages_model
from supervisor.agent.models.retry import RetryPolicy
from supervisor.agent.turn import SuspendedTurn
from supervisor.journal.facts import CallEnded, Fact, ModelRetried, TurnEnded
from tests.forked import ForkedStrongroom
from tests.messages_server import MessagesServer, error, fault_in, reply, start, text_block
from tests.script_server import Recorded, Response
from tests.supervisor.bench import Bench, kinds
from tests.supervisor.command import HANG_GUARD, finished
from tests.supervisor.histories import fault_in_facts

CORPUS: Final = Path(__file__).parents[3] / "corpus" / "frames.json"
CLASSES: Final = {"good", "stop", "tool", "inject"}
ROWS: Final = [row for row in json.loads(CORPUS.read_text("utf-8"))["cases"] if row["side"] == "model"]
TURNS: Final = [row for row in ROWS if row["class"] in CLASSES and row["expect"] != "turn_suspended"]
SUSPENDED: Final = [row for row in ROWS if row["expect"] == "turn_suspended"]
CRASHES: Final = {row["id"]: row for row in ROWS if row["class"] == "crash"}

STATUSES: Final = {"turn_ok": {"ok"}, "turn_error": {"error"}, "either": {"ok", "error"}}

OURS: Final = {"truncated_tool_call": "invalid_request", "too_many_tools": "too_many_steps"}
"""The corpus's free words for a turn's error, in the product's; all others are the same."""

NOT_RUN: Final = {"unknown_tool", "invalid_arguments", "denied", "cancelled"}
"""Outcomes of calls that no tool has seen."""

PAUSES: Final = "messages: the last one must be the user's"
"""What a checking server says to a paused reply that is sent back; the real one goes on with it."""

AT_ONCE: Final = RetryPolicy(first=0.0)
KEY: Final = "sk-ant-secret-CANARY-1"


def prepare(root: Path, row: dict[str, Any]) -> None:
    for step in row.get("setup", []):
        Path(step["file"].replace("$ROOT", str(root))).write_text(step["text"])


def runs(facts: list[Fact]) -> int:
    """Return how many calls reached a tool."""
    return sum(isinstance(fact, CallEnded) and fact.kind not in NOT_RUN for fact in facts)


class Ended(NamedTuple):
    """How a first turn ended, with all facts, and what the server was sent."""

    turn: TurnEnded
    facts: list[Fact]
    bodies: list[Any]


async def ended(
    bench: Bench, responses: Sequence[Response], *lines: str, session: str | None = None, checked: bool = True
) -> Ended:
    """Ask a server that answers so."""
    with trio.fail_after(HANG_GUARD), MessagesServer(responses, checked=checked) as server:
        async with aclosing(messages_model("m", KEY, server.url, retries=AT_ONCE)) as model:
            asked = bench.session(model, session=session)
            ends = [await asked.conversation.run_turn(line) for line in lines or ("go",)]
    return Ended(ends[0], bench.facts(asked), server.bodies)


@pytest.mark.parametrize("row", TURNS, ids=[f"{row['id']} {row['why'][:40]}" for row in TURNS])
async def test_a_turn_with_this_model_ends_as_the_corpus_says(bench: Bench, row: dict[str, Any]) -> None:
    prepare(bench.root, row)
    end, facts, bodies = await ended(bench, row["responses"], checked=False)
    assert end.status in STATUSES[row["expect"]]
    assert end.kind in {"", *(OURS.get(kind, kind) for kind in row.get("kind", []))}
    assert runs(facts) == row.get("tool_runs", runs(facts))
    assert row.get("mentions", "") in end.answer
    assert {fault_in(body) for body in bodies} <= {None, PAUSES}
    assert fault_in_facts(facts) is None


@pytest.mark.parametrize("row", TURNS, ids=[row["id"] for row in TURNS])
async def test_the_line_after_it_is_taken_by_a_strict_server(bench: Bench, row: dict[str, Any]) -> None:
    prepare(bench.root, row)
    assert (await ended(bench, row["responses"], checked=False)).facts
    (session,) = [entry.session for entry in bench.journal.opened()]
    end, _, _ = await ended(bench, [reply("and on")], "next", session=session)
    assert (end.status, end.answer) == ("ok", "and on")


@pytest.mark.parametrize("row", SUSPENDED, ids=[row["id"] for row in SUSPENDED])
async def test_a_turn_with_this_model_is_suspended(bench: Bench, row: dict[str, Any]) -> None:
    prepare(bench.root, row)
    with pytest.raises(SuspendedTurn) as suspended:
        await ended(bench, row["responses"])
    assert suspended.value.fact.kind in row["kind"]


async def test_three_parallel_results_come_back_in_order(bench: Bench) -> None:
    calls = [("read_file", {"path": "a.txt"}), ("read_file", {"path": "missing"}), ("list_files", {"pattern": "*"})]
    end, _, bodies = await ended(bench, [reply("", calls, ids=["t1", "t2", "t3"]), reply("done")])
    assert end.status == "ok"
    results = bodies[1]["messages"][-1]["content"]
    assert [(each["tool_use_id"], each.get("is_error", False)) for each in results] == [
        ("t1", False),
        ("t2", True),
        ("t3", False),
    ]


async def test_the_server_is_offered_the_tools_of_the_profile(bench: Bench) -> None:
    _, _, bodies = await ended(bench, [reply("done")])
    names = [tool["name"] for tool in bodies[0]["tools"]]
    assert names == ["read_file", "write_file", "edit_file", "list_files", "list_directory"]


FAULTS: Final[list[tuple[str, list[Response], str]]] = [
    ("429", [error(429, "slow down", "rate_limit_error")], "rate_limited"),
    ("529 twice", [error(529, "busy", "overloaded_error")] * 2, "overloaded"),
    ("a cut stream", [{"sse": start() + text_block(0, "par")}], "stream_truncated"),
    ("a reset stream", [{"sse": start() + text_block(0, "par"), "then": "reset"}], "stream_truncated"),
]


@pytest.mark.parametrize(("faults", "kind"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
async def test_a_request_made_again_is_in_the_journal(bench: Bench, faults: list[Response], kind: str) -> None:
    end, facts, _ = await ended(bench, [*faults, reply("done")])
    assert (end.status, end.answer) == ("ok", "done")
    retries = [fact for fact in facts if isinstance(fact, ModelRetried)]
    assert [(retry.attempt, retry.kind) for retry in retries] == [(n, kind) for n in range(1, len(faults) + 1)]


async def test_a_request_that_never_succeeds_leaves_a_session_that_does(bench: Bench) -> None:
    end, facts, _ = await ended(bench, [*[error(529, "busy")] * 5, reply("done")], "go", "again")
    assert (end.status, end.kind) == ("error", "overloaded")
    assert isinstance(facts[-1], TurnEnded)
    assert facts[-1].answer == "done"
    assert fault_in_facts(facts) is None


async def test_half_a_reply_is_never_kept(bench: Bench) -> None:
    cut = {"sse": start() + text_block(0, "half")}
    end, facts, _ = await ended(bench, [cut] * 5)
    assert (end.status, end.kind) == ("error", "stream_truncated")
    assert "Replied" not in kinds(facts)


async def test_the_key_is_in_no_fact(bench: Bench) -> None:
    end, facts, _ = await ended(bench, [error(401, f"your key {KEY} is bad", "authentication_error")])
    assert (end.status, end.kind) == ("error", "authentication")
    assert "CANARY" not in repr(facts)


# killed in the middle ----------------------------------------------------------------------------------------


def batch(folder: Path) -> list[str]:
    (folder / "in.txt").write_text("go\n")
    return ["batch", "in.txt", "--output", "out.jsonl", "--root", "root", "--model", "m"]


def result(folder: Path) -> dict[str, Any]:
    (line,) = (folder / "out.jsonl").read_text().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_kill_9_between_a_result_and_the_next_request(tmp_path: Path, home: Path, root: Path) -> None:
    row = CRASHES["F159"]
    known = threading.Event()
    pids: list[int] = []

    def kill(_request: Recorded) -> None:
        if len(server.requests) == 2:
            known.wait()
            os.kill(pids[0], signal.SIGKILL)

    played = [{"connect": "hang"} if "kill_daemon_before_reply" in each else each for each in row["responses"]]
    with MessagesServer(played, on_request=kill) as server:
        strongroom = ForkedStrongroom(home, tmp_path, ANTHROPIC_BASE_URL=server.url)
        process = strongroom.start(*batch(tmp_path))
        pids.append(process.pid)
        known.set()
        assert finished(process).code == -signal.SIGKILL
        assert strongroom.run(*batch(tmp_path), "--resume").code == 0
    assert (result(tmp_path)["status"], result(tmp_path)["answer"]) == ("ok", "done")
    facts = strongroom.sessions[result(tmp_path)["session"]]
    assert runs(facts) == row["tool_runs"]
    assert fault_in_facts(facts) is None
    assert server.bodies[1]["messages"] == server.bodies[2]["messages"]


def test_kill_9_in_the_middle_of_an_answer(tmp_path: Path, home: Path, root: Path) -> None:
    (response,) = CRASHES["F160"]["responses"]
    with MessagesServer([{"sse": response["sse"], "then": "hang"}, reply("whole")]) as server:
        strongroom = ForkedStrongroom(home, tmp_path, ANTHROPIC_BASE_URL=server.url)
        died = strongroom.run(*batch(tmp_path), program=("tests.supervisor.dying", "text", "1"))
        assert died.code == -signal.SIGKILL
        assert "Replied" not in kinds(strongroom.facts)
        shown = strongroom.run("sessions", "--json").json[-1]
        assert shown["state"] == "open"
        assert "(open: this turn has no end)" in strongroom.run("history", shown["session"]).out
        assert strongroom.run(*batch(tmp_path), "--resume").code == 0
    assert result(tmp_path)["answer"] == "whole"
    assert fault_in_facts(strongroom.sessions[result(tmp_path)["session"]]) is None
