"""A conversation that is compacted again and again: a turn, and what is sent and kept of it, up to turn 5,000.

The loop, the transcript and the facts are the real ones; the model counts what it is sent, which is most of the time.
"""

import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from scripts.benchmarks.figures import Figure
from scripts.benchmarks.growth.curves import Point, curve
from tests.supervisor.agent.long_talk import LongTalk, words
from tests.supervisor.histories import Memory

_WINDOW: Final = 16_000
_AROUND: Final = 100
"""Turns before a size over which is measured: there are several compactions among them."""


async def growth_compacted(quick: bool) -> list[Figure]:
    """Measure a turn of two steps, compactions included, at several lengths of one conversation."""
    sizes = (200, 400) if quick else (200, 1_000, 2_000, 5_000)
    turns: list[Point] = []
    sent: list[Point] = []
    kept: list[Point] = []
    with tempfile.TemporaryDirectory() as folder:
        talk = LongTalk(1, Memory(Path(folder)), _WINDOW)
        began = 0.0
        for turn in range(1, sizes[-1] + 1):
            if turn + _AROUND in sizes:
                began = time.process_time()
            if end := await talk.turn(words(talk.dice, 12), 1, 3000):
                raise RuntimeError(end)
            if turn in sizes:
                ms = (time.process_time() - began) * 1e3 / _AROUND
                transcript = talk.conversation.transcript
                turns.append(Point(turn, ms, _AROUND))
                sent.append(Point(turn, len(msgspec.json.encode(transcript.messages)) / 1e3, 1))
                kept.append(Point(turn, float(len(transcript.compaction.entries)), 1))
    return [
        *curve("compacted conversation", "a turn", "turns", "ms", turns),
        *curve("compacted conversation", "what is sent", "turns", "kB", sent),
        *curve("compacted conversation", "entries of what was said", "turns", "", kept),
    ]
