"""A line that ran, command by command: which of them is a check, and what the line's exit code says of it.

Rule: pure, and nothing is guessed. The exit code of a line is that of its last command; whatever stands behind a pipe,
before `;` or beside `||` has hidden its own, and a line that is not understood entirely says nothing of its parts.
"""

import posixpath
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from supervisor.agent.receipts.runners import RUNNERS, Runner, runner_of
from supervisor.journal.receipt import CheckResult
from supervisor.rules.started_programs import HARMLESS
from workers.shell.shell_line import JoinedCommand, joined_commands_of


class FoundCheck(NamedTuple):
    """What is known of one check of a line."""

    runner: Runner
    result: CheckResult
    why: str = ""
    """Why it is not known, a clause."""
    where: str = ""
    only: str = ""
    alone: bool = True
    """No other check of the line is of the same runner, so that what was printed can be read."""
    followed: bool = False
    """Something else of the line ran after it, which may have changed anything."""
    among_checks: bool = False
    """Nothing but checks ran in the line, joined by `&&`, and one of them failed: what it printed says more."""


class _Command(NamedTuple):
    before: str
    words: Sequence[str]
    """Without what launches it; none where it does nothing that counts."""
    where: str


_ENDS: Final = frozenset({";", "\n"})
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_MISLEADING: Final = re.compile(
    r"PATH|LD_\w+|BASH_ENV|ENV|PYTEST_ADDOPTS|NODE_OPTIONS|RUSTC_WRAPPER|CARGO|GOFLAGS|MAVEN_OPTS|IFS"
)
"""Variables by which another program runs than is named, or the same one does nothing."""
_LAUNCHES: Final = re.compile(
    r"(?:env|time|command|nice(?: -n ?\S+)?|nohup|ionice(?: -\S+)*|stdbuf(?: -\S+)+|xvfb-run(?: -\S+)*"
    r"|timeout(?: -\S+(?: \d\S*(?= \S*\d))?)* [\d.]+[smh]?"
    r"|(?:uv|poetry|pipenv|pdm|rye|hatch|pixi|conda)(?: --?\S+)* run(?: --?\S+)*|npx(?: --?\S+)*|bunx|bundle exec"
    r"|pnpm (?:exec|dlx)|yarn (?:exec|run -T)|npm exec(?: --)?"
    r"|(?:\S*/)?(?:python|pypy)[\d.]*(?: -[BEIOPsSuvqbx]+| -[XW] ?\S+)* -m"
    r"|coverage run(?: --?\S+)* -m) "
)
"""What stands before the program that counts."""
_LAUNCHERS_AT_MOST: Final = 12
_DIRECTORY: Final = re.compile(r"(?:-C|--prefix|--dir|--cwd|--directory|--project-dir)(?:=(.+))?")
_KEYWORDS: Final = "if then elif else fi for in do done while until case esac function select"
_BUILT_IN: Final = ". alias builtin coproc eval exec exit hash popd pushd return set shift shopt trap unalias"
_MISREADS: Final = frozenset(f"{_KEYWORDS} {_BUILT_IN}".split())
"""First words with which those after them mean something else, or all that follows."""
_ACTIVATES: Final = re.compile(r"(?:source|\.) \S*bin/activate")
_WITH_PATHS: Final = "pytest unittest jest vitest mocha ruff mypy eslint pyright rspec phpunit"
_CHECKS_PATHS: Final = frozenset([*_WITH_PATHS.split(), "go test"])
"""Runners that are told what to check by its paths."""
_PATH: Final = re.compile(r"[\w@.-]*/[\w@./\[\]-]*|[\w.-]+\.(?:py|[cm]?[jt]sx?|rb|php|go|rs)(?:::\S+)?|[\w./-]+::\S+")
_SELECTS: Final = re.compile(
    r"(?:^| )(?:-k|-m|-t|-g|-p|-R|-run|--grep|--testNamePattern|--filter|--package|--tests|--last-failed)(?:[ =]|$)"
)
_NAMED: Final = re.compile(
    "|".join(sorted({rf"(?<![\w./-]){re.escape(row.name)}(?![\w-])" for row in RUNNERS if row.name}))
)

_PIPED: Final = "its exit code is hidden by a pipe"
_AFTER: Final = "its exit code is hidden by what ran after it"
_OTHERWISE: Final = "its exit code is hidden by `||`"
_SEVERAL: Final = "one of several commands failed, and the line does not say which"
_UNREAD: Final = "the line does not say for certain what ran"
_CUT: Final = "it was cut off"


def checks_of_line(line: str | Sequence[str], exit_code: int | None) -> list[FoundCheck]:
    """Return what is known of each check of a line, or of the words of a program; `exit_code` is None where it was cut.

    Of a line that is not understood, a runner that it names is told as one of which nothing is known.
    """
    joined = joined_commands_of(line) if isinstance(line, str) else None
    commands = None if joined is None else _commands(joined)
    if not isinstance(line, str):
        words, where = _launched(line)
        commands = [_Command("", words, where)]
    if commands is None:
        named = dict.fromkeys(_NAMED.findall(str(line)))
        rows = [next(row for row in RUNNERS if row.name == each) for each in named]
        return [FoundCheck(row, "unknown", _UNREAD, followed=True) for row in rows]
    found = [(at, runner) for at, each in enumerate(commands) if each.words and (runner := runner_of(each.words))]
    names = [runner.name for _, runner in found]
    told: list[FoundCheck] = []
    for at, runner in found:
        result, why = _result(commands, at, exit_code)
        where, only = commands[at].where, _narrowed(runner, commands[at].words)
        others = [each for number, each in enumerate(commands[at + 1 :], at + 1) if number not in dict(found)]
        followed = any(each.words for each in others)
        unforged = why == _SEVERAL and sum(bool(each.words) for each in commands) == len(found)
        told.append(FoundCheck(runner, result, why, where, only, names.count(runner.name) == 1, followed, unforged))
    return told


def _result(commands: Sequence[_Command], at: int, exit_code: int | None) -> tuple[CheckResult, str]:
    """Return what the exit code of a line says of one of its commands, and why nothing where that is so."""
    if hidden := _hidden(commands, at, exit_code):
        return "unknown", hidden
    if exit_code == 0:
        return "passed", ""
    begins = _begin_of_list(commands, at)
    alone = not any(each.words for number, each in enumerate(commands[begins:], begins) if number != at)
    return ("failed", "") if alone else ("unknown", _SEVERAL)


def _hidden(commands: Sequence[_Command], at: int, exit_code: int | None) -> str:
    """Return what hides the exit code of one command of a line; "" where nothing does."""
    after = [each.before for each in commands[at + 1 :]]
    list_from_there = commands[_begin_of_list(commands, at) + 1 :]
    reasons = (
        (exit_code is None, _CUT),
        (after[:1] == ["|"], _PIPED),
        (not _ENDS.isdisjoint(after), _AFTER),
        (any(each.before == "||" for each in list_from_there), _OTHERWISE),
    )
    return next((why for holds, why in reasons if holds), "")


def _begin_of_list(commands: Sequence[_Command], at: int) -> int:
    """Return where the list of commands begins that one belongs to: behind the last `;` before it."""
    return max((number for number in range(at + 1) if commands[number].before in _ENDS), default=0)


def _commands(joined: Sequence[JoinedCommand]) -> list[_Command] | None:
    """Return the commands of a line; None where one of them may change what the others mean."""
    found: list[_Command] = []
    where = ""
    for each in joined:
        words = [word.text for word in each.words]
        program = words[0]
        if each.words[0].raw != program:
            return None
        if _ACTIVATES.fullmatch(" ".join(words)) or (program == "export" and _assigns(words[1:])):
            found.append(_Command(each.before, (), where))
            continue
        if program in _MISREADS:
            return None
        if program == "cd":
            where = posixpath.normpath(posixpath.join(where, *words[1:2]))
        launched, inside = _launched(words)
        quiet = program in HARMLESS
        found.append(_Command(each.before, () if quiet else launched, _joined(where, inside)))
    return found


def _assigns(words: Sequence[str]) -> bool:
    return all((found := _ASSIGNMENT.match(each)) and not _MISLEADING.fullmatch(found[1]) for each in words)


def _launched(words: Sequence[str]) -> tuple[Sequence[str], str]:
    """Return the words from the program on that counts, and the directory that they name; none where they mislead."""
    words = list(words)
    for _ in range(_LAUNCHERS_AT_MOST):
        if not words:
            break
        if found := _ASSIGNMENT.match(words[0]):
            if _MISLEADING.fullmatch(found[1]):
                return (), ""
            del words[0]
            continue
        line = " ".join(words)
        launch = _LAUNCHES.match(line) if not any(" " in each for each in words[:6]) else None
        if launch is None:
            break
        del words[: launch[0].count(" ")]
    where = ""
    for at, each in enumerate(words[:-1] if len(words) > 1 else ()):
        if at and (found := _DIRECTORY.fullmatch(each)):
            where = found[1] or words[at + 1]
            del words[at : at + 1 + (found[1] is None)]
            break
    return words, where


def _joined(where: str, inside: str) -> str:
    joined = posixpath.normpath(posixpath.join(where, inside))
    return "" if joined == "." else joined


def _narrowed(runner: Runner, words: Sequence[str]) -> str:
    """Return the words that narrow a check to a part; "" where it runs all."""
    rest = words[1:]
    paths = [each for each in rest if not each.startswith("-") and _PATH.fullmatch(each)]
    told = paths if runner.name in _CHECKS_PATHS else []
    told = [each for each in told if each.strip("./")]
    if not told and _SELECTS.search(" ".join(rest)):
        return " ".join(rest)
    return " ".join(told)
