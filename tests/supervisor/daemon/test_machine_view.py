"""The profile `operator` in the real daemon: its question, what its commands see, and what nobody can change."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.daemon_process import ASK, DaemonProcess, Lines

OURS: Final = {"_meta": {"_strongroom/client": True}}
TOUCH: Final = "touch /etc/strongroom-door /strongroom-door"


@pytest.fixture(scope="module")
def root(stopped: DaemonProcess) -> Path:
    stopped.configure('[profiles.looks]\nroot = "."\ntools = ["run_cmd"]\n')
    (stopped.folder / "root").mkdir()
    return stopped.folder / "root"


@pytest.fixture(scope="module")
def client(root: Path, daemon: DaemonProcess) -> Iterator[Lines]:
    with daemon.client(**OURS) as lines:
        yield lines


def asked_and_run(client: Lines, session: str, command: str, **meta: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a command with a yes to its text; return the question's review, and the result."""
    number = client.begin_tool(session, "run_cmd", command=command)
    asked = client.until(ASK)
    client.choose(asked, "allow_once", **meta)
    answer = client.answer(number)["result"]["answer"]
    return asked["params"]["_meta"]["_strongroom/review"], answer["content"]


def view(client: Lines, profile: str, root: str) -> str:
    pools = client.status()["pools"]
    return str(next(each for each in pools if (each["profile"], each["root"]) == (profile, root)).get("view", ""))


def test_the_operator_sees_the_machine_and_is_told_so(client: Lines, root: Path) -> None:
    session = client.new_session(root, profile="operator", model="offline")
    review, result = asked_and_run(client, session, f"cat /proc/{os.getpid()}/comm /proc/{os.getpid()}/environ")
    assert "it sees this machine and can change nothing outside of the root" in review["reason"]
    assert review["escalation"]
    assert result["stdout"] == Path("/proc/self/comm").read_text()
    assert "ermission denied" in result["stderr"]
    assert view(client, "operator", str(root)) == "machine"


def test_what_strongroom_keeps_is_hidden(client: Lines, root: Path, daemon: DaemonProcess) -> None:
    session = client.new_session(root, profile="operator", model="offline")
    _, result = asked_and_run(client, session, f"cat {daemon.home}/config.toml {daemon.home}/journal.db")
    assert (result["stdout"], result["exit_code"]) == ("", 1)


def test_another_profile_does_not_and_is_offered_no_way_out(client: Lines, root: Path) -> None:
    session = client.new_session(root, profile="looks", model="offline")
    review, result = asked_and_run(client, session, f"cat /proc/{os.getpid()}/comm; ls /var/log")
    assert "machine" not in review["reason"]
    assert not review.get("escalation", False)
    assert result["stdout"] == ""
    assert view(client, "looks", str(root)) == "private"


@pytest.mark.parametrize("meta", [{}, {"_strongroom/unconfined": False}])
def test_of_the_whole_machine_nothing_can_be_changed(meta: dict[str, Any], client: Lines) -> None:
    opened = client.opened(Path("/"), profile="operator", model="offline")
    assert opened["tools"] == ["run_cmd"]
    review, result = asked_and_run(client, opened["sessionId"], TOUCH, **meta)
    assert "it sees this machine and can change nothing" in review["reason"]
    assert "the root" not in review["reason"]
    assert result["exit_code"] == 1
    assert not any(os.path.exists(each) for each in TOUCH.split()[1:])


def test_what_a_person_lets_run_on_the_real_system_runs_there(client: Lines, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    session = client.new_session(root, profile="operator", model="offline")
    review, _ = asked_and_run(client, session, f"touch {outside}", **{"_strongroom/unconfined": True})
    assert review["escalation"]
    assert outside.exists()
