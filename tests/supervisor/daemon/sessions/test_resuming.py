"""Sessions that are taken up again: after a crash by the daemon itself, later by whoever loads them."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import CallEnded, Fact, SessionOpened, TurnEnded, TurnStarted
from supervisor.journal.journal import open_journal
from supervisor.session.leases import Leases
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.forked import ForkedStrongroom
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import call, fault_in_facts
from workers.wire.messages import Context

TOOLS: Final = ("read_file", "write_file", "list_directory")
CONFIG: Final = """
[profiles.asking]
root = "."
tools = ["read_file", "write_file"]
ask = ["write_file"]

[profiles.nowhere]
root = "~nosuchuser/x"
tools = ["read_file"]
"""
DONE: Final = {"text": "Done."}

KEYLESS: Final = [f"20260101-00000{number}-aaaaaaaaaaaa" for number in range(4)]
"""Their model needs a key that is not there any more."""
BEFORE: Final = "20260101-000004-aaaaaaaaaaaa"
NOWHERE: Final = "20260101-000005-aaaaaaaaaaaa"
"""What its profile has as root by now cannot be found out."""
GONE: Final = "20260101-000009-aaaaaaaaaaaa"
"""Its profile is there no more."""
AFTER: Final = "20260101-000006-aaaaaaaaaaaa"
UNATTENDED: Final = "20260101-000007-aaaaaaaaaaaa"
"""It was opened for nobody who could be asked, and is about to ask."""
MOVED: Final = "20260101-000008-aaaaaaaaaaaa"
"""Its root has become a link to somewhere else."""


def opened(root: Path, model: str, profile: str = "project", *, attended: bool = True) -> SessionOpened:
    context = Context(working_directory=str(root))
    return SessionOpened(profile, model, context, TOOLS, "acp", "0", (), str(root), attended)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """A daemon whose predecessor was killed in the middle of many turns."""
    folder = tmp_path_factory.mktemp("taking_up")
    home, root, moved, secret = (folder / name for name in ("home", "root", "moved", "secret"))
    home.mkdir(mode=0o700)
    root.mkdir()
    secret.mkdir()
    (root / "a.txt").write_text("hello\n")
    (home / "config.toml").write_text(CONFIG)
    reading = scripted(folder / "read.jsonl", {"calls": [call("read_file", path="a.txt")]}, DONE)
    writing = scripted(folder / "write.jsonl", {"calls": [call("write_file", path="b.txt", content="x")]}, DONE)
    go = TurnStarted(1, "go")
    left: dict[str, list[Fact]] = {
        **{session: [opened(root, "claude-test"), go] for session in KEYLESS},
        BEFORE: [opened(root, reading), go],
        NOWHERE: [opened(root, reading, "nowhere"), go],
        GONE: [opened(root, reading, "gone"), go],
        AFTER: [opened(root, reading), go],
        UNATTENDED: [opened(root, writing, "asking", attended=False), go],
        MOVED: [opened(moved, "offline"), go, TurnEnded(1, "ok", "Done.")],
    }
    moved.symlink_to(secret)
    with open_journal(home / "journal.db") as journal:
        for session, facts in left.items():
            journal.append(session, *facts)
    with DaemonProcess(home, folder) as running:
        yield running
    assert "internal error" not in running.log
    assert "background task failed" not in running.log


def until_logged(daemon: DaemonProcess, client: Lines, session: str) -> None:
    """Wait until the daemon has given up a session's turn, and said so."""
    deadline = time.monotonic() + HANG_GUARD
    while session not in daemon.log:
        client.request(extensions.STATUS_METHOD, {})
        assert time.monotonic() < deadline, daemon.log


def until_ended(daemon: DaemonProcess, client: Lines, session: str) -> list[Fact]:
    """Wait until the daemon has resumed a session by itself; return its facts."""
    deadline = time.monotonic() + HANG_GUARD
    while time.monotonic() < deadline:
        client.request(extensions.STATUS_METHOD, {})
        facts = daemon.sessions[session]
        if any(isinstance(fact, TurnEnded) for fact in facts):
            return facts
    raise AssertionError(daemon.log)


def named(session: str) -> dict[str, Any]:
    return {"sessionId": session, "cwd": "/", "mcpServers": []}


def new(cwd: Path, **options: Any) -> dict[str, Any]:
    return {"cwd": str(cwd), "mcpServers": [], "_meta": {extensions.OPTIONS: {"model": "offline", **options}}}


# --- a model that cannot be opened any more ---------------------------------------------------------------------------


def test_a_turn_whose_model_has_no_key_any_more_is_left_open_and_logged(daemon: DaemonProcess) -> None:
    with daemon.client() as client:
        until_logged(daemon, client, KEYLESS[0])
        until_ended(daemon, client, BEFORE)
    assert [type(fact) for fact in daemon.sessions[KEYLESS[0]]] == [SessionOpened, TurnStarted]


def test_who_loads_a_session_whose_model_has_no_key_any_more_is_told_so(daemon: DaemonProcess) -> None:
    with daemon.client() as client:
        until_logged(daemon, client, KEYLESS[1])
        (notice,) = client.request("session/load", named(KEYLESS[1]))["_meta"][extensions.OPTIONS]["notices"]
        assert "ANTHROPIC_API_KEY" in notice


def test_a_turn_whose_model_has_no_key_any_more_is_not_gone_on_with(daemon: DaemonProcess) -> None:
    with daemon.client() as client:
        until_logged(daemon, client, KEYLESS[2])
        client.request("session/load", named(KEYLESS[2]))
        refused = client.refused(extensions.CONTINUE_METHOD, {"sessionId": KEYLESS[2]})
        assert refused["data"]["kind"] == "config"
    assert [type(fact) for fact in daemon.sessions[KEYLESS[2]]] == [SessionOpened, TurnStarted]


def test_a_new_prompt_ends_the_turn_whose_model_has_no_key_and_the_offline_model_answers_it(
    daemon: DaemonProcess,
) -> None:
    with daemon.client() as client:
        until_logged(daemon, client, KEYLESS[3])
        client.request("session/load", named(KEYLESS[3]))
        assert client.prompt(KEYLESS[3], "read a.txt")["stopReason"] == "end_turn"
    facts = daemon.sessions[KEYLESS[3]]
    ends = [fact for fact in facts if isinstance(fact, TurnEnded)]
    assert [(end.turn, end.status, end.kind) for end in ends] == [(1, "error", "interrupted"), (2, "ok", "")]
    assert [fact.tool for fact in facts if isinstance(fact, CallEnded) and fact.ok] == ["read_file"]
    assert fault_in_facts(facts) is None


# --- a session that cannot be taken up --------------------------------------------------------------------------------


@pytest.mark.parametrize("session", [BEFORE, AFTER])
def test_one_session_that_cannot_be_taken_up_does_not_keep_others_from_it(daemon: DaemonProcess, session: str) -> None:
    with daemon.client() as client:
        facts = until_ended(daemon, client, session)
        until_logged(daemon, client, GONE)
    assert [fact.status for fact in facts if isinstance(fact, TurnEnded)] == ["ok"]
    assert [type(fact) for fact in daemon.sessions[GONE]] == [SessionOpened, TurnStarted]


def test_a_root_of_a_user_that_does_not_exist_is_refused(daemon: DaemonProcess, root: Path) -> None:
    with daemon.client() as client:
        assert client.refused("session/new", new(root, profile="nowhere"))["data"]["kind"] == "config"


def test_a_session_that_another_process_has_keeps_nobody_from_the_others(daemon: DaemonProcess, root: Path) -> None:
    with daemon.client() as waiting, daemon.client() as other, Leases.open(daemon.home) as leases:
        sessions = [other.new_session(root, model="offline") for _ in range(2)]
        for session in sessions:
            other.request("session/close", {"sessionId": session})
        assert leases.acquire(sessions[0])
        number = waiting.begin("session/resume", named(sessions[0]))
        waiting.request(extensions.STATUS_METHOD, {})  # so the daemon has it
        other.request("session/load", named(sessions[1]))
        leases.release(sessions[0])
        assert "result" in waiting.answer(number)  # it still waits when the other has its session


# --- nobody to be asked -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attended", [True, False])
def test_whether_somebody_is_there_to_be_asked_is_recorded(daemon: DaemonProcess, root: Path, attended: bool) -> None:
    with daemon.client() as client:
        session = client.new_session(root, model="offline", attended=attended)
    (fact,) = daemon.sessions[session]
    assert isinstance(fact, SessionOpened)
    assert fact.attended == attended


def test_in_a_session_that_was_opened_for_nobody_nobody_is_asked_after_a_crash(daemon: DaemonProcess) -> None:
    with daemon.client() as client:
        facts = until_ended(daemon, client, UNATTENDED)
    assert [fact.kind for fact in facts if isinstance(fact, CallEnded)] == ["denied"]
    assert [fact.status for fact in facts if isinstance(fact, TurnEnded)] == ["ok"]
    assert fault_in_facts(facts) is None
    assert not (daemon.folder / "root" / "b.txt").exists()


# --- links ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def leading_out(tmp_path: Path) -> Path:
    """A directory whose `vault` is a link to another one."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.txt").write_text("hello\n")
    (folder / "vault").symlink_to("../secret")
    return folder


def test_a_link_in_the_client_s_directory_does_not_lead_the_agent_out_of_it(
    daemon: DaemonProcess, leading_out: Path
) -> None:
    with daemon.client() as client:
        refused = client.refused("session/new", new(leading_out))
        assert refused["data"]["kind"] == "config"
        assert "--root" in refused["message"]


def test_a_link_that_stays_in_the_client_s_directory_is_followed(daemon: DaemonProcess, leading_out: Path) -> None:
    (leading_out / "notes").mkdir()
    (leading_out / "vault").unlink()
    (leading_out / "vault").symlink_to("notes")
    with daemon.client() as client:
        result = client.request("session/new", new(leading_out))
        assert result["_meta"][extensions.OPTIONS]["root"] == str(leading_out / "notes")


def test_a_link_that_somebody_names_is_followed(daemon: DaemonProcess, leading_out: Path) -> None:
    with daemon.client() as client:
        result = client.request("session/new", new(leading_out, root=str(leading_out / "vault")))
        assert result["_meta"][extensions.OPTIONS]["root"] == str(leading_out.parent / "secret")


def test_a_single_call_is_not_led_out_of_the_current_directory_either(home: Path, leading_out: Path) -> None:
    done = ForkedStrongroom(home, leading_out).run("call", "read_file", '{"path": "a.txt"}')
    assert done.code == 2
    assert "--root" in done.err
    assert "hello" not in done.out


def test_a_root_that_has_become_a_link_to_somewhere_else_is_refused(daemon: DaemonProcess) -> None:
    with daemon.client() as client:
        assert client.refused("session/load", named(MOVED))["data"]["kind"] == "config"
