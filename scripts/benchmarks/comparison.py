"""This tree's figures beside those of another commit, measured in turns on one machine.

Rule: each side runs its own benchmarks with its own installation, in a directory of its own; the sides take turns and
change who begins, so that what the machine does besides hits both. A figure is compared by its medians over the
rounds, and named slower or faster only where also the rounds of the two sides do not overlap. The limits, which no
change of ours can move, are the yardstick: what they differ by is the machine's.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from scripts.benchmarks.figures import Figure

SLOWER: Final = 1.08
"""Times as long (or as few a second) that a figure is named slower from; its inverse is named faster."""

Key = tuple[str, str]
"""A figure's benchmark and name."""


class Compared(msgspec.Struct, frozen=True):
    """One figure of both sides, over all rounds."""

    key: Key
    unit: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def times(self) -> float:
        """How many times as slow it is as before: 1.1 is a tenth slower, whatever the unit."""
        before, after = median(self.before), median(self.after)
        return before / after if self.unit.endswith("/s") else after / before

    @property
    def verdict(self) -> str:
        """The word for it: slower, faster or none."""
        apart = max(self.before) < min(self.after) or max(self.after) < min(self.before)
        if not apart or 1 / SLOWER < self.times < SLOWER:
            return ""
        return "slower" if self.times > 1 else "faster"


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Give a copy of the tree at a commit, with what it needs installed.

    Raises:
        subprocess.CalledProcessError: there is no such commit, or it cannot be installed.
    """
    with tempfile.TemporaryDirectory(prefix="strongroom-bench-") as tree:
        git = shutil.which("git") or "git"
        found = subprocess.run([git, "rev-parse", commit], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
        subprocess.run([git, "clone", "--quiet", "--shared", "--no-checkout", ".", tree], check=True)
        subprocess.run([git, "-C", tree, "checkout", "--quiet", found], check=True)
        subprocess.run([f"{tree}/scripts/install"], check=True)
        yield Path(tree)


def measure(tree: Path, name: str, *, quick: bool, time_limit: float) -> list[Figure]:
    """Run one benchmark of a tree in a process of its own; return what it found.

    Raises:
        subprocess.SubprocessError: it failed, or took longer than `time_limit` seconds.
    """
    command = [str(tree / ".venv/bin/python"), "-m", "scripts.benchmarks", "--here", name]
    if quick:
        command.append("--quick")
    done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, check=True, timeout=time_limit)
    return msgspec.json.decode(done.stdout, type=list[Figure])


def compare_trees(
    before: Path, after: Path, names: Sequence[str], *, rounds: int, quick: bool, time_limit: float
) -> list[Compared]:
    """Run each benchmark of both trees, in turns; one that a tree does not have, or that fails, is left out."""
    found: list[tuple[list[Figure], list[Figure]]] = []
    for name in names:
        for number in range(rounds):
            order = (before, after) if number % 2 == 0 else (after, before)
            try:
                figures = {tree: measure(tree, name, quick=quick, time_limit=time_limit) for tree in order}
            except subprocess.SubprocessError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                break
            found.append((figures[before], figures[after]))
    return compare(found)


def compare(rounds: Sequence[tuple[Sequence[Figure], Sequence[Figure]]]) -> list[Compared]:
    """Pair the figures of both sides, in the order of the later side; figures of one side alone are left out."""
    sides: tuple[dict[Key, list[float]], dict[Key, list[float]]] = ({}, {})
    units: dict[Key, str] = {}
    for both in rounds:
        for found, side in zip(both, sides, strict=True):
            for each in found:
                key = (each.benchmark, each.name)
                side.setdefault(key, []).append(each.value)
                units[key] = each.unit
    before, after = sides
    return [
        Compared(key, units[key], tuple(before[key]), tuple(after[key]))
        for key in after
        if key in before and median(before[key]) > 0 and median(after[key]) > 0
    ]


def comparison_table(compared: Sequence[Compared], commit: str) -> Iterator[str]:
    """Yield the lines of the comparison, and at the end what got slower."""
    yield f"{'':56} {commit[:12]:>12} {'now':>9} {'':7} {'times':>6}"
    heading = ""
    for each in compared:
        benchmark, name = each.key
        if benchmark != heading:
            heading = benchmark
            yield heading
        values = f"{median(each.before):12.4g} {median(each.after):9.4g}"
        yield f"  {name:54} {values} {each.unit:7} {each.times:6.2f} {each.verdict}".rstrip()
    slower = [each for each in compared if each.verdict == "slower"]
    yield ""
    yield f"{len(slower)} of {len(compared)} figures are more than {SLOWER - 1:.0%} slower" + (":" if slower else ".")
    for each in slower:
        yield f"  {each.times:.2f} times: {each.key[0]}: {each.key[1]}"
