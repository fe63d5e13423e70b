r"""Glob patterns: those of tools, and those of rules.

Rule: pure, and bounded by the size of pattern and tree. A walk asks a small automaton which directories are worth a
look: a state is a position in one alternative, a set of states goes down the tree. Paths are judged by one regular
expression, in which what stands between two stars, or two `**`, keeps the leftmost place that it finds, which is as
good as any other. So `**/**/**/**/*` costs no more than `**/*`.

    *      any characters of one name          **     any number of directories, also none; at the end all beneath
    ?      one character of it                 {a,b}  either, also with / inside and nested; not in rules
    [a-z]  one of them, [!a-z] or [^a-z] none

For tools, names that start with . only match a component that does, and what has no other meaning stands for itself.
In rules (`strict`) such names are like any other, and what could be read in two ways is refused: a rule that means
something else than it says is worse than none.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

from workers.errors import ToolError
from workers.tree.root import PATH_LIMIT, escape, shown

ALTERNATIVES: Final = 64
"""What braces may expand to."""

STEPS: Final = 1024
"""Components of all alternatives together."""

MEANS_MORE: Final = re.compile(r"[\\{}*?\[\]]")
"""What does not stand for itself in a rule."""

SEPARATOR: Final = "\0"
"""Between the components of a key: a path that is ordered by its components, as no name has it."""

_ANY: Final = f"[^{SEPARATOR}]"
_VISIBLE: Final = f"[^.{SEPARATOR}]"
_ANY_DEPTH: Final = "**"
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_WILD: Final = re.compile(r"[*?\[]")
_CLASS: Final = re.compile(r"\[([!^]?+)(\]?+[^\]]*+)\]")
_LITERAL: Final = str.maketrans({"\0": "{", "\1": "}"})

_RELATIVE: Final = "Use a pattern relative to the root, without leading / and without .., such as notes/**/*.md."

States = frozenset[tuple[int, int]]
_Step = str | re.Pattern[str]


class PatternError(ValueError):
    """The pattern has no clear meaning. The text is a clause for a sentence that has named the pattern."""


class Matcher:
    """Patterns without braces, compiled: a path matches them that matches one of these."""

    def __init__(self, alternatives: Iterable[str], *, strict: bool) -> None:
        """Compile them.

        Raises:
            PatternError: one has no clear meaning, if that matters (`strict`).
        """
        self._strict = strict
        self._steps = [_compile(each, strict=strict) for each in alternatives]
        self.start = self._closure((number, 0) for number in range(len(self._steps)))

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile("|".join(_of_keys(steps, strict=self._strict) for steps in self._steps) or "(?!)")

    def advance(self, states: States, name: str) -> States:
        """Return the states after one more component; none left means that nothing below can match."""
        after: list[tuple[int, int]] = []
        for number, at in states:
            steps = self._steps[number]
            if at == len(steps):
                continue
            step = steps[at]
            if step == _ANY_DEPTH:
                if self._strict or not name.startswith("."):
                    after.append((number, at))
            elif _is(step, name):
                after.append((number, at + 1))
        return self._closure(after)

    def select(self, keys: Iterable[str]) -> list[str]:
        """Return the keys, which have a `SEPARATOR` where their paths have a slash, that are a match."""
        return list(filter(self._whole.fullmatch, keys))

    def matches(self, path: str) -> bool:
        """Say whether a path, relative to the root, is a match."""
        return bool(self.select([path.replace("/", SEPARATOR)]))

    def _closure(self, states: Iterable[tuple[int, int]]) -> States:
        """Add the states that are reached by letting `**` stand for no directory."""
        reached = set(states)
        for number, at in tuple(reached):
            steps = self._steps[number]
            if at < len(steps) and steps[at] == _ANY_DEPTH:
                reached.add((number, at + 1))
        return frozenset(reached)


class Pattern(Matcher):
    """A pattern that a tool was given."""

    def __init__(self, text: str) -> None:
        """Compile `text`.

        Raises:
            ToolError: `path_escape` if it is absolute or has a `..`; `invalid_arguments` if it is empty, too
                large, or has characters that no pattern has.
        """
        _refuse_escape(text, text)
        _refuse_unusable(text)
        self.alternatives: Final = tuple(dict.fromkeys(_expand(text)))
        """The pattern without braces."""
        for each in self.alternatives:
            _refuse_escape(each, text)
            _refuse_directory(each)
        super().__init__(self.alternatives, strict=False)
        if sum(map(len, self._steps)) > STEPS:
            raise ToolError("invalid_arguments", "The pattern is too long. Use a simpler one.", limit=STEPS)


def _refuse_escape(pattern: str, given: str) -> None:
    if pattern.startswith("/"):
        raise escape(given, "the pattern is absolute", _RELATIVE)
    if ".." in pattern.split("/"):
        raise escape(given, "the pattern has a .. component", _RELATIVE)


def _refuse_directory(pattern: str) -> None:
    if pattern.endswith("/"):
        name = shown(pattern)
        message = f'The pattern "{name}" ends in /, and no file does. Use {name}** for all below it.'
        raise ToolError("invalid_arguments", message)


def _refuse_unusable(pattern: str) -> None:
    if not pattern or len(pattern) > PATH_LIMIT:
        message = f"The pattern is empty or longer than {PATH_LIMIT} characters. Use **/* for all files."
        raise ToolError("invalid_arguments", message)
    if any(each in "\0\1" or "\ud800" <= each <= "\udfff" for each in pattern):
        message = f'No pattern has U+0000, U+0001 or lone surrogates in it: "{shown(pattern)}".'
        raise ToolError("invalid_arguments", message)


def _expand(text: str) -> list[str]:
    """Return the alternatives that braces stand for; braces without a comma are ordinary characters."""
    done: list[str] = []
    left = [text]
    while left:
        each = left.pop()
        group = _BRACES.search(each)
        if group is None:
            done.append(each.translate(_LITERAL))
            continue
        before, after = each[: group.start()], each[group.end() :]
        choices = group[1].split(",")
        if len(choices) == 1:
            choices = [f"\0{group[1]}\1"]
        left.extend(before + choice + after for choice in reversed(choices))
        if len(done) + len(left) > ALTERNATIVES:
            message = f'The braces of "{shown(text)}" stand for more than {ALTERNATIVES} patterns. Use fewer.'
            raise ToolError("invalid_arguments", message, limit=ALTERNATIVES)
    return done


def _is(step: _Step, name: str) -> bool:
    return step == name if isinstance(step, str) else step.fullmatch(name) is not None


def _compile(pattern: str, *, strict: bool) -> list[_Step]:
    steps: list[_Step] = []
    for part in pattern.split("/"):
        if part in {"", "."} or (part == _ANY_DEPTH and steps[-1:] == [_ANY_DEPTH]):
            continue
        steps.append(part if part == _ANY_DEPTH else _name(part, strict=strict))
    if steps[-1:] == [_ANY_DEPTH]:
        steps.append(_name("*", strict=strict))
    return steps or ["."]


def _of_keys(steps: Sequence[_Step], *, strict: bool) -> str:
    """Return one alternative as a regular expression for keys."""
    directories = f"(?:{_ANY if strict else _VISIBLE}{_ANY}*{SEPARATOR})*"
    parts = [""]
    for step in steps:
        if step == _ANY_DEPTH:
            parts.append("")
        else:
            parts[-1] += (re.escape(step) if isinstance(step, str) else step.pattern) + SEPARATOR
    first, *others = parts
    *middle, last = others or [""]
    between = "".join(f"(?>{directories}?{part})" for part in middle)
    deep = f"(?>{directories})" if last.count(SEPARATOR) == 1 else directories
    return f"{first}{between}{deep if others else ''}{last}".removesuffix(SEPARATOR)


def _name(part: str, *, strict: bool) -> _Step:
    """Compile one component; between two stars the leftmost place is as good as any other."""
    if not (MEANS_MORE if strict else _WILD).search(part):
        return part
    pieces = [""]
    at = 0
    while at < len(part):
        char = part[at]
        found = _CLASS.match(part, at) if char == "[" else None
        if char == "*":
            pieces.append("")
        elif char == "?":
            pieces[-1] += _ANY
        elif found is not None:
            pieces[-1] += _class(found[2], negated=bool(found[1]), strict=strict)
        elif strict and char == "[":
            raise PatternError("has a [ without its ]; write [[] for the character itself")
        elif strict and MEANS_MORE.match(char):
            raise PatternError(f"has a {char}, which means nothing here; name each path, or write [{char}] for it")
        else:
            pieces[-1] += re.escape(char)
        at = at + 1 if found is None else found.end()
    first, *others = pieces
    *middle, last = others or [""]
    between = "".join(f"(?>{_ANY}*?{piece})" for piece in middle if piece)
    star = f"{_ANY}{'*' if any(pieces) else '+'}"  # no name is empty
    hidden = "" if strict or part.startswith(".") else r"(?!\.)"
    return re.compile(f"{hidden}{first}{between}{star if others else ''}{last}")


def _class(members: str, *, negated: bool, strict: bool) -> str:
    """Return a set of characters as a regular expression; a hyphen between two makes a range."""
    ranges: list[str] = []
    at = 0
    while at < len(members):
        low, high = members[at], members[at]
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            high = members[at + 2]
            at += 2
        if low <= high:
            ranges.append(f"{re.escape(low)}-{re.escape(high)}")
        elif strict:
            raise PatternError(f"has the empty range {low}-{high}")
        at += 1
    if not ranges:
        return _ANY if negated else "(?!)"
    return f"[{f'^{SEPARATOR}' if negated else ''}{''.join(ranges)}]"
