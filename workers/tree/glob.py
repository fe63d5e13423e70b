r"""Glob patterns, matched one path component at a time.

Rule: pure, and linear in the size of pattern and tree. A pattern is a small automaton: a state is a position
in one of its alternatives, a set of states goes down the tree with the walk, and no position is tried twice.
So `**/**/**/**/*` costs no more than `**/*`.

    *      any characters of one name          **      any number of directories, also none
    ?      one character                       {a,b}   either, also with / inside and nested
    [a-z]  one of them, [!a-z] or [^a-z] none   Names that start with . only match a component that does.
"""

import fnmatch
import re
from collections.abc import Iterable
from typing import Final

from workers.errors import ToolError
from workers.tree.root import PATH_LIMIT, escape, shown

ALTERNATIVES: Final = 64
"""What braces may expand to."""

STEPS: Final = 1024
"""Components of all alternatives together."""

_ANY_DEPTH: Final = "**"
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_SPECIAL: Final = re.compile(r"[*?\[]")
_CLASS: Final = re.compile(r"\[([!^]?+)(\]?+[^\]]*\])")
_LITERAL: Final = str.maketrans({"\0": "{", "\1": "}"})

_RELATIVE: Final = "Use a pattern relative to the root, without leading / and without .., such as notes/**/*.md."

States = frozenset[tuple[int, int]]
_Step = str | re.Pattern[str]


class Pattern:
    """A pattern, compiled."""

    def __init__(self, text: str) -> None:
        """Compile `text`.

        Raises:
            ToolError: `path_escape` if it is absolute or has a `..`; `invalid_arguments` if it is empty, too
                large, or has characters that no pattern has.
        """
        _refuse_escape(text, text)
        _refuse_unusable(text)
        alternatives = list(dict.fromkeys(_expand(text)))
        for each in alternatives:
            _refuse_escape(each, text)
            _refuse_directory(each)
        self.alternatives: Final = tuple(alternatives)
        """The pattern without braces: a path matches it that matches one of these."""
        self._steps = [_compile(each) for each in alternatives]
        if sum(map(len, self._steps)) > STEPS:
            raise ToolError("invalid_arguments", "The pattern is too long. Use a simpler one.", limit=STEPS)
        self.start = self._closure((number, 0) for number in range(len(self._steps)))

    def advance(self, states: States, name: str) -> States:
        """Return the states after one more component; none left means that nothing below can match."""
        after: list[tuple[int, int]] = []
        for number, at in states:
            steps = self._steps[number]
            if at == len(steps):
                continue
            step = steps[at]
            if step == _ANY_DEPTH:
                if not name.startswith("."):
                    after.append((number, at))
            elif step == name if isinstance(step, str) else step.match(name):
                after.append((number, at + 1))
        return self._closure(after)

    def accepts(self, states: States) -> bool:
        """Say whether what led to these states is a whole match."""
        return any(at == len(self._steps[number]) for number, at in states)

    def matches(self, path: str) -> bool:
        """Say whether a path, relative to the root, is a match."""
        states = self.start
        for name in path.split("/"):
            states = self.advance(states, name)
        return self.accepts(states)

    def _closure(self, states: Iterable[tuple[int, int]]) -> States:
        """Add the states that are reached by letting `**` stand for no directory."""
        reached = set(states)
        for number, at in tuple(reached):
            steps = self._steps[number]
            if at < len(steps) and steps[at] == _ANY_DEPTH:
                reached.add((number, at + 1))
        return frozenset(reached)


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


def _compile(pattern: str) -> list[_Step]:
    steps: list[_Step] = []
    for part in pattern.split("/"):
        if part in {"", "."} or (part == _ANY_DEPTH and steps[-1:] == [_ANY_DEPTH]):
            continue
        steps.append(part if part == _ANY_DEPTH or not _SPECIAL.search(part) else _name(part))
    if steps[-1:] == [_ANY_DEPTH]:
        steps.append(_name("*"))
    return steps


def _name(part: str) -> re.Pattern[str]:
    """Compile one component. `fnmatch` makes atomic groups of its stars, so matching does not backtrack."""
    hidden = "" if part.startswith(".") else r"(?!\.)"
    classes = _CLASS.sub(lambda found: f"[{'!' if found[1] else ''}{found[2]}", part)
    return re.compile(hidden + fnmatch.translate(classes))
