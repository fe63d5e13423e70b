"""What a soak has found, as figures and as what is not so.

Rule: it judges counts, never times.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.soaking.client import Orders
from scripts.soaking.daemon import Daemon, Life, Sample, restarts
from scripts.soaking.figures import Row, at, slope, table
from scripts.soaking.ledger import Ledger, Problem, outcomes, seconds
from scripts.soaking.world import World
from supervisor.agent.transcript import Transcript
from supervisor.facts import SessionOpened
from supervisor.journal import Journal, open_journal
from tests.supervisor.histories import fault_in_history
from workers.catalog import CATEGORIES

_INJECTED: Final = re.compile(r"fault injected: (\w+) at")
_STEEP: Final = 4.0
"""MiB in 1000 calls above which memory is not flat."""
_MUCH: Final = 12.0
"""MiB that it may have grown in any case."""
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
    wounds: Counter[str]
    trouble: list[str]


def progress(now: float, part: str, daemon: Daemon, orders: Orders) -> str:
    """Return one line about how it goes."""
    sample = daemon.life.samples[-1] if daemon.life.samples else None
    happened = sum(sample.status.faults.values()) if sample else 0
    return (
        f"{now:5.0f} s  {part:<5}  life {daemon.life.number}, {daemon.kills} kills"
        f"  calls {sample.calls if sample else 0}  faults {happened}  restarts {restarts([daemon.life]).total()}"
        f"  {sample.memory if sample else 0:.0f} MiB  sessions {len(sample.status.sessions) if sample else 0}"
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
    faults = Counter(_INJECTED.findall(daemon.errors.read_text(errors="replace"))) + evidence.wounds
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
        Row("growth of memory, MiB in 1000 calls", *grown),
        Row("left behind: files, packs, cgroups", str(len(remains)), not remains),
        Row("deaths of the daemon", str(len(daemon.deaths)), not daemon.deaths),
        Row("rows of the journal", str(verdict.rows), not verdict.broken_at),
        Row("other trouble", str(len(others)), not others),
        Row("seconds to count all this", f"{time.monotonic() - began:.1f}"),
    ]
    said = [f"{each.what}: {each.text}" for each in problems]
    said += [*daemon.leaked, *remains, *daemon.deaths, *others, *([verdict.problem] if verdict.problem else [])]
    more = [f"and {len(said) - _SHOWN} more"] if len(said) > _SHOWN else []
    return [*table(rows), *said[:_SHOWN], *more], all(row.good is not False for row in rows)


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


def growth(lives: list[Life]) -> tuple[str, bool | None]:
    """Return the slope of the memory over the last life that had faults, and whether that is flat."""
    burning = [life for life in lives if life.burning and life.samples]
    samples = burning[-1].samples if burning else []
    samples = samples[len(samples) // 4 :]
    points = [(sample.calls / 1000, sample.memory) for sample in samples]
    steep = slope(points)
    if steep is None:
        return "not measured", None
    grown = points[-1][1] - points[0][1]
    return f"{steep:.2f} ({grown:+.1f} MiB)", steep <= _STEEP or grown <= _MUCH


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
