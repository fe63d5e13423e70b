"""Doors that are shut for an attacker's Python run as a command in a copy, where there are no namespaces.

The rows are those of `tests/door_table.py`; which locks hold each there stands here. Capabilities are gone in any case:
what takes them would change this machine.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pytest

from tests.door_table import DOORS
from tests.doors import PRELUDE, Door, of, open_target
from tests.hostile_worker import hostile_command
from tests.workers.shell.conftest import open_shell
from tests.workers.shell.sandbox.test_locks import attack

ROWS: Final = {door.name: door for door in of("shell", DOORS) if not door.as_root}

BOTH: Final = ("read by openat2", "TCP", "listen on TCP", "abstract Unix socket")
LANDLOCK: Final = (
    *("read", "read by a link in the root", "create", "append", "truncate on opening", "truncate by path", "list"),
    *("list the top", "make a directory", "remove a file", "remove a directory", "move a file out", "move a file in"),
    *("by /proc/self/root", "link in", "link out", "symlink out", "FIFO out", "exchange", "read the journal"),
    *("write the journal", "read the configuration", "write the configuration", "read what was kept"),
    *("remove what was kept", "execute what lies outside", "signal another", "kill another", "signal everybody"),
)
OPEN: Final = (
    *("change into a directory", "ask about a file", "read a link's text", "list attributes", "another's descriptors"),
    *("another's command line", "hold another"),
)
"""What can be seen from a copy, and changes nothing (SECURITY.md): names, and the machine's processes."""
NOT_THERE: Final = ("up from the root", "by /proc/self/fd")
"""Nothing of the root's surroundings lies around its copy."""
SECCOMP: Final = tuple(name for name in ROWS if name not in (*BOTH, *LANDLOCK, *OPEN, *NOT_THERE))

Outcomes = Callable[..., Mapping[str, str]]


_FIRST: Final = [ROWS[name] for name in ("chmod", "chown", "utime")]
"""Those that others would leave nothing to."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    """Return how each door was found by a command that lacks the given locks."""
    root = tmp_path_factory.mktemp("copy-doors") / "root"
    root.mkdir()
    found: dict[tuple[str, ...], dict[str, str]] = {}
    with open_target(root.parent, root) as target:

        def tried(*removed: str) -> Mapping[str, str]:
            if removed not in found:
                command = hostile_command(*removed, category="shell")
                with open_shell(root, copies=str(root.parent / "copies"), copy_mb=8, command=command) as worker:
                    found[removed] = {}
                    for doors in (_FIRST, [door for door in ROWS.values() if door not in _FIRST]):
                        given = "".join(f"{name} = {value!r}\n" for name, value in target.ready().items()) + PRELUDE
                        lines = attack(worker, [door.code for door in doors], given)
                        found[removed] |= {door.name: line for door, line in zip(doors, lines, strict=True)}
            return found[removed]

        yield tried


def test_each_row_is_named_once() -> None:
    named = (*BOTH, *LANDLOCK, *OPEN, *NOT_THERE, *SECCOMP)
    assert sorted(named) == sorted(ROWS)


@pytest.mark.parametrize("door", ROWS.values(), ids=ROWS)
def test_a_door_is_shut_by_each_of_its_locks_and_by_no_other(door: Door, outcomes: Outcomes) -> None:
    tried = {"all": (), "landlock": ("seccomp",), "seccomp": ("landlock",), "none": ("landlock", "seccomp")}
    found = {name: outcomes(*removed)[door.name] for name, removed in tried.items()}
    shut = {name for name, outcome in found.items() if outcome.startswith("refused ")}
    if door.name in (*OPEN, *NOT_THERE):
        assert shut == set(), found
        assert (door.name in NOT_THERE) == found["all"].startswith("passed ENOENT")
        return
    locks = (("landlock", (*BOTH, *LANDLOCK)), ("seccomp", (*BOTH, *SECCOMP)))
    assert shut == {"all", *(lock for lock, names in locks if door.name in names)}, found
