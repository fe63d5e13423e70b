"""`strongroom status`: what is shown of a daemon, and that it fits and is harmless."""

import signal
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from supervisor.acp import extensions
from supervisor.clients.connection.patience import Patience
from supervisor.clients.status import look, status_text
from supervisor.clients.status_screen import moved
from supervisor.config.settings import Settings
from supervisor.daemon.process.lock import hold
from supervisor.errors import DaemonLost
from tests.daemon_process import DaemonProcess, Lines
from tests.forked import ForkedStrongroom
from tests.supervisor.clients.console.terminals import INTERRUPT, Terminal
from tests.supervisor.command import HANG_GUARD, Strongroom

PROTECTIONS: Final = ("rlimits", "landlock", "landlock_scope", "seccomp")


USED: Final[dict[str, Any]] = {"memory": 2**24, "private": 9 * 2**20, "processes": 1, "open_files": 7}


def worker(number: int, state: str = "READY", **fields: Any) -> extensions.WorkerStatus:
    return extensions.WorkerStatus(category="files", number=number, root="/v", profile="vault", state=state, **fields)


BUSY: Final = extensions.Status(
    daemon=extensions.Daemon(
        pid=77, version="1.2.3", home="/home/me/.local/share/strongroom", model="", profile="vault"
    ),
    started_at=0.0,
    uptime=3723.0,
    journal_rows=9,
    journal_checked_at=3663.0,
    journal_problem="row 10 is missing",
    clients=2,
    sessions=[
        extensions.OpenSessionStatus(
            session_id="20260304-101500-a1b2c3d4e5f6",
            profile="vault",
            model="claude-haiku-5-5",
            root="/home/me/notes/日記/" + "deep/" * 30,
            state="ReviewAction",
            turns=1,
            clients=1,
            origin="acp",
            seconds_in_state=61.5,
            other_model="ollama/qwen3",
            waiting_for="write_file \x1b[2J.md",
            title="日" * 90,
            context={"working_directory": "/r", "group": "\x1b[2J\u202e" + "g" * 100, "technology": "t" * 128},
            cache_possible=20_000,
            cache_reused=15_000,
            cache_miss="5000 tokens were not in the provider's cache: the provider has not kept it",
        )
    ],
    pools=[
        extensions.PoolStatus(
            category="files",
            root="/v",
            profile="vault",
            calls=12,
            p50=0.00042,
            workers=[
                worker(0, pid=78, cpu=1.25, enforced=PROTECTIONS, cgroup="/sys/fs/cgroup/x", **USED),
                worker(1, "BACKOFF", restarts=3, last_death="killed by SIGKILL \u202e"),
                worker(2, pid=80, enforced=PROTECTIONS[:1], degraded=("landlock_scope",)),
            ],
            failed_because="it died five times",
            limits=extensions.WorkerLimits(512, 3600, 64, 32, 0, 256),
            recycled=3,
        )
    ],
    memory=40 * 2**20,
    cpu=2.0,
    journal="/home/me/.local/share/strongroom/journal.db",
    log="/log",
    config_problem="config.toml: unknown name 'modell'; did you mean 'model'?",
    protections=PROTECTIONS,
    no_cgroups="its cgroup holds other programs too",
)


def columns(line: str) -> int:
    return sum(2 if char in "日記" else 1 for char in line)


def test_it_fits_and_is_harmless_and_words_stay_whole_where_they_fit() -> None:
    for width in (40, 80, 120):
        text = status_text(BUSY, width)
        assert max(columns(line) for line in text.splitlines()) <= width
        assert [char for char in text if not (char.isprintable() or char == "\n")] == []
        assert "t" * 128 in text.replace("\n", "").replace(" ", "")
    text = status_text(BUSY, 40)
    assert "ollama/qwen3 in place of claude-haiku-5-5" in " ".join(text.split())
    assert "Strongroom 1.2.3, pid 77, up 1 h 2 min,\n  2 clients\n" in text
    assert "...\n" not in text.replace("日...\n", "")


FACTS: Final = [
    "Strongroom 1.2.3, pid 77, up 1 h 2 min, 2 clients",
    "unknown name 'modell'",
    "broken: row 10 is missing; see `strongroom verify`, 9 rows compared 1 min 0 s ago",
    "20260304-101500-a1b2c3d4e5f6  ReviewAction for 1 min 1 s",
    "waits for a person to decide about write_file \\x1b[2J.md",
    "prompt cache: 75 % of 20000 tokens that could come from it; last miss: 5000 tokens were not in the",
    "failed: it died five times",
    "files on /v (vault): 12 calls, p50 420 us, 3 recycled",
    "limits: memory 512 MiB (256 between calls), CPU 1 h 0 min, 64 open files, 32 MiB a file, no processes besides its",
    "0: pid 78, READY, 0 restarts, memory 9.0 of 512 MiB, CPU 1.2 s of 1 h 0 min, 7 of 64 open files, 1 process,",
    "limits    each process's own (rlimits) alone: its cgroup holds other programs too",
    "1: no process, BACKOFF, 3 restarts",
    "last death: killed by SIGKILL \\u202e",
    "in force  rlimits\n",
    "MISSING   landlock in files 2",
    "DEGRADED  landlock_scope in files 2",
    "MISSING   seccomp in files 2",
]


def test_a_protection_that_only_some_categories_have_is_not_missing_in_the_others() -> None:
    files = worker(0, enforced=("seccomp",))
    search = msgspec.structs.replace(files, category="search", enforced=("namespaces", "seccomp"))
    pools = [extensions.PoolStatus(each.category, "/v", "vault", 1, 0.1, [each]) for each in (files, search)]
    text = status_text(msgspec.structs.replace(BUSY, pools=pools, protections=("namespaces", "seccomp")), 80)
    assert "in force  seccomp\n" in text
    assert "besides   namespaces in search" in text
    assert "MISSING" not in text


def test_it_tells() -> None:
    text = status_text(BUSY, 120)
    assert [fact for fact in FACTS if fact not in text] == []


def test_without_a_worker_no_protection_is_claimed() -> None:
    text = status_text(msgspec.structs.replace(BUSY, pools=[]), 80)
    assert "in force" not in text
    assert "no worker runs now" in text


# the command ---------------------------------------------------------------------------------------------------


def test_without_a_daemon_it_says_so_and_starts_none(strongroom: Strongroom) -> None:
    plain, document = strongroom.run("status"), strongroom.run("status", "--json")
    assert (plain.code, plain.out, plain.err) == (1, "no daemon runs\n", "")
    assert (document.code, document.json) == (1, {"running": False})
    assert not strongroom.home.exists()


def test_of_a_daemon_that_cannot_be_reached_it_does_not_say_that_none_runs(settings: Settings) -> None:
    with hold(settings) as lock:
        lock.publish(settings.socket)
        with pytest.raises(DaemonLost, match=r"runs, but its socket .* is gone"):
            look(settings, Patience(0, 0))


def test_a_daemon_is_shown_with_its_sessions_and_workers(daemon: DaemonProcess, place: Path) -> None:
    with daemon.client() as client:
        session = client.new_session(place, model="offline")
        client.prompt(session, "read a.txt")
        command = ForkedStrongroom(daemon.home, place)
        found = command.run("status", "--json").json
        text = command.run("status").out
    assert (found["running"], found["daemon"]["pid"]) == (True, daemon.pid)
    (opened,) = found["sessions"]
    assert (opened["session_id"], opened["turns"], opened["waiting_for"]) == (session, 1, "")
    (pool,) = found["pools"]
    assert {each["pid"] for each in pool["workers"]} <= {*daemon.children(), None}
    assert [each for each in (f"pid {daemon.pid}", session, "seccomp") if each not in text] == []


def test_watching_goes_on_until_it_is_stopped(daemon: DaemonProcess, place: Path) -> None:
    with ForkedStrongroom(daemon.home, place).start("status", "--watch") as process:
        assert process.stdout
        assert process.stdout.readline().startswith(b"Strongroom ")
        while process.stdout.readline().strip() or not process.stdout.readline().startswith(b"Strongroom "):
            pass  # to the next block
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_GUARD)
    assert (process.returncode, err) == (0, b"")
    assert b"\x1b" not in out


LINES: Final = [
    (0, b"\x1b[B", 1),
    (0, b"k", 0),
    (5, b"\x1b[A", 4),
    (0, b" ", 9),
    (9, b"\x1b[5~", 0),
    (15, b"\x1b[6~", 20),
    (3, b"G", 20),
    (3, b"\x1b[H", 0),
    (3, b"x", 3),
    (99, b"", 20),
]


def test_keys_move_by_lines_and_pages_and_never_beyond_the_ends() -> None:
    assert [moved(first, key, 30, 10) for first, key, _ in LINES] == [then for *_, then in LINES]
    assert [moved(0, key, 3, 10) for key in (b"j", b" ", b"G")] == [0, 0, 0]


class StatusTerminal(Terminal):
    COMMAND = "status"


def test_on_a_terminal_it_is_a_screenful_that_scrolls(daemon: DaemonProcess, client: Lines, place: Path) -> None:
    client.new_session(place / "vault", profile="vault")
    with StatusTerminal(daemon.home, place, "--watch", columns=60, rows=20) as terminal:
        begun = terminal.until("PgDn scroll")
        assert begun.startswith("Strongroom ")
        assert begun.splitlines()[-1].startswith("lines 1 to 19 of ")
        assert "limits  " not in begun
        end = terminal.type("G", lambda screen: not screen.startswith("Strongroom "))
        assert len(end.splitlines()) == 20
        assert "each process" in end
        terminal.type("g", lambda screen: screen.startswith("Strongroom "))
        terminal.resize(30, 8)
        terminal.until(lambda screen: "lines 1 to 7 of " in screen)
        assert max(map(len, terminal.lines)) <= 30
        assert not terminal.echoes
        terminal.type_keys("q")
        assert (terminal.ended(), terminal.echoes) == (0, True)
    assert terminal.raw.endswith(b"\x1b[?1049l")


def test_an_interrupt_gives_the_terminal_back(daemon: DaemonProcess, place: Path) -> None:
    with StatusTerminal(daemon.home, place, "--watch") as terminal:
        terminal.until("q ends")
        terminal.type_keys(INTERRUPT)
        assert (terminal.ended(), terminal.echoes) == (0, True)
    assert terminal.raw.endswith(b"\x1b[?1049l")
