"""The two tools, against a real worker: what they accept, what they answer, and what a command leaves behind."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.each_row import each_row
from tests.raw_worker import RawWorker, receive, send
from tests.workers.shell.conftest import LIMITS, open_shell, shell, write
from workers.shell.no_input import NOTE
from workers.shell.run.output import SHOWN_AT_ONCE
from workers.wire import messages


def program(name: str, *arguments: str) -> tuple[str, Any]:
    """Return the call that runs an allowed program."""
    return "exec_shell", {"command": name, "args": arguments}


def stdout(worker: RawWorker, name: str) -> str:
    return str(msgspec.json.decode(worker.done(*program(name)).content)["stdout"])


def test_a_result_has_both_streams_and_the_exit_code(worker: RawWorker) -> None:
    assert shell(worker, "echo out; echo err >&2; exit 3") == {"stdout": "out\n", "stderr": "err\n", "exit_code": 3}


def test_no_output_is_said_and_output_is_not_remarked_upon(worker: RawWorker) -> None:
    assert worker.done(*program("touch", "a.txt")).note == "no output"
    assert worker.done(*program("ls")).note == ""


def test_a_signal_is_named(worker: RawWorker) -> None:
    found = shell(worker, "exec sleep 1000 & kill -SEGV $!; wait $!; kill -TERM $$")
    assert {**found, "stderr": ""} == {"stdout": "", "stderr": "", "exit_code": 128 + 15, "signal": "SIGTERM"}


def test_each_stream_keeps_its_beginning_and_its_end(worker: RawWorker) -> None:
    found = shell(worker, "echo first; yes middle | head -c 1000000; echo last; echo small >&2")
    assert found["stdout"].startswith("first\n")
    assert found["stdout"].endswith("last\n")
    assert "bytes left out" in found["stdout"]
    assert len(found["stdout"]) < 70_000
    assert found["stderr"] == "small\n"


def rest(worker: RawWorker) -> list[messages.Up | None]:
    """Return what comes up to the result."""
    heard = [receive(worker.process)]
    while not isinstance(heard[-1], messages.Done):
        heard.append(receive(worker.process))
    return heard


def test_output_is_shown_while_the_command_runs(worker: RawWorker, project: Path) -> None:
    waits = b'{"command": "echo begun; until test -e go; do sleep 0.01; done; echo done >&2"}'
    send(worker.process, messages.Call(7, "run_cmd", waits, without_rehearsal=True))
    assert receive(worker.process) == messages.Output(7, "begun\n")
    (project / "go").touch()
    assert messages.Output(7, "done\n") in rest(worker)
    (project / "go").unlink()


def test_a_character_in_two_halves_is_shown_whole(worker: RawWorker) -> None:
    command = {"command": "printf '\\303'; printf '\\244'"}
    send(worker.process, messages.Call(8, "run_cmd", msgspec.json.encode(command)))
    assert "".join(each.text for each in rest(worker) if isinstance(each, messages.Output)) == "ä"


@pytest.mark.parametrize(
    ("without_rehearsal", "left", "says"),
    [(False, ["a"], "None of its changes were kept."), (True, ["a", "made"], "what it had done until then stays.")],
)
def test_a_command_that_takes_too_long_is_ended_and_what_it_printed_is_kept(
    without_rehearsal: bool, left: list[str], says: str, tmp_path: Path
) -> None:
    (tmp_path / "a").touch()
    command = {"command": "touch made; echo before; echo problem >&2; sleep 1000"}
    with open_shell(tmp_path, timeout_s=2.0) as worker:
        answer = worker.failed("run_cmd", command, without_rehearsal=without_rehearsal)
        again = shell(worker, "ls")
    assert (answer.kind, answer.details) == ("timeout", {"stdout": "before\n", "stderr": "problem\n"})
    assert "2 s" in answer.message
    assert says in answer.message
    assert again["stdout"].split() == sorted(os.listdir(tmp_path)) == left


def test_a_command_has_no_more_time_than_a_call(project: Path) -> None:
    with open_shell(project, timeout_s=1000.0, call_s=1.5) as worker:
        assert worker.failed("run_cmd", {"command": "sleep 1000"}).kind == "timeout"


GIVEN = [
    ("what it asks for", {"timeout_s": 0.2}, {}, "within the 0.2 s that it had"),
    ("more than is usual", {"timeout_s": 0.6}, {"call_s": 7.0}, "within the 0.6 s that it had"),
    ("what is left of its call's time", {"timeout_s": 5}, {"call_s": 5.0, "queued_s": 3.5}, "within the 0.5 s that it"),
    ("the usual time", {}, {}, "within the 0.4 s that it had"),
]


@pytest.mark.parametrize(("asked", "of_call", "says"), [row[1:] for row in GIVEN], ids=[row[0] for row in GIVEN])
def test_a_command_says_how_long_it_had(
    asked: dict[str, float], of_call: dict[str, float], says: str, project: Path
) -> None:
    with open_shell(project, timeout_s=0.4, call_s=6.0) as worker:
        answer = worker.failed("run_cmd", {"command": "echo begun; sleep 1000", **asked}, **of_call)
    assert answer.kind == "timeout"
    assert says in answer.message
    assert "timeout_s, 600 at most" in answer.message
    assert answer.details["stdout"] == "begun\n"


@pytest.mark.parametrize("tool", ["run_cmd", "exec_shell"])
def test_a_command_that_asks_for_too_long_is_told_the_most(tool: str, worker: RawWorker) -> None:
    answer = worker.failed(tool, {"command": "ls", "timeout_s": 600.5})
    assert answer.kind == "invalid_arguments"
    assert "600 s at most (max_timeout_s of [shell])" in answer.message


@each_row("seconds", ["0", "-1", '"9"', "1e400", "true"])
def test_a_time_that_is_none_is_no_argument(seconds: str, worker: RawWorker) -> None:
    given = b'{"command": "ls", "timeout_s": %s}' % seconds.encode()
    assert worker.failed("run_cmd", given).kind == "invalid_arguments"


def test_what_floods_its_output_is_shown_and_kept_within_bounds(worker: RawWorker) -> None:
    flood = {"command": "echo first; yes | head -c 100000000; printf '\\303'; sleep 0.1; printf '\\244 last'"}
    send(worker.process, messages.Call(9, "run_cmd", msgspec.json.encode(flood)))
    *shown, done = rest(worker)
    assert isinstance(done, messages.Done)
    kept = msgspec.json.decode(done.content)["stdout"]
    assert len(kept) < 70_000
    assert (kept[:6], kept[-6:]) == ("first\n", "ä last")
    assert max(len(each.text) for each in shown if isinstance(each, messages.Output)) < SHOWN_AT_ONCE + 100


WAITS = [
    ("cat", "no output; its input was empty"),
    ("read x", "no output; its input was empty"),
    ("printf 'Go on? '; read x || exit 3", NOTE),
    ("/usr/bin/python3 -c 'input()'", NOTE),
]


@pytest.mark.parametrize(("command", "note"), WAITS)
def test_a_command_that_waits_for_input_gets_its_end_at_once_and_says_so(
    command: str, note: str, worker: RawWorker
) -> None:
    assert worker.done("run_cmd", {"command": command}).note == note


HINTS = [
    ("git, elsewhere", "fatal: not a git repository: /x/.git/worktrees/w", "whose root is the repository"),
    ("git, around", "fatal: not a git repository (or any of the parent directories): .git", "around the root"),
    ("a key", "error: gpg failed to sign the data", "--no-gpg-sign"),
    ("a name", "*** Please tell me who you are.", "git config --global user.name"),
]


@pytest.mark.parametrize(("said", "hint"), [row[1:] for row in HINTS], ids=[row[0] for row in HINTS])
def test_what_a_program_lacks_in_the_sandbox_is_explained(said: str, hint: str, worker: RawWorker) -> None:
    assert hint in worker.done("run_cmd", {"command": f"echo '{said}' >&2; exit 128"}).note
    assert worker.done("run_cmd", {"command": f"echo '{said}' >&2"}).note == ""


def test_a_file_that_is_too_large_is_named_with_the_time_and_what_was_printed(worker: RawWorker) -> None:
    answer = worker.done("run_cmd", {"command": "echo begun; head -c 99000000 /dev/zero > $HOME/big"})
    assert re.match(r"killed by SIGXFSZ: .* file_mb of \[limits.shell\]; it had run for \S+ s", answer.note)
    assert msgspec.json.decode(answer.content)["stdout"] == "begun\n"


def test_memory_is_counted_over_all_processes(project: Path) -> None:
    hog = 'import os, time; open("n", "w"); os.fork(); os.fork(); data = bytearray(40 << 20); time.sleep(1000)'
    with open_shell(project, replace(LIMITS, memory_mb=96)) as worker:
        answer = worker.failed("run_cmd", {"command": f"/usr/bin/python3 -c '{hog}'"})
    assert answer.kind == "resource_limit"
    assert re.search(r"96 MB of memory in all, after \d\S* s", answer.message)
    assert not (project / "n").exists()


def test_shared_memory_is_counted_once(project: Path) -> None:
    shares = "import os, time; data = bytearray(50 << 20); os.fork(); os.fork(); time.sleep(0.5); print(len(data))"
    with open_shell(project, replace(LIMITS, memory_mb=96)) as worker:
        assert shell(worker, f"/usr/bin/python3 -c '{shares}'")["exit_code"] == 0


def test_too_many_processes_are_ended(project: Path) -> None:
    with open_shell(project, replace(LIMITS, processes=20), timeout_s=2.0) as worker:
        answer = worker.failed("run_cmd", {"command": "for i in $(seq 100); do sleep 1000 & done; wait"})
    assert answer.kind in ("resource_limit", "timeout")


def test_writes_of_a_command_elsewhere_are_limited_in_all(project: Path) -> None:
    with open_shell(project, disk_mb=3) as worker:
        found = shell(worker, "for at in /tmp /dev/shm ~; do head -c 2000000 /dev/zero > $at/x || exit 1; done")
    assert found["exit_code"] == 1
    assert "No space left" in found["stderr"]


@pytest.mark.parametrize("below", ["tmp", "home/agent", "dev/shm", "var/tmp", "run", "usr/local/src"])
def test_a_root_may_lie_anywhere(below: str, tmp_path: Path) -> None:
    """In one of the private places, too: they are made before the root is put there."""
    place = Path("/", below)
    if not os.access(place, os.W_OK):
        pytest.skip(f"{place} cannot be written here")
    root = place.resolve() / f"strongroom-root-{os.getpid()}"
    root.mkdir()
    try:
        with open_shell(root) as worker:
            assert shell(worker, "pwd; touch made; ls")["stdout"].split() == [str(root), "made"]
        assert (root / "made").exists()
    finally:
        for each in root.iterdir():
            each.unlink()
        root.rmdir()


def test_a_root_in_a_home_shows_nothing_of_it(tmp_path: Path) -> None:
    home = tmp_path / "someone"
    root = home / "work" / "project"
    root.mkdir(parents=True)
    (home / ".netrc").write_text("secret")
    with open_shell(root) as worker:
        found = shell(worker, f"find {tmp_path} 2>/dev/null; cat {home}/.netrc")
    assert ".netrc" not in found["stdout"]
    assert "No such file" in found["stderr"]


def test_a_root_that_holds_the_systems_programs_is_refused() -> None:
    with open_shell(Path("/usr")) as worker:
        assert "'/usr'" in worker.refusal.message


def test_a_root_that_is_only_read_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    with open_shell(tmp_path, writable=False) as worker:
        found = shell(worker, "cat a.txt; touch new; echo x > a.txt; rm a.txt")
    assert found["stdout"] == "alpha"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_renaming_the_root_changes_nothing_for_its_worker(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with open_shell(root) as worker:
        root.rename(tmp_path / "elsewhere")
        root.symlink_to("/etc")
        assert shell(worker, "touch made; pwd")["stdout"] == f"{root}\n"
    assert (tmp_path / "elsewhere" / "made").exists()


def test_a_toolchain_is_shown_to_be_read_and_run(tmp_path: Path) -> None:
    tools, root = tmp_path / "tools", tmp_path / "root"
    root.mkdir()
    write(tools / "git", "#!/bin/sh\necho mine; touch $0.new\n", 0o755)
    with open_shell(root, toolchains=(str(tools),), path=(str(tools),)) as worker:
        found = stdout(worker, "git")
    assert found == "mine\n"
    assert os.listdir(tools) == ["git"]


def test_a_toolchain_within_the_root_is_none(tmp_path: Path) -> None:
    """A command could change it, and the next one would run what it had written."""
    tools = tmp_path / "bin"
    write(tools / "ls", "#!/bin/sh\necho mine\n", 0o755)
    with open_shell(tmp_path, toolchains=(str(tools),), path=(str(tools),)) as worker:
        found = stdout(worker, "ls")
        path = shell(worker, "echo $PATH")["stdout"]
    assert found == "bin\n"
    assert str(tools) not in path


def test_a_program_that_is_not_installed_is_not_found(project: Path) -> None:
    with open_shell(project, programs=("ls", "no-such-program")) as worker:
        answer = worker.failed(*program("no-such-program"))
    assert answer.kind == "not_found"
    assert "not installed" in answer.message


def test_a_refused_name_is_told_what_is_allowed_and_how_to_split_a_line(worker: RawWorker) -> None:
    answer = worker.failed(*program("git status"))
    assert answer.kind == "command_not_allowed"
    assert "git, cargo, npm" in answer.message
    assert '"args"' in answer.message


def test_only_what_the_operator_names_is_allowed(project: Path) -> None:
    with open_shell(project, programs=("true",)) as worker:
        assert worker.done(*program("true"))
        assert worker.failed(*program("ls")).kind == "command_not_allowed"


def test_arguments_that_are_too_many_are_typed(worker: RawWorker) -> None:
    assert worker.failed(*program("ls", *["x" * 1000] * 3000)).kind == "too_large"


def test_a_script_without_its_interpreter_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    tools = tmp_path / "tools"
    write(tools / "git", "#!/no/such/interpreter\n", 0o755)
    with open_shell(tmp_path / "run", toolchains=(str(tools),), path=(str(tools),)) as worker:
        assert worker.failed(*program("git")).kind == "not_found"


def test_the_sandbox_has_one_user_and_one_host(worker: RawWorker) -> None:
    found = shell(worker, "whoami; uname -n; cat /etc/hostname")
    assert found["stdout"].splitlines() == ["agent", "strongroom", "strongroom"]


def test_what_would_listen_is_told_that_nothing_can(worker: RawWorker) -> None:
    says = "echo 'listen tcp 127.0.0.1:0: socket: operation not permitted' >&2"
    answer = worker.call("run_cmd", {"command": f"exec 3<>/dev/tcp/127.0.0.1/80 || {says}; exit 1"})
    assert "not even on localhost" in str(answer), answer
