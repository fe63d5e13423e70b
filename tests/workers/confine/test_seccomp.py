"""The assembler, by running its programs: an interpreter of the few instructions that it uses."""

import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import pytest

from tests.each_row import each_row
from tests.supervisor.command import CODE
from workers.confine import denylist, seccomp
from workers.confine.confinements import FILES
from workers.confine.seccomp import ALLOW, ARCHITECTURES, ENOSYS, EPERM, KILL, Allow, Only, Without, assemble
from workers.confine.syscalls import NEWEST, NUMBERS

MACHINES = tuple(NUMBERS)
ROWS = (
    Allow("read"),
    Allow("fcntl", (Only(1, (1, 3, 1030)),)),
    Allow("mmap", (Without(2, 4),)),
    Allow("renameat2", (Only(0, (7,)), Without(4, 6))),
    Allow("prctl", (Only(0, (3, 39)),)),
    Allow("close"),
    Allow("prctl", (Only(0, (1,)), Only(1, (9,)))),
    Allow("prctl", (Without(0, 2**31 + 7),)),
)


def decide(program: tuple[seccomp.Instruction, ...], arch: int, number: int, *arguments: int) -> int:
    """Run `program` on one struct seccomp_data and return its verdict."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number, arch, 0, *(each % 2**64 for each in padded))
    at = loaded = 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        match code:
            case seccomp.LOAD:
                loaded = struct.unpack_from("<I", data, value)[0]
                continue
            case seccomp.RETURN:
                return value
            case seccomp.JUMP:
                at += value
                continue
            case seccomp.JUMP_EQUAL:
                holds = loaded == value
            case seccomp.JUMP_GREATER:
                holds = loaded > value
            case seccomp.JUMP_GREATER_EQUAL:
                holds = loaded >= value
            case _:
                assert code == seccomp.JUMP_ANY_BIT
                holds = bool(loaded & value)
        at += if_true if holds else if_false


def decided(program: tuple[seccomp.Instruction, ...], machine: str, call: str, *arguments: int) -> int:
    """Return the verdict on a call of a machine's."""
    return decide(program, ARCHITECTURES[machine], NUMBERS[machine][call], *arguments)


class Case(NamedTuple):
    name: str
    call: str
    arguments: tuple[int, ...]
    verdict: int


CASES = [
    Case("a listed call", "read", (0, 0, 1), ALLOW),
    Case("a call that is not listed", "write", (), EPERM),
    Case("the first of the values", "fcntl", (5, 1), ALLOW),
    Case("the middle one", "fcntl", (5, 3), ALLOW),
    Case("the last one", "fcntl", (5, 1030), ALLOW),
    Case("another value", "fcntl", (5, 8), EPERM),
    Case("a value in the low half, and more in the high half", "fcntl", (5, 1 + 2**32), EPERM),
    Case("a negative value", "fcntl", (5, -1), EPERM),
    Case("without the bit", "mmap", (0, 4096, 3), ALLOW),
    Case("with the bit", "mmap", (0, 4096, 7), EPERM),
    Case("only the bit", "mmap", (0, 4096, 4), EPERM),
    Case("both conditions", "renameat2", (7, 0, 0, 0, 1), ALLOW),
    Case("the first condition alone", "renameat2", (7, 0, 0, 0, 2), EPERM),
    Case("the second condition alone", "renameat2", (8, 0, 0, 0, 1), EPERM),
    Case("the first of several rows", "prctl", (39, 5), ALLOW),
    Case("the second of several rows", "prctl", (1, 9), ALLOW),
    Case("the last of several rows", "prctl", (8, 0), ALLOW),
    Case("a part of the second row", "prctl", (1, 8), EPERM),
    Case("no row of several", "prctl", (2, 9), EPERM),
    Case("no row, for the high half", "prctl", (2**32 + 39,), EPERM),
    Case("a row between rows of another call", "close", (), ALLOW),
    Case("a call whose flags stand in memory", "clone3", (), ENOSYS),
]


@each_row("case", CASES, ids=[case.name for case in CASES])
def test_the_filter_decides(case: Case, machine: str) -> None:
    assert decided(assemble(ROWS, machine), machine, case.call, *case.arguments) == case.verdict


Assemble = Callable[..., tuple[seccomp.Instruction, ...]]
Filters = tuple[Assemble, Sequence[object], int]
BOTH: dict[str, Filters] = {
    "allowlist": (assemble, ROWS, EPERM),
    "denylist": (denylist.assemble, (denylist.Deny("mount"),), ALLOW),
}


@pytest.fixture(params=BOTH)
def filters(request: pytest.FixtureRequest) -> Filters:
    """An assembler, rows of its kind, and what it decides about calls of which no row speaks."""
    return BOTH[request.param]


def test_a_foreign_architecture_is_killed(machine: str, filters: Filters) -> None:
    assembler, rows, _ = filters
    for other in (0x40000003, 0x40000028, *ARCHITECTURES.values()):
        expected = ALLOW if other == ARCHITECTURES[machine] else KILL
        assert decide(assembler(rows, machine), other, NUMBERS[machine]["read"]) == expected


def test_x32_is_killed(filters: Filters) -> None:
    assembler, rows, _ = filters
    for number in (0, 39, 512, 2**30 - 1):
        assert decide(assembler(rows, "x86_64"), ARCHITECTURES["x86_64"], 0x40000000 + number) == KILL


def test_calls_newer_than_the_table_do_not_exist(machine: str, filters: Filters) -> None:
    assembler, rows, otherwise = filters
    newest = [decide(assembler(rows, machine), ARCHITECTURES[machine], NEWEST + more) for more in (0, 1)]
    assert newest == [otherwise, ENOSYS]


@pytest.mark.parametrize(("assembler", "row"), [(assemble, Allow), (denylist.assemble, denylist.Deny)])
def test_a_misspelt_call_is_an_error_and_one_that_a_machine_lacks_is_left_out(assembler: Assemble, row: type) -> None:
    with pytest.raises(KeyError, match="raed"):
        assembler((row("raed"),), "x86_64")
    assert len(assembler((row("open"),), "aarch64")) == len(assembler((), "aarch64"))


def test_an_empty_list_allows_nothing(machine: str) -> None:
    program = assemble((), machine)
    verdicts = {decide(program, ARCHITECTURES[machine], number) for number in range(NEWEST + 1)}
    assert verdicts == {EPERM, ENOSYS}


@pytest.mark.parametrize("writable", [True, False])
def test_the_files_filter_lets_exactly_its_rows_through(machine: str, writable: bool) -> None:
    rows = FILES.calls(writable=writable)
    program = assemble(tuple(Allow(row.call) for row in rows), machine)
    arch = ARCHITECTURES[machine]
    passed = {number for number in range(NEWEST + 2) if decide(program, arch, number) == ALLOW}
    assert passed == {NUMBERS[machine][row.call] for row in rows if row.call in NUMBERS[machine]}


def test_a_read_only_filter_lacks_every_call_that_changes_names(machine: str) -> None:
    program = assemble(FILES.calls(writable=False), machine)
    for call in ("mkdirat", "unlinkat", "renameat", "renameat2", "ftruncate", "fsync", "linkat", "symlinkat"):
        assert decided(program, machine, call) == EPERM


@pytest.mark.parametrize("call", ["mmap", "mprotect"])
def test_the_files_filter_allows_no_executable_memory(machine: str, call: str) -> None:
    program = assemble(FILES.calls(writable=True), machine)
    verdicts = [decided(program, machine, call, 0, 4096, protection) for protection in range(8)]
    assert verdicts == [ALLOW] * 4 + [EPERM] * 4


def test_the_program_fits_into_the_kernel(machine: str) -> None:
    assert len(assemble(FILES.calls(writable=True), machine)) < 4096


def test_a_machine_without_a_table_gets_no_filter() -> None:
    with pytest.raises(OSError, match="no table of system calls for riscv64"):
        seccomp.load((), "riscv64")


DIFFERENT: Final = """
import threading
from workers import kernel
from workers.confine import seccomp

lets_all_through = (seccomp.Instruction(seccomp.RETURN, 0, 0, seccomp.ALLOW),)
has_its_own, may_end = threading.Event(), threading.Event()

def be_different():
    seccomp._install(lets_all_through, 0)
    has_its_own.set()
    may_end.wait()

kernel.prctl("PR_SET_NO_NEW_PRIVS", 38, 1)
thread = threading.Thread(target=be_different)
thread.start()
has_its_own.wait()
try:
    seccomp.install(lets_all_through)
except OSError as error:
    print(error.strerror == f"thread {thread.native_id} could not be included")
may_end.set()
"""


def test_a_thread_that_cannot_be_included_is_an_error() -> None:
    done = subprocess.run([sys.executable, "-c", DIFFERENT], capture_output=True, text=True, check=True, cwd=CODE)
    assert done.stdout == "True\n"
