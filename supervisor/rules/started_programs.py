"""Programs that a command starts, as far as its text says so without doubt.

Rule: pure, and deny by default. What is not understood entirely has no programs: no rule that names programs lets it
pass, and every rule that asks or denies by program holds for it. Of git, the subcommand counts as well, where nothing
stands before it. The sandbox is what binds a command; this only says what a rule speaks of.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from workers.catalog import find_tool
from workers.shell.shell_line import Word, simple_commands_of

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


_EDITORS: Final = frozenset(["sed", "touch", "mkdir", "cp", "mv", "rm"])
_OF_PACKAGES: Final = re.compile(r"node_modules|site-packages|venv|cache|vendor|\.git\b")
_OF_OTHERS: Final = re.compile(rf"^[/~]|\.\.|{_OF_PACKAGES.pattern}|(?:^|[^\w-]|\d)[ewW]\b")
"""Paths that may lead to packages or to what programs obey, and what of `sed` runs a program or writes elsewhere."""
_OF_A_FILE: Final = re.compile(r"-\w*f|--fi")
"""How `sed` is told to read what it is to do."""
_LEADS_AT_MOST: Final = 12


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


def simple_commands(
    tool: str, arguments: str, leads: re.Pattern[str], asides: re.Pattern[str]
) -> list[list[str]] | None:
    """Return the words of each simple command of a call; None where they, or what runs, are not known.

    Words that match `leads` are left out where they stand first: assignments to variables that say nothing more. So are
    whole commands that match `asides`.
    """
    return _understood(_commands(tool, arguments), leads, asides)


def commands_of_line(line: str, leads: re.Pattern[str], asides: re.Pattern[str]) -> list[list[str]] | None:
    """Return the same of a line that a shell reads."""
    return _understood(simple_commands_of(line), leads, asides)


def _understood(
    commands: Sequence[Sequence[Word]] | None, leads: re.Pattern[str], asides: re.Pattern[str]
) -> list[list[str]] | None:
    if commands is not None:
        commands = [_without(words, leads) for words in commands if not asides.fullmatch(_text(words))]
    if commands is None or any(
        words[0].in_shell and (not _NAME.fullmatch(words[0].text) or words[0].text in _NOT_UNDERSTOOD)
        for words in commands
    ):
        return None
    return [[word.text for word in words] for words in commands]


def making_programs(tool: str, arguments: str) -> tuple[str, ...] | None:
    """Return the programs of a call but for those that edit what their words name, where that lies in no packages."""
    commands = _commands(tool, arguments)
    if commands is None:
        return started_by(tool, arguments).programs
    others = [words for words in commands if not _only_edits(words)]
    return _programs(commands if not others or any(map(_enters_packages, commands)) else others)


def _enters_packages(words: Sequence[Word]) -> bool:
    return words[0].text == "cd" and any(each.expands or _OF_PACKAGES.search(each.text) for each in words[1:])


def _only_edits(words: Sequence[Word]) -> bool:
    named = any(each.expands or _OF_OTHERS.search(each.text) for each in words[1:])
    unread = words[0].text == "sed" and any(_OF_A_FILE.match(each.text) for each in words[1:])
    return words[0].in_shell and words[0].text in _EDITORS and not named and not unread


def _without(words: Sequence[Word], leads: re.Pattern[str]) -> Sequence[Word]:
    firsts = (at for at in range(min(len(words) - 1, _LEADS_AT_MOST), 0, -1) if leads.fullmatch(_text(words[:at])))
    return words[next(firsts, 0) :]


def _text(words: Sequence[Word]) -> str:
    """Return a simple command as it was written, with one blank between words; "" for what no shell reads."""
    return " ".join(word.raw for word in words) if words[0].in_shell else ""


def _launches(words: Sequence[Word]) -> bool:
    """Say whether a simple command runs another one, by its words."""
    program = words[0].text.rpartition("/")[2]
    if program in _SHELLS:
        return any(_INLINE.fullmatch(each.text) for each in words[1:])
    return program in _LAUNCHERS or (program == "find" and any(each.text in _FIND_RUNS for each in words))


def _programs(commands: Sequence[Sequence[Word]]) -> tuple[str, ...] | None:
    """Return the programs, each once, in the order of their names' first place; None where one is not known."""
    found: dict[str, None] = {}
    for words in commands:
        program = words[0].text
        if words[0].in_shell and (not _NAME.fullmatch(program) or program in _NOT_UNDERSTOOD):
            return None
        if not (words[0].in_shell and program in HARMLESS):
            found[program] = None
    return tuple(found) or None


def _git(commands: Sequence[Sequence[Word]]) -> tuple[str, ...] | None:
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
        if subcommand == "commit" and any(each.expands for each in words):
            return None
        amends = subcommand == "commit" and any(each.text.startswith(_AMENDS) for each in words)
        found[f"{subcommand} --amend" if amends else subcommand] = None
    return tuple(found)


@lru_cache(2)
def _commands(tool: str, arguments: str) -> Sequence[Sequence[Word]] | None:
    """Return the words of each simple command; None where they are not known. A call's are asked for several times."""
    row = find_tool(tool)
    if row is None or not row.runs:
        return None
    try:
        given = msgspec.json.decode(arguments, type=_CommandArguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if row.runs == "program":
        return [[Word(each, each, in_shell=False) for each in (given.command, *given.args)]] if given.command else None
    return simple_commands_of(given.command)
