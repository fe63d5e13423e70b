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
    looks = 'root = "."\ntools = ["run_cmd"]'
    hosts = f'{looks}\nview = "machine"\nnetwork = ["packages.example:443"]'
    stopped.configure(f"[profiles.looks]\n{looks}\n[profiles.hosts]\n{hosts}\n")
    (stopped.folder / "root").mkdir()
    return stopped.folder / "root"


@pytest.fixture(scope="module")
def client(root: Path, daemon: DaemonProcess) -> Iterator[Lines]:
    with daemon.client(**OURS) as lines:
        yield lines


LEFT: Final[dict[str, Any]] = {}
REAL: Final[dict[str, Any]] = {"_strongroom/unconfined": True}


def asked_and_run(
    client: Lines, session: str, command: str, refused: dict[str, Any] | None = None, **meta: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a command with a yes to its text; return the question's review, and the result.

    `refused` is what is said where it is offered afterwards to run it on the real system.
    """
    number = client.begin_tool(session, "run_cmd", command=command)
    asked = client.until(ASK)
    client.choose(asked, "allow_once", **meta)
    if refused is not None:
        again = client.until(ASK)
        told = again["params"]["_meta"]["_strongroom/review"]
        assert (told["stage"], told["escalation"], told["editable"]) == ("refused", True, False)
        client.choose(again, "allow_once", **refused)
    answer = client.answer(number)["result"]["answer"]
    return asked["params"]["_meta"]["_strongroom/review"], answer["content"]


def view(client: Lines, profile: str, root: str) -> str:
    pools = client.status()["pools"]
    return str(next(each for each in pools if (each["profile"], each["root"]) == (profile, root)).get("view", ""))


def test_the_operator_sees_the_machine_and_is_told_so(client: Lines, root: Path) -> None:
    session = client.new_session(root, profile="operator", model="offline")
    command = f"cat /proc/{os.getpid()}/comm /proc/{os.getpid()}/environ"
    review, result = asked_and_run(client, session, command, LEFT)
    assert "it sees this machine and can change nothing outside of the root" in review["reason"]
    assert review["escalation"]
    assert result["stdout"] == Path("/proc/self/comm").read_text()
    assert "ermission denied" in result["stderr"]
    assert view(client, "operator", str(root)) == "machine"


def test_what_strongroom_keeps_is_hidden(client: Lines, root: Path, daemon: DaemonProcess) -> None:
    session = client.new_session(root, profile="operator", model="offline")
    _, result = asked_and_run(client, session, f"cat {daemon.home}/config.toml {daemon.home}/journal.db; exit 1")
    assert (result["stdout"], result["exit_code"]) == ("", 1)


def test_another_profile_does_not_and_is_offered_no_way_out(client: Lines, root: Path) -> None:
    session = client.new_session(root, profile="looks", model="offline")
    review, result = asked_and_run(client, session, f"cat /proc/{os.getpid()}/comm; ls /var/log")
    assert review["reason"].endswith("; it sees the root and programs alone")
    assert not review.get("escalation", False)
    assert result["stdout"] == ""
    assert view(client, "looks", str(root)) == "private"


@pytest.mark.parametrize("meta", [{}, {"_strongroom/unconfined": False}])
def test_of_the_whole_machine_nothing_can_be_changed(meta: dict[str, Any], client: Lines) -> None:
    opened = client.opened(Path("/"), profile="operator", model="offline")
    assert opened["tools"] == ["run_cmd", "recall", "read_skill"]
    review, result = asked_and_run(client, opened["sessionId"], TOUCH, LEFT, **meta)
    assert "it sees this machine and can change nothing" in review["reason"]
    assert "the root" not in review["reason"]
    assert result["exit_code"] == 1
    assert not any(os.path.exists(each) for each in TOUCH.split()[1:])


def test_what_a_person_lets_run_on_the_real_system_runs_there(client: Lines, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    session = client.new_session(root, profile="operator", model="offline")
    review, _ = asked_and_run(client, session, f"touch {outside}", **REAL)
    assert review["escalation"]
    assert outside.exists()


ONLY_REALLY: Final = "test -e {} && echo real || touch /usr/strongroom-door"


@pytest.mark.parametrize("whole", [True, False], ids=["/", "a directory"])
def test_what_was_refused_is_offered_on_the_real_system_and_done_there_once(
    whole: bool, client: Lines, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").touch()
    session = client.new_session(Path("/") if whole else root, profile="operator", model="offline")
    command = ONLY_REALLY.format(tmp_path / "outside")
    _, result = asked_and_run(client, session, command, LEFT)
    assert "Read-only file system" in result["stderr"]
    _, result = asked_and_run(client, session, command, REAL)
    assert result["stdout"] == "real\n"


def test_whoever_cannot_say_so_is_not_offered_it(root: Path, daemon: DaemonProcess) -> None:
    with daemon.client() as client:
        session = client.new_session(root, profile="operator", model="offline")
        _, result = asked_and_run(client, session, "touch /usr/strongroom-door")
    assert result["exit_code"] == 1


def test_with_a_network_it_does_not_see_the_machine_either_and_may_be_let_out(client: Lines, root: Path) -> None:
    session = client.new_session(root, profile="hosts", model="offline")
    review, result = asked_and_run(client, session, f"cat /proc/{os.getpid()}/comm")
    assert review["reason"].endswith("alone, for the profile names hosts in `network`")
    assert (review["escalation"], result["stdout"]) == (True, "")
