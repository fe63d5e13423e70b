"""Run the benchmarks, each in a process of its own, and print one table.

Rule: nothing outlives this program: each benchmark has a time limit and ends with it, and workers die with the
process that started them.
"""

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import trio

from scripts.benchmarks.comparison import checkout, compare_trees, comparison_table, measure
from scripts.benchmarks.figures import Figure, table
from scripts.benchmarks.growth.curves import drawing

BENCHMARKS: Final = {
    "search": "searches",
    "command": "commands",
    "round_trip": "calls",
    "large_reply": "calls",
    "throughput": "calls",
    "start": "starts",
    "recovery": "starts",
    "agent_step": "steps",
    "model_formats": "model_formats",
    "memory": "programs",
    "command_line": "programs",
    "first_prompt": "clients",
    "one_call": "clients",
    "growth_journal": "growth.journals",
    "growth_search": "growth.finds",
    "growth_recall": "growth.finds",
    "growth_turns": "growth.turns",
    "growth_compacted": "growth.compactions",
    "growth_roots": "growth.roots",
    "growth_open_roots": "growth.roots",
    "growth_rewind": "growth.rewinds",
    "growth_batch": "growth.batches",
    "growth_crowd": "growth.crowds",
    "growth_output": "growth.crowds",
}
"""Each a function of that name, in that module."""

_GROWTH: Final = "growth"
"""Stands for every benchmark whose name begins so; they take minutes, and run only where they are named."""

_TIME_LIMIT: Final = 1_200
"""Seconds for one benchmark; each takes much less where nothing else runs, and the disk frees files at once."""


_ROUNDS: Final = 3
"""Turns of each side in a comparison."""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure the limit, its peers and Strongroom.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of: {', '.join(BENCHMARKS)}; growth: all of its; default: all but its",
    )
    parser.add_argument("--draw", metavar="FILE.svg", help="draw the curves of growth there")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON document")
    parser.add_argument(
        "--compare", metavar="COMMIT", help="measure COMMIT in turns with this tree, and name what changed"
    )
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"turns of each side in a comparison ({_ROUNDS})")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--here", metavar="NAME", choices=BENCHMARKS, help=argparse.SUPPRESS)
    return parser


def _chosen(names: Sequence[str]) -> list[str]:
    """Return the benchmarks that names stand for; none: all that are quick."""
    growth = [name for name in BENCHMARKS if name.startswith(_GROWTH)]
    if not names:
        return [name for name in BENCHMARKS if name not in growth]
    return [each for name in names for each in (growth if name == _GROWTH else [name])]


def main() -> int:
    """Return 0 when every goal is reached, 1 when one is not; a comparison ends with 0 whatever it finds."""
    parser = _arguments()
    options = parser.parse_args()
    if unknown := set(options.names) - {*BENCHMARKS, _GROWTH}:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there is: {', '.join(BENCHMARKS)}")
    if options.list:
        print("\n".join(BENCHMARKS))
        return 0
    if options.here:
        logging.disable()
        module = importlib.import_module(f"scripts.benchmarks.{BENCHMARKS[options.here]}")
        found = trio.run(getattr(module, options.here), options.quick)
        sys.stdout.buffer.write(msgspec.json.encode(found))
        return 0
    load, cpus = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cpus / 2:
        print(f"load {load:.1f} on {cpus} CPUs: other programs run, and goals may be missed for it", file=sys.stderr)
    names = _chosen(options.names)
    if options.compare:
        with checkout(options.compare) as tree:
            compared = compare_trees(
                tree, Path.cwd(), names, rounds=options.rounds, quick=options.quick, time_limit=_TIME_LIMIT
            )
        print("\n".join(comparison_table(compared, options.compare)))
        return 0
    figures: list[Figure] = []
    for name in names:
        if sys.stderr.isatty():
            print(f"{name} ...", file=sys.stderr)
        figures += measure(Path.cwd(), name, quick=options.quick, time_limit=_TIME_LIMIT)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(figures)).decode())
    else:
        print("\n".join(table(figures)))
    if options.draw:
        Path(options.draw).write_text(drawing(figures), encoding="utf-8")
    return 1 if any(each.reached is False for each in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
