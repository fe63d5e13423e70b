"""The table of names that programs obey: which program, when, how soon, and where that is written.

Rule: `obeyed_names.txt` holds one row a name, and nothing else knows any. A name is looked up as the most careless file
system would take it: case folded, without what it ignores, also by its short name. A row is a name, several of them
that follow each other in a path (`.config/git`), the last of which may have one `*`; it counts at any depth. A worker
reads the file before it is locked in.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple
from unicodedata import normalize

from workers.changes.effects import Level

_LEVELS: Final[Mapping[str, Level]] = MappingProxyType(
    {"free": "", "told": "told", "asked": "asked", "refused": "refused"}
)
_RANK: Final[Mapping[Level, int]] = MappingProxyType({level: rank for rank, level in enumerate(_LEVELS.values())})

UNKNOWN: Final = "programs take settings from names that begin with a dot, and this one is not known to be harmless"
"""Why a file tool asks about a name that is not in the table."""

_REMEMBERED: Final = 2**14
"""Names whose rows are remembered: directories come again and again."""

_DIRECTORIES: Final = 2**10
"""Paths of directories, the same."""

_IGNORED: Final = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What case-folding file systems do not see, as a pattern, which takes long to compile: Default_Ignorable_Code_Point
(Unicode's DerivedCoreProperties.txt)."""

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


_SHADOW: Final = ObeyedName(
    "", "asked", "Python", "imports it in place of its own module, for a program beside it", "Python documentation, sys"
)
_SHALLOW: Final = 2
"""Components of a path at which it may be found in place of a module: a file of the root, and of a package in it."""
_COMMON: Final = frozenset({"test", "site", "code", "this", "antigravity"})
"""Modules of Python whose names people give to others, and which no program stands on."""


class NameTable:
    """Rows, ready to be looked up.

    Args:
        text: of the data file.
    """

    def __init__(self, text: str) -> None:
        self._plain: dict[str, ObeyedName] = {}
        """Headings, with no pattern, of names; of the others as well, which no component of a path is."""
        self._others: list[ObeyedName] = []
        for section in text.split("\n= ")[1:]:
            heading, _, names = section.partition("\n")
            level, program, what, source, makers = [*heading.split(" | "), ""][:5]
            row = ObeyedName("", _LEVELS[level], program, what, source, frozenset(makers.split()))
            each = names.split()
            self._plain |= dict.fromkeys(each, row)
            self._others += [ObeyedName(name, *row[1:]) for name in each if "/" in name or "*" in name]
        lasts = [(row, *row.pattern.rstrip("/").rpartition("/")[2].partition("*")) for row in self._others]
        self._placed: dict[str, list[ObeyedName]] = {}
        for row, first, star, _rest in lasts:
            if not star:
                self._placed.setdefault(first, []).append(row)
        self._wild = [(row, first, rest) for row, first, star, rest in lasts if star]
        self._starts = tuple(first for _, first, _ in self._wild if first)
        self._ends = tuple(rest for _, first, rest in self._wild if not first)
        self._named = lru_cache(_REMEMBERED)(self._find)
        self._around = lru_cache(_DIRECTORIES)(self._above)

    def rows(self) -> Iterator[ObeyedName]:
        yield from (row._replace(pattern=name) for name, row in self._plain.items())

    def each(self, parts: Sequence[str]) -> list[ObeyedName | None]:
        """Return the row that says most of each component of a path; None where there is none."""
        rows = [*self._around(tuple(parts[:-1])), self._at(parts, len(parts) - 1)]
        if len(parts) <= _SHALLOW and not any(rows) and _shadows([folded(part) for part in parts]):
            rows[-1] = _SHADOW
        return rows

    def _above(self, directory: Sequence[str]) -> Sequence[ObeyedName | None]:
        """Return the row of each component of a path that something lies in."""
        return [self._at((*directory, ""), at) for at in range(len(directory))]

    def _at(self, parts: Sequence[str], at: int) -> ObeyedName | None:
        found = [row for row in self._named(parts[at]) if _fits(row, parts, at)]
        return max(found, key=rank, default=None) if found else None

    def _find(self, part: str) -> Sequence[ObeyedName]:
        """Return the rows whose last name is this one, wherever they stand.

        A name with a dot that nobody obeys leaves rows with a star out.
        """
        name = folded(part)
        names = (name, *self._short.get(_as_short(name), ())) if "~" in name else (name,)
        found = [row for each in names for row in self._placed.get(each, ())]
        found += [self._plain[each]._replace(pattern=each) for each in names if each in self._plain]
        if name not in self._plain and (name.startswith(self._starts) or name.endswith(self._ends)):
            for row, first, rest in self._wild:
                if name.startswith(first) and name.endswith(rest) and len(name) >= len(first) + len(rest):
                    found.append(row)
        return found

    @cached_property
    def _short(self) -> Mapping[str, Sequence[str]]:
        """Names by the short ones that FAT and NTFS give them."""
        short: dict[str, list[str]] = {}
        for name in {row.pattern.rstrip("/").rpartition("/")[2] for row in self.rows()}:
            short.setdefault(short_name(name), []).append(name)
        return short


def _shadows(names: Sequence[str]) -> bool:
    """Say whether Python would import a file of the root in place of a module of its own."""
    module, _, rest = names[-1].partition(".")
    if len(names) == _SHALLOW and names[1] == "__init__.py":  # a package in the root
        module, rest = names[0], "py"
    elif len(names) > 1:
        return False
    return (rest in {"py", "so"} or rest.endswith(".so")) and module in sys.stdlib_module_names - _COMMON


def rank(row: ObeyedName | None) -> int:
    """Return how much a row says."""
    return _RANK[row.level] if row is not None else 0


def _fits(row: ObeyedName, parts: Sequence[str], at: int) -> bool:
    """Say whether a row is about the component whose name it has: by what stands before it, and beneath it."""
    pattern = row.pattern
    if at + 1 < len(parts) and row.level != "refused" and pattern[0] != "." and pattern[-1] != "/":
        return False
    before = pattern.rstrip("/").split("/")[:-1] if "/" in pattern else []
    return not before or (at >= len(before) and all(map(_is_called, parts[at - len(before) : at], before)))


def _is_called(part: str, name: str) -> bool:
    """Say whether a component is one of that folded name, also by its short one."""
    seen = folded(part)
    return seen == name or ("~" in seen and _as_short(seen) == short_name(name))


def obeyed(path: str) -> ObeyedName | None:
    """Return the row of what other programs would obey if this path, relative to the root, were written; or None.

    Pure, but for the first call, which may read the table.
    """
    row = max(name_table().each(path.split("/")), key=rank)
    return row if row is not None and row.level else None


def makers_of(path: str) -> frozenset[str]:
    """Return the programs whose ordinary work is to write this path, or the directory of such a name that it is in."""
    return next(
        (row.makers for row in name_table().each(path.split("/")) if row is not None and row.makers), frozenset()
    )


@cache
def name_table() -> NameTable:
    """Return the table, which the first call makes: it takes a millisecond, and many a worker never needs it."""
    return NameTable(read_names())


@cache
def read_names() -> str:
    """Return the data file; a worker reads it before it is locked in, and cannot open it."""
    with open(f"{__file__.rpartition('.')[0]}.txt", encoding="utf-8") as file:
        return file.read()


@lru_cache(_REMEMBERED)
def folded(name: str) -> str:
    """Return what a file system that folds case, ignores code points and drops trailing dots would take it for."""
    seen = name.partition(":")[0]
    if not seen.isascii():
        seen = normalize("NFD", re.sub(_IGNORED, "", seen))
    if not seen.isprintable():
        seen = "".join(filter(str.isprintable, seen))
    return seen.rstrip(". ").upper().casefold()  # a dotless i is an I for what compares in upper case


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
