"""The work of a soak's sessions, from its seed: scripts for the scripted model, and deeds of their clients.

Rule: pure. Every effect has a marker of its own, which is written once if it happens once: text that is added to a
file, a file's text or a file's name. So what is in the root says how often each has happened.
"""

import random
import re
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from scripts.soaking.chance import chance_of

Line = dict[str, Any]
Action = Literal["wait", "cancel", "vanish", "undo"]

MARKER: Final = re.compile(r"m[0-9]+-[0-9]+-[0-9]+e")
WORD: Final = "nightingale"
"""Stands in the notes that are searched."""
NOTES: Final = 8
PAGES: Final = "http://pages.example.org"
ASKED: Final = "asked"
"""The directory of a root that no rule covers: a person is asked."""
LOG: Final = "log.txt"
SHELL_LOG: Final = "shell.log"
MADE: Final = "made"
SHARED: Final = "shared.txt"
"""A file that all sessions of a root edit."""
END: Final = "|end"

_TURNS: Final = (3, 7)
_STEPS: Final = (1, 3)
_CALLS: Final = (1, 3)
_SPARE_LINES: Final = 12
"""Replies at the end for turns that were begun anew."""


class Turn(NamedTuple):
    """One prompt, and what its client does."""

    prompt: str
    action: Action
    pause: float
    """Seconds before that, or before the next turn."""


class Work(NamedTuple):
    """One session."""

    lines: list[Line]
    turns: list[Turn]


def folder(client: int) -> str:
    """Return the directory of a client in its root."""
    return f"c{client}"


def work(seed: int, client: int, number: int) -> Work:
    """Return what a client's session of that number does."""
    chance = chance_of(seed, client, number)
    writer = _Writer(chance, client, number)
    lines: list[Line] = []
    turns = []
    for turn in range(chance.randint(*_TURNS)):
        for _ in range(chance.randint(*_STEPS)):
            lines.append({"text": "I will see.", "calls": [writer.call() for _ in range(chance.randint(*_CALLS))]})
            if chance.random() < 0.05:
                lines[-1] |= {"fault": chance.choice(["overloaded", "rate_limited", "connection"]), "times": 1}
        lines.append({"text": f"Turn {turn} is done."})
        action = chance.choices(_ACTIONS, _ACTION_WEIGHTS)[0]
        turns.append(Turn(f"Do what is next, {turn}.", action, round(chance.uniform(0, 0.3), 3)))
    return Work(lines + [{"text": "Nothing is left to do."}] * _SPARE_LINES, turns)


_ACTIONS: Final[tuple[Action, ...]] = ("wait", "cancel", "vanish", "undo")
_ACTION_WEIGHTS: Final = (70, 9, 9, 12)


class _Writer:
    """Writes the calls of one session."""

    def __init__(self, chance: random.Random, client: int, number: int) -> None:
        self._chance = chance
        self._client = client
        self._number = number
        self._markers = 0

    def call(self) -> Line:
        """Return the next call."""
        makers, weights = zip(*_MAKERS, strict=True)
        tool, arguments = self._chance.choices(makers, weights)[0](self)
        return {"tool": tool, "arguments": arguments}

    def marker(self) -> str:
        """Return a marker that nobody else has."""
        self._markers += 1
        return f"m{self._client}-{self._number}-{self._markers}e"

    def path(self, name: str) -> str:
        """Return a path in the client's own directory."""
        return f"{folder(self._client)}/{name}"

    def below(self, limit: int) -> int:
        """Return a number below another."""
        return self._chance.randrange(limit)

    @property
    def unmarked(self) -> str:
        """A name for the marker's file that does not count as the marker."""
        return f"{self._number}-{self._markers}"


_Call = tuple[str, Line]


def _append(writer: _Writer, path: str) -> _Call:
    return "exec_shell", {"command": "sh", "args": ["-c", 'echo "$0" >> "$1"', writer.marker(), path]}


def _edit(writer: _Writer, path: str) -> _Call:
    return "edit_file", {"path": path, "old": END, "new": f"|{writer.marker()}{END}"}


def _write(writer: _Writer) -> _Call:
    marker = writer.marker()
    return "write_file", {"path": writer.path(f"{MADE}/w{writer.unmarked}.txt"), "content": f"{marker}\n"}


def _touch(writer: _Writer) -> _Call:
    return "exec_shell", {"command": "touch", "args": [writer.path(f"{MADE}/{writer.marker()}")]}


_MAKERS: Final[tuple[tuple[Callable[[_Writer], _Call], int], ...]] = (
    (lambda writer: ("read_file", {"path": writer.path(LOG)}), 12),
    (lambda writer: ("read_file", {"path": f"notes/{writer.below(NOTES)}.md"}), 12),
    (lambda _: ("list_files", {"pattern": "notes/*"}), 6),
    (lambda _: ("search_files", {"query": WORD, "glob": "notes/*.md"}), 14),
    (lambda writer: ("fetch_url", {"url": f"{PAGES}/{writer.below(50)}"}), 12),
    (lambda writer: _edit(writer, writer.path(LOG)), 14),
    (lambda writer: _edit(writer, SHARED), 4),
    (_write, 8),
    (lambda writer: _append(writer, writer.path(SHELL_LOG)), 12),
    (_touch, 5),
    (lambda writer: _append(writer, f"{ASKED}/{folder(writer._client)}.log"), 3),  # noqa: SLF001
    (lambda _: ("exec_shell", {"command": "ls", "args": ["notes"]}), 4),
    (lambda _: ("read_file", {"path": "../elsewhere"}), 1),
    (lambda _: ("read_file", {"file": 7}), 1),
    (lambda _: ("no_such_tool", {}), 1),
)
"""Calls and their weights."""
