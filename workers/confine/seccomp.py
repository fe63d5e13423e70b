"""The filter of system calls: an allowlist, assembled to classic BPF by a pure function.

Rule: what is not on the list does not happen. A call that is known but not listed, or listed with other
arguments, fails with EPERM; one newer than our tables, and clone3, whose flags cannot be looked at, with
ENOSYS, so that a C library falls back; a call of a foreign architecture or of x32 kills the process.

    load arch -> other? KILL          each row:  number equal? -> its conditions one after the other,
    load number -> x32? KILL                     all hold -> ALLOW, else the call's next row, else EPERM
    rows -> ALLOW | EPERM             at the end: newer, clone3? ENOSYS; else EPERM

A filter sees argument registers, not the memory that they point to: a path is never checked here (that is
Landlock's part). Sources: seccomp(2), linux/seccomp.h, linux/bpf_common.h, linux/audit.h.
"""

import ctypes
import errno
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import Final, NamedTuple, Protocol, TypeVar

from workers import kernel
from workers.confine.syscalls import NEWEST, NUMBERS

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
EPERM: Final = 0x00050000 | errno.EPERM
ENOSYS: Final = 0x00050000 | errno.ENOSYS
NOTIFY: Final = 0x7FC00000

ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* of the machines that we know."""

_X32: Final = 0x40000000

LOAD: Final = 0x20
JUMP: Final = 0x05
JUMP_EQUAL: Final = 0x15
JUMP_GREATER: Final = 0x25
JUMP_GREATER_EQUAL: Final = 0x35
JUMP_ANY_BIT: Final = 0x45
RETURN: Final = 0x06

_NUMBER: Final = 0
_ARCH: Final = 4
ARGUMENTS: Final = 16
"""Offsets in struct seccomp_data; both machines are little-endian, so the low half of an argument is
first."""

_SET_MODE_FILTER: Final = 1
_FLAG_TSYNC: Final = 1
_FLAG_NEW_LISTENER: Final = 1 << 3
_FLAG_TSYNC_ESRCH: Final = 1 << 4
_FLAG_WAIT_KILLABLE: Final = 1 << 5
_INSTRUCTION: Final = struct.Struct("=HBBI")


class Only(NamedTuple):
    """Argument number `argument`, all 64 bits of it, is one of `values` (each below 2**32)."""

    argument: int
    values: tuple[int, ...]


class Without(NamedTuple):
    """Argument number `argument` has none of `bits` (below 2**32)."""

    argument: int
    bits: int


class Allow(NamedTuple):
    """One row of an allowlist: the call's name, and what must all hold of its arguments.

    Several rows of one call are alternatives.
    """

    call: str
    conditions: tuple[Only | Without, ...] = ()


class _OfCall(Protocol):
    @property
    def call(self) -> str: ...


class Instruction(NamedTuple):
    """struct sock_filter. A jump skips `if_true` or `if_false` instructions, JUMP itself `value`."""

    code: int
    if_true: int
    if_false: int
    value: int


def assemble(allowed: tuple[Allow, ...], machine: str) -> tuple[Instruction, ...]:
    """Return the program that lets through what `allowed` lists; as `program`."""
    return program(allowed, machine, _body, EPERM)


_R = TypeVar("_R", bound=_OfCall)


def program(
    rows: Iterable[_R], machine: str, body_of: Callable[[list[_R]], list[Instruction]], otherwise: int
) -> tuple[Instruction, ...]:
    """Return the program of a list: `body_of` says that of the rows of one call, `otherwise` is for what has none.

    A row whose call `machine` does not have is left out.

    Raises:
        KeyError: an unknown machine, or a call that is in no machine's table: a misspelt row does nothing.
    """
    numbers = NUMBERS[machine]
    steps = list(begin(machine))
    by_call: dict[str, list[_R]] = {}
    for row in rows:
        by_call.setdefault(row.call, []).append(row)
    for call, alternatives in by_call.items():
        if call in numbers:
            body = body_of(alternatives)
            steps += [Instruction(JUMP_EQUAL, 0, len(body), numbers[call]), *body]
        elif not any(call in table for table in NUMBERS.values()):
            raise KeyError(call)
    return (*steps, *end(machine, otherwise))


def begin(machine: str) -> tuple[Instruction, ...]:
    """Return how every filter begins: it kills what is not of this machine, and loads the call's number."""
    x32 = (Instruction(JUMP_GREATER_EQUAL, 0, 1, _X32), Instruction(RETURN, 0, 0, KILL))
    return (
        Instruction(LOAD, 0, 0, _ARCH),
        Instruction(JUMP_EQUAL, 1, 0, ARCHITECTURES[machine]),
        Instruction(RETURN, 0, 0, KILL),
        Instruction(LOAD, 0, 0, _NUMBER),
        *(x32 if machine == "x86_64" else ()),
    )


def end(machine: str, otherwise: int) -> tuple[Instruction, ...]:
    """Return how every filter ends: ENOSYS for clone3 and for what is newer than our tables, then `otherwise`."""
    return (
        Instruction(JUMP_EQUAL, 1, 0, NUMBERS[machine]["clone3"]),
        Instruction(JUMP_GREATER, 0, 1, NEWEST),
        Instruction(RETURN, 0, 0, ENOSYS),
        Instruction(RETURN, 0, 0, otherwise),
    )


_FAILS: Final = Instruction(RETURN, 0, 0, EPERM)
"""A condition that does not hold."""


def _body(rows: list[Allow]) -> list[Instruction]:
    """Return the program of one call: as many alternatives as it has rows."""
    body: list[Instruction] = []
    for at, conditions in enumerate(row.conditions for row in rows):
        row = [step for each in conditions for step in (_only(each) if isinstance(each, Only) else _without(each))]
        row.append(Instruction(RETURN, 0, 0, ALLOW))
        if at < len(rows) - 1:
            row = [step if step != _FAILS else Instruction(JUMP, 0, 0, len(row) - i - 1) for i, step in enumerate(row)]
        body += row
    return body


def _only(condition: Only) -> list[Instruction]:
    low = ARGUMENTS + 8 * condition.argument
    last = len(condition.values)
    return [
        Instruction(LOAD, 0, 0, low + 4),
        Instruction(JUMP_EQUAL, 1, 0, 0),
        _FAILS,
        Instruction(LOAD, 0, 0, low),
        *(Instruction(JUMP_EQUAL, last - at, 0, value) for at, value in enumerate(condition.values)),
        _FAILS,
    ]


def _without(condition: Without) -> list[Instruction]:
    return [
        Instruction(LOAD, 0, 0, ARGUMENTS + 8 * condition.argument),
        Instruction(JUMP_ANY_BIT, 0, 1, condition.bits),
        _FAILS,
    ]


def load(allowed: tuple[Allow, ...], machine: str = kernel.MACHINE) -> None:
    """Put the filter on all threads of this process, for good. Needs `no_new_privs`.

    Raises:
        OSError: the kernel refuses, a thread could not be included, or the machine is not one that we know.
    """
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}", "seccomp")
    install(code(allowed, machine))


@cache
def code(allowed: tuple[Allow, ...], machine: str) -> bytes:
    """Return the program of `assemble` as the kernel takes it. A template makes it for its copies."""
    return packed(assemble(allowed, machine))


def packed(program: Iterable[Instruction]) -> bytes:
    """Return a program as the kernel takes it."""
    return b"".join([_INSTRUCTION.pack(*instruction) for instruction in program])


def install(program: tuple[Instruction, ...] | bytes) -> None:
    """Hand an assembled program to the kernel, packed or not.

    Raises:
        OSError: the kernel refuses, or a thread could not be included.
    """
    left_out = _install(program, _FLAG_TSYNC)
    if left_out:
        raise OSError(errno.EBUSY, f"thread {left_out} could not be included", "seccomp")


def install_with_listener(program: tuple[Instruction, ...] | bytes) -> int:
    """Hand a program that notifies to the kernel; return the descriptor on which somebody else answers.

    No signal but a deadly one interrupts a call that has been taken up, where the kernel can do that (Linux 5.19): a
    program with a signal every few milliseconds would else begin its call anew each time.

    Raises:
        OSError: the kernel refuses; EBUSY where another filter of this process has a listener.
    """
    flags = _FLAG_TSYNC | _FLAG_TSYNC_ESRCH | _FLAG_NEW_LISTENER
    with suppress(OSError):  # an older kernel
        return _install(program, flags | _FLAG_WAIT_KILLABLE)
    return _install(program, flags)


def _install(program: tuple[Instruction, ...] | bytes, flags: int) -> int:
    code = program if isinstance(program, bytes) else packed(program)
    start = ctypes.cast(ctypes.c_char_p(code), ctypes.c_void_p).value or 0
    header = struct.pack("@HP", len(code) // _INSTRUCTION.size, start)
    return kernel.syscall("seccomp", kernel.SECCOMP, _SET_MODE_FILTER, flags, header)
