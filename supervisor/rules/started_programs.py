"""Programs that a command starts, as far as its text says so without doubt.

Rule: pure, and deny by default. What is not understood entirely has no programs: no rule that names programs lets it
pass, and every rule that asks or denies by program holds for it. Of git, the subcommand counts as well, where nothing
stands before it. The sandbox is what binds a command; this only says what a rule speaks of.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

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
_QUOTING: Final = frozenset("'\"\\")
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

HARMLESS: Final = frozenset(_HARMLESS.split())
_NOT_UNDERSTOOD: Final = frozenset(f"{_KEYWORDS} {_BUILT_IN}".split())


GIT: Final = "git"
_SHELLS: Final = frozenset(["sh", "bash", "dash", "ash", "zsh", "ksh"])
_INLINE: Final = re.compile(r"-[A-Za-z]*c")
"""What makes a shell run a text that is among its words."""
_RUNNERS: Final = "busybox chroot doas env flock nice nohup nsenter parallel script setsid stdbuf sudo timeout"
_LAUNCHERS: Final = frozenset(f"{_RUNNERS} unshare watch xargs".split())
_FIND_RUNS: Final = frozenset(["-exec", "-execdir", "-ok", "-okdir"])
"""Programs, and words of `find`, behind which another program stands."""
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z-]*")
_AMENDS: Final = "--am"
"""As short as git takes `--amend`."""
_EXPANDS: Final = re.compile(r"""^(?:[^'"\\]|'[^']*'|"[^"]*"|\\.)*?[*?\[{~]""", re.DOTALL)
"""A word that a shell may put others in place of, and so `--amend`."""


class _CommandArguments(msgspec.Struct):
    command: str
    args: list[str] = []


class Started(NamedTuple):
    """What a call runs, as far as that is known."""

    programs: tuple[str, ...] | None
    """None where they are not known: arguments that are not the tool's, or a text with more than plain words joined by
    `&&`, `||`, `;`, `|` and ends of lines. () for a tool that runs none, of which no rule with `programs` speaks."""
    git: tuple[str, ...] | None = ()
    """Subcommands of git; None where they are not known."""
    network: bool = False
    """It has a network."""
    launches: bool = False
    """One of the programs runs another that its words name: what asks or denies by program may mean that."""


def started_by(tool: str, arguments: str, *, network: bool = False) -> Started:
    """Return what a call of any tool runs; `arguments` are raw JSON."""
    row = find_tool(tool)
    if row is not None and not row.runs:
        return Started(())
    commands = _commands(tool, arguments)
    if commands is None:
        return Started(None, None, network)
    return Started(_programs(commands), _git(commands), network, any(map(_launches, commands)))


def simple_commands(tool: str, arguments: str) -> list[list[str]] | None:
    """Return the words of each simple command of a call; None where they, or what runs, are not known."""
    commands = _commands(tool, arguments)
    if commands is None or any(
        words[0].in_shell and (not _NAME.fullmatch(words[0].text) or words[0].text in _NOT_UNDERSTOOD)
        for words in commands
    ):
        return None
    return [[word.text for word in words] for words in commands]


def _launches(words: Sequence["_Word"]) -> bool:
    """Say whether a simple command runs another one, by its words."""
    program = words[0].text.rpartition("/")[2]
    if program in _SHELLS:
        return any(_INLINE.fullmatch(each.text) for each in words[1:])
    return program in _LAUNCHERS or (program == "find" and any(each.text in _FIND_RUNS for each in words))


def _programs(commands: Sequence[Sequence["_Word"]]) -> tuple[str, ...] | None:
    """Return the programs, each once, in the order of their names' first place; None where one is not known."""
    found: dict[str, None] = {}
    for words in commands:
        program = words[0].text
        if words[0].in_shell and (not _NAME.fullmatch(program) or program in _NOT_UNDERSTOOD):
            return None
        if not (words[0].in_shell and program in HARMLESS):
            found[program] = None
    return tuple(found) or None


def _git(commands: Sequence[Sequence["_Word"]]) -> tuple[str, ...] | None:
    """Return the subcommands of git, each once; `commit --amend` is one of its own.

    None where they are not known, because one does not stand right behind the name.
    """
    found: dict[str, None] = {}
    for program, *words in commands:
        if program.text.rpartition("/")[2] != GIT:
            continue
        if program.text != GIT or not words or not _SUBCOMMAND.fullmatch(words[0].text):
            return None
        subcommand = words[0].text
        if subcommand == "commit" and any(each.in_shell and _EXPANDS.search(each.raw) for each in words):
            return None
        amends = subcommand == "commit" and any(each.text.startswith(_AMENDS) for each in words)
        found[f"{subcommand} --amend" if amends else subcommand] = None
    return tuple(found)


class _Word(NamedTuple):
    text: str
    """Without its quotes."""
    raw: str
    in_shell: bool
    """Whether a shell reads it."""


def _commands(tool: str, arguments: str) -> list[list[_Word]] | None:
    """Return the words of each simple command; None where they are not known."""
    row = find_tool(tool)
    if row is None or not row.runs:
        return None
    try:
        given = msgspec.json.decode(arguments, type=_CommandArguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if row.runs == "program":
        return [[_Word(each, each, in_shell=False) for each in (given.command, *given.args)]] if given.command else None
    if len(given.command) > _LENGTH:
        return None
    commands: list[list[_Word]] = []
    for words in _simple_commands(given.command):
        if words is None:
            return None
        commands.append(words)
    return commands or None


def _simple_commands(text: str) -> Iterator[list[_Word] | None]:
    """Yield the words of each simple command; None, at last, for what is not understood."""
    at, wants = 0, False
    words: list[_Word] = []
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
                yield words
            at, words = operator.end(), []
        elif text[at] != "#" and (word := _WORD.match(text, at)):
            words.append(_Word(_unquoted(word[0]), word[0], in_shell=True))
            at, wants = word.end(), False
        else:
            yield None
            return
    if wants:
        yield None
    elif words:
        yield words


def _unquoted(word: str) -> str:
    if _QUOTING.isdisjoint(word):
        return word
    return _QUOTES.sub(lambda quote: next(filter(None, quote.groups()), ""), word)
