"""Every way out that an attacker's Python, or ripgrep with an attacker's arguments, could take from the search worker.

What is tried in every worker stands in `tests/door_table.py`.
"""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.door_table import DOORS, SN, L, S
from tests.doors import Door, Given, Held, Target, attack, check, of, open_target, shared_workers
from tests.each_row import each_row
from tests.raw_worker import RawWorker
from tests.workers.confine.conftest import outside
from tests.workers.confine.test_seccomp import decided
from tests.workers.search.shared import RIPGREP, open_search
from workers.confine.confinements import SEARCH
from workers.confine.probe import ATTEMPTS
from workers.confine.seccomp import ALLOW, EPERM, assemble
from workers.confine.syscalls import NUMBERS

__all__ = ["outside"]

Hostile = Callable[..., RawWorker]

OWN = (
    Door("execute a program", Held(search=L), "execute('/bin/true')"),
    Door("execute Python", Held(search=L), "execute(sys.executable)"),
    Door("execute a program in the root", Held(search=L), "execute(root_path + '/program')"),
    Door("execute a script in the root", Held(search=L), "execute(root_path + '/script')"),
    Door("leave the process group", Held(search=S), "in_a_child(os.setpgid, 0, 0)"),
    Door("begin a session", Held(search=S), "in_a_child(os.setsid)"),
    Door(
        "a process in a namespace of its own",
        Held(search=SN),
        "child = call('clone', 0x10000011, 0, 0, 0, 0)\nif child == 0:\n    os._exit(0)\nos.waitpid(child, 0)",
    ),
)
"""Besides what is tried in every worker."""

TOP = "top = context.root.fd\n"
BOTH = (*L, *S)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of every shared worker, with programs in it."""
    folder = tmp_path_factory.mktemp("search") / "room"
    folder.mkdir()
    (folder / "program").write_bytes(Path(RIPGREP).read_bytes())
    (folder / "script").write_text(f"#!{RIPGREP}\n")
    for name in ("program", "script"):
        (folder / name).chmod(0o755)
    (folder / "text").write_text("swordplay\n")
    return folder


@pytest.fixture(scope="module")
def hostile(root: Path) -> Iterator[Hostile]:
    """Return the shared worker that lacks the given locks."""
    yield from shared_workers(lambda *removed: open_search(root, *removed, hostile=True))


@pytest.fixture(scope="module")
def target(root: Path) -> Iterator[Target]:
    """Everything that a row goes for."""
    with open_target(root.parent, root) as target:
        yield target


def attacked(worker: RawWorker, code: str, given: Given) -> str:
    return attack(worker, TOP + code, given)


@pytest.mark.parametrize("door", [*of("search", DOORS), *OWN], ids=lambda door: door.name)
def test_a_door_is_shut_by_each_of_its_locks_and_by_no_other(door: Door, hostile: Hostile, target: Target) -> None:
    check(door, "search", lambda removed: attacked(hostile(*removed), door.code, target.ready()))


RUN = """
from workers.search.rg_process import Runs
import time
output = b''
with Runs(context.engine.program, time.monotonic() + 20) as runs:
    run = runs.start(*[each.replace('OUTSIDE', outside).replace('ROOM', root_path) for each in arguments.split()])
    for _, chunk in runs.chunks():
        output += chunk
result = output + run.stderr
"""
ARGUMENTS = {
    "a directory outside": "-e fish OUTSIDE",
    "a link out of the root": "--follow -e fish ./",
    "patterns from outside": "--file=OUTSIDE/rules ./",
    "a program for each file": "--pre=OUTSIDE/program -e x ./",
    "a program in the root for each file": "--pre=ROOM/script2 -e x ./",
    "an ignore file outside": "--debug --ignore-file=OUTSIDE/rules --files ./",
    "unpack": "--search-zip -e fish ./",
    "a program for the host's name": (
        "--hostname-bin=OUTSIDE/program --color=always --hyperlink-format=x://{host} -e sword ./text"
    ),
}


@pytest.fixture
def bait(root: Path, outside: Path) -> Iterator[Given]:
    """What ripgrep could be told to read and to execute; each tells what must stay inside."""
    (root / "link").unlink(missing_ok=True)
    (root / "link").symlink_to(outside)
    (outside / "rules").write_text("[swordfish\n")
    (outside / "program").write_text(f"#!/bin/sh\necho swordfish x >&2\ntouch {outside}/marker\n")
    (root / "script2").write_text(f"#!/bin/sh\ntouch {outside}/marker\n")
    for path in (outside / "program", root / "script2"):
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    (root / "packed.gz").write_bytes(bytes.fromhex("1f8b08000000000002ff2b2ecf2f4a49cb2cce50e00200d9d0f26b0b000000"))
    yield {"outside": str(outside), "root_path": str(root)}
    for name in ("link", "script2", "packed.gz"):
        (root / name).unlink()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_ripgrep_reaches_nothing_outside_whatever_it_is_told(
    name: str, hostile: Hostile, bait: Given, outside: Path
) -> None:
    said = attacked(hostile(), RUN, {**bait, "arguments": ARGUMENTS[name]})
    assert said.startswith("did b")
    assert "swordfish" not in said
    assert not (outside / "marker").exists()


@pytest.mark.parametrize("name", list(ARGUMENTS)[:3])
def test_without_landlock_ripgrep_reaches_it(name: str, hostile: Hostile, bait: Given) -> None:
    assert "swordfish" in attacked(hostile("landlock"), RUN, {**bait, "arguments": ARGUMENTS[name]})


@pytest.mark.parametrize("name", list(ARGUMENTS)[3:5])
def test_without_its_locks_ripgrep_executes_it(name: str, hostile: Hostile, bait: Given, outside: Path) -> None:
    attacked(hostile(*BOTH), RUN, {**bait, "arguments": ARGUMENTS[name]})
    assert (outside / "marker").exists()


def test_the_one_program_can_be_executed(hostile: Hostile) -> None:
    assert attacked(hostile(), "execute(context.engine.program)", {}) == "did None"


def test_the_probe_finds_every_door_shut_but_those_of_its_work(root: Path) -> None:
    with open_search(root) as worker:
        doors = worker.probe()
    assert [door.name for door in doors] == [each.name for each in ATTEMPTS if each.name not in SEARCH.opens]
    assert [door for door in doors if not door.shut] == []
    assert set(SEARCH.opens) == {"fork", "execute a program"}


@pytest.mark.parametrize(("code", "verdict"), [(0x1002, ALLOW), (0x1001, EPERM), (0x5001, EPERM)])
def test_its_program_may_set_the_register_of_its_threads_and_nothing_else_of_the_processor(
    code: int, verdict: int
) -> None:
    program = assemble(SEARCH.calls(writable=False), "x86_64")
    assert decided(program, "x86_64", "arch_prctl", code) == verdict


@each_row("machine", NUMBERS)
@each_row(
    ("call", "arguments", "verdict"),
    [
        ("kill", (5, 9), ALLOW),
        ("kill", (5, 15), EPERM),
        ("kill", (-1, 9), EPERM),
        ("kill", (2**32 - 1, 9), EPERM),
        ("prctl", (1, 9), ALLOW),
        ("prctl", (1, 0), EPERM),
        ("prctl", (4, 1), EPERM),
        ("prctl", (3, 0), ALLOW),
        ("clone", (0x01200011,), ALLOW),
        ("clone", (0x007D0F00,), ALLOW),
        ("clone", (0x01208011,), EPERM),
        ("clone", (0x11 | 0x20000000,), EPERM),
        ("execveat", (), EPERM),
    ],
)
def test_the_filter_sees_arguments(machine: str, call: str, arguments: tuple[int, ...], verdict: int) -> None:
    for writable in (True, False):
        program = assemble(SEARCH.calls(writable=writable), machine)
        assert decided(program, machine, call, *arguments) == verdict


def test_nothing_is_written_even_where_the_root_is() -> None:
    assert SEARCH.access(writable=True) == SEARCH.access(writable=False)
    assert SEARCH.calls(writable=True) == SEARCH.calls(writable=False)
