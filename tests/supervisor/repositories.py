"""Repositories as the profile `librarian` has them, and every name that nobody should get anywhere with."""

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.forked import ForkedStrongroom
from tests.supervisor.command import Strongroom

GROUP: Final = "elixir"
FIRST: Final = "phoenix"
SECOND: Final = "ecto"
THERE: Final = "Technologies of group 'elixir': .github, ecto, phoenix, sql lite."
"""How it is told what there is."""
NAMES: Final = {"profile": "librarian", "group": GROUP, "technology": FIRST}
OPTIONS: Final = ("--profile", "librarian", "--group", GROUP, "--technology", FIRST)


class Repos:
    """A directory with two technologies that try to reach each other, and a home whose configuration names it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.work = folder / "work"
        self.path = folder / "repos"
        self.first, self.second = (self.path / GROUP / name for name in (FIRST, SECOND))
        outside = folder / "outside"
        for directory in (self.home, self.work, self.first, self.second, self.path / "rust" / "tokio", outside):
            directory.mkdir(parents=True, mode=0o700)
        for name in (".github", "sql lite"):
            (self.path / GROUP / name).mkdir()
        os.mkdir(os.fsencode(self.path / GROUP) + b"/\xff")
        for root, other in ((self.first, self.second), (self.second, self.first)):
            (root / "guide.md").write_text(f"All about {root.name}.\n")
            (root / f"only-{root.name}.md").write_text("")
            (root / "lib").mkdir()
            (root / "lib" / "code.ex").write_text(root.name)
            (root / "beside").symlink_to(f"../{other.name}")
            (root / "absolute").symlink_to(other)
        (self.path / GROUP / "notes.txt").write_text("")
        (self.path / GROUP / "alias").symlink_to(FIRST)
        (self.path / GROUP / "up").symlink_to("..")
        (self.path / GROUP / "out").symlink_to(outside)
        (self.path / "linked").symlink_to(GROUP)
        self.configure()

    def configure(self, text: str = "", **librarian: str) -> None:
        """Write the configuration; `librarian` are keys of [librarian] beside `repos_path`."""
        keys = {"repos_path": str(self.path), **librarian}
        section = "".join(f"{key} = '{value}'\n" for key, value in keys.items())
        (self.home / "config.toml").write_text(f"{text}\n[librarian]\n{section}")

    def strongroom(self, folder: Path | None = None) -> Strongroom:
        """The command line, in a directory beside the repositories by default."""
        return ForkedStrongroom(self.home, folder or self.work)

    def context(self, technology: str = FIRST, **more: str) -> dict[str, Any]:
        """What an agent on a technology is told."""
        working_directory = str(self.path / GROUP / technology)
        return {"working_directory": working_directory, "group": GROUP, "technology": technology, **more}


class Odd(NamedTuple):
    """A name, and what is said of it."""

    name: str
    technology: str
    words: str


ODD: Final = [
    Odd("nothing", "", "No technology '': it is empty."),
    Odd("here", ".", "No technology '.': it cannot name a directory."),
    Odd("above", "..", "No technology '..': it cannot name a directory."),
    Odd("a way up", "../rust", "it holds a slash"),
    Odd("a way up and down again", "../elixir/phoenix", "it holds a slash"),
    Odd("a way down", "phoenix/lib", "it holds a slash"),
    Odd("a slash at its end", "phoenix/", "it holds a slash"),
    Odd("an absolute path", "/etc", "it holds a slash"),
    Odd("a NUL", "phoenix\0", "it holds characters that cannot be seen"),
    Odd("a NUL in the midst", "a\0b", "it holds characters that cannot be seen"),
    Odd("a line end", "phoenix\n", "it holds characters that cannot be seen"),
    Odd("a tab", "phoe\tnix", "it holds characters that cannot be seen"),
    Odd("an escape sequence", "\x1b[2Jphoenix", "No technology '\\x1b[2Jphoenix': it holds characters that cannot be"),
    Odd("a delete", "phoenix\x7f", "it holds characters that cannot be seen"),
    Odd("another direction", "\u202exineohp", "No technology '\\u202exineohp': it holds characters that cannot be"),
    Odd("too many characters", "x" * 129, "it has more than 128 characters"),
    Odd("too many bytes", "日" * 100, "it has more than 255 bytes"),
    Odd("far too many characters", "x" * 100_000, "it has more than 128 characters"),
    Odd("an option", "-rf", "No technology '-rf': it begins with a dash"),
    Odd("not UTF-8", "\udcff", "No technology '\\udcff': it is not UTF-8."),
    Odd("unknown", "nope", "No technology 'nope'."),
    Odd("almost known", "pheonix", "No technology 'pheonix'. Did you mean 'phoenix'?"),
    Odd("in other letters", "Phoenix", "No technology 'Phoenix'. Did you mean 'phoenix'?"),
    Odd("with a blank", "phoenix ", "No technology 'phoenix '. Did you mean 'phoenix'?"),
    Odd("another group's", "tokio", "No technology 'tokio'."),
    Odd("a home", "~", "No technology '~'."),
    Odd("to be filled in", "{technology}", "No technology '{technology}'."),
    Odd("a pattern", "*", "No technology '*'."),
    Odd("a file", "notes.txt", "No technology 'notes.txt': it is not a directory."),
    Odd("a link to another", "alias", "No technology 'alias': it is a symbolic link to "),
    Odd("a link to all", "up", "No technology 'up': it is a symbolic link to "),
    Odd("a link out", "out", "No technology 'out': it is a symbolic link to "),
]
"""Each is asked for as a technology of the group `elixir`."""

EVERY_ODD: Final = [odd.name for odd in ODD]
