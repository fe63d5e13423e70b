"""Trees to search, a real search worker, and ripgrep itself to compare with."""

import json
import os
import random
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from supervisor.categories.search import ripgrep as installed
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker, open_worker
from tests.tool_calls import told
from workers.search.find_files import find_files
from workers.search.search_files import search_files
from workers.search.search_inputs import SearchInputs
from workers.search.searcher import Searcher
from workers.tool import ToolContext
from workers.wire import messages

RIPGREP = str(installed())
LIMITS = messages.Limits(processes=64)


class Found(NamedTuple):
    """What a search returned, with its note."""

    matches: list[tuple[str, int, str]]
    note: str

    @property
    def places(self) -> list[str]:
        return [f"{path}:{line}" for path, line, _ in self.matches]


def searched(context: ToolContext, query: str, glob: str | None = None, *, literal: bool = False) -> Found:
    """Call search_files in this process."""
    value, note = told(search_files, context, query=query, glob=glob, literal=literal)
    return Found([(each["path"], each["line"], each["text"]) for each in value], note)


def listed(context: ToolContext, pattern: str) -> tuple[list[str], str]:
    return told(find_files, context, pattern=pattern)


def run_by(context: ToolContext, program: str, budget_s: float = 20.0) -> ToolContext:
    """Return the context of a tool that another program than ripgrep searches for, or in another time."""
    return ToolContext(context.agent, context.root, engine=Searcher(program, 1, budget_s))


def open_search(root: Path, *removed: str, hostile: bool = False, **more: Any) -> AbstractContextManager[RawWorker]:
    """Start a real search worker on `root`, a hostile one without the locks that `removed` names."""
    command = hostile_command(*removed, category="search") if removed or hostile else None
    given = {"limits": LIMITS, "inputs": SearchInputs(RIPGREP), "command": command, **more}
    return open_worker(root, category="search", **given)


def rows(worker: RawWorker, tool: str, **arguments: Any) -> list[Any]:
    """Call a tool of a worker, and return what it found."""
    answer = worker.done(tool, arguments)
    found: list[Any] = json.loads(answer.content)
    return found


def make(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files beneath `root`, with the directories that they need."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def ripgrep(root: Path, *arguments: str) -> list[tuple[str, int]]:
    """Return what ripgrep itself finds: path and line, in our order."""
    command = [RIPGREP, "--json", "--no-require-git", "--no-ignore-global", "--no-ignore-parent", *arguments, "./"]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=False, stdin=subprocess.DEVNULL)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    matches = [each["data"] for each in records if each["type"] == "match"]
    places = [(each["path"]["text"].removeprefix("./"), each["line_number"]) for each in matches]
    return sorted(places, key=lambda place: (place[0].split("/"), place[1]))


WORDS = ("alpha", "beta", "gamma", "delta", "needle", "fn", "x1", "Größe")
ENDINGS = ("py", "md", "txt", "log", "c")


def grow(root: Path, seed: int, files: int) -> None:
    """Make a tree of `files` files with nested ignores, some of them lifted, and a few that are no text."""
    chance = random.Random(seed)
    for number in range(files):
        folder = "/".join(
            chance.choice(("src", "build", "lib", ".hidden", "docs")) for _ in range(chance.randint(0, 4))
        )
        lines = [" ".join(chance.choices(WORDS, k=6)) for _ in range(chance.randint(0, 6))]
        text = "\n".join(lines).encode() + (b"\0" if chance.random() < 0.03 else b"") + b"\n"
        make(root, {os.path.join(folder, f"f{number}.{chance.choice(ENDINGS)}"): text})
    for place in [root, *(each for each in sorted(root.rglob("*")) if each.is_dir() and chance.random() < 0.2)]:
        rules = chance.sample(("build/", "*.log", "!f1*.log", "/docs", "lib/**/*.c", "!*.md", "*.txt"), k=2)
        (place / chance.choice((".gitignore", ".ignore"))).write_text("\n".join(rules) + "\n")
