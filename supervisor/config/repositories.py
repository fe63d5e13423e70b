"""Repositories of the profile `librarian`, found by two names: repos_path/GROUP/TECHNOLOGY.

Rule: a name is exactly that of one directory. It is looked up in a listing, and no link is followed beneath repos_path,
so two technologies are two directories, neither within the other. An error about a wrong name lists the right ones.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from supervisor.display.escape import visible
from supervisor.errors import ConfigError, reason

NAME_LIMIT: Final = 128
"""Characters of a name in a context (`workers.wire.messages.Context`)."""
_BYTES_LIMIT: Final = 255
"""Bytes of a name that Linux takes (NAME_MAX)."""

_LISTED: Final = 20
"""Names that a message lists, and characters of each that it shows."""
_SHOWN: Final = 60

_COMPARED: Final = 2000
"""Names that a wrong one is compared with, for the one that was meant."""

_NAME_RULES: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    ("it is empty", lambda name: not name),
    (f"it has more than {NAME_LIMIT} characters", lambda name: len(name) > NAME_LIMIT),
    ("it cannot name a directory", lambda name: name in {".", ".."}),
    ("it holds a slash, but must be one directory", lambda name: "/" in name),
    ("it begins with a dash, as an option does", lambda name: name.startswith("-")),
    ("it is not UTF-8", lambda name: any("\ud800" <= each <= "\udfff" for each in name)),
    ("it holds characters that cannot be seen", lambda name: visible(name) != name or "\n" in name or "\t" in name),
    (f"it has more than {_BYTES_LIMIT} bytes", lambda name: len(name.encode()) > _BYTES_LIMIT),
)
"""Problems of a name, in the order of the checks; the last needs the ones before it."""


class Names(NamedTuple):
    """The names that a client gave; None is left open."""

    group: str | None = None
    technology: str | None = None
    environment: str | None = None
    """None is the configured one, and "" is none."""

    @property
    def given(self) -> bool:
        return any(name is not None for name in self)


NO_NAMES: Final = Names()


class Repository(NamedTuple):
    """One technology's directory, absolute and without links, with its names."""

    root: Path
    group: str
    technology: str


@dataclass(frozen=True)
class Repositories:
    """All groups and their technologies, read from the disk each time.

    Args:
        path: as it is configured; a ~ is the user's home, and a relative one is beneath the configuration's directory.
        file: the configuration.
    """

    path: str
    file: Path

    def root(self) -> Path:
        """Return the real directory of all; repos_path itself may be a link, for the operator has chosen it.

        Raises:
            ConfigError: there is no such directory.
        """
        try:
            place = self.file.parent / Path(self.path).expanduser()
        except RuntimeError:  # the home of nobody, as `real_directory` says
            place = Path(self.path)
        real, problem = real_directory(place)
        if problem:
            raise ConfigError(
                f"The directory of repositories, {str(place)!r}, {problem}. Set `repos_path` of [librarian] in "
                f"{self.file} to one that holds repositories as GROUP/TECHNOLOGY."
            )
        return real

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
            ConfigError: there is none of these names; the text lists those that exist.
        """
        parent = self._group(group)
        known = f"Technologies of group {group!r}: "
        return Repository(self._child_directory(parent, technology, "technology", known), group, technology)

    def repository_at(self, place: str) -> tuple[str, str] | None:
        """Return the group and the technology that `place` lies in; None where it is in none.

        Raises:
            ConfigError: there are no repositories.
        """
        try:
            parts = Path(os.path.realpath(place)).relative_to(self.root()).parts
        except ValueError:
            return None
        return (parts[0], parts[1]) if len(parts) > 1 else None

    def missing_names(self, profile: str, names: Names) -> ConfigError:
        """Return the error for names that were left open; it lists the possible ones.

        Raises:
            ConfigError: there are no repositories, or there is no such group.
        """
        if names.group is None:
            lacks = "a group and a technology" if names.technology is None else "a group"
            known = f"{self._groups_in(self.root())}{_listed(self.groups())}"
        else:
            lacks = "a technology"
            known = f"Technologies of group {names.group!r}: {_listed(self.technologies(names.group))}"
        return ConfigError(
            f"The profile {profile!r} needs {lacks}. Use --group and --technology, or start in a repository. {known}"
        )

    def _group(self, name: str) -> Path:
        root = self.root()
        return self._child_directory(root, name, "group", self._groups_in(root))

    def _groups_in(self, root: Path) -> str:
        return f"Groups in {str(root)!r} (`repos_path` of [librarian] in {self.file}): "

    def _child_directory(self, parent: Path, name: str, what: str, known: str) -> Path:
        """Return the directory `name` in `parent`.

        Args:
            parent: absolute and without links.
            name: as the client wrote it.
            what: a word for it.
            known: introduces the list of names that exist.
        """
        kinds = _listing(parent)
        why = name_problem(name)
        if not why and name in kinds:
            if kinds[name] == "directory":
                return parent / name
            why = "it is not a directory"
            if kinds[name] == "link":
                to = os.path.realpath(parent / name)
                why = f"it is a symbolic link to {to!r}, and links are not followed here; name the real directory"
        names = _names(kinds)
        import difflib

        near = [] if why else difflib.get_close_matches(name, names[:_COMPARED], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"No {what} {_shown(name)}{f': {why}' if why else ''}.{hint} {known}{_listed(names)}")


def real_directory(path: Path) -> tuple[Path, str]:
    """Return a directory absolute and without links, and "", or else why there is none."""
    try:
        real = path.expanduser().resolve(strict=True)
        str(real).encode()
    except FileNotFoundError:
        return path, "does not exist"
    except UnicodeEncodeError:
        return path, "has a name that is not UTF-8"
    except (OSError, RuntimeError, ValueError) as error:  # no permission; the home of nobody; a NUL
        return path, f"cannot be used: {reason(error)}"
    return real, "" if real.is_dir() else "is not a directory"


def name_problem(name: str) -> str:
    """Return why `name` cannot name a group, a technology or an environment; "" where it can."""
    return next((why for why, holds in _NAME_RULES if holds(name)), "")


def environment(name: str | None) -> str | None:
    """Return the name of an environment, checked; None for none.

    Raises:
        ConfigError: it cannot be a name.
    """
    if not name:
        return None
    if why := name_problem(name):
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
    """Return the directories with valid names, in order."""
    return sorted(name for name, kind in kinds.items() if kind == "directory" and not name_problem(name))


def _listed(names: Iterable[str]) -> str:
    """Return names as a message shows them: the first few, and the number of the others."""
    every = list(names)
    shown = ", ".join(each if len(each) <= _SHOWN else f"{each[:_SHOWN]}..." for each in every[:_LISTED])
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return f"{shown}{more}." if every else "none yet."


def _shown(name: str) -> str:
    return repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")
