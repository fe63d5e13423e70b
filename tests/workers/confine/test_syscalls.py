"""The tables of numbers, against themselves and against the headers of this machine where it has them."""

import re
from pathlib import Path

import pytest

from workers import kernel
from workers.confine.syscalls import NEWEST, NUMBERS

HEADERS = Path("/usr/include")
GENERIC_64 = {"newfstatat": "fstatat"}
"""On 64-bit machines the generic header gives these calls another name."""


@pytest.mark.parametrize("machine", NUMBERS)
def test_no_number_stands_for_two_calls(machine: str) -> None:
    table = NUMBERS[machine]
    assert len(set(table.values())) == len(table)


@pytest.mark.parametrize("machine", NUMBERS)
def test_no_number_is_newer_than_the_newest(machine: str) -> None:
    assert max(NUMBERS[machine].values()) <= NEWEST


def defined_in(header: Path) -> dict[str, int]:
    found = re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    return {name: int(number) for name, number in found}


def test_the_x86_64_numbers_are_those_of_the_header() -> None:
    header = next(HEADERS.rglob("asm/unistd_64.h"), None)
    if header is None:
        pytest.skip("no asm/unistd_64.h on this machine")
    defined = defined_in(header)
    known = {name: number for name, number in NUMBERS["x86_64"].items() if number <= max(defined.values())}
    assert known == {name: defined[name] for name in known}


def test_the_aarch64_numbers_are_those_of_the_generic_header() -> None:
    header = HEADERS / "asm-generic/unistd.h"
    if not header.exists():
        pytest.skip("no asm-generic/unistd.h on this machine")
    defined = defined_in(header)
    known = {name: number for name, number in NUMBERS["aarch64"].items() if number <= max(defined.values())}
    assert known == {name: defined[GENERIC_64.get(name, name)] for name in known}


@pytest.mark.parametrize("name", ["SECCOMP", "OPENAT2"])
def test_the_kernel_module_has_the_same_numbers(name: str) -> None:
    assert vars(kernel)[name] == NUMBERS[kernel.MACHINE][name.lower()]
