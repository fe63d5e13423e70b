"""Programs that a command starts, as far as its text says so without doubt.

Rule: pure, and deny by default. What is not understood entirely has no programs: no rule that names programs lets it
pass, and every rule that asks or denies by program holds for it. The sandbox is what binds a command; this only
says what a rule speaks of.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from workers.catalog import find_tool

_LENGTH: Final = 2**16
"""Characters of a text that is read."""
_BLANKS: Final = " \t"
_OPERATORS: Final = re.compile(r"&&|\|\||\||;|\n")
_ENDS: Final = frozenset({";", "\n"})
"""After these a command need not follow."""

_HARMLESS_REDIRECTION: Final = re.compile(r"(?:[0-9]*>&[0-9]+|(?:&>|[0-9]*>)>?[ \t]*/dev/null)(?=[ \t\n;|&]|\Z)")
"""Joins two outputs, or throws one away."""

_WORD: Final = re.compile(r"""(?:[^\s"'\\$`;&|<>()\x00-\x1f\x7f]|'[^'\x00]*'|"[^"\\$`\x00]*"|\\[^\n\x00])+""")
"""A word in which a shell substitutes nothing but names of files."""
_QUOTES: Final = re.compile(r"""'([^']*)'|"([^"]*)"|\\(.)""", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z0-9_./+@%:,-]+")
"""What the first word of a simple command consists of, once its quotes are gone; so no assignment and no pattern."""

_KEYWORDS: Final = "if then elif else fi for in do done while until case esac function select time"
_HARMLESS: Final = ": cd echo exit false pwd test true"
"""Built into shells; they change nothing but the place where the next program begins."""
_BUILT_IN: Final = (
    ". alias bg bind break builtin caller command compgen complete compopt continue coproc declare dirs disown enable "
    "eval exec export fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd read "
    "readarray readonly return set shift shopt source suspend times trap type typeset ulimit umask unalias unset wait"
)
"""Built into shells; they run their arguments, or may change what the words after them mean."""

_NO_PROGRAMS: Final = frozenset(_HARMLESS.split())
_NOT_UNDERSTOOD: Final = frozenset(f"{_KEYWORDS} {_BUILT_IN}".split())


class _CommandArguments(msgspec.Struct):
    command: str


def programs_of(tool: str, arguments: str) -> tuple[str, ...] | None:
    """Return the programs of a command, each once, in the order of their names' first place.

    Args:
        tool: the tool that is called.
        arguments: raw JSON.

    Returns:
        None where they are not known: another tool, arguments that are not its own, or a text with anything but plain
        words joined by `&&`, `||`, `;`, `|` and ends of lines.
    """
    row = find_tool(tool)
    if row is None or not row.runs:
        return None
    try:
        command = msgspec.json.decode(arguments, type=_CommandArguments).command
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if row.runs == "program":
        return (command,) if command else None
    return _programs(command)


def _programs(text: str) -> tuple[str, ...] | None:
    if len(text) > _LENGTH:
        return None
    found: dict[str, None] = {}
    for word in _first_words(text):
        if word is None or not _NAME.fullmatch(word) or word in _NOT_UNDERSTOOD:
            return None
        if word not in _NO_PROGRAMS:
            found[word] = None
    return tuple(found) or None


def _first_words(text: str) -> Iterator[str | None]:
    """Yield the first word of each simple command, without its quotes; None, at last, for what is not understood."""
    at, wants, first = 0, False, True
    while at < len(text):
        if text[at] in _BLANKS:
            at += 1
            continue
        if found := _HARMLESS_REDIRECTION.match(text, at):
            at = found.end()
        elif operator := _OPERATORS.match(text, at):
            if first and operator[0] != "\n":
                yield None
                return
            wants = operator[0] not in _ENDS or (wants and operator[0] == "\n" and first)
            at, first = operator.end(), True
        elif text[at] != "#" and (word := _WORD.match(text, at)):
            if first:
                yield _QUOTES.sub(lambda quote: next(filter(None, quote.groups()), ""), word[0])
            at, first, wants = word.end(), False, False
        else:
            yield None
            return
    if wants:
        yield None
