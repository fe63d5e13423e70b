"""From a command's words to bytes for the kernel, and from its exit to words; for confined and unconfined commands.

Rule: what runs is exactly what was written; nothing is cut, quoted or expanded. A program's name is looked up in the
directories that are given, and in no PATH that a command brought along.
"""

import errno
import os
import re
import signal
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from workers.errors import ToolError
from workers.wire.messages import ErrorKind

SYSTEM_PATH: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

_SHELLS: Final = ("/bin/bash", "/bin/sh")
"""The first one that is there is the system shell."""

_LONGEST: Final = 2**17 - 1
"""Bytes of one argument (MAX_ARG_STRLEN of execve(2))."""

_SIGNALLED: Final = 128
"""A shell's exit code for a program that a signal killed is this and the signal's number."""

_PROGRAM: Final = re.compile(r"[^/\x00-\x20\x7f]+")
_ECHO: Final = 80
"""Characters of a refused name that the error repeats."""

_EXEC_ERRORS: Final[Mapping[int, tuple[ErrorKind, str]]] = MappingProxyType(
    {
        errno.E2BIG: ("too_large", "Its arguments are too many or too long. Write them into a file and name that."),
        errno.ENOENT: ("not_found", "It, or what it needs to run, is not installed."),
    }
)


def system_shell() -> str:
    """Return the file of the system shell.

    Raises:
        ToolError: `not_found`, there is none.
    """
    for file in _SHELLS:
        if os.access(file, os.X_OK):
            return file
    raise ToolError("not_found", "There is no shell on this system. Use another tool.")


def find_program(name: str, path: Sequence[str]) -> str:
    """Return the file of a program in one of the directories; "" where there is none."""
    files = (f"{directory}/{name}" for directory in path)
    return next((file for file in files if os.path.isfile(file) and os.access(file, os.X_OK)), "")


def is_program(name: str) -> bool:
    """Say whether a name is one that is looked up, and no path."""
    return name not in (".", "..") and len(name) <= _ECHO and _PROGRAM.fullmatch(name) is not None


def find_allowed(
    name: str, allowed: Sequence[str], path: Sequence[str], own: str = "", *, unlisted: bool = False
) -> str:
    """Return the file of an allowed program, or with `unlisted` of any: the root's `own` one, if there is one.

    Raises:
        ToolError: `command_not_allowed`, it is not one of them, letter by letter; `not_found`, it is not installed.
    """
    if name not in allowed and not (unlisted and is_program(name)):
        shown = name[:_ECHO] + ("..." if len(name) > _ECHO else "")
        split = ' Give the program alone as "command", and each of its arguments as one of "args"; no shell reads them.'
        advice = split if name.split() != [name] and name.split()[:1] else ""
        raise ToolError(
            "command_not_allowed",
            f"The command {shown!r} is not allowed here. Allowed, exactly so and without a path: {', '.join(allowed)}."
            f"{advice} Where a person is there, they are asked about others; else the operator may name them in "
            "`programs` of [shell].",
            command=shown,
        )
    if file := own or find_program(name, path):
        return file
    raise ToolError(
        "not_found",
        f"The program {name!r} may start, but it is not installed where commands can see it. Use another one; the "
        "operator may name its directory in `toolchains` of [shell].",
        command=name,
    )


def encoded(text: str) -> bytes:
    """Return an argument as the kernel takes it.

    Raises:
        ToolError: `invalid_arguments`, no program can be given that; `too_large`.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("invalid_arguments", "An argument is not Unicode text. Send it without surrogates.") from error
    if b"\0" in data:
        shown = text[:80].replace("\0", "\\0")
        raise ToolError(
            "invalid_arguments", f"The argument {shown!r} contains a NUL, which no argument can. Remove it."
        )
    if len(data) > _LONGEST:
        raise ToolError(
            "too_large",
            f"One argument has {len(data)} bytes; at most {_LONGEST} can be given. Write it into a file and name that.",
            size=len(data),
        )
    return data


def not_started(program: bytes, number: int, reason: str, hint: str = "") -> ToolError:
    """Return the error for a program that could not be started; `number` is an errno, a `hint` says what may be why."""
    name = program.decode("utf-8", "replace")[:80]
    kind, advice = _EXEC_ERRORS.get(number, ("permission_denied", "Use another program."))
    return ToolError(kind, f"{name!r} could not be started: {reason}. {advice} {hint}".rstrip(), command=name)


def exit_result(
    code: int, stdout: str, stderr: str, causes: Mapping[int, str] = MappingProxyType({})
) -> tuple[dict[str, Any], list[str]]:
    """Return the result of a command that has exited, and notes on it.

    Args:
        code: its exit code; negative, the signal that killed it.
        stdout: what it printed.
        stderr: what it printed there.
        causes: of some signals, what they mean.
    """
    result: dict[str, Any] = {"stdout": stdout, "stderr": stderr, "exit_code": code}
    notes = [] if stdout or stderr else ["no output"]
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        result |= {"exit_code": _SIGNALLED - code, "signal": name}
        notes.append(f"killed by {name}" + (f": {causes[-code]}" if -code in causes else ""))
    elif code - _SIGNALLED in causes:  # so a shell says it of what it ran
        notes.append(f"killed by {signal.Signals(code - _SIGNALLED).name}: {causes[code - _SIGNALLED]}")
    return result, notes
