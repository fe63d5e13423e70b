"""The daemon is told to stop: what waits for a person, or for the next daemon, stays as it is."""

import signal
from pathlib import Path
from typing import Final

import pytest

from supervisor.acp import extensions
from supervisor.config.settings import load
from supervisor.daemon.process.lock import running
from supervisor.journal.facts import CallEnded, TurnEnded, TurnStarted
from tests.daemon_process import ASK, DaemonProcess, Lines, named, scripted
from tests.supervisor.command import Family, wait_until
from tests.supervisor.histories import ASKING, DONE, READ, fault_in_facts, opening_fact

STOPPED_WHEN_READY: Final = """
import os, signal
from supervisor.daemon.process.sd_notify import Notifier
is_ready = Notifier.ready

def is_ready_and_stopped(self):
    is_ready(self)
    os.kill(os.getpid(), signal.SIGTERM)

Notifier.ready = is_ready_and_stopped
"""
"""Tells the daemon to stop as soon as it listens."""


@pytest.fixture
def daemon(home: Path, tmp_path: Path) -> DaemonProcess:
    """A daemon that has not been started. Turns have very long to finish."""
    daemon = DaemonProcess(home, tmp_path)
    daemon.configure(f"[daemon]\ndrain_s = 600\n{ASKING}")
    return daemon


def until_alone(client: Lines) -> None:
    wait_until(lambda: client.status()["clients"] == 1)


def until_stopping(client: Lines) -> None:
    """Wait until the daemon begins nothing new."""
    wait_until(lambda: client.refused("session/resume", named("x"))["data"]["kind"] == "stopping")


def ends_leaving_open(daemon: DaemonProcess, session: str, family: Family) -> bool:
    """Wait for the daemon's good end; say whether nothing of it is left, and the session's turn and calls are open."""
    assert daemon.wait() == 0
    return family.is_gone() and not daemon.facts_of(session, TurnEnded) and not daemon.facts_of(session, CallEnded)


def ends(daemon: DaemonProcess, session: str) -> list[str]:
    """Return how the turns of a session ended, whose facts are in order."""
    assert fault_in_facts(daemon.sessions[session]) is None
    return [fact.status for fact in daemon.facts_of(session, TurnEnded)]


def test_a_turn_that_is_open_when_the_daemon_is_stopped_at_its_start_is_finished_by_the_next(
    daemon: DaemonProcess, tmp_path: Path, root: Path
) -> None:
    session = "20260101-000001-aaaaaaaaaaaa"
    daemon.record(session, opening_fact(root, scripted(tmp_path / "read.jsonl", READ, DONE)), TurnStarted(1, "go"))
    daemon.prelude = STOPPED_WHEN_READY
    daemon.start()
    assert ends_leaving_open(daemon, session, Family([]))
    daemon.prelude = ""
    with daemon, daemon.client() as client:
        client.load(session)
        client.request(extensions.CONTINUE_METHOD, {"sessionId": session})
    assert ends(daemon, session) == ["ok"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_question_that_nobody_is_there_to_answer_does_not_hold_up_the_end_and_stays_open(
    daemon: DaemonProcess, model: str, root: Path, number: signal.Signals
) -> None:
    daemon.start()
    with daemon.client() as client, daemon.client() as other:
        session, _, _ = client.ask(root, model)
        client.close()
        until_alone(other)
        family = daemon.family()
        daemon.signal(number)
        assert ends_leaving_open(daemon, session, family)


def test_a_question_does_not_hold_up_the_end_any_longer_when_everybody_has_left(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    daemon.start()
    with daemon.client() as client, daemon.client() as other:
        session, _, _ = client.ask(root, model)
        family = daemon.family()
        daemon.terminate()
        until_stopping(other)
        client.close()
        assert ends_leaving_open(daemon, session, family)


def test_a_question_that_was_not_answered_is_asked_again_by_the_next_daemon(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    daemon.start()
    with daemon.client() as client, daemon.client() as other:
        session, _, _ = client.ask(root, model)
        client.close()
        until_alone(other)
        daemon.terminate()
        assert daemon.wait() == 0
    with daemon, daemon.client() as client:
        client.load(session)
        question = client.until(ASK)
        assert question["params"]["toolCall"]["rawInput"] == {"path": "b.txt", "content": "x"}
        end = client.begin(extensions.CONTINUE_METHOD, {"sessionId": session})
        client.allow(question)
        assert client.ends_turn(end)
    assert ends(daemon, session) == ["ok"]
    assert (root / "b.txt").read_text() == "x"


def test_who_is_there_may_still_answer_a_question_while_the_daemon_stops(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    daemon.start()
    with daemon.client() as client:
        session, prompt, question = client.ask(root, model)
        family = daemon.family()
        daemon.terminate()
        until_stopping(client)
        found = running(load({"STRONGROOM_HOME": str(daemon.home)}))
        assert found is not None
        assert (found.pid, found.socket) == (daemon.pid, "")  # so that clients are told the truth
        client.allow(question)
        assert client.ends_turn(prompt)
        assert daemon.wait() == 0
    assert family.is_gone()
    assert ends(daemon, session) == ["ok"]


def test_a_question_that_is_not_answered_in_time_stays_open(daemon: DaemonProcess, model: str, root: Path) -> None:
    daemon.configure(f"[daemon]\ndrain_s = 0.05\n{ASKING}")
    daemon.start()
    with daemon.client() as client:
        session, prompt, _ = client.ask(root, model)
        family = daemon.family()
        daemon.terminate()
        assert "error" in client.answer(prompt)
        assert ends_leaving_open(daemon, session, family)
