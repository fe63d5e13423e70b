"""The findings of a soak: figures, and what is not as it should be.

Rule: it judges counts, never times.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

from scripts.soaking.client import Orders
from scripts.soaking.daemon import Daemon, Life, Sample, live, restarts
from scripts.soaking.figures import Row, at, slope, table
from scripts.soaking.ledger import Ledger, Problem, outcomes, seconds
from scripts.soaking.processes import kept_for_later
from scripts.soaking.world import World
from supervisor.agent.transcript import Transcript
from supervisor.journal.facts import SessionOpened
from supervisor.journal.journal import Journal, open_journal
from tests.supervisor.histories import fault_in_history
from workers.catalog import CATEGORIES

_STEADY: Final = 5
"""Looks in a row that have to find the same number of descriptors."""
_PER_WORKER: Final = {"pipe": 3, "pidfd": 1}
"""Descriptors that a daemon has open for each worker, by where they lead."""
_INJECTED: Final = re.compile(r"fault injected: (\w+) at")
_STEEP: Final = 4.0
"""MiB in 1000 calls above which memory is not flat."""
_MUCH: Final = 12.0
"""MiB that it may have grown in any case: how much of what was freed malloc keeps goes up and down by steps."""
_ENOUGH: Final = 1.0
"""Thousands of calls below which their slope is not told: it says nothing."""
_SHOWN: Final = 40
"""Problems that are told one by one."""


@dataclass
class Evidence:
    """Everything that is judged."""

    world: World
    daemon: Daemon
    orders: Orders
    control: str
    seed: int
    rests: list[Sample]
    killed_at: list[str]
    wounds: Counter[str]
    trouble: list[str]


def progress(now: float, part: str, daemon: Daemon, orders: Orders, wounds: Counter[str]) -> str:
    """Return one line about how it goes: everything so far, and the memory of the daemon that lives."""
    samples = daemon.life.samples[-1:]
    memory = f"{samples[0].memory:.0f} MiB" if samples else "- MiB"
    return (
        f"{now:5.0f} s  {part:<5}  life {daemon.life.number}, {daemon.kills} kills, {memory}"
        f"  sessions {len(orders.sessions)}  calls {orders.started_calls.total + orders.single}"
        f"  faults {_faults(daemon, wounds).total()}  restarts {restarts(daemon.lives).total()}"
        f"  deaths {len(daemon.deaths)}  leaked {len(daemon.leaked)}  refused {orders.refusals.total()}"
    )


def judge(evidence: Evidence) -> tuple[list[str], bool]:
    """Return what to print, and whether all is as it must be."""
    world, daemon = evidence.world, evidence.daemon
    began = time.monotonic()
    with open_journal(world.settings.journal) as journal:
        verdict = journal.verify()
        ledger = Ledger()
        for entry in journal.everything():
            ledger.add(entry)
        histories = [Problem("history", text) for text in _histories(journal)]
    lives = {life.number: life.last_row for life in daemon.lives}
    problems = [*ledger.problems(world.markers(), evidence.orders.told, lives), *histories]
    counts = Counter(each.what for each in problems)
    remains = [*world.remains(ledger.may_have), *_groups(daemon.lives)]
    faults = _faults(daemon, evidence.wounds)
    leak, grown = descriptors(evidence.rests), growth(daemon.lives)
    others = [*evidence.trouble, *evidence.orders.unanswered, *map(str, evidence.orders.refusals)]
    rows = [
        Row("seed", str(evidence.seed)),
        Row("sessions", str(sum(about == "session" for _, about, _ in ledger.told))),
        Row("calls", str(len(ledger.calls))),
        *(Row(f"  {name}", str(count)) for name, count in outcomes(ledger.calls.values()).most_common()),
        *(Row(f"clients: {name}", str(count)) for name, count in sorted(evidence.orders.actions.items())),
        Row("faults", str(faults.total())),
        *(Row(f"  {name}", str(count)) for name, count in sorted(faults.items())),
        Row("kills of the daemon", str(daemon.kills)),
        *(Row(f"  in the storm, {number}.", when) for number, when in enumerate(evidence.killed_at, 1)),
        Row("restarts of workers", str(restarts(daemon.lives).total())),
        *(Row(f"  {name}", str(count)) for name, count in sorted(restarts(daemon.lives).items())),
        Row("effects that were counted", str(sum(bool(call.marker) for call in ledger.calls.values()))),
        Row("commits that a person finds in the root, half done", str(world.rescued())),
        *_latencies(evidence, ledger),
        Row("lost calls", str(counts["lost"]), counts["lost"] == 0),
        Row("duplicated effects", str(counts["duplicated"]), counts["duplicated"] == 0),
        Row("effects of calls that had none", str(counts["uncalled-for"]), counts["uncalled-for"] == 0),
        Row("histories that are wrong", str(counts["history"]), counts["history"] == 0),
        Row("leaked processes", str(len(daemon.leaked)), not daemon.leaked),
        Row("leaked descriptors", "not measured" if leak is None else str(leak), None if leak is None else leak <= 0),
        Row(f"growth of memory: at most {_MUCH:g} MiB, or {_STEEP:g} in 1000 calls", *grown),
        Row("left behind: files, packs, cgroups", str(len(remains)), not remains),
        Row("deaths of the daemon", str(len(daemon.deaths)), not daemon.deaths),
        Row("rows of the journal", str(verdict.rows), not verdict.broken_at),
        Row("other trouble", str(len(others)), not others),
        Row("seconds to count all this", f"{time.monotonic() - began:.1f}"),
    ]
    said = [*daemon.leaked, *daemon.deaths, *others, *([verdict.problem] if verdict.problem else [])]
    said += named(evidence.rests) if leak is not None and leak > 0 else []
    said += [*remains, *(f"{each.what}: {each.text}" for each in problems)]
    more = [f"and {len(said) - _SHOWN} more"] if len(said) > _SHOWN else []
    return [*table(rows), *said[:_SHOWN], *more], all(row.good is not False for row in rows)


def _faults(daemon: Daemon, wounds: Counter[str]) -> Counter[str]:
    """Count the faults of all lives so far, and the signals from outside."""
    return Counter(_INJECTED.findall(daemon.errors.read_text(errors="replace"))) + wounds


def _histories(journal: Journal) -> Iterator[str]:
    """Yield what the Messages API would refuse."""
    for opened in journal.opened():
        if isinstance(opened.fact, SessionOpened) and opened.fact.model:
            facts = [entry.fact for entry in journal.of_session(opened.session)]
            if fault := fault_in_history(Transcript(facts).messages):
                yield f"session {opened.session}: {fault}"


def _latencies(evidence: Evidence, ledger: Ledger) -> Iterator[Row]:
    """Yield the times of the category without faults, while there were none at all and while others failed."""
    tools = [tool.name for tool in CATEGORIES[evidence.control].tools]
    for burning, when in ((False, "nothing fails"), (True, "others fail")):
        spans = [(life.began, life.ended) for life in evidence.daemon.lives[:-1] if life.burning == burning]
        taken = seconds(ledger.calls.values(), tools, spans)
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            value = at(taken, share)
            shown = "-" if value is None else f"{value * 1e3:.1f} ms"
            yield Row(f"{evidence.control}, {len(taken)} calls while {when}, {name}", shown)


def descriptors(rests: list[Sample]) -> int | None:
    """Return how many more there are at the last rest than at the first, that nothing explains."""
    if len(rests) < 2 or rests[0].status.daemon.pid != rests[-1].status.daemon.pid:
        return None
    first, last = rests[0].unexplained, rests[-1].unexplained
    return None if first is None or last is None else last - first


def settled(looks: list[Sample], rests: list[Sample]) -> bool:
    """Say whether the number of descriptors is steady, and not above the first rest's: then nobody need look again."""
    last = [each.unexplained for each in looks[-_STEADY:]]
    if len(last) < _STEADY or len(set(last)) > 1:
        return False
    before = rests[0].unexplained if rests else None
    return last[0] is None or before is None or last[0] <= before


def steadiest(looks: list[Sample]) -> list[Sample]:
    """Return the look of the last ones that counts: the lowest, for what is counted too often is about to go."""
    last = looks[-_STEADY:]
    return [min(last, key=lambda each: each.unexplained or 0)] if last else []


def named(rests: list[Sample]) -> list[str]:
    """Name the descriptors of the last rest that the first had not, of the kinds of which nothing explains as many."""
    first, last = rests[0], rests[-1]
    if first.open_files is None or last.open_files is None:
        return ["descriptor: which one was leaked, the kernel tells only root"]
    new = {number: to for number, to in last.open_files.items() if first.open_files.get(number) != to}
    more = _unexplained(last, last.open_files) - _unexplained(first, first.open_files)
    of_kind = {number: to for number, to in new.items() if more[_kind(to)] > 0} or new
    return [
        f"descriptor: {number} leads to {to}, one of {len(of_kind)} that are new, {max(1, more[_kind(to)])} too many"
        for number, to in sorted(of_kind.items())
    ]


def _unexplained(sample: Sample, open_files: Mapping[int, str]) -> Counter[str]:
    """Count descriptors by kind, without those of workers and clients, and what SQLite keeps."""
    workers = live(sample.status)
    found = Counter(map(_kind, open_files.values()))
    found.subtract({kind: many * len(workers) for kind, many in _PER_WORKER.items()})
    found.subtract(kept_for_later(open_files))
    found.subtract({"eventpoll": len(sample.status.pools)})
    found.subtract({"socket": sample.status.clients + sum(each.category == "web" for each in workers)})
    return found


def _kind(to: str) -> str:
    """Return what a descriptor leads to, without its number: "pipe", "socket", "pidfd", or a path."""
    return re.sub(r"^anon_inode:|[][]", "", to) if to.startswith("anon_inode:") else re.sub(r":\[\d+\]$", "", to)


def growth(lives: list[Life]) -> tuple[str, bool | None]:
    """Return how the memory has grown over the last life that had faults, and whether that is flat.

    The first half does not count: until then malloc takes what it keeps for the largest moments (20 to 25 MiB, where
    all that is in use takes 15), and again after a rest, in which it gave that back.
    """
    burning = [life for life in lives if life.burning and life.samples]
    samples = burning[-1].samples if burning else []
    samples = samples[len(samples) // 2 :]
    points = [(calls / 1000, sample.memory) for calls, sample in zip(_made(samples), samples, strict=True)]
    steep = slope(points)
    if steep is None:
        return "not measured", None
    grown = points[-1][1] - points[0][1]
    calls = points[-1][0] - points[0][0]
    rate = f", {steep:.2f} in 1000" if calls >= _ENOUGH else ""
    return f"{grown:+.1f} MiB in {calls * 1000:.0f} calls{rate}", steep <= _STEEP or grown <= _MUCH


def _made(samples: list[Sample]) -> list[int]:
    """Return how many calls had been made at each look since the first: pools that end take their counts along."""
    steps = [
        after.calls - before.calls if after.calls >= before.calls else after.calls
        for before, after in pairwise(samples)
    ]
    return [*accumulate(steps, initial=0)] if samples else []


def _groups(lives: list[Life]) -> Iterator[str]:
    """Yield the cgroups of workers that are still there."""
    seen = {
        Path(worker.cgroup)
        for life in lives
        for sample in life.samples
        for pool in sample.status.pools
        for worker in pool.workers
        if worker.cgroup
    }
    yield from (f"{path}: a left-over cgroup" for path in sorted(seen) if path.exists())
