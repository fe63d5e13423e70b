"""Remedies of `strongroom doctor` where the sandbox for commands cannot be made."""

from pathlib import Path

import pytest

from supervisor.doctor.namespaces import namespace_remedy
from tests.supervisor.command import Strongroom
from tests.supervisor.doctor.test_checks import without
from workers import kernel
from workers.confine.syscalls import NUMBERS

NO_NAMESPACES = str(NUMBERS[kernel.MACHINE]["unshare"])

APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
ROWS = [
    ({"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "sysctl -w kernel.unprivileged_userns_clone=1"),
    ({"/proc/sys/user/max_user_namespaces": "0"}, "sysctl -w user.max_user_namespaces="),
    ({APPARMOR: "1"}, "userns,"),
    ({APPARMOR: "1"}, "profile strongroom /opt/python flags=(unconfined)"),
    ({APPARMOR: "1"}, "apparmor_parser -r"),
    ({"/.dockerenv": ""}, "--security-opt seccomp=unconfined"),
    ({"/run/.containerenv": ""}, "--security-opt systempaths=unconfined"),
    ({APPARMOR: "0"}, "unshare --user"),
    ({}, "unshare --user"),
]


@pytest.mark.parametrize(("found", "words"), ROWS)
def test_the_advice_fits_what_is_found(found: dict[str, str], words: str) -> None:
    assert words in "\n".join(namespace_remedy(found, "/opt/python"))


def test_what_is_allowed_is_not_advised_about() -> None:
    found = {APPARMOR: "0", "/proc/sys/user/max_user_namespaces": "96365", "/.dockerenv": ""}
    said = "\n".join(namespace_remedy(found, "/opt/python"))
    assert "sysctl" not in said
    assert "profile" not in said


def test_doctor_names_the_feature_and_says_what_to_do(strongroom: Strongroom) -> None:
    done = strongroom.run("doctor", "--json", wrapper=without(NO_NAMESPACES))
    finding = next(finding for finding in done.json if finding["subject"] == "shell worker")
    assert done.code == 1
    assert finding["verdict"] == "missing"
    assert "sandbox" in finding["detail"]
    assert "Commands do not run here" in finding["advice"]


def test_a_command_is_not_run_bare_and_the_answer_says_why(strongroom: Strongroom, root: Path) -> None:
    arguments = ("call", "--approve", "--profile", "operator", "run_cmd", '{"command": "touch made"}', "--root", "root")
    done = strongroom.run(*arguments, wrapper=without(NO_NAMESPACES))
    assert done.json["error"]["kind"] == "worker_unavailable"
    assert "sandbox" in done.json["error"]["message"]
    assert not (root / "made").exists()


def test_the_list_of_tools_says_what_cannot_work_here(strongroom: Strongroom) -> None:
    arguments = ("tools", "--profile", "operator", "--json")
    found = strongroom.run(*arguments, wrapper=without(NO_NAMESPACES)).json
    assert [tool["name"] for tool in found["tools"]] == ["read_file", "list_directory"]
    assert list(found["absent"]) == ["run_cmd"]
    assert "sandbox" in found["absent"]["run_cmd"]


def test_nobody_to_ask_is_a_no(strongroom: Strongroom, root: Path) -> None:
    arguments = ("call", "--profile", "operator", "run_cmd", '{"command": "touch made"}', "--root", "root")
    assert strongroom.run(*arguments).json["error"]["kind"] == "denied"
    assert not (root / "made").exists()
