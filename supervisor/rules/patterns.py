r"""Patterns of paths, as rules name them.

Rule: pure, and linear in the path, whoever chose it: a path is compared component by component, and no star gives back
what it took. A pattern that could be read in two ways is refused, since a rule that means something else than it says
is worse than none. Names that begin with a dot are like any other.

    *      any characters of one name          [a-z]  one of them, [!a-z] or [^a-z] none
    ?      one character of it                 **     any number of directories, also none; at the end all beneath
    a/     the directory itself, and all beneath it
"""

import re
from collections.abc import Sequence
from typing import Final

LIMIT: Final = 4096
"""Characters of a pattern, and the longest path that Linux takes."""

_MEANS_MORE: Final = re.compile(r"[\\{}*?\[\]]")
_ELSEWHERE: Final = re.compile(r"[\\{}\]]")
"""Characters that mean something in other programs' patterns, and nothing here unless they stand in brackets."""
_CLASS: Final = re.compile(r"\[([!^]?+)(\]?+[^\]]*+)\]")
_SLASH: Final = "/"
_DIRECTORIES: Final = "(?:[^/]+/)*?"


class PatternError(ValueError):
    """The pattern has no clear meaning. The text is a clause for a sentence that has named the pattern."""


def compiled(patterns: Sequence[str]) -> re.Pattern[str]:
    """Return what `fullmatch`es exactly the paths that one of the patterns, at least, stands for.

    Raises:
        PatternError: one has no clear meaning.
    """
    return re.compile("|".join(map(_translated, patterns)) or "(?!)", re.DOTALL)


def literal(path: str) -> str:
    """Return the pattern for exactly this path."""
    escaped = _MEANS_MORE.sub(r"[\g<0>]", path)
    return f"[~]{escaped[1:]}" if escaped.startswith("~") else escaped


def _translated(pattern: str) -> str:
    """Return the pattern as a regular expression.

    Between two `**` stands a row of a known number of names: the leftmost place where it fits is as good as any other,
    so it is an atomic group. The last one has to reach the end.
    """
    _refuse(pattern)
    parts = [part for part in pattern.split(_SLASH) if part not in {"", "."}]
    if not parts:
        return re.escape(".")  # the root itself
    beneath = "(?:/.+)?" if pattern.endswith(_SLASH) else ""
    rows: list[list[str]] = [[]]
    for part in parts:
        if part != "**":
            rows[-1].append(_name(part))
        else:
            rows.append([])
    if len(rows) == 1:
        return _SLASH.join(rows[0]) + beneath
    first, *middle, last = rows
    begin = "".join(f"{name}/" for name in first)
    between = "".join(f"(?>{_DIRECTORIES}{''.join(f'{name}/' for name in row)})" for row in middle)
    return f"{begin}{between}{f'{_DIRECTORIES}{_SLASH.join(last)}{beneath}' if last else '.+'}"


def _refuse(pattern: str) -> None:
    """Refuse what cannot be meant, or is not clear."""
    parts = pattern.split(_SLASH)
    problem = ""
    if not pattern or len(pattern) > LIMIT:
        problem = f"is empty or longer than {LIMIT} characters"
    elif pattern.startswith(_SLASH) or parts[0] == "~":
        problem = "is absolute, or in a home: name the path as it is seen from the root"
    elif ".." in parts:
        problem = "has a .. in it: name the path as it is seen from the root"
    elif any(char == "\0" or "\ud800" <= char <= "\udfff" for char in pattern):
        problem = "has a character that no path has"
    elif any("**" in part and part != "**" for part in parts):
        problem = "has a ** beside other characters: between slashes it stands alone"
    if problem:
        raise PatternError(problem)


def _name(part: str) -> str:
    """Return one component as a regular expression; between two stars the leftmost place is as good as any other."""
    pieces: list[list[str]] = [[]]
    at = 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            pieces.append([])
        elif char == "?":
            pieces[-1].append("[^/]")
        elif char == "[":
            found = _CLASS.match(part, at - 1)
            if found is None or not found[2]:
                raise PatternError("has a [ without its ]; write [[] for the character itself")
            pieces[-1].append(_class(found[2], negated=bool(found[1])))
            at = found.end()
        elif _ELSEWHERE.match(char):
            raise PatternError(f"has a {char}, which means nothing here; name each path, or write [{char}] for it")
        else:
            pieces[-1].append(re.escape(char))
    first, *others = ["".join(piece) for piece in pieces]
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle if piece) + f"[^/]*{last}"


def _class(members: str, *, negated: bool) -> str:
    """Return a set of characters as a regular expression; a hyphen between two makes a range."""
    ranges: list[str] = []
    at = 0
    while at < len(members):
        low, high = members[at], members[at]
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            high = members[at + 2]
            at += 2
        if low > high:
            raise PatternError(f"has the empty range {low}-{high}")
        ranges.append(f"{re.escape(low)}-{re.escape(high)}")
        at += 1
    return f"[^{''.join(ranges)}/]" if negated else f"[{''.join(ranges)}]"
