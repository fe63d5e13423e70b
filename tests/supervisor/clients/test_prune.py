"""`strongroom prune`: what goes with an old session, and which ones stay."""

import time
from contextlib import closing
from pathlib import Path
from typing import Final

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
    "unsettled": CHANGED,
    "elsewhere": (),
    "here": (),
}
STAY: Final = {
    "interrupted": "its last turn was interrupted",
    "suspended": "its last turn is suspended",
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
    daemon.record("new", opening_fact(root))
    for directory in (daemon.settings.packs, daemon.settings.contents):
        directory.mkdir(exist_ok=True)
    digest = "a" * 64
    packs, contents = ["done.c.1", "done2.c.1"], [digest, f"{digest}.done"]
    for path in (*map(daemon.settings.packs.joinpath, packs), *map(daemon.settings.contents.joinpath, contents)):
        path.touch()
    command = ForkedStrongroom(daemon.home, daemon.folder)
    client.resume("here")
    with closing(Leases.open(daemon.home)) as others:
        assert others.acquire("elsewhere")
        dry = command.run("prune", "--older-than", "30d", "--dry-run", "--json").json
        assert kept(daemon) == sorted([*packs, *contents])
        assert not [fact for fact in daemon.facts if isinstance(fact, SessionDeleted)]
        done = command.run("prune", "--older-than", "30d")
    assert {each["session_id"]: each["stays"] for each in dry} == dict.fromkeys(OLD, "") | STAY
    assert done.out.splitlines()[-1] == "2 deleted, 5 stay"
    assert "\x1b" not in done.out
    assert kept(daemon) == ["done2.c.1"]
    listed = [each["session"] for each in command.run("sessions", "--json").json]
    assert sorted(listed) == sorted([*STAY, "new"])
    assert command.run("prune", "--older-than", "41d").out == "0 deleted, 0 stay\n"


@pytest.mark.parametrize("age", ["", "d", "30", "-1d", "1.5d", "30 d", "30m", "\u0663d", "9999999d"])
def test_an_age_that_is_none_is_refused(age: str) -> None:
    with pytest.raises(ConfigError, match="is no age"):
        seconds_of(age)


def test_an_age_is_hours_days_or_weeks() -> None:
    assert [seconds_of(age) for age in ("12h", "30d", "8w")] == [12 * 3600, 30 * DAY, 56 * DAY]
