"""The table of names that programs obey: which program, when, how soon, and where that is written.

Rule: `obeyed_names.txt` holds one row a name, and nothing else knows any. A name is looked up as the most careless file
system would take it: case folded, without what it ignores, also by its short name. A row is a name, several of them
that follow each other in a path (`.config/git`), or a name with one `*` at its end of the path; it counts at any depth,
and for all that is beneath. A worker reads the table before it is locked in.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple
from unicodedata import normalize

from workers.changes.effects import Level

_LEVELS: Final[Mapping[str, Level]] = MappingProxyType(
    {"free": "", "told": "told", "asked": "asked", "refused": "refused"}
)
_RANK: Final[Mapping[Level, int]] = MappingProxyType({level: rank for rank, level in enumerate(_LEVELS.values())})

_IGNORED: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What case-folding file systems do not see: Default_Ignorable_Code_Point (Unicode's DerivedCoreProperties.txt)."""

_SHORT: Final = re.compile(r"(.{1,6})~[0-9]+(?:\.(.{1,3}))?")
"""A name as FAT and NTFS shorten long ones."""


class ObeyedName(NamedTuple):
    """One row."""

    pattern: str
    level: Level
    """How soon: `refused` at once, by a program that runs anyway; `asked` by the next ordinary command, the name not
    being typed; `told` where a person runs it by its name; empty for a name with a dot that nobody obeys."""
    program: str
    what: str
    """What the program does, and when; with its name before it, a clause."""
    source: str
    makers: frozenset[str] = frozenset()
    """Programs whose ordinary work is to make it."""

    @property
    def reason(self) -> str:
        """What could happen, as a clause."""
        return f"{self.program} {self.what}"


class NameTable:
    """Rows, ready to be looked up."""

    def __init__(self, rows: Iterable[ObeyedName]) -> None:
        self._named: dict[str, list[tuple[tuple[str, ...], ObeyedName]]] = {}
        self._wild: list[tuple[tuple[str, ...], str, str, ObeyedName]] = []
        for row in rows:
            *before, last = row.pattern.split("/")
            first, star, rest = last.partition("*")
            if star:
                self._wild.append((tuple(before), first, rest, row))
                continue
            for name in {last, short_name(last)}:
                self._named.setdefault(name, []).append((tuple(before), row))
        self._starts = tuple(first for _, first, _, _ in self._wild if first)
        self._ends = tuple(rest for _, first, rest, _ in self._wild if not first)

    def strongest(self, parts: Sequence[str]) -> ObeyedName | None:
        """Return the row that says most of a path of folded names; None where there is none."""
        found = [row for at in range(len(parts)) for row in self._at(parts, at)]
        return max(found, key=lambda row: _RANK[row.level], default=None)

    def at(self, parts: Sequence[str], at: int) -> ObeyedName | None:
        """Return the row that says most of the component at this place in a path of folded names."""
        return max(self._at(parts, at), key=lambda row: _RANK[row.level], default=None)

    def _at(self, parts: Sequence[str], at: int) -> Iterator[ObeyedName]:
        name = parts[at]
        for before, row in self._named.get(_as_short(name) if "~" in name else name, ()):
            if not before or _follows(before, parts, at):
                yield row
        if name.startswith(self._starts) or name.endswith(self._ends):
            for before, first, rest, row in self._wild:
                fits = name.startswith(first) and name.endswith(rest) and len(name) >= len(first) + len(rest)
                if fits and (not before or _follows(before, parts, at)):
                    yield row


def obeyed(path: str) -> ObeyedName | None:
    """Return the row of what other programs would obey if this path, relative to the root, were written; or None.

    Pure, but for the first call, which reads the table.
    """
    row = name_table().strongest([folded(part) for part in path.split("/")])
    return row if row is not None and row.level else None


@cache
def name_table() -> NameTable:
    """Return the table; the first call reads it."""
    return NameTable(read_rows())


def read_rows() -> list[ObeyedName]:
    """Read the rows of the data file."""
    with open(__file__.removesuffix("py") + "txt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(" | ") for line in file if not line.startswith("#")]
    return [
        ObeyedName(pattern, _LEVELS[level], program, what, source, frozenset(" ".join(makers).split()))
        for pattern, level, program, what, source, *makers in rows
    ]


def folded(name: str) -> str:
    """Return what a file system that folds case, ignores code points and drops trailing dots would take it for."""
    seen = name.partition(":")[0]
    if not seen.isascii():
        seen = normalize("NFD", _IGNORED.sub("", seen))
    if not seen.isprintable():
        seen = "".join(filter(str.isprintable, seen))
    return seen.rstrip(". ").casefold()


def short_name(name: str) -> str:
    """Return the first short name that FAT and NTFS give a folded name, `~1` for any number; itself if it is short.

    Source: Microsoft, "Naming Files, Paths, and Namespaces", and RtlGenerate8dot3Name of its documentation.
    """
    bare = name.lstrip(".").replace(" ", "")
    stem, dot, extension = bare.rpartition(".")
    if not dot:
        stem, extension = bare, ""
    if bare == name and len(stem) <= 8 and len(extension) <= 3 and "." not in stem:  # noqa: PLR2004 - 8.3
        return name
    short = re.sub(r"[+,;=\[\]]", "_", stem.replace(".", ""))[:6]
    return f"{short}~1{'.' if extension else ''}{extension[:3]}"


def _as_short(name: str) -> str:
    short = _SHORT.fullmatch(name)
    return name if short is None else f"{short[1]}~1{'.' + short[2] if short[2] else ''}"


def _follows(before: tuple[str, ...], parts: Sequence[str], at: int) -> bool:
    return at >= len(before) and tuple(parts[at - len(before) : at]) == before
