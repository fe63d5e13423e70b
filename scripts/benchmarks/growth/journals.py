"""A journal that grows: opening it, listing, reading a session, explaining a call, verifying the chain."""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from scripts.benchmarks.figures import Figure, Goal, figure
from scripts.benchmarks.growth.curves import Point, curve
from supervisor.journal.facts import (
    CallEnded,
    CallStarted,
    Fact,
    Replied,
    SessionOpened,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from supervisor.journal.index import SessionIndex, Summary, session_named
from supervisor.journal.journal import Journal, open_journal
from supervisor.reports.why import explain
from supervisor.session.earlier_session import read_earlier
from workers.wire.messages import Context

_A_SESSION: Final = 20
"""Turns of each session."""
_NOTE: Final = "A note.\n" * 20
_LISTED: Final = 50
_ROUNDS: Final = 3
_FIRST: Final = "first listing, a thousand sessions"
_FIRST_MS: Final = 300.0
"""Milliseconds that it may take with the largest journal."""


def session_facts(turns: int, root: str = "/nonexistent") -> list[Fact]:
    """Return the facts of one session with so many turns of one call each."""
    facts: list[Fact] = [SessionOpened("vault", "offline", Context(root), ("read_file",), "console", "0", cwd=root)]
    for turn in range(1, turns + 1):
        call = f"call_{turn:06}"
        use = {"type": "tool_use", "id": call, "name": "read_file", "input": {"path": "note.md"}}
        said: list[dict[str, Any]] = [{"type": "text", "text": "I will read the note and see what it says."}, use]
        facts += [
            TurnStarted(turn, "Read the note until you know it."),
            Replied(turn, 0, said, "tool_use", {"input_tokens": 10, "output_tokens": 5}),
            CallStarted(turn, call, "read_file", '{"path": "note.md"}', effect=False, decision="allow", reason="reads"),
            CallEnded(turn, call, "read_file", ok=True, content=_NOTE),
            Replied(turn, 1, [{"type": "text", "text": "I know it."}], "end_turn", {"input_tokens": 9}),
            TurnEnded(turn, "ok", "I know it."),
        ]
    return facts


def fill(journal: Journal, facts: int, turns: int) -> None:
    """Append at least so many facts, in sessions of so many turns."""
    one, sessions = session_facts(turns), 0
    while sessions * len(one) < facts:
        journal.append(f"20260101-000000-{sessions:012x}", *one)
        sessions += 1


async def growth_journal(quick: bool) -> list[Figure]:
    """Measure a journal of ten thousand to a million facts, and one of ten to ten thousand short sessions."""
    by_facts = _costs((2_000, 20_000) if quick else (10_000, 100_000, 1_000_000), _A_SESSION)
    one = len(session_facts(1))
    by_sessions = _costs((10 * one, 1_000 * one) if quick else (10 * one, 1_000 * one, 10_000 * one), 1)
    found = [each for name, points in by_facts.items() for each in curve("journal", name, "facts", "ms", points)]
    for name, points in by_sessions.items():
        sized = [each._replace(size=each.size // one) for each in points]
        found += curve("journal", name, "sessions", "ms", sized)
    largest = by_facts[_FIRST][-1]
    milliseconds = largest.value * largest.size / len(session_facts(_A_SESSION)) / 1000
    name = f"first listing, all of {largest.size:,} facts"
    return [*found, figure("journal", name, milliseconds, "ms", largest.n, goal=Goal(_FIRST_MS))]


def _costs(sizes: Sequence[int], turns: int) -> dict[str, list[Point]]:
    """Return what each kind of read costs at its best in journals of so many facts, which take turns."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {size: Path(folder, f"{size}.db") for size in sizes}
        for size, path in paths.items():
            with open_journal(path) as journal:
                fill(journal, size, turns)
        rounds = [
            {size: _measured(path, size, size / len(session_facts(turns))) for size, path in paths.items()}
            for _ in range(_ROUNDS)
        ]
    return {
        name: [
            Point(size, min(each[size][name][0] for each in rounds), _ROUNDS * rounds[0][size][name][1])
            for size in sizes
        ]
        for name in rounds[0][sizes[0]]
    }


def _measured(path: Path, facts: int, sessions: float) -> dict[str, tuple[float, int]]:
    """Return milliseconds of each kind of read at its best, and how often it was done."""
    found: dict[str, tuple[float, int]] = {}
    path.with_suffix(".index").unlink(missing_ok=True)

    def timed(name: str, times: int, read: Callable[[], object], units: float = 1) -> None:
        samples = []
        for _ in range(times):
            began = time.perf_counter()
            read()
            samples.append((time.perf_counter() - began) * 1e3 / units)
        found[name] = min(samples), times

    def opened() -> None:
        with open_journal(path):
            pass

    timed("open", 5, opened)
    with open_journal(path) as journal:

        def listing(index: SessionIndex) -> Sequence[Summary]:
            index.refresh()
            return index.listing(limit=_LISTED)

        def one_more(index: SessionIndex) -> None:
            journal.append(session, TurnResumed(1))
            listing(index)

        index = SessionIndex(journal)
        timed("an index, a thousand facts", 1, lambda: listing(index), facts / 1000)
        timed(_FIRST, 5, lambda: listing(SessionIndex(journal)), sessions / 1000)
        session = listing(index)[-1].session
        timed("one more listing", 20, lambda: one_more(index))
        timed(
            "found by its end, a thousand sessions", 5, lambda: session_named(journal, session[-12:]), sessions / 1000
        )
        timed("reading a session", 20, lambda: read_earlier(journal, session))
        timed("why, in a named session", 20, lambda: explain(journal, "call_000001", session))
        timed("verify, a thousand facts", 1, journal.verify, facts / 1000)
    return found
