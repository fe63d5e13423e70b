"""The filter of system calls for programs that nobody knows beforehand: a deny-list, assembled to classic BPF.

Rule: where a program may be anything, what it may not do is listed, row by row, with the errno that it gets; the first
row whose conditions all hold decides, and what no row names is let through. As with the allowlist, a call newer than
our tables and clone3 get ENOSYS, and a call of a foreign architecture or of x32 kills the process.

Some rows only let the worker know (`Notify`): it answers for the kernel, `workers.shell.run.attempts`. What is denied
stays denied, so among the rows of a call those stand first.

A condition looks at the low half of an argument alone, because that is all that the kernel reads of an int: with more
in the high half, a call would slip past a comparison of the whole. Only rows about such arguments may be written.
"""

import errno
from collections.abc import Iterable
from typing import Final, NamedTuple

from workers.confine.seccomp import (
    ALLOW,
    ARGUMENTS,
    JUMP_ANY_BIT,
    JUMP_EQUAL,
    LOAD,
    NOTIFY,
    RETURN,
    Instruction,
    program,
)

_ERRNO: Final = 0x00050000


class Is(NamedTuple):
    """The low 32 bits of argument number `argument` are one of `values`."""

    argument: int
    values: tuple[int, ...]


class IsNot(NamedTuple):
    """They are none of `values`."""

    argument: int
    values: tuple[int, ...]


class Has(NamedTuple):
    """They have at least one of `bits`."""

    argument: int
    bits: int


class Deny(NamedTuple):
    """One row: the call's name, what must all hold of its arguments, and how it fails then."""

    call: str
    conditions: tuple[Is | IsNot | Has, ...] = ()
    error: int = errno.EPERM


class Notify(NamedTuple):
    """One row: the call's name, and what must all hold of its arguments for the worker to be asked what becomes of it.

    Such a program needs `seccomp.install_with_listener`.
    """

    call: str
    conditions: tuple[Is | IsNot | Has, ...] = ()


def assemble(denied: Iterable[Deny | Notify], machine: str) -> tuple[Instruction, ...]:
    """Return the program that stops, or tells of, what `denied` lists; as `seccomp.program`."""
    return program(sorted(denied, key=lambda row: isinstance(row, Notify)), machine, _body, ALLOW)


_PASSES: Final = Instruction(RETURN, 0, 0, ALLOW)


def _body(rows: list[Deny | Notify]) -> list[Instruction]:
    return [*(step for row in rows for step in _row(row)), _PASSES]


def _row(row: Deny | Notify) -> list[Instruction]:
    """Return the program of one row; where a condition does not hold it ends, and the next row is behind it."""
    body = [Instruction(RETURN, 0, 0, _ERRNO | row.error if isinstance(row, Deny) else NOTIFY)]
    for condition in reversed(row.conditions):
        body = [*_condition(condition, len(body)), *body]
    return body


def _condition(condition: Is | IsNot | Has, rest: int) -> list[Instruction]:
    """Return the program of one condition; `rest` instructions of its row come behind it."""
    load_low = Instruction(LOAD, 0, 0, ARGUMENTS + 8 * condition.argument)
    if isinstance(condition, Has):
        return [load_low, Instruction(JUMP_ANY_BIT, 0, rest, condition.bits)]
    last = len(condition.values) - 1
    holds = isinstance(condition, Is)
    tests = [
        Instruction(
            JUMP_EQUAL, last - at if holds else last - at + rest, (rest if holds else 0) if at == last else 0, value
        )
        for at, value in enumerate(condition.values)
    ]
    return [load_low, *tests]
