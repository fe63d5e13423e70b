"""The soak's own parts: what it finds is what was planted, and what it does comes from the seed alone."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from scripts.soaking import plan, work
from scripts.soaking.daemon import Life, Sample
from scripts.soaking.figures import at, slope
from scripts.soaking.ledger import Ledger, Told
from scripts.soaking.report import descriptors, growth
from scripts.soaking.world import world
from supervisor.acp import ours
from supervisor.facts import CallDecided, CallEnded, CallStarted, Fact, Replied, SessionOpened, TurnEnded, TurnStarted
from supervisor.faults import read_plan
from supervisor.journal import Entry
from workers.catalog import CATEGORIES
from workers.faults.kinds import FAULTS
from workers.wire import Context, ErrorKind

MARK: Final = "m0-1-1e"
CODE: Final = Path(__file__).parent.parent


def wanted(call: str = "a") -> Replied:
    return Replied(1, 0, [{"type": "tool_use", "id": call, "name": "edit_file", "input": {}}], "tool_use", {})


def started(call: str = "a", marker: str = MARK) -> CallStarted:
    return CallStarted(1, call, "edit_file", f'{{"new": "{marker}"}}', True, "allow", "", rehearsed=True)


def committed(call: str = "a", undoes: str = "") -> CallDecided:
    return CallDecided(1, call, "allow", "", committed=True, kept=f"pack-{call}", undoes=undoes)


def ended(call: str = "a", kind: ErrorKind | None = None) -> CallEnded:
    return CallEnded(1, call, "edit_file", kind is None, "", kind=kind)


OPENED: Final = SessionOpened("soak", "offline", Context("/"), (), "acp", "1")
BEGUN: Final[list[Fact]] = [OPENED, TurnStarted(1, "go"), wanted(), started()]
END: Final = TurnEnded(1, "ok", "done")
OK: Final[list[Fact]] = [*BEGUN, committed(), ended(), END]
UNKNOWN: Final[list[Fact]] = [*BEGUN, committed(), ended(kind="outcome_unknown"), END]
CRASHED: Final[list[Fact]] = [*BEGUN, ended(kind="worker_crashed"), END]
UNDONE: Final[list[Fact]] = [*OK, started("u", ""), committed("u", undoes="a"), ended("u"), wanted("u")]

Case = tuple[list[Fact], int, list[str]]
CASES: Final[dict[str, Case]] = {
    "what ended well happened once": (OK, 1, []),
    "a planted loss": (OK, 0, ["lost"]),
    "a planted duplicate": (OK, 2, ["duplicated"]),
    "the unknown may have happened": (UNKNOWN, 1, []),
    "or not": (UNKNOWN, 0, []),
    "but not twice": (UNKNOWN, 2, ["duplicated"]),
    "what failed has not happened": (CRASHED, 0, []),
    "a planted effect of what failed": (CRASHED, 1, ["uncalled-for"]),
    "what was taken back is gone": (UNDONE, 0, []),
    "a planted undo without effect": (UNDONE, 1, ["uncalled-for"]),
    "an effect without a call": ([OPENED], 1, ["uncalled-for"]),
    "a call without an outcome": ([*BEGUN, committed(), END], 1, ["lost"]),
    "a call with two outcomes": ([*OK, ended()], 1, ["duplicated"]),
    "a call that was committed twice": ([*BEGUN, committed(), committed(), ended(), END], 1, ["duplicated"]),
    "a turn without an end": (OK[:-1], 1, ["lost"]),
    "an unknown outcome of what was never committed": (
        [*BEGUN, ended(kind="outcome_unknown"), END],
        0,
        ["history"],
    ),
}


def ledger(facts: list[Fact]) -> Ledger:
    found = Ledger()
    for seq, fact in enumerate(facts, 1):
        found.add(Entry(seq, "s", float(seq), fact))
    return found


@pytest.mark.parametrize(("facts", "count", "found"), CASES.values(), ids=CASES)
def test_the_ledger_finds_what_was_planted(facts: list[Fact], count: int, found: list[str]) -> None:
    problems = ledger(facts).problems({MARK: count} if count else {}, [], {})
    assert [each.what for each in problems] == found


@pytest.mark.parametrize(
    ("told", "last_row", "lost"),
    [
        (Told(0, "s", "a", "ok"), 7, 0),
        (Told(0, "s", "turn 1", "ok"), 7, 0),
        (Told(0, "s", "a", "failed"), 7, 1),
        (Told(0, "s", "turn 2"), 7, 1),
        (Told(0, "t", "session"), 7, 1),
        (Told(0, "s", "a", "ok"), 5, 1),
    ],
    ids=["call", "turn", "other end", "no such turn", "no such session", "recorded by a later life"],
)
def test_what_a_client_was_told_was_recorded_before(told: Told, last_row: int, lost: int) -> None:
    assert len(list(ledger(OK).problems({MARK: 1}, [told], {0: last_row}))) == lost


def test_the_world_tells_what_is_left_over_in_it(tmp_path: Path) -> None:
    with world(tmp_path, 4) as here:
        assert list(here.remains(ledger([]).may_have)) == []
        kept = here.home / "kept"
        planted = [
            here.roots[0] / "c0" / ".strongroom-0123456789abcdef.tmp",
            kept / "scratch" / "upper",
            kept / "nobodys-pack",
            here.home / "stray",
            here.temporary / "stray",
        ]
        owned = kept / "pack-a"
        for each in (*planted, owned):
            each.parent.mkdir(parents=True, exist_ok=True)
            each.touch()
        left = list(here.remains(ledger(OK).may_have))
        assert [sum(str(each) in line for line in left) for each in planted] == [1] * len(planted), left
        assert len(left) == len(planted)


def test_effects_are_counted_in_names_and_texts(tmp_path: Path) -> None:
    with world(tmp_path, 4) as here:
        (here.roots[1] / "c1" / "made" / "m1-1-1e").touch()
        (here.roots[0] / "shared.txt").write_text("begin|m0-1-1e|m0-1-11e|m0-1-1e|end")
        assert here.markers() == {"m1-1-1e": 1, "m0-1-1e": 2, "m0-1-11e": 1}


LEAVING: Final = """
import os, signal
from scripts.soaking.processes import left_behind, take_in_orphans

take_in_orphans()
told, tell = os.pipe()
if not os.fork():
    if not os.fork():  # a grandchild, in a session of its own
        os.setsid()
        os.write(tell, str(os.getpid()).encode())
        signal.pause()
    os._exit(0)
pid = int(os.read(told, 16))
assert [line.split()[1] for line in left_behind(patience=0.0)] == [str(pid)]
assert left_behind(patience=0.0) == []
assert not os.path.exists(f"/proc/{pid}")
"""


def test_a_process_that_was_left_behind_is_found_and_ended() -> None:
    subprocess.run([sys.executable, "-c", LEAVING], check=True, timeout=60, cwd=CODE)


def test_the_seed_says_what_is_done() -> None:
    assert work.work(7, 1, 2) == work.work(7, 1, 2) != work.work(8, 1, 2)
    assert plan.text(7, 3) == plan.text(7, 3) != plan.text(8, 3)
    markers = work.MARKER.findall(str(work.work(7, 1, 2).lines) + str(work.work(7, 1, 3).lines))
    assert len(set(markers)) == len(markers) > 0


def test_a_plan_has_every_fault_and_is_one_that_the_daemon_takes(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(plan.text(7, 1))
    entries = read_plan(tmp_path / "plan.toml").entries
    assert {each.fault for each in entries} == set(FAULTS)
    assert {each.category for each in entries} == set(CATEGORIES) - {plan.control(7)}


def life(*samples: tuple[float, int, int]) -> Life:
    """A life as it was looked at: MiB, calls, descriptors."""
    status = ours.Status(ours.Daemon(7, "1", "/home", "", ""), 0.0, 0.0, 1, [], [])
    return Life(0, 7, 0.0, burning=True, samples=[Sample(0.0, *sample, status) for sample in samples])


@pytest.mark.parametrize(("before", "after", "leaked"), [(20, 20, 0), (20, 23, 3)])
def test_a_planted_leak_of_descriptors_is_found(before: int, after: int, leaked: int) -> None:
    assert descriptors(life((40.0, 0, before), (40.0, 9, after)).samples) == leaked


@pytest.mark.parametrize(("each", "flat"), [(0.0, True), (0.2, True), (2.0, False)])
def test_planted_growth_of_memory_is_found(each: float, flat: bool) -> None:
    grown = life(*((40.0 + each * number, 100 * number, 20) for number in range(40)))
    assert growth([grown])[1] is flat


def test_figures() -> None:
    assert at([3.0, 1.0, 2.0], 0.5) == 2.0
    assert at([], 0.5) is None
    assert slope([(float(x), 2.0 * x + 1) for x in range(10)]) == pytest.approx(2.0)
    assert slope([(1.0, 1.0)]) is None
