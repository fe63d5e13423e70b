"""Searches: ours, through pool, wire and confinement, against ripgrep alone, on a tree of more than 20,000 files.

The limit is `rg --json` for the same query, its output read and its matches counted; where the answer is cut at 100
matches, it is killed at the hundredth. Both take turns.
"""

import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import trio

from scripts.benchmarks.figures import Figure, Goal, at, figure
from scripts.benchmarks.pools import settled, with_pool
from supervisor.categories.search import ripgrep
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec
from workers import kernel
from workers.search.search_inputs import SearchInputs
from workers.wire.messages import Context, Limits

_DIRECTORIES: Final = 200
_FILES: Final = 110
"""In each directory, a tenth of them in one that some .gitignore excludes."""
_ENDINGS: Final = ("py", "md", "txt", "log", "c")
_IGNORES: Final = "build/\n*.log\n!keep.log\n"
_CUT: Final = 100


class _Query(NamedTuple):
    name: str
    text: str
    goal: Goal
    glob: str | None = None
    cut: bool = False


_WHOLE: Final = Goal(1.15, of="ratio")
_QUERIES: Final = (
    _Query("an absent literal", "no_such_word", _WHOLE),
    _Query("a rare literal, 1 match", "rare_word", _WHOLE),
    _Query("a literal with about 200 matches", "middling_word", _WHOLE),
    _Query("a regular expression with a glob", r"\bmid[a-z]+_w\w+ here$", _WHOLE, "*.py"),
    _Query("a common literal, cut at 100", "common_word", Goal(8.0), cut=True),
)


def _lines(chance: random.Random, words: list[str]) -> Iterator[str]:
    for _ in range(chance.randint(5, 40)):
        yield " ".join(chance.choices(words, k=8))
    if chance.random() < 1 / 100:
        yield "a middling_word here"
    if chance.random() < 1 / 2:
        yield "a common_word"


def _grow(root: Path) -> None:
    """Make the tree, always the same one."""
    chance = random.Random(1)  # noqa: S311 - a tree, no secret
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(2000)]
    for number in range(_DIRECTORIES):
        folder = root / f"part{number % 20:02}" / f"module{number:03}"
        (folder / "build").mkdir(parents=True)
        if number % 5 == 0:
            (folder / ".gitignore").write_text(_IGNORES)
        for file in range(_FILES):
            place = folder / "build" if file % 10 == 0 else folder
            text = "\n".join(_lines(chance, words))
            (place / f"f{file:03}.{_ENDINGS[file % len(_ENDINGS)]}").write_text(text)
    (root / "part07/module107/rare.md").write_text("a rare_word\n")


def _bare(program: str, root: str, query: _Query) -> float:
    """Run ripgrep alone; return the seconds until it has ended, or was killed."""
    command = [program, "--json", *(("--glob", query.glob) if query.glob else ()), "-e", query.text, "./"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=root, env={}) as process:
        assert process.stdout
        matches = 0
        while chunk := os.read(process.stdout.fileno(), 2**16):
            matches += chunk.count(b'{"type":"match"')
            if query.cut and matches >= _CUT:
                process.kill()
                break
    return time.perf_counter() - began


async def search(quick: bool) -> list[Figure]:
    """Measure each kind of query."""
    found: list[Figure] = []
    given = SearchInputs(str(ripgrep()))
    roots: list[str] = []

    def spec(root: str) -> ChildSpec:
        roots.append(root)
        return ChildSpec("search", Context(root), limits=Limits(processes=64), inputs=given)

    async def use(pool: Pool) -> None:
        await trio.to_thread.run_sync(_grow, Path(roots[0]))
        await settled(pool, 1)
        for query in _QUERIES:
            found.extend(await _compared(pool, given.ripgrep, roots[0], query, 7 if quick else 25))

    kernel.keep_heap()
    await with_pool(spec, use)
    return found


async def _compared(pool: Pool, program: str, root: str, query: _Query, times: int) -> list[Figure]:
    arguments = msgspec.json.encode({"query": query.text, **({"glob": query.glob} if query.glob else {})})
    bare: list[float] = []
    ours: list[float] = []
    for number in range(times + 1):
        seconds = _bare(program, root, query)
        began = time.perf_counter()
        await pool.call("search_files", arguments, effect=False)
        if number:  # the first round warms up
            bare.append(seconds * 1000)
            ours.append((time.perf_counter() - began) * 1000)
    limit, median = at(bare, 0.5), at(ours, 0.5)
    name = f"search, {_DIRECTORIES * _FILES} files"
    figures = [
        figure(name, f"{query.name}: rg --json (the limit)", limit, "ms", times),
        figure(
            name, f"{query.name}: strongroom", median, "ms", times, limit=limit, goal=None if query.cut else query.goal
        ),
    ]
    if query.cut:
        figures.append(figure(name, f"{query.name}: more than the limit", median - limit, "ms", times, goal=query.goal))
    return figures
