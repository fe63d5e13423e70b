"""The daemon is told to stop: what waits for a person, or for the next daemon, stays as it is."""

import signal
import time
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.config.settings import load as load_settings
from supervisor.daemon.process.lock import running
from supervisor.journal.facts import CallEnded, SessionOpened, TurnEnded, TurnStarted
from supervisor.journal.journal import open_journal
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import call, fault_in_facts
from workers.wire.messages import Context

CONFIG: Final = """
[daemon]
drain_s = {drain_s}

[profiles.asking]
root = "."
tools = ["read_file", "write_file"]
ask = ["write_file"]
"""
YES: Final = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
ASK: Final = "session/request_permission"

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
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG.format(drain_s=600))
    return DaemonProcess(home, tmp_path)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model that writes a file, which is asked about."""
    calls = [call("write_file", path="b.txt", content="x")]
    return scripted(tmp_path / "ask.jsonl", {"calls": calls}, {"text": "Done."})


def load(client: Lines, session: str) -> Any:
    return client.request("session/load", {"sessionId": session, "cwd": "/", "mcpServers": []})


def asked(client: Lines, root: Path, model: str) -> tuple[str, int, dict[str, Any]]:
    """Begin a turn and wait for its question; return the session, the prompt's id and the question."""
    session = client.new_session(root, model=model, profile="asking")
    prompt = client.begin_prompt(session, "go")
    return session, prompt, client.until(ASK)


def until_alone(client: Lines) -> None:
    """Wait until `client` is the only one."""
    deadline = time.monotonic() + HANG_GUARD
    while client.request(extensions.STATUS_METHOD, {})["clients"] > 1:
        assert time.monotonic() < deadline


def until_stopping(client: Lines) -> None:
    """Wait until the daemon begins nothing new."""
    deadline = time.monotonic() + HANG_GUARD
    while client.refused("session/resume", {"sessionId": "x", "cwd": "/"})["data"]["kind"] != "stopping":
        assert time.monotonic() < deadline


def is_open(daemon: DaemonProcess, session: str) -> bool:
    """Say whether a session's turn has no end, and nothing says that a call of it was decided."""
    return not any(isinstance(fact, TurnEnded | CallEnded) for fact in daemon.sessions[session])


def test_a_turn_that_is_open_when_the_daemon_is_stopped_at_its_start_is_finished_by_the_next(
    daemon: DaemonProcess, tmp_path: Path, root: Path
) -> None:
    session = "20260101-000001-aaaaaaaaaaaa"
    reading = scripted(tmp_path / "read.jsonl", {"calls": [call("read_file", path="a.txt")]}, {"text": "Done."})
    context = Context(working_directory=str(root))
    opened = SessionOpened("project", reading, context, ("read_file",), "acp", "0", cwd=str(root))
    with open_journal(daemon.home / "journal.db") as journal:
        journal.append(session, opened, TurnStarted(1, "go"))
    daemon.prelude = STOPPED_WHEN_READY
    daemon.start()
    assert daemon.wait() == 0
    assert is_open(daemon, session)
    daemon.prelude = ""
    with daemon, daemon.client() as client:
        load(client, session)
        client.request(extensions.CONTINUE_METHOD, {"sessionId": session})
    facts = daemon.sessions[session]
    assert [fact.status for fact in facts if isinstance(fact, TurnEnded)] == ["ok"]
    assert fault_in_facts(facts) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_question_that_nobody_is_there_to_answer_does_not_hold_up_the_end_and_stays_open(
    daemon: DaemonProcess, model: str, root: Path, number: signal.Signals
) -> None:
    daemon.start()
    with daemon.client() as client, daemon.client() as other:
        session, _, _ = asked(client, root, model)
        client.close()
        until_alone(other)
        family = daemon.family()
        daemon.signal(number)
        assert daemon.wait() == 0
    assert family.is_gone()
    assert is_open(daemon, session)


def test_a_question_does_not_hold_up_the_end_any_longer_when_everybody_has_left(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    daemon.start()
    with daemon.client() as client, daemon.client() as other:
        session, _, _ = asked(client, root, model)
        family = daemon.family()
        daemon.terminate()
        until_stopping(other)
        client.close()
        assert daemon.wait() == 0
    assert family.is_gone()
    assert is_open(daemon, session)


def test_a_question_that_was_not_answered_is_asked_again_by_the_next_daemon(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    daemon.start()
    with daemon.client() as client, daemon.client() as other:
        session, _, _ = asked(client, root, model)
        client.close()
        until_alone(other)
        daemon.terminate()
        assert daemon.wait() == 0
    with daemon, daemon.client() as client:
        load(client, session)
        question = client.until(ASK)
        assert question["params"]["toolCall"]["rawInput"] == {"path": "b.txt", "content": "x"}
        end = client.begin(extensions.CONTINUE_METHOD, {"sessionId": session})
        client.reply(question, YES)
        assert client.answer(end)["result"]["stopReason"] == "end_turn"
    facts = daemon.sessions[session]
    assert [fact.status for fact in facts if isinstance(fact, TurnEnded)] == ["ok"]
    assert fault_in_facts(facts) is None
    assert (root / "b.txt").read_text() == "x"


def test_who_is_there_may_still_answer_a_question_while_the_daemon_stops(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    daemon.start()
    with daemon.client() as client:
        session, prompt, question = asked(client, root, model)
        family = daemon.family()
        daemon.terminate()
        until_stopping(client)
        found = running(load_settings({"STRONGROOM_HOME": str(daemon.home)}))
        assert found is not None
        assert (found.pid, found.socket) == (daemon.pid, "")  # so that clients are told the truth
        client.reply(question, YES)
        assert client.answer(prompt)["result"]["stopReason"] == "end_turn"
        assert daemon.wait() == 0
    assert family.is_gone()
    assert [fact.status for fact in daemon.sessions[session] if isinstance(fact, TurnEnded)] == ["ok"]


def test_a_question_that_is_not_answered_in_time_stays_open(daemon: DaemonProcess, model: str, root: Path) -> None:
    (daemon.home / "config.toml").write_text(CONFIG.format(drain_s=0.05))
    daemon.start()
    with daemon.client() as client:
        session, prompt, _ = asked(client, root, model)
        family = daemon.family()
        daemon.terminate()
        assert "error" in client.answer(prompt)
        assert daemon.wait() == 0
    assert family.is_gone()
    assert is_open(daemon, session)
