"""A tool whose sandbox cannot be made here, nor a copy instead, is not there: its calls say why, nothing runs bare."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.journal.facts import SessionOpened
from tests.daemon_process import DaemonProcess, Lines
from workers import kernel
from workers.confine.syscalls import NUMBERS

CONFIG: Final = "[shell]\ncopy_mb = 0\n"
PRELUDE: Final = f"""
from workers import kernel
from workers.confine.seccomp import ALLOW, JUMP_EQUAL, LOAD, RETURN, Instruction, install
kernel.prctl("PR_SET_NO_NEW_PRIVS", 38, 1)
fails = Instruction(RETURN, 0, 0, 0x00050000 | 1)
unshare = Instruction(JUMP_EQUAL, 0, 1, {NUMBERS[kernel.MACHINE]["unshare"]})
install((Instruction(LOAD, 0, 0, 0), unshare, fails, Instruction(RETURN, 0, 0, ALLOW)))
"""
"""Runs the daemon on a kernel that gives it no namespaces: unshare(2) ends in EPERM."""


@pytest.fixture(scope="module")
def folder(stopped: DaemonProcess) -> Path:
    (stopped.folder / "root" / "vault").mkdir(parents=True)
    return stopped.folder


@pytest.fixture(scope="module")
def client(daemon: DaemonProcess) -> Iterator[Lines]:
    with daemon.client() as lines:
        yield lines


def opened(client: Lines, folder: Path, profile: str) -> dict[str, Any]:
    """Open a session; return what its client is told of it."""
    return client.opened(folder / "root", profile=profile, model="offline")


@pytest.mark.parametrize(("profile", "tool"), [("project", "exec_shell"), ("operator", "run_cmd")])
def test_a_session_has_no_such_tool_and_says_why(
    profile: str, tool: str, client: Lines, folder: Path, daemon: DaemonProcess
) -> None:
    facts = opened(client, folder, profile)
    assert tool not in facts["tools"]
    assert "read_file" in facts["tools"]
    (notice,) = facts["notices"]
    assert tool in notice
    assert "'sandbox' is unavailable (unshare: EPERM" in notice
    assert "`strongroom doctor`" in notice
    begun = daemon.sessions[facts["sessionId"]][0]
    assert isinstance(begun, SessionOpened)
    assert list(begun.tools) == facts["tools"]


def test_a_call_of_it_says_why_and_does_nothing(client: Lines, folder: Path) -> None:
    session = opened(client, folder, "project")["sessionId"]
    answer = client.call(session, "exec_shell", command="touch", args=["made"])
    assert answer["error"]["kind"] == "worker_unavailable"
    assert "'sandbox' is unavailable" in answer["error"]["message"]
    assert not (folder / "root" / "made").exists()
    assert client.call(session, "run_cmd", command="true")["error"]["kind"] == "unknown_tool"
    assert client.call(session, "list_directory", path=".")["ok"]


def test_a_session_that_goes_over_to_such_a_profile_is_not_offered_it_either(client: Lines, folder: Path) -> None:
    facts = opened(client, folder, "vault")
    assert "notices" not in facts
    session = facts["sessionId"]
    client.request("session/set_config_option", {"sessionId": session, "configId": "profile", "value": "project"})
    client.request("session/set_config_option", {"sessionId": session, "configId": "model", "value": "offline"})
    client.prompt(session, "/tools")
    said = client.updates(session)[-1]["content"]["text"]
    assert "- `read_file`\n" in said
    assert "- unavailable: `exec_shell`, whose workers refused to serve without sandbox" in said


def test_a_session_that_is_taken_up_again_is_looked_at_anew(client: Lines, folder: Path) -> None:
    session = opened(client, folder, "project")["sessionId"]
    client.request("session/close", {"sessionId": session})
    facts = client.resume(session)
    assert "exec_shell" not in facts["tools"]
    assert ["exec_shell" in notice for notice in facts["notices"]] == [True]


def test_a_profile_without_such_a_tool_starts_no_worker_for_it(client: Lines, folder: Path) -> None:
    (folder / "apart" / "root").mkdir(parents=True)
    opened(client, folder / "apart", "vault")
    pools = client.status()["pools"]
    assert {pool["category"] for pool in pools if pool["root"] == str(folder / "apart" / "root")} == {"files"}
