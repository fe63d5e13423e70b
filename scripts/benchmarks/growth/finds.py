"""Finding again: words in a million facts of all sessions, and planted facts in one long conversation."""

import json
import os
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.growth.journals import fill
from scripts.benchmarks.growth.planted_facts import PlantedFact, conversation, planted_facts
from supervisor.acp.extensions import SearchParams
from supervisor.journal.facts import CallEnded, CallStarted, Fact, TurnStarted
from supervisor.journal.journal import open_journal
from supervisor.journal.search_index import file_of, in_index
from supervisor.reports.search_report import search
from supervisor.tools.session_recall import recall

_SEARCHED: Final = ("w1", "w1 w2", "w7 w3000", '"w5 w9"', "w40* w8", "w2 -w1", "w2999 w2998", "nothing")
"""Frequent words and rare ones, by the law that words follow in texts."""
_VOCABULARY: Final = 20_000
_WORDS: Final = 60
"""Of one text."""
_ROUNDS: Final = 5


async def growth_search(quick: bool) -> list[Figure]:
    """Measure an index of a million facts: what it costs to make it, its size, and a search."""
    count = 20_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.db")
        with open_journal(path) as journal:
            fill(journal, count // 2, 20)
            rng = random.Random(1)  # noqa: S311 - repeatable, not secret
            weights = [1 / (1 + each) for each in range(_VOCABULARY)]
            words = [f"w{each}" for each in range(_VOCABULARY)]
            for number in range(count // 2 // 500):
                facts: list[Fact] = [
                    TurnStarted(each + 1, " ".join(rng.choices(words, weights, k=_WORDS))) for each in range(500)
                ]
                journal.append(f"20260102-000000-{number:012x}", *facts)
            began, used = time.perf_counter(), time.process_time()
            in_index(journal, lambda _index: None)
            built, used = time.perf_counter() - began, time.process_time() - used
        samples = {typed: _milliseconds(path, typed) for typed in _SEARCHED}
        share = file_of(path).stat().st_size / os.stat(path).st_size
    facts_told = f"{count:,} facts"
    return [
        figure("search", f"the index made, {facts_told}", built * 1e3, "ms", 1),
        figure("search", "of it processor time", used * 1e3, "ms", 1),
        figure("search", "its size, to the journal's", share, "", 1),
        figure(
            "search", f"a search, {facts_told}", at([min(each) for each in samples.values()], 0.5), "ms", len(samples)
        ),
        figure("search", "the slowest search", max(map(min, samples.values())), "ms", _ROUNDS, goal=Goal(100.0)),
    ]


def _milliseconds(path: Path, typed: str) -> list[float]:
    found = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        search(path, SearchParams(typed))
        found.append((time.perf_counter() - began) * 1e3)
    return found


async def growth_recall(quick: bool) -> list[Figure]:
    """Measure how many of a thousand facts, planted over three million tokens, come back in at most two recalls."""
    planted, tokens = planted_facts(100 if quick else 1_000), 300_000 if quick else 3_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.db")
        with open_journal(path) as journal:
            journal.append("other", *conversation(planted_facts(100, seed=7), 100_000))
            journal.append("long", *conversation(planted, tokens))
        first, second, milliseconds = await had_back(path, "long", planted)
    told = f"{len(planted):,} facts over {tokens:,} tokens"
    return [
        figure("recall", f"{told}: had back at once", first / len(planted), "", len(planted)),
        figure(
            "recall",
            "in two recalls",
            (first + second) / len(planted),
            "",
            len(planted),
            goal=Goal(0.99, at_least=True),
        ),
        figure("recall", "a recall", at(milliseconds, 0.5), "ms", len(milliseconds)),
        figure("recall", "a recall, 99 %", at(milliseconds, 0.99), "ms", len(milliseconds)),
    ]


async def had_back(path: Path, session: str, planted: Sequence[PlantedFact]) -> tuple[int, int, list[float]]:
    """Return how many facts the first recall finds, and the second alone; and milliseconds of each recall."""
    found, milliseconds = [0, 0], list[float]()
    for each in planted:
        for number, query in enumerate(each.queries):
            call = CallStarted(1, "c", "recall", json.dumps({"query": query}), False, "allow", "")
            began = time.perf_counter()
            ended: CallEnded = await recall(path, session, call)
            milliseconds.append((time.perf_counter() - began) * 1e3)
            if ended.ok and each.value in ended.content:
                found[number] += 1
                break
    return found[0], found[1], milliseconds
