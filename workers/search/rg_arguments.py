"""Translation of a query to ripgrep's arguments, and of ripgrep's errors to one for the model.

Rule: pure. What a model wrote becomes an argument in one place, behind -e, or a glob of harmless characters: it is
never an option. What decides which files are looked at stands in `_USUAL`.
"""

import re
import signal
from collections.abc import Callable
from typing import Final

from workers.errors import ToolError
from workers.tree.glob import Pattern
from workers.tree.root import shown

QUERY_LIMIT: Final = 2**14
"""Bytes of a query."""

_USUAL: Final = (
    "--no-config",
    "--no-ignore-parent",
    "--no-ignore-global",
    "--no-ignore-messages",
    "--no-require-git",
    "--no-follow",
    "--no-mmap",
)
_TEXT: Final = ("--json", "--case-sensitive", "--line-number", "--regex-size-limit=32M", "--dfa-size-limit=64M")
IN_ORDER: Final = ("--sort=path",)
"""One file after another, by the components of their paths; without it, several at once."""

SMALL_FILES: Final = ("--max-filesize=8M",)
"""What is left out when ripgrep has run out of memory."""

_GIT: Final = ".git"
_HIDDEN: Final = ("--hidden", f"--glob=!{_GIT}")
"""Hidden names, but for what git keeps."""
_PLAIN: Final = re.compile(r"[\w.*?+@~%= -]+")
"""A component that ripgrep's globs read as ours do."""

_REFUSED: Final = 2
"""The exit code of ripgrep where it does not take its arguments, or could not read something."""
ENDS_WELL: Final = (0, 1, _REFUSED)
"""Those of a listing that goes to its end, with files, with none, and with what could not be read."""
_SYSTEM: Final = "(os error "
"""Stands in what it says of a system call that failed."""

_LITERALLY: Final = "Correct it, or set literal to true to look for the text exactly as it stands."


def searching(query: str, pattern: Pattern | None, *, literal: bool, jobs: int, most: int) -> tuple[str, ...]:
    """Return the arguments with which ripgrep searches for `query`, at most `most` lines of each file.

    Raises:
        ToolError: `invalid_arguments`, the query can be none.
    """
    _refuse_unusable(query)
    how = ("--fixed-strings",) if literal else ()
    which = () if pattern is None else _narrowed(pattern)
    return (*_USUAL, *_TEXT, *how, *which, f"--threads={jobs}", f"--max-count={most}", "-e", query, "--", "./")


def listing(pattern: Pattern, jobs: int) -> tuple[str, ...]:
    """Return the arguments with which ripgrep lists files, among them all that match `pattern`."""
    return (*_USUAL, "--files", "--null", *_narrowed(pattern), f"--threads={jobs}")


def everything(jobs: int, *, hidden: bool) -> tuple[str, ...]:
    """Return the arguments with which ripgrep lists all files; hidden ones only if they are asked for."""
    return (*_USUAL, "--files", "--null", *(_HIDDEN if hidden else ()), f"--threads={jobs}")


def out_of_memory(status: int) -> bool:
    """Say whether ripgrep was ended for want of memory: by itself, by the kernel, or where its stack could not grow."""
    return status < 0 and status != -signal.SIGXCPU


def failure(status: int, stderr: bytes) -> ToolError:
    """Return the error for a run of ripgrep that ended without an answer: what it complained of is mostly the query."""
    if status < 0:
        name = signal.Signals(-status).name
        message = f"The search was ended by {name}: it used more than it may. Use a simpler query, or a narrower glob."
        return ToolError("resource_limit", message, signal=name)
    text = stderr.decode("utf-8", "backslashreplace").removeprefix("rg: ")
    named = re.findall(r"^error: (.*)$", text, re.MULTILINE)
    if status != _REFUSED or (_SYSTEM in text and not named):
        reason = shown(" ".join(text.split())) or f"ripgrep ended with exit code {status}"
        message = f"The search could not be run: {reason}. The query is not the cause: try again later."
        return ToolError("internal", message, reason=reason)
    reason = named[-1] if named else " ".join(text.partition("\n\n")[0].split())
    message = f"The query is not a valid regular expression: {shown(reason)}. {_LITERALLY}"
    return ToolError("invalid_arguments", message, reason=shown(reason))


def _refuse_unusable(query: str) -> None:
    wrong = next((why for holds, why in _UNUSABLE if holds(query)), None)
    if wrong is not None:
        raise ToolError("invalid_arguments", f"The query {wrong}")


_UNUSABLE: Final[tuple[tuple[Callable[[str], bool], str], ...]] = (
    (lambda query: not query, "is empty. Give the text or the regular expression to look for."),
    (
        lambda query: "\n" in query,
        "has a line break in it, and lines are searched one by one. Look for a part of one line.",
    ),
    (lambda query: "\0" in query, "has a NUL in it, which no text file has. Remove it."),
    (
        lambda query: any("\ud800" <= each <= "\udfff" for each in query),
        "is not Unicode text: it has a lone surrogate in it. Remove it.",
    ),
    (
        lambda query: len(query.encode("utf-8", "replace")) > QUERY_LIMIT,
        f"is longer than {QUERY_LIMIT} bytes. Look for a shorter part of it.",
    ),
)


def _narrowed(pattern: Pattern) -> tuple[str, ...]:
    """Return what spares ripgrep most of the files that do not match; what it lets through is matched all the same.

    A type, not a glob: a glob that says what to take would take ignored files as well.
    """
    names = list(dict.fromkeys(each.rpartition("/")[2] for each in pattern.alternatives))
    if "*" in names or "**" in names or not all(map(_PLAIN.fullmatch, names)):
        return _hidden(pattern)
    return (*_hidden(pattern), *(f"--type-add=strongroom:{name}" for name in names), "--type=strongroom")


def _hidden(pattern: Pattern) -> tuple[str, ...]:
    """Return what makes ripgrep look at hidden names if `pattern` does; at what git keeps only if it must."""
    parts = {part for each in pattern.alternatives for part in each.split("/")}
    dotted = [Pattern(part) for part in parts if part.startswith(".") and part != "."]
    if not dotted:
        return ()
    return ("--hidden",) if any(each.matches(_GIT) for each in dotted) else _HIDDEN
