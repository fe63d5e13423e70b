"""The repositories that a librarian works in, one at a time: repos_path/GROUP/TECHNOLOGY, found by two names.

Rule: a name is that of one directory, exactly as it is written there. What it leads to is looked up in a listing, and
no link is followed beneath repos_path: so two technologies are two directories, neither within the other. Whoever
names what is not there is told what is.
"""

import difflib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from supervisor.display.escape import visible
from supervisor.errors import ConfigError

NAME_LIMIT: Final = 128
"""Characters of a name in a context (`workers.wire.messages.Context`)."""
_BYTES_LIMIT: Final = 255
"""Bytes of a name that Linux takes (NAME_MAX)."""

_LISTED: Final = 20
"""Names that a message lists, and characters of each that it shows."""
_SHOWN: Final = 60

_COMPARED: Final = 2000
"""Names that a wrong one is compared with, for the one that was meant."""

_FAULTS: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    ("it is empty", lambda name: not name),
    (f"it has more than {NAME_LIMIT} characters", lambda name: len(name) > NAME_LIMIT),
    ("it is no name of a directory", lambda name: name in {".", ".."}),
    ("it holds a slash, and one name is one directory", lambda name: "/" in name),
    ("it begins with a dash, as an option does", lambda name: name.startswith("-")),
    ("it is not UTF-8", lambda name: any("\ud800" <= each <= "\udfff" for each in name)),
    ("it holds characters that cannot be seen", lambda name: visible(name) != name or "\n" in name or "\t" in name),
    (f"it has more than {_BYTES_LIMIT} bytes", lambda name: len(name.encode()) > _BYTES_LIMIT),
)
"""What is wrong with a name, in the order in which it is looked for; the last needs the ones before it."""


class Names(NamedTuple):
    """What somebody asked for; None is left open."""

    group: str | None = None
    technology: str | None = None
    environment: str | None = None
    """None is the configured one, and "" is none."""

    @property
    def given(self) -> bool:
        """Whether anything was asked for."""
        return any(name is not None for name in self)


NO_NAMES: Final = Names()


class Repository(NamedTuple):
    """One technology's directory, absolute and without links, and its names."""

    root: Path
    group: str
    technology: str


@dataclass(frozen=True)
class Repositories:
    """All groups. Nothing is looked at before it is asked for.

    Args:
        path: as it is configured; a ~ is the user's home, and a relative one is beneath the configuration's directory.
        file: the configuration.
    """

    path: str
    file: Path

    def root(self) -> Path:
        """Return where they really are; repos_path itself may be a link, whoever configures it has seen it.

        Raises:
            ConfigError: there is no such directory.
        """
        place = Path(self.path)
        try:
            place = self.file.parent.joinpath(place.expanduser())
            real = place.resolve(strict=True)
            str(real).encode()
            if real.is_dir():
                return real
            why = "is not a directory"
        except FileNotFoundError:
            why = "does not exist"
        except (OSError, RuntimeError, ValueError) as error:  # no permission; the home of nobody; a NUL, not UTF-8
            why = f"cannot be used ({_why(error)})"
        raise ConfigError(
            f"The directory of repositories, {str(place)!r}, {why}. It is `repos_path` of [librarian] in {self.file}; "
            "what is in it has the shape GROUP/TECHNOLOGY."
        )

    def groups(self) -> list[str]:
        """Return the groups that there are, in order.

        Raises:
            ConfigError: they cannot be listed.
        """
        return _names(_listing(self.root()))

    def technologies(self, group: str) -> list[str]:
        """Return the technologies of a group, in order.

        Raises:
            ConfigError: there is no such group, or it cannot be listed.
        """
        return _names(_listing(self._group(group)))

    def find(self, group: str, technology: str) -> Repository:
        """Return one technology's directory.

        Raises:
            ConfigError: there is none of these names; what there is is told.
        """
        parent = self._group(group)
        there = f"Technologies of group {group!r}: "
        return Repository(self._step(parent, technology, "technology", there), group, technology)

    def around(self, place: str) -> tuple[str, str] | None:
        """Return the group and the technology of the directory that `place` is or lies in; None where it is in none.

        Raises:
            ConfigError: there are no repositories.
        """
        try:
            parts = Path(os.path.realpath(place)).relative_to(self.root()).parts
        except ValueError:
            return None
        return (parts[0], parts[1]) if len(parts) > 1 else None

    def missing(self, profile: str, names: Names) -> ConfigError:
        """Return the error for names that were left open, with what could stand there.

        Raises:
            ConfigError: another one comes first: no repositories, or no such group.
        """
        if names.group is None:
            lacks = "a group and a technology" if names.technology is None else "a group"
            there = f"{self._groups_are(self.root())}{_listed(self.groups())}"
        else:
            lacks = "a technology"
            there = f"Technologies of group {names.group!r}: {_listed(self.technologies(names.group))}"
        return ConfigError(
            f"The profile {profile!r} needs {lacks}: name them with --group and --technology, or begin in the "
            f"directory of one. {there}"
        )

    def _group(self, name: str) -> Path:
        root = self.root()
        return self._step(root, name, "group", self._groups_are(root))

    def _groups_are(self, root: Path) -> str:
        return f"Groups in {str(root)!r} (`repos_path` of [librarian] in {self.file}): "

    def _step(self, parent: Path, name: str, what: str, there: str) -> Path:
        """Return the directory `name` in `parent`.

        Args:
            parent: absolute and without links.
            name: as somebody wrote it.
            what: a word for it.
            there: leads in the names that there are.
        """
        kinds = _listing(parent)
        why = fault_in(name)
        if not why and name in kinds:
            if kinds[name] == "directory":
                return parent / name
            why = "it is no directory"
            if kinds[name] == "link":
                to = os.path.realpath(parent / name)
                why = f"it is a symbolic link, to {to!r}, and none is followed here; name the real directory"
        usable = _names(kinds)
        near = [] if why else difflib.get_close_matches(name, usable[:_COMPARED], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"No {what} {_shown(name)}{f': {why}' if why else ''}.{hint} {there}{_listed(usable)}")


def fault_in(name: str) -> str:
    """Return why `name` can be no name of a group, a technology or an environment; "" where it can."""
    return next((why for why, holds in _FAULTS if holds(name)), "")


def environment(name: str | None) -> str | None:
    """Return the name of an environment; None for none.

    Raises:
        ConfigError: it is no name.
    """
    if not name:
        return None
    if why := fault_in(name):
        raise ConfigError(f"No environment {_shown(name)}: {why}. Name another with --environment, or '' for none.")
    return name


def _listing(directory: Path) -> dict[str, str]:
    """Return what each entry is: "directory", "link" or "other".

    Raises:
        ConfigError: it cannot be listed.
    """
    try:
        with os.scandir(directory) as entries:
            return {entry.name: _kind(entry) for entry in entries}
    except OSError as error:
        raise ConfigError(f"The directory {str(directory)!r} cannot be listed: {error.strerror}.") from error


def _kind(entry: "os.DirEntry[str]") -> str:
    return "link" if entry.is_symlink() else "directory" if entry.is_dir(follow_symlinks=False) else "other"


def _names(kinds: dict[str, str]) -> list[str]:
    """Return the directories that can be named, in order."""
    return sorted(name for name, kind in kinds.items() if kind == "directory" and not fault_in(name))


def _listed(names: Iterable[str]) -> str:
    """Return names as a message shows them: a few, and how many more there are."""
    every = list(names)
    shown = ", ".join(each if len(each) <= _SHOWN else f"{each[:_SHOWN]}..." for each in every[:_LISTED])
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return f"{shown}{more}." if every else "none yet."


def _shown(name: str) -> str:
    return repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")


def _why(error: Exception) -> str:
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).rstrip(".")
