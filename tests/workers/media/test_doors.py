"""Every way out that an attacker's Python could take from the media worker, and the locks that hold it.

What is tried in every worker stands in `tests/door_table.py`: this one has what the web worker has, but for its broker.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.door_table import DOORS, S
from tests.doors import Door, Held, Target, attack, check, of, open_target, shared_workers
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker, open_worker
from tests.workers.media.conftest import LIMITS

Hostile = Callable[..., RawWorker]

OWN = (
    Door("a timer of another kind", Held(web=S), "call('setitimer', 1, bytes(32), 0)"),
    Door("wait for others", Held(web=S), "call('poll', 0, 0, 0)"),
    Door("take a descriptor", Held(web=S), "past(errno.ENOTSOCK, call, 'recvmsg', pipe, 0, 0)"),
)
"""Besides what is tried in every worker: what the web worker may do, and this one need not."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    root = tmp_path_factory.mktemp("media")

    def opened(*removed: str) -> AbstractContextManager[RawWorker]:
        return open_worker(root, category="media", limits=LIMITS, command=hostile_command(*removed, category="media"))

    yield from shared_workers(opened)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """What lies outside, and who listens there; there is no root."""
    base = tmp_path_factory.mktemp("target")
    (base / "room").mkdir()
    with open_target(base, base / "room") as target:
        yield target


@pytest.mark.parametrize("door", [*of("media", DOORS), *OWN], ids=lambda door: door.name)
def test_a_door_is_shut_by_each_of_its_locks_and_by_no_other(door: Door, hostile: Hostile, target: Target) -> None:
    if "namespaces" in hostile().report.degraded:
        pytest.skip("no user namespaces on this machine")
    check(door, "media", lambda removed: attack(hostile(*sorted(removed)), door.code, target.ready()))


def test_every_door_that_doctor_tries_is_shut(hostile: Hostile) -> None:
    assert [door.name for door in hostile().probe() if not door.shut] == []


@pytest.mark.parametrize(("removed", "outcome"), [(("seccomp",), "passed EBADF"), (("seccomp", "descriptors"), "did")])
def test_the_worker_does_not_hold_the_root(removed: tuple[str, ...], outcome: str, hostile: Hostile) -> None:
    assert attack(hostile(*removed), "os.fstat(context.root.fd)", {}).startswith(outcome)


def test_the_worker_has_nothing_but_its_pipes(hostile: Hostile) -> None:
    assert attack(hostile("seccomp"), "result = len(descriptors())", {}) == "did 5"
