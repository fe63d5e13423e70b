"""`strongroom prune`: what goes with an old session, and which ones stay."""

import os
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.clients.prune import seconds_of
from supervisor.errors import ConfigError
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    SessionDeleted,
    TurnEnded,
    TurnStarted,
    TurnSuspended,
)
from supervisor.session.leases import Leases
from tests.daemon_process import DaemonProcess, Lines
from tests.forked import ForkedStrongroom
from tests.supervisor.command import finished
from tests.supervisor.histories import opening_fact
from workers.changes.effects import Change, Effects, NodeState

DAY: Final = 86_400.0
EFFECTS: Final = Effects((Change("x", "added", after=NodeState("file", 0o644)),), {"added": 1}, b"")
CHANGED: Final[tuple[Fact, ...]] = (
    CallStarted(0, "c", "write_file", "{}", True, "allow", "", rehearsed=True),
    CallDecided(0, "c", "allow", "", True, EFFECTS, kept="done.c.1"),
)
OLD: Final[dict[str, tuple[Fact, ...]]] = {
    "done": (
        TurnStarted(1, "evil\x1b[2J"),
        TurnEnded(1, "ok", ""),
        *CHANGED,
        CallEnded(0, "c", "write_file", True, ""),
    ),
    "empty": (),
    "interrupted": (TurnStarted(1, "go"),),
    "suspended": (TurnStarted(1, "go"), TurnSuspended(1, "loop", "why")),
    "damaged": (TurnStarted(1, "go"),),
    "unsettled": CHANGED,
    "elsewhere": (),
    "here": (),
}
STAY: Final = {
    "interrupted": "its last turn was interrupted",
    "suspended": "its last turn is suspended",
    "damaged": "how it ended cannot be read",
    "unsettled": "a change that it made has no end yet",
    "elsewhere": "it is open in another process",
    "here": "it is open",
}


def kept(daemon: DaemonProcess) -> list[str]:
    return sorted(each.name for each in (*daemon.settings.packs.iterdir(), *daemon.settings.contents.iterdir()))


def test_old_sessions_go_with_what_is_kept_for_them_and_those_in_use_stay(
    daemon: DaemonProcess, client: Lines, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = time.time() - 40 * DAY
    with monkeypatch.context() as earlier:
        earlier.setattr("time.time", lambda: then)
        for session, facts in OLD.items():
            daemon.record(session, opening_fact(root), *facts)
        assert [each["sessionId"] for each in searched(client)] == ["done"]
        earlier.setattr("supervisor.journal.facts.encode", lambda _fact: b"{}")
        daemon.record("damaged", TurnEnded(1, "ok", ""))
    daemon.record("new", opening_fact(root))
    daemon.record("cut", opening_fact(root), SessionDeleted())
    for directory in (daemon.settings.packs, daemon.settings.contents):
        directory.mkdir(exist_ok=True)
    alone, shared = "a" * 64, "b" * 64
    packs = ["done.c.1", "done2.c.1"]
    contents = [alone, f"{alone}.done", shared, f"{shared}.done", f"{shared}.new"]
    for path in (*map(daemon.settings.packs.joinpath, packs), *map(daemon.settings.contents.joinpath, contents)):
        path.touch()
    (daemon.settings.contents / alone).write_bytes(bytes(5000))
    left = [
        daemon.settings.packs / "cut.c.1",
        daemon.settings.contents / f"{shared}.cut",
        daemon.home / "replies" / "cut",
    ]
    for path in left:  # by a process that was killed as it had recorded that
        path.parent.mkdir(exist_ok=True)
        path.touch()
    command = ForkedStrongroom(daemon.home, daemon.folder)
    client.resume("here")
    with closing(Leases.open(daemon.home)) as others:
        assert others.acquire("elsewhere")
        dry = command.run("prune", "--older-than", "30d", "--dry-run", "--json").json
        command.run("prune", "--older-than", "30d").assert_refused("--yes", "--dry-run")
        command.run("prune", "--older-than", "30d", "--json").assert_refused("--yes")
        assert client.request("_strongroom/prune", {"before": time.time(), "delete": []})["sessions"] == []
        assert answered(command, b"n\n")[0] == 1
        assert kept(daemon) == sorted([*packs, *contents])
        assert [path for path in left if path.exists()] == []
        assert [fact for fact in daemon.facts if isinstance(fact, SessionDeleted)] == [SessionDeleted()]
        code, shown = answered(command, b"y\n")
    assert {each["session_id"]: each["stays"] for each in dry} == dict.fromkeys(OLD, "") | STAY
    assert {each["session_id"]: each["kept"] for each in dry if each["kept"]} == {"done": 5000}
    for sentence in (
        "2 sessions would be deleted, last used between ",
        " with 5.0 kB of images",
        "; 6 stay",
        "Delete them?",
    ):
        assert sentence in shown
    assert (code, "2 sessions deleted, last used between " in shown, "\x1b" in shown) == (0, True, False)
    assert kept(daemon) == [shared, f"{shared}.new", "done2.c.1"]
    listed = [each["session"] for each in command.run("sessions", "--json").json]
    assert sorted(listed) == sorted([*STAY, "new"])
    none = command.run("prune", "--older-than", "41d", "--yes")
    assert (none.code, none.out) == (0, "0 sessions would be deleted\n")
    assert daemon.verdict.broken_at == 0
    assert b"evil" not in daemon.settings.journal.with_suffix(".search").read_bytes()
    assert searched(client) == []


def searched(client: Lines) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.request("_strongroom/search", {"words": "evil"})["found"]
    return found


def answered(command: ForkedStrongroom, typed: bytes) -> tuple[int, str]:
    """Prune on a terminal, where something is typed; return the exit code, and what was to be seen."""
    ours, terminal = os.openpty()
    process = command.begin(("prune", "--older-than", "30d"), ("supervisor",), (), terminal, terminal)
    os.close(terminal)
    os.write(ours, typed)
    done, shown = finished(process), b""
    with suppress(OSError):  # the terminal's end
        while more := os.read(ours, 2**16):
            shown += more
    os.close(ours)
    return done.code, shown.decode() + done.err


@pytest.mark.parametrize("age", ["", "d", "30", "-1d", "1.5d", "30 d", "30m", "\u0663d", "9999999d"])
def test_an_age_that_is_none_is_refused(age: str) -> None:
    with pytest.raises(ConfigError, match="is no age"):
        seconds_of(age)


def test_an_age_is_hours_days_or_weeks() -> None:
    assert [seconds_of(age) for age in ("12h", "30d", "8w")] == [12 * 3600, 30 * DAY, 56 * DAY]
