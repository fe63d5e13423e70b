"""Sessions that are taken up again: after a crash by the daemon itself, later by whoever loads them."""

from pathlib import Path
from typing import Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import CallEnded, Fact, SessionOpened, TurnEnded, TurnStarted
from supervisor.session.leases import Leases
from tests.daemon_process import ASK, DaemonProcess, Lines, named, opening, scripted
from tests.forked import ForkedStrongroom
from tests.supervisor.command import wait_until
from tests.supervisor.histories import ASKING, DONE, READ, call, fault_in_facts, opening_fact

TOOLS: Final = ("read_file", "write_file", "list_directory")
CONFIG: Final = f"{ASKING}[profiles.nowhere]\nroot = '~nosuchuser/x'\ntools = ['read_file']\n"

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
    return opening_fact(root, model, profile, *TOOLS, attended=attended)


@pytest.fixture(scope="module", autouse=True)
def _left(stopped: DaemonProcess) -> None:
    """A predecessor was killed in the middle of many turns."""
    root, moved, secret = (stopped.folder / name for name in ("root", "moved", "secret"))
    root.mkdir()
    secret.mkdir()
    (root / "a.txt").write_text("hello\n")
    reading = scripted(stopped.folder / "read.jsonl", READ, DONE)
    writing = [call("write_file", path="b.txt", content="x")]
    writing_model = scripted(stopped.folder / "write.jsonl", {"calls": writing}, DONE)
    go = TurnStarted(1, "go")
    left: dict[str, list[Fact]] = {
        **{session: [opened(root, "claude-test"), go] for session in KEYLESS},
        BEFORE: [opened(root, reading), go],
        NOWHERE: [opened(root, reading, "nowhere"), go],
        GONE: [opened(root, reading, "gone"), go],
        AFTER: [opened(root, reading), go],
        UNATTENDED: [opened(root, writing_model, "asking", attended=False), go],
        MOVED: [opened(moved, "offline"), go, TurnEnded(1, "ok", "Done.")],
    }
    moved.symlink_to(secret)
    for session, facts in left.items():
        stopped.record(session, *facts)


def until_logged(daemon: DaemonProcess, client: Lines, session: str) -> None:
    """Wait until the daemon has given up a session's turn, and said so."""
    wait_until(lambda: client.status() and session in daemon.log, lambda: daemon.log)


def until_ended(daemon: DaemonProcess, client: Lines, session: str) -> list[str]:
    """Wait until the daemon has resumed a session by itself; return how its turns ended."""
    wait_until(lambda: client.status() and daemon.facts_of(session, TurnEnded), lambda: daemon.log)
    return [fact.status for fact in daemon.facts_of(session, TurnEnded)]


# --- a model that cannot be opened any more ---------------------------------------------------------------------------


def test_a_turn_whose_model_has_no_key_any_more_is_left_open_and_logged(daemon: DaemonProcess, client: Lines) -> None:
    until_logged(daemon, client, KEYLESS[0])
    until_ended(daemon, client, BEFORE)
    assert [type(fact) for fact in daemon.sessions[KEYLESS[0]]] == [SessionOpened, TurnStarted]


def test_loading_a_session_whose_model_has_no_key_any_more_says_so(daemon: DaemonProcess, client: Lines) -> None:
    until_logged(daemon, client, KEYLESS[1])
    (notice,) = client.load(KEYLESS[1])["_meta"][extensions.OPTIONS]["notices"]
    assert "ANTHROPIC_API_KEY" in notice


def test_a_turn_whose_model_has_no_key_any_more_is_not_gone_on_with(daemon: DaemonProcess, client: Lines) -> None:
    until_logged(daemon, client, KEYLESS[2])
    client.load(KEYLESS[2])
    refused = client.refused(extensions.CONTINUE_METHOD, {"sessionId": KEYLESS[2]})
    assert refused["data"]["kind"] == "config"
    assert [type(fact) for fact in daemon.sessions[KEYLESS[2]]] == [SessionOpened, TurnStarted]


def test_a_new_prompt_ends_the_turn_whose_model_has_no_key_and_the_offline_model_answers_it(
    daemon: DaemonProcess, client: Lines
) -> None:
    until_logged(daemon, client, KEYLESS[3])
    client.load(KEYLESS[3])
    assert client.prompt(KEYLESS[3], "read a.txt")["stopReason"] == "end_turn"
    ends = [(end.turn, end.status, end.kind) for end in daemon.facts_of(KEYLESS[3], TurnEnded)]
    assert ends == [(1, "error", "interrupted"), (2, "ok", "")]
    assert [fact.tool for fact in daemon.facts_of(KEYLESS[3], CallEnded) if fact.ok] == ["read_file"]
    assert fault_in_facts(daemon.sessions[KEYLESS[3]]) is None


# --- a session that cannot be taken up --------------------------------------------------------------------------------


@pytest.mark.parametrize("session", [BEFORE, AFTER])
def test_one_session_that_cannot_be_taken_up_does_not_keep_others_from_it(
    daemon: DaemonProcess, client: Lines, session: str
) -> None:
    assert until_ended(daemon, client, session) == ["ok"]
    until_logged(daemon, client, GONE)
    assert [type(fact) for fact in daemon.sessions[GONE]] == [SessionOpened, TurnStarted]


def test_a_root_of_a_user_that_does_not_exist_is_refused(client: Lines, root: Path) -> None:
    assert client.refused("session/new", opening(root, profile="nowhere"))["data"]["kind"] == "config"


def test_a_session_that_another_process_has_keeps_nobody_from_the_others(daemon: DaemonProcess, root: Path) -> None:
    with daemon.client() as waiting, daemon.client() as other, Leases.open(daemon.home) as leases:
        sessions = [other.new_session(root, model="offline") for _ in range(2)]
        for session in sessions:
            other.request("session/close", {"sessionId": session})
        assert leases.acquire(sessions[0])
        number = waiting.begin("session/resume", named(sessions[0]))
        waiting.status()  # so the daemon has it
        other.load(sessions[1])
        leases.release(sessions[0])
        assert "result" in waiting.answer(number)  # it still waits when the other has its session


# --- nobody to be asked -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attended", [True, False])
def test_the_presence_of_somebody_to_ask_is_recorded(
    daemon: DaemonProcess, client: Lines, root: Path, attended: bool
) -> None:
    session = client.new_session(root, model="offline", attended=attended)
    assert [fact.attended for fact in daemon.facts_of(session, SessionOpened)] == [attended]


def test_in_a_session_that_was_opened_for_nobody_nobody_is_asked_after_a_crash(
    daemon: DaemonProcess, client: Lines
) -> None:
    assert until_ended(daemon, client, UNATTENDED) == ["ok"]
    assert [fact.kind for fact in daemon.facts_of(UNATTENDED, CallEnded)] == ["denied"]
    assert fault_in_facts(daemon.sessions[UNATTENDED]) is None
    assert not (daemon.folder / "root" / "b.txt").exists()


def test_who_opens_again_what_was_opened_for_nobody_is_asked(daemon: DaemonProcess, client: Lines) -> None:
    model = f"scripted:{daemon.folder / 'write.jsonl'}"
    with daemon.client() as alone:
        session = alone.new_session(daemon.folder / "root", model=model, profile="asking", attended=False)
    wait_until(
        lambda: all(each["clients"] == 0 for each in client.status()["sessions"] if each["sessionId"] == session)
    )
    client.load(session)
    number = client.begin_prompt(session, "go")
    client.choose(client.until(ASK), "reject_once")
    assert client.ends_turn(number)


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


def test_a_link_in_the_client_s_directory_does_not_lead_the_agent_out_of_it(client: Lines, leading_out: Path) -> None:
    refused = client.refused("session/new", opening(leading_out, model="offline"))
    assert refused["data"]["kind"] == "config"
    assert "--root" in refused["message"]


def test_a_link_that_stays_in_the_client_s_directory_is_followed(client: Lines, leading_out: Path) -> None:
    (leading_out / "notes").mkdir()
    (leading_out / "vault").unlink()
    (leading_out / "vault").symlink_to("notes")
    assert client.opened(leading_out, model="offline")["root"] == str(leading_out / "notes")


def test_a_link_that_somebody_names_is_followed(client: Lines, leading_out: Path) -> None:
    facts = client.opened(leading_out, model="offline", root=str(leading_out / "vault"))
    assert facts["root"] == str(leading_out.parent / "secret")


def test_a_single_call_is_not_led_out_of_the_current_directory_either(home: Path, leading_out: Path) -> None:
    done = ForkedStrongroom(home, leading_out).run("call", "read_file", '{"path": "a.txt"}')
    assert done.code == 2
    assert "--root" in done.err
    assert "hello" not in done.out


def test_a_root_that_has_become_a_link_to_somewhere_else_is_refused(client: Lines) -> None:
    assert client.refused("session/load", named(MOVED))["data"]["kind"] == "config"
