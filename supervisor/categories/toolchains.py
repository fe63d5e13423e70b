"""Programs as the person has them: where commands find them, what is shown for that, and what is not, with the reason.

Rule: what the person's PATH finds comes first, in its order, then what installers are known to leave in a home. Each
place is judged by `shown_places`; a place that may not be shown is left out by name, and the others count. A program
that is a link, and a script that names its interpreter, bring what they lead to. Nothing here is run.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Final, NamedTuple

from supervisor.categories.known_places import known_places
from supervisor.categories.program_links import base_named_by, in_system, leading_out
from supervisor.categories.shown_places import (
    HiddenPlaces,
    NotShown,
    NotThere,
    follow,
    parts_of,
    python_parts,
    refuse_no_python,
)
from supervisor.categories.stand_ins import programs_behind
from workers.shell.shell_inputs import within

PATH: Final = "path"
KNOWN: Final = "known"

_ENTRIES_AT_MOST: Final = 256
_LONGEST: Final = 4096
"""Characters of one entry (PATH_MAX)."""
_LOOKS_S: Final = 2.0
"""Seconds after which no further directory is begun: some are those of other machines, or of another system."""
_ECHO: Final = 256  # characters of a place that a refusal repeats
_SHOWN_AT_MOST: Final = 128
"""Each is a mount in every command."""
_MADE_UP: Final = ("/proc", "/sys", "/dev")  # no link of the machine's is shown there
_NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


class Toolchains(NamedTuple):
    """The programs that a command sees besides the system's."""

    shown: tuple[str, ...]
    """Directories and files, absolute and without links; and links, which are shown as such."""
    path: tuple[str, ...]
    """Directories in which programs are looked up, in order; those of the system among them where they were named."""
    own: tuple[str, ...] = ()
    """Those of them that lie in the root, relative to it: what is there, a command may have made."""
    refused: tuple[tuple[str, str], ...] = ()
    """Places that were asked for, each with why it is not shown."""


_NOTHING: Final = Toolchains((), ())


class _ToolchainSearch:
    """What one search has found so far."""

    def __init__(
        self,
        kept: HiddenPlaces,
        person: Mapping[str, str],
        found: Toolchains = _NOTHING,
        tell: Callable[[str, Toolchains], None] = lambda _place, _found: None,
    ) -> None:
        self.kept = kept
        self.person = person
        self.shown: dict[str, None] = dict.fromkeys(found.shown)
        self.own: dict[str, None] = dict.fromkeys(found.own)
        self.path: dict[str, None] = {}
        self.refused: dict[str, str] = {}
        self._seen: set[str] = set()
        self._plain: set[str] = set()
        self._tell = tell
        self._until = time.monotonic() + _LOOKS_S

    def found(self) -> Toolchains:
        return Toolchains(tuple(self.shown), tuple(self.path), tuple(self.own), tuple(self.refused.items()))

    def add(self, asked: str) -> None:
        """Add a directory in which programs are to be found."""
        self._tell(asked, self.found())
        with self._or_refused(asked):
            if time.monotonic() > self._until:
                raise NotShown(f"looking took longer than {_LOOKS_S:g} s before it was its turn")
            real = self._directory(asked)
            if self.kept.root and within(real, self.kept.root):
                self._add_own(real)
                return
            behind = programs_behind(real, self.kept.root, self.kept.home, self.person)
            if behind is None or real in behind:
                self.show(real)
            for each in [real] if behind is None else behind:
                if each == real:
                    self.path[real] = None
                else:
                    self.add(each)

    def _add_own(self, real: str) -> None:
        if real == self.kept.root:
            raise NotShown("it is the root itself, where each file would be a program; name a directory in it")
        self.own[os.path.relpath(real, self.kept.root)] = None

    @contextmanager
    def _or_refused(self, place: str) -> Iterator[None]:
        """Note why a place may not be shown; nothing of it is then."""
        shown, seen = dict(self.shown), set(self._seen)
        try:
            yield
        except (NotShown, OSError, ValueError) as error:
            self.shown, self._seen = shown, seen
            self.refused.setdefault(place[:_ECHO] or "(empty)", getattr(error, "strerror", "") or str(error))

    def _directory(self, asked: str) -> str:
        """Return the directory that an entry of the PATH means, without links.

        Raises:
            NotShown: none.
        """
        if len(asked) > _LONGEST or "\0" in asked:
            raise NotShown(f"it is longer than {_LONGEST} characters, or holds a NUL")
        if not os.path.isabs(asked):
            raise NotShown("it is empty or relative, and would be another place in each directory")
        real = self.link(asked)
        if not os.path.isdir(real):
            raise NotShown("it is not a directory")
        return real

    def link(self, path: str) -> str:
        """Return where a path leads; the links on the way are shown.

        Raises:
            NotShown: nowhere.
        """
        found = follow(path, self._plain)
        unseen = (*_MADE_UP, *filter(None, (self.kept.root,)))
        for each in found.links:
            if not any(within(each, other) for other in unseen):
                self._put(each)
        return found.path

    def show(self, real: str) -> None:
        """Show a directory of programs, and what they lead to.

        Raises:
            NotShown: it may not be.
        """
        if real in self._seen:
            return
        self._seen.add(real)
        if not in_system(real):
            for each in parts_of(real, self.kept):
                self.link(each)
                self._put(each)
            self._base_of(os.path.dirname(real))
        for target in leading_out(real):
            if time.monotonic() > self._until:
                raise NotShown(f"looking through it took longer than {_LOOKS_S:g} s")
            self._bring(target)

    def _bring(self, target: str) -> None:
        """Show what a program leads to; where that may not be, the others work all the same."""
        with self._or_refused(target), suppress(NotThere):  # nobody finds that
            real = os.path.dirname(self.link(target))
            if not self._is_shown(real):
                self.show(real)

    def _base_of(self, prefix: str) -> None:
        """Show the Python that a virtual environment outside of the root stands on."""
        for home in base_named_by(prefix):
            self.python(home)

    def python(self, programs: str) -> None:
        """Show the Python that a path leads to, its program or their directory.

        Raises:
            NotShown: there is none, or it may not be.
        """
        real = self.link(programs)
        real = real if os.path.isdir(real) else os.path.dirname(real)
        if in_system(real) or (self.kept.root and within(real, self.kept.root)):
            return
        prefix = os.path.dirname(real)
        refuse_no_python(prefix, self.kept)
        for each in python_parts(prefix):
            self.link(each)
            self._put(each)

    def _put(self, path: str) -> None:
        if not self._is_shown(path):
            if len(self.shown) >= _SHOWN_AT_MOST:
                raise NotShown(f"more than {_SHOWN_AT_MOST} places would be shown")
            self.shown[path] = None

    def _is_shown(self, path: str) -> bool:
        while path and path not in self.shown:
            if in_system(path):
                return True
            path = path.rpartition("/")[0]
        return bool(path)


def find_toolchains(
    named: Iterable[str],
    kept: HiddenPlaces,
    person: Mapping[str, str] = _NOBODY,
    tell: Callable[[str, Toolchains], None] = lambda _place, _found: None,
) -> Toolchains:
    """Return those of the toolchains `named` by the operator that exist, for a `person` of those variables.

    Before each of the person's directories, `tell` is given its path and what was found so far: it may never answer.
    """
    search = _ToolchainSearch(kept, person, tell=tell)
    for each in named:
        if each == PATH:
            entries = person["PATH"].split(":", _ENTRIES_AT_MOST) if "PATH" in person else []
            for entry in dict.fromkeys(entries[:_ENTRIES_AT_MOST]):
                search.add(entry)
            if len(entries) > _ENTRIES_AT_MOST:
                search.refused["the rest of PATH"] = f"it has more than {_ENTRIES_AT_MOST} entries"
        elif each == KNOWN:
            for place in known_places(kept.home, person):
                search.add(place)
        else:
            _add_named(search, os.path.expanduser(each))
    return search.found()


def with_python(found: Toolchains, kept: HiddenPlaces, programs: str) -> Toolchains:
    """Return toolchains with the Python that a path leads to, a program or their directory; the root's adds nothing.

    Raises:
        NotShown: there is none, or it may not be shown.
    """
    search = _ToolchainSearch(kept, _NOBODY, found)
    search.python(programs)
    return found._replace(shown=tuple(search.shown))


def _add_named(search: _ToolchainSearch, place: str) -> None:
    """Add what the operator names: it is shown whole."""
    try:
        real = search.link(place)
        refuse_named(real, search.kept)
    except NotShown as error:
        search.refused[place] = str(error)
        return
    if os.path.isdir(real):
        search.shown[real] = None
        search.path[f"{real}/bin" if os.path.isdir(f"{real}/bin") else real] = None


def refuse_named(real: str, kept: HiddenPlaces) -> None:
    """Refuse what not even the operator can have shown.

    Raises:
        NotShown: it holds a home, the journal or /etc.
    """
    for each in (kept.home, *kept.own, "/etc/shadow"):
        if within(each, real):
            raise NotShown("it holds a home, the journal or /etc, which no command may see")
