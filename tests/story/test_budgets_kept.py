"""Budgets in the daemon: kept over kill -9, shown, and raised by a reload, `/budget`, or a batch's `--resume`."""

import json
import signal
from pathlib import Path
from typing import Any, Final

from supervisor.acp import extensions
from supervisor.journal.facts import BudgetReserved, Replied, TurnEnded
from tests.daemon_process import DaemonProcess, Lines
from tests.messages_server import MessagesServer, reply
from tests.metered_server import MeteredServer
from tests.supervisor.command import Strongroom, wait_until
from tests.supervisor.histories import fault_in_facts

KEY: Final = "sk-ant-test"
LOW: Final = "[budgets]\nturn = {tokens = 3000}\n"
HIGH: Final = "[budgets]\nturn = {tokens = 300000}\n"


def asks(daemon: DaemonProcess, server: MessagesServer) -> None:
    daemon.environment |= {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}


def prompted(client: Lines, root: Path, text: str = "go") -> tuple[str, Any]:
    session = client.new_session(root, model="m")
    return session, client.prompt(session, text)["_meta"][extensions.TURN]


def test_a_turn_goes_on_by_itself_when_the_configuration_raises_its_budget(daemon: DaemonProcess, root: Path) -> None:
    daemon.configure(LOW)
    with MessagesServer([reply("at last")]) as server:
        asks(daemon, server)
        with daemon, daemon.client() as client:
            session, turn = prompted(client, root)
            assert (turn["status"], turn["kind"]) == ("suspended", "budget")
            assert server.requests == []
            assert client.status()["sessions"][0]["budgets"] == [{"of": "turn", "used": "0 of 3,000 tokens"}]
            daemon.configure(HIGH)
            daemon.signal(signal.SIGHUP)
            wait_until(lambda: daemon.facts_of(session, TurnEnded))
    assert [end.answer for end in daemon.facts_of(session, TurnEnded)] == ["at last"]


def test_it_goes_on_with_the_next_daemon_that_has_more(daemon: DaemonProcess, root: Path) -> None:
    daemon.configure(LOW)
    with MessagesServer([reply("at last")]) as server:
        asks(daemon, server)
        daemon.start()
        with daemon.client() as client:
            session, _ = prompted(client, root)
            daemon.crash()
        daemon.start()
        with daemon.client() as client:
            wait_until(lambda: client.status()["sessions"])
            assert client.resume(session)["suspended"]["kind"] == "budget"
            daemon.crash()
        daemon.configure(HIGH)
        with daemon:
            wait_until(lambda: daemon.facts_of(session, TurnEnded))
    assert len(server.requests) == 1
    assert fault_in_facts(daemon.sessions[session]) is None


def test_a_person_raises_it_in_the_session(daemon: DaemonProcess, root: Path) -> None:
    daemon.configure(LOW)
    with MessagesServer([reply("at last")]) as server:
        asks(daemon, server)
        with daemon, daemon.client() as client:
            session, _ = prompted(client, root)
            client.prompt(session, "/budget")
            client.prompt(session, "/budget turn 300000 tokens")
            wait_until(lambda: daemon.facts_of(session, TurnEnded))
            said = [text_of(each) for each in client.updates(session)]
            assert client.refused("session/prompt", prompt(session, "/budget turn lots"))["data"]["kind"] == "config"
    assert "- turn: 0 of 3,000 tokens" in said
    assert "- turn: 0 of 300,000 tokens" in said


def text_of(update: dict[str, Any]) -> str:
    """Return what an update says, if it says anything."""
    content = update.get("content")
    return content.get("text", "") if isinstance(content, dict) else ""


def prompt(session: str, text: str) -> dict[str, Any]:
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


def test_a_request_whose_end_nobody_saw_counts_in_full_for_the_day(daemon: DaemonProcess, root: Path) -> None:
    daemon.configure("[budgets]\nday = {tokens = 30000}\n")
    with MessagesServer([{"sse": "", "then": "hang"}, reply("yes"), reply("yes")]) as server:
        asks(daemon, server)
        daemon.start()
        with daemon.client() as client:
            session = client.new_session(root, model="m")
            client.begin_prompt(session, "go")
            wait_until(lambda: server.requests)
            daemon.crash()
        (lost,) = daemon.facts_of(session, BudgetReserved)
        with daemon, daemon.client() as client:
            wait_until(lambda: daemon.facts_of(session, TurnEnded))
            ours = next(each for each in client.status()["sessions"] if each["sessionId"] == session)
    (answered,) = daemon.facts_of(session, Replied)
    used = lost.tokens + sum(answered.usage.values())
    assert ours["budgets"] == [{"of": "day", "used": f"{used:,} of 30,000 tokens"}]


def test_a_batch_stops_at_its_budget_and_goes_on_with_more(strongroom: Strongroom, root: Path) -> None:
    with MeteredServer(longest=500) as server:
        strongroom.environment |= {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
        items = "\n".join(json.dumps({"id": n, "prompt": f"go {n}"}) for n in range(12))
        batch = strongroom.batch_of(items, "--concurrency", "6", model="m")
        assert strongroom.run(*batch, "--budget-tokens", "16000").code == 1
        assert 0 < server.billed <= 16_000
        statuses = [each["status"] for each in strongroom.results]
        assert {"ok", "suspended"} == set(statuses)
        assert {each["error"]["kind"] for each in strongroom.results if each["status"] == "suspended"} == {"budget"}
        assert strongroom.run(*batch, "--resume").code == 1
        assert server.billed <= 16_000
        assert strongroom.run(*batch, "--resume", "--budget-tokens", "900000").code == 0
    assert sorted(each["id"] for each in strongroom.results) == list(range(12))
    assert len(strongroom.asked) == 12
