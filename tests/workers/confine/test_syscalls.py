"""The tables of numbers, against themselves and against the headers of this machine where it has them."""

import re
from pathlib import Path

import pytest

from workers import kernel
from workers.confine.syscalls import NEWEST, NUMBERS

HEADERS = Path("/usr/include")
GENERIC_64 = {"newfstatat": "fstatat"}
"""On 64-bit machines the generic header gives these calls another name."""


def test_no_number_stands_for_two_calls_or_is_newer_than_the_newest(machine: str) -> None:
    table = NUMBERS[machine]
    assert len(set(table.values())) == len(table)
    assert max(table.values()) <= NEWEST


def defined_in(header: Path) -> dict[str, int]:
    found = re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    return {name: int(number) for name, number in found}


@pytest.mark.parametrize(("machine", "file"), [("x86_64", "asm/unistd_64.h"), ("aarch64", "asm-generic/unistd.h")])
def test_the_numbers_are_those_of_the_header(machine: str, file: str) -> None:
    header = next(HEADERS.rglob(file), None)
    if header is None:
        pytest.skip(f"no {file} on this machine")
    defined = defined_in(header)
    known = {name: number for name, number in NUMBERS[machine].items() if number <= max(defined.values())}
    names = GENERIC_64 if machine == "aarch64" else {}
    assert known == {name: defined[names.get(name, name)] for name in known}


@pytest.mark.parametrize("name", ["SECCOMP", "OPENAT2"])
def test_the_kernel_module_has_the_same_numbers(name: str) -> None:
    assert vars(kernel)[name] == NUMBERS[kernel.MACHINE][name.lower()]
