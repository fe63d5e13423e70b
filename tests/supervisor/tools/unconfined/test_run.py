"""One command outside of the sandbox: what it is given, what it says, and that nothing of it stays."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from supervisor.config.settings import load
from supervisor.tools.services import ChangeServices
from supervisor.tools.unconfined.run import Outcome, run_unconfined
from tests.supervisor.command import CODE, HANG_GUARD, Family, ignored
from workers.wire import messages

SERVICES: Final = ChangeServices()

LONG: Final = "setsid sleep 99 & echo $!; sleep 98 & echo $!; (setsid sh -c 'sleep 97 & echo $!; wait' &); wait"
"""Prints the numbers of three processes, as far as it gets; each hides in a way of its own."""

GLIBCS_OWN: Final = 1 << 31 | 1 << 32
"""Signals 32 and 33, which its posix_spawn has a program ignore."""

OWNER: Final = """
import os, signal, sys, trio
from supervisor.system.descendants import Orphans
from supervisor.tools.services import ChangeServices
from supervisor.tools.unconfined.run import run_unconfined

async def main(deed, root, command):
    orphans = Orphans()
    def output(text):
        print(text, end="", flush=True)
        if deed == "sweep":
            orphans.sweep()
    answer = await run_unconfined("run_cmd", command, root, ChangeServices(orphans=orphans), output)
    print(getattr(answer, "kind", "done"), len(os.listdir("/proc/self/fd")))
    print(open(f"/proc/self/task/{os.getpid()}/children").read().split())

trio.run(main, *sys.argv[1:])
"""
"""A process that is a supervisor, as the daemon is, and runs one command unconfined."""


def unseen(_text: str) -> None:
    """Nobody watches."""


async def run(
    tool: str, root: Path, services: ChangeServices = SERVICES, output: Callable[[str], None] = unseen, **arguments: Any
) -> Outcome:
    with trio.fail_after(HANG_GUARD):
        return await run_unconfined(tool, json.dumps(arguments), str(root), services, output)


async def done(tool: str, root: Path, services: ChangeServices = SERVICES, **arguments: Any) -> dict[str, Any]:
    """Run what ends well, and return its content."""
    answer = await run(tool, root, services, **arguments)
    assert isinstance(answer, messages.Done)
    content: dict[str, Any] = json.loads(answer.content)
    return content


async def failed(tool: str, root: Path, services: ChangeServices = SERVICES, **arguments: Any) -> messages.Failed:
    answer = await run(tool, root, services, **arguments)
    assert isinstance(answer, messages.Failed)
    return answer


def numbers(text: str) -> list[int]:
    return [int(line) for line in text.split()]


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_its_output_is_shown_and_kept_with_its_exit_code(root: Path) -> None:
    shown: list[str] = []
    answer = await run("run_cmd", root, output=shown.append, command="cat a.txt; cat; echo wrong >&2; exit 3")
    assert isinstance(answer, messages.Done)
    assert json.loads(answer.content) == {"stdout": "hello\n", "stderr": "wrong\n", "exit_code": 3}
    assert (answer.form, answer.note) == ("json", "ran unconfined: the person said so")
    assert sorted("".join(shown).split()) == ["hello", "wrong"]


async def test_a_programs_arguments_are_given_as_they_are(root: Path) -> None:
    content = await done("exec_shell", root, command="printf", args=["%s|", "two words", "$HOME", "*"])
    assert content["stdout"] == "two words|$HOME|*|"


async def test_of_much_output_the_beginning_and_the_end_are_kept(root: Path) -> None:
    command = "echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo last"
    out = (await done("run_cmd", root, command=command))["stdout"]
    assert (out[:6], out[-5:]) == ("first\n", "last\n")
    assert "bytes left out" in out
    assert len(out) < 100_000


async def test_its_environment_is_the_persons_login_and_nothing_of_ours(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "bin").mkdir()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    login = load(
        {"ANTHROPIC_API_KEY": "secret", "PATH": f"{root}/bin:.::/usr/bin:/bin", "TZ": "UTC", "OTHER": "1"}
    ).login
    command = "env -0; ls /proc/self/fd | wc -l; id -u; grep -c secret /proc/$PPID/environ"
    content = await done("run_cmd", root, ChangeServices(login=dict(login)), command=command)
    *variables, rest = content["stdout"].split("\0")
    given = dict(each.split("=", 1) for each in variables)
    assert set(given) - {"_", "SHLVL"} == {
        *("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "TERM", "NO_COLOR", "GIT_TERMINAL_PROMPT", "PWD")
    }
    assert given["PATH"] == "/usr/bin:/bin"
    assert rest.split() == ["4", str(os.getuid()), "0"]  # three, and the one with which ls reads the directory


FAILURES: Final = [
    ("exec_shell", {"command": "no-such-program"}, "not_found"),
    ("exec_shell", {"command": "./a.txt"}, "permission_denied"),
    ("exec_shell", {"command": "ls", "args": ["a\0b"]}, "invalid_arguments"),
    ("exec_shell", {"command": "ls", "args": ["x" * 2**17]}, "too_large"),
    ("exec_shell", {"command": "ls", "unconfined": True}, "invalid_arguments"),
    ("run_cmd", {"command": " "}, "invalid_arguments"),
    ("run_cmd", {}, "invalid_arguments"),
]


@pytest.mark.parametrize(("tool", "arguments", "kind"), FAILURES)
async def test_a_command_that_cannot_run_says_why(tool: str, arguments: dict[str, Any], kind: str, root: Path) -> None:
    assert (await failed(tool, root, **arguments)).kind == kind


async def test_a_root_that_is_gone_runs_nothing(tmp_path: Path) -> None:
    assert (await failed("run_cmd", tmp_path / "gone", command="true")).kind == "worker_unavailable"


async def test_a_timeout_ends_the_whole_tree_and_keeps_what_was_printed(root: Path) -> None:
    shown: list[str] = []
    services = ChangeServices(timeout_s=99, max_timeout_s=0.5)
    refused = await failed("run_cmd", root, services, command=LONG, timeout_s=1)
    assert (refused.kind, "0.5 s at most" in refused.message) == ("invalid_arguments", True)
    answer = await run("run_cmd", root, services, shown.append, command=LONG, timeout_s=0.5)
    assert isinstance(answer, messages.Failed)
    assert (answer.kind, answer.details["stdout"]) == ("timeout", "".join(shown))
    assert all(map(is_gone, numbers("".join(shown))))


async def test_its_processes_in_the_background_end_with_it(root: Path) -> None:
    (pid,) = numbers((await done("run_cmd", root, command="setsid sleep 99 & echo $!"))["stdout"])
    assert is_gone(pid)


async def test_it_ignores_no_signal_whoever_started_the_daemon(root: Path) -> None:
    with ignored(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        content = await done("run_cmd", root, command="grep SigIgn /proc/self/status")
    _, found = content["stdout"].split()
    assert int(found, 16) & ~GLIBCS_OWN == 0


@pytest.mark.parametrize("call", ["pidfd_open", "dup"])
async def test_without_a_descriptor_nothing_is_run(call: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither to begin with, nor for its end: then it would be too late."""
    before = len(os.listdir("/proc/self/fd"))

    def scarce(_of: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as without:
        without.setattr(os, call, scarce)
        answer = await failed("run_cmd", root, command="echo > made")
    assert answer.kind == "worker_unavailable"
    assert not (root / "made").exists()
    assert len(os.listdir("/proc/self/fd")) == before


async def test_cancelling_ends_the_whole_tree(root: Path) -> None:
    shown: list[str] = []
    with trio.fail_after(HANG_GUARD), trio.CancelScope() as scope:

        def output(text: str) -> None:
            shown.append(text)
            if len("".join(shown).split()) == 3:
                scope.cancel()

        await run("run_cmd", root, output=output, command=LONG)
    assert scope.cancelled_caught
    assert all(map(is_gone, numbers("".join(shown))))


def owner(deed: str, root: Path, command: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", OWNER, deed, str(root), json.dumps({"command": command})],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(CODE)},
        text=True,
    )


def test_nothing_outlives_the_supervisor_that_is_killed(root: Path) -> None:
    with owner("", root, f"echo $PPID; {LONG}") as process:
        assert process.stdout
        family = Family([int(process.stdout.readline()) for _ in range(4)])
        process.kill()
    assert family.is_gone()


ENDS: Final = [
    ("sweep", "echo here; true", ["here", "done"]),
    ("", "setsid sleep 99 & kill -9 $PPID; sleep 99", ["outcome_unknown"]),
]


@pytest.mark.parametrize(("deed", "command", "said"), ENDS, ids=["orphans are swept meanwhile", "it kills its warden"])
def test_the_supervisor_knows_what_is_its_own(deed: str, command: str, said: list[str], root: Path) -> None:
    with owner(deed, root, command) as process:
        out, _ = process.communicate(timeout=HANG_GUARD)
    *words, descriptors, children = out.split()
    assert words == said
    assert children == "[]"
    assert process.returncode == 0
    assert int(descriptors) < 20
