"""A shell line, cut into its simple commands, as far as it says without doubt what a shell makes of it.

Rule: pure, and deny by default. Of what is not understood entirely nothing is said.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LONGEST: Final = 2**16
_MOST: Final = 500
"""Characters of a text that is read, and commands in it: of more, nothing is understood."""
_BLANKS: Final = " \t"
_OPERATORS: Final = re.compile(r"&&|\|\||\||;|\n")
_ENDS: Final = frozenset({";", "\n"})
"""After these a command need not follow."""

_HARMLESS_REDIRECTION: Final = re.compile(r"(?:[0-9]*>&[0-9]+|(?:&>|[0-9]*>)>?[ \t]*/dev/null)(?=[ \t\n;|&]|\Z)")
"""Joins two outputs, or throws one away."""

_WORD: Final = re.compile(r"""(?:[^\s"'\\$`;&|<>()\x00-\x1f\x7f]|'[^'\x00]*'|"[^"\\$`\x00]*"|\\[^\n\x00])+""")
"""A word in which a shell substitutes nothing but names of files."""
_QUOTES: Final = re.compile(r"""'([^']*)'|"([^"]*)"|\\(.)""", re.DOTALL)
_QUOTING: Final = frozenset("'\"\\")
_EXPANDS: Final = re.compile(r"""^(?:[^'"\\]|'[^']*'|"[^"]*"|\\.)*?[*?\[{~]""", re.DOTALL)


class Word(NamedTuple):
    """One word of a simple command."""

    text: str
    """Without its quotes."""
    raw: str
    in_shell: bool
    """Whether a shell reads it."""

    @property
    def expands(self) -> bool:
        """Say whether a shell may put other words in its place."""
        return self.in_shell and _EXPANDS.search(self.raw) is not None


class JoinedCommand(NamedTuple):
    """A simple command in its line."""

    before: str
    """The operator that joins it to the one before it; "" for the first."""
    words: list[Word]


def simple_commands_of(text: str) -> list[list[Word]] | None:
    """Return the words of each simple command of a line; None where they are not known."""
    commands = joined_commands_of(text)
    return None if commands is None else [each.words for each in commands]


def joined_commands_of(text: str) -> list[JoinedCommand] | None:
    """Return each simple command of a line; None where they are not known."""
    commands: list[JoinedCommand] = []
    for command in _simple_commands(text) if len(text) <= LONGEST else ():
        if command is None or len(commands) == _MOST:
            return None
        commands.append(command)
    return commands or None


def _simple_commands(text: str) -> Iterator[JoinedCommand | None]:
    """Yield each simple command; None, at last, for what is not understood."""
    at, wants = 0, False
    before = ""
    words: list[Word] = []
    while at < len(text):
        if text[at] in _BLANKS:
            at += 1
            continue
        if found := _HARMLESS_REDIRECTION.match(text, at):
            at = found.end()
        elif operator := _OPERATORS.match(text, at):
            if not words and operator[0] != "\n":
                yield None
                return
            wants = operator[0] not in _ENDS or (wants and operator[0] == "\n" and not words)
            if words:
                yield JoinedCommand(before, words)
                before = operator[0]
            at, words = operator.end(), []
        elif text[at] != "#" and (word := _WORD.match(text, at)):
            words.append(Word(_unquoted(word[0]), word[0], in_shell=True))
            at, wants = word.end(), False
        else:
            yield None
            return
    if wants:
        yield None
    elif words:
        yield JoinedCommand(before, words)


def _unquoted(word: str) -> str:
    if _QUOTING.isdisjoint(word):
        return word
    return _QUOTES.sub(lambda quote: next(filter(None, quote.groups()), ""), word)
