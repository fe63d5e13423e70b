"""The soak's own parts: what it finds is what was planted, and what it does comes from the seed alone."""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
import pytest

from scripts.soaking import plan, work
from scripts.soaking.__main__ import read
from scripts.soaking.call_counter import StartedCalls
from scripts.soaking.daemon import Life, Sample
from scripts.soaking.figures import at, slope
from scripts.soaking.ledger import Ledger, Told, outcomes
from scripts.soaking.processes import descriptors as opened_by
from scripts.soaking.processes import kept_for_later
from scripts.soaking.report import descriptors, growth, named, settled, steadiest
from scripts.soaking.schedule import Kill, Schedule, Wound
from scripts.soaking.world import world
from supervisor.acp import extensions
from supervisor.config.fault_plan import read_plan
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    Replied,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from supervisor.journal.journal import JournalEntry, open_journal
from tests.each_row import each_row
from workers.catalog import CATEGORIES
from workers.changes.effects import Change, Effects, What
from workers.faults.kinds import FAULTS
from workers.wire.messages import Context, ErrorKind

MARK: Final = "m0-1-1e"
CODE: Final = Path(__file__).parent.parent


def wanted(call: str = "a") -> Replied:
    return Replied(1, 0, [{"type": "tool_use", "id": call, "name": "edit_file", "input": {}}], "tool_use", {})


def started(call: str = "a", marker: str = MARK) -> CallStarted:
    return CallStarted(1, call, "edit_file", f'{{"new": "{marker}"}}', True, "allow", "", rehearsed=True)


def anew() -> CallStarted:
    return msgspec.structs.replace(started(), again=True)


def committed(call: str = "a", undoes: str = "", kept: str = "", what: What | None = None) -> CallDecided:
    effects = Effects((Change("c0/made", what),), {what: 1}, b"") if what else None
    return CallDecided(1, call, "allow", "", True, effects, kept=kept or f"pack-{call}", undoes=undoes)


def ended(call: str = "a", kind: ErrorKind | None = None) -> CallEnded:
    return CallEnded(1, call, "edit_file", kind is None, "", kind=kind)


OPENED: Final = SessionOpened("soak", "offline", Context("/"), (), "acp", "1")
BEGUN: Final[list[Fact]] = [OPENED, TurnStarted(1, "go"), wanted(), started()]
END: Final = TurnEnded(1, "ok", "done")
LOST: Final[list[Fact]] = [*BEGUN, committed(), anew()]
LOST_FILE: Final[list[Fact]] = [*BEGUN, committed(what="added"), anew()]
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
    "a commit that was lost": ([*LOST, committed(), ended(), END], 1, []),
    "but that has happened too": ([*LOST, committed(), ended(), END], 2, ["duplicated"]),
    "or is the only one that has": ([*LOST, ended(kind="worker_crashed"), END], 1, ["uncalled-for"]),
    "or neither has": ([*LOST, committed(), ended(), END], 0, ["lost"]),
    "a lost commit before two others": ([*LOST, committed(), committed(), ended(), END], 1, ["duplicated"]),
    "a lost commit of what made a file": ([*LOST_FILE, committed(what="added"), ended(), END], 1, []),
    "no lost commit: the file was there": ([*LOST_FILE, committed(what="modified"), ended(), END], 1, ["duplicated"]),
    "nor one after which nothing was to be done": ([*LOST_FILE, ended(), END], 1, ["duplicated"]),
    "a turn without an end": (OK[:-1], 1, ["lost"]),
    "an unknown outcome of what was never committed": ([*BEGUN, ended(kind="outcome_unknown"), END], 0, ["history"]),
}


def ledger(facts: list[Fact]) -> Ledger:
    found = Ledger()
    for seq, fact in enumerate(facts, 1):
        found.add(JournalEntry(seq, "s", float(seq), fact))
    return found


@each_row(("facts", "count", "found"), CASES.values(), ids=CASES)
def test_the_ledger_finds_what_was_planted(facts: list[Fact], count: int, found: list[str]) -> None:
    problems = ledger(facts).problems({MARK: count} if count else {}, [], {})
    assert [each.what for each in problems] == found


def test_a_pack_of_a_lost_commit_is_no_longer_owned() -> None:
    found = ledger([*BEGUN, committed(kept="first"), anew(), committed(kept="second"), ended(), END])
    assert [found.may_have("first"), found.may_have("second")] == [False, True]


def test_a_single_call_that_a_kill_cut_off_is_told_apart_from_a_lost_one() -> None:
    single = msgspec.structs.replace(started(), turn=0)
    assert list(outcomes(ledger([OPENED, single]).calls.values())) == ["none: a client's own, cut off by a kill"]
    assert list(outcomes(ledger([*BEGUN, END]).calls.values())) == ["no outcome"]


@each_row(
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
def test_a_client_is_told_only_what_was_recorded_before(told: Told, last_row: int, lost: int) -> None:
    assert len(list(ledger(OK).problems({MARK: 1}, [told], {0: last_row}))) == lost


def test_the_world_tells_what_is_left_over_in_it(tmp_path: Path) -> None:
    with world(tmp_path, 4) as here:
        assert list(here.remains(ledger([]).may_have)) == []
        kept = here.home / "kept"
        planted = [here.roots[0] / "c0" / ".strongroom-0123456789abcdef.tmp", here.home / "stray"]
        planted += [kept / "scratch" / "upper", kept / "nobodys-pack", here.temporary / "stray"]
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
        rescued = here.roots[0] / "strongroom-rescued-1"
        rescued.mkdir()
        (rescued / "0").write_text("m0-1-11e")
        assert here.markers() == {"m1-1-1e": 1, "m0-1-1e": 2, "m0-1-11e": 1}
        assert here.rescued() == 1


LEAVING: Final = """
import os, signal
from scripts.soaking.processes import left_behind, take_in_orphans

take_in_orphans()
told, tell = os.pipe()
if not (child := os.fork()):
    if not os.fork():  # a grandchild, in a session of its own
        os.setsid()
        os.write(tell, str(os.getpid()).encode())
        signal.pause()
    os._exit(0)
pid = int(os.read(told, 16))
os.waitpid(child, 0)
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


# when what happens -----------------------------------------------------------------------------------------------


def carried_out(seed: int, pace: float, looks: int) -> tuple[list[Kill], list[Wound]]:
    """Carry a schedule out on a machine that begins so many calls a second, and is looked at that often in one."""
    schedule = Schedule(seed, 10.0, 60.0)
    kills, wounds = [], []
    for number in range(120 * looks):
        now = number / looks
        calls = int(pace * now)
        if number == 10 * looks:
            schedule.begin(now, calls)
        if kill := schedule.kill(now, calls) if number >= 10 * looks else None:
            kills.append(kill)
            schedule.begin(now, calls)
        if wound := schedule.wound(now, calls):
            wounds.append(wound)
    return kills, wounds


@pytest.mark.parametrize(("pace", "looks"), [(50.0, 7), (50.0, 1), (0.0, 3), (900.0, 3)])
def test_the_seed_says_what_is_killed_and_hurt_whatever_is_looked_at_in_between(pace: float, looks: int) -> None:
    kills, wounds = carried_out(7, 50.0, 3)
    others, more = carried_out(7, pace, looks)
    many = min(len(wounds), len(more))
    assert others == kills
    assert more[:many] == wounds[:many]
    assert min(len(kills), many) > 3
    assert carried_out(8, pace, looks)[0] != kills


def test_a_kill_waits_for_its_call_and_no_longer_than_its_second() -> None:
    first, second, *_ = carried_out(7, 0.0, 1)[0]
    schedule = Schedule(7, 10.0, 60.0)
    schedule.begin(10.0, 1000)
    assert schedule.kill(first.latest - 1, 1000 + first.call - 1) is None
    assert schedule.kill(first.latest - 1, 1000 + first.call) == first
    schedule.begin(11.0, 2000)
    assert schedule.kill(second.latest - 1, 2000 + second.call - 1) is None
    assert schedule.kill(second.latest, 2000) == second
    assert schedule.killed_at == [f"call {first.call} of its life", f"second {second.latest:.1f}"]


def test_a_call_is_begun_once_however_often_that_is_told() -> None:
    begun = StartedCalls()
    for session, call in (("s", "a"), ("s", "b"), ("s", "a"), ("t", "a")):
        begun.add(session, call)
    begun.wait(3, 60.0)
    assert begun.total == 3


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--seconds", value) for value in ("nan", "inf", "0", "-1", "1e999", "soon")),
        *(("--seed", value) for value in ("-1", "1.5", "x")),
        *(("--sessions", value) for value in ("0", "257", "nan")),
    ],
)
def test_a_bad_value_is_refused_by_name(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        read([option, value])
    assert refused.value.code == 2
    assert f"argument {option}: {value!r} is no " in capsys.readouterr().err


# what grows ------------------------------------------------------------------------------------------------------


def life(*samples: tuple[float, int, int]) -> Life:
    """A life as it was looked at: MiB, calls, descriptors."""
    status = extensions.Status(extensions.Daemon(7, "1", "/home", "", ""), 0.0, 0.0, 1, [], [])
    return Life(0, 7, 0.0, burning=True, samples=[Sample(0.0, *sample, status) for sample in samples])


def test_a_planted_leak_of_descriptors_is_found() -> None:
    assert [descriptors(looks(20, after)) for after in (20, 23)] == [0, 3]


def looks(*unexplained: int) -> list[Sample]:
    return life(*((40.0, 0, each) for each in unexplained)).samples


@each_row(
    ("seen", "first", "enough"),
    [
        ([20] * 4, [], False),
        ([21, 20, 20, 20, 20, 20], [], True),
        ([20, 20, 20, 21, 20], [], False),
        ([20] * 5, [20], True),
        ([21] * 5, [20], False),
    ],
    ids=["too short", "steady", "unsteady", "as at the first rest", "more than at the first rest"],
)
def test_descriptors_are_looked_at_until_they_are_steady(seen: list[int], first: list[int], enough: bool) -> None:
    assert settled(looks(*seen), looks(*first)) is enough


def test_a_descriptor_that_is_open_only_for_a_moment_is_not_leaked() -> None:
    assert [each.unexplained for each in steadiest(looks(3, 22, 21, 20, 21, 22))] == [20]
    assert steadiest([]) == []


def rest(open_files: Mapping[int, str] | None, workers: int, idle_pools: int = 0) -> Sample:
    found = looks(20)[0]
    crew = [extensions.WorkerStatus("files", each, "/r", "p", "READY", pid=100 + each) for each in range(workers)]
    pools = [extensions.PoolStatus("files", "/r", "p", 0, None, each) for each in (crew, *[[]] * idle_pools)]
    found.status, found.open_files = msgspec.structs.replace(found.status, pools=pools), open_files
    return found


WORKER: Final = {5: "pipe:[1]", 6: "pipe:[2]", 7: "pipe:[3]", 8: "anon_inode:[pidfd]"}
ANOTHER: Final = {15: "pipe:[4]", 16: "pipe:[5]", 17: "pipe:[6]", 18: "anon_inode:[pidfd]"}


def test_a_leaked_descriptor_is_named() -> None:
    before, after = {3: "socket:[7]", **WORKER}, {3: "socket:[8]", **ANOTHER, 9: "/home/journal.db", 20: "pipe:[9]"}
    said = named([rest(before, 1), rest(after, 1)])
    assert [line.split(",")[0] for line in said] == [
        "descriptor: 9 leads to /home/journal.db",
        *(f"descriptor: {number} leads to {after[number]}" for number in (15, 16, 17, 20)),
    ]
    assert named([rest(WORKER, 1), rest({**WORKER, **ANOTHER, 3: "socket:[9]"}, 2)]) == [
        "descriptor: 3 leads to socket:[9], one of 1 that are new, 1 too many"
    ]
    opened = {3: "anon_inode:[eventpoll]", 4: "anon_inode:[eventpoll]"}
    assert named([rest({}, 0), rest(opened, 0, 1)]) == [
        f"descriptor: {number} leads to anon_inode:[eventpoll], one of 2 that are new, 1 too many" for number in (3, 4)
    ]
    assert named([rest(None, 1), rest(None, 1)]) == ["descriptor: which one was leaked, the kernel tells only root"]


def test_what_sqlite_keeps_of_a_closed_connection_is_not_leaked_and_a_connection_is(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with open_journal(path), ExitStack() as later:
        with open_journal(path):
            first = opened_by(os.getpid()) or {}
        kept = opened_by(os.getpid()) or {}
        later.enter_context(open_journal(path))  # SQLite uses again what it has kept
        later.enter_context(open_journal(path))
        leaked = opened_by(os.getpid()) or {}
    assert [kept_for_later(each)[str(path)] for each in (first, kept, leaked)] == [0, 1, 0]
    assert {line.split(", ")[1] for line in named([rest(kept, 0), rest(leaked, 0)])} == {"one of 3 that are new"}


def test_descriptors_are_told_with_where_they_lead(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        assert (opened_by(os.getpid()) or {})[file.fileno()] == str(tmp_path / "open")
    assert opened_by(0) is None


@pytest.mark.parametrize(("each", "flat"), [(0.0, True), (0.2, True), (0.8, False), (2.0, False)])
def test_planted_growth_of_memory_is_found(each: float, flat: bool) -> None:
    grown = life(*((40.0 + each * number, 100 * number, 20) for number in range(40)))
    assert growth([grown])[1] is flat


def test_growth_counts_the_calls_of_pools_that_have_ended_too() -> None:
    kept = life(*((40.0, 100 * number if number < 30 else 50 * (number - 30), 20) for number in range(40)))
    assert growth([kept])[0] == "+0.0 MiB in 1350 calls, 0.00 in 1000"


def test_growth_over_few_calls_is_told_without_a_slope() -> None:
    few, many = (life(*((40.0 + number / 10, each * number, 20) for number in range(40))) for each in (9, 100))
    assert growth([few]) == ("+1.9 MiB in 171 calls", True)
    assert growth([many]) == ("+1.9 MiB in 1900 calls, 1.00 in 1000", True)


def test_figures() -> None:
    assert at([3.0, 1.0, 2.0], 0.5) == 2.0
    assert at([], 0.5) is None
    assert slope([(float(x), 2.0 * x + 1) for x in range(10)]) == pytest.approx(2.0)
    assert slope([(1.0, 1.0)]) is None
