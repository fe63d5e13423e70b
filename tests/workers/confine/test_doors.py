"""Every way out that an attacker's Python could take from the files worker, and the locks that hold it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.door_table import DOORS
from tests.doors import LOCKS, Door, Target, attack, check, of, open_target
from tests.each_row import each_row
from tests.raw_worker import RawWorker

Hostile = Callable[..., RawWorker]

TOP = "top = context.root.fd\n"


@pytest.fixture(scope="module")
def target(root: Path) -> Iterator[Target]:
    """Everything outside that a row goes for."""
    with open_target(root.parent, root) as target:
        yield target


@pytest.mark.parametrize("door", of("files", DOORS), ids=lambda door: door.name)
def test_a_door_is_shut_by_each_of_its_locks_and_by_no_other(door: Door, hostile: Hostile, target: Target) -> None:
    check(door, "files", lambda removed: attack(hostile(*removed), TOP + door.code, target.ready()))


@each_row("category", LOCKS)
def test_no_two_doors_have_one_name(category: str) -> None:
    names = [door.name for door in of(category, DOORS)]
    assert len(names) == len(set(names))
