"""Run the benchmarks, each in a process of its own, and print one table.

Rule: nothing outlives this program: each benchmark has a time limit and ends with it, and workers die with the
process that started them.
"""

import argparse
import importlib
import logging
import os
import subprocess
import sys
from typing import Final

import msgspec
import trio

from scripts.benchmarks.figures import Figure, table

BENCHMARKS: Final = {
    "search": "searches",
    "command": "commands",
    "round_trip": "calls",
    "large_reply": "calls",
    "throughput": "calls",
    "start": "starts",
    "recovery": "starts",
    "agent_step": "steps",
    "memory": "programs",
    "command_line": "programs",
    "first_prompt": "clients",
    "one_call": "clients",
}
"""Each a function of that name, in that module."""

_TIME_LIMIT: Final = 150
"""Seconds for one benchmark; each takes much less where nothing else runs."""


def _apart(name: str, *, quick: bool) -> list[Figure]:
    """Run one benchmark in its own process; return what it found."""
    command = [sys.executable, "-m", "scripts.benchmarks", "--here", name, *(["--quick"] if quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=_TIME_LIMIT)
    return msgspec.json.decode(done.stdout, type=list[Figure])


def main() -> int:
    """Return 0 when every goal is reached, 1 when one is not."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure the limit, its peers and Strongroom.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON document")
    parser.add_argument("--here", metavar="NAME", choices=BENCHMARKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there is: {', '.join(BENCHMARKS)}")
    if options.here:
        logging.disable()
        module = importlib.import_module(f"scripts.benchmarks.{BENCHMARKS[options.here]}")
        found = trio.run(getattr(module, options.here), options.quick)
        sys.stdout.buffer.write(msgspec.json.encode(found))
        return 0
    load, cpus = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cpus / 2:
        print(f"load {load:.1f} on {cpus} CPUs: other programs run, and goals may be missed for it", file=sys.stderr)
    figures: list[Figure] = []
    for name in options.names or BENCHMARKS:
        if sys.stderr.isatty():
            print(f"{name} ...", file=sys.stderr)
        figures += _apart(name, quick=options.quick)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(figures)).decode())
    else:
        print("\n".join(table(figures)))
    return 1 if any(each.reached is False for each in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
