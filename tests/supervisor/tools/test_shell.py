"""Commands through the pool, the router and a daemon: what is left when a call is cancelled or the daemon dies."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
import trio

from supervisor.config.config_keys import Config
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.errors import WorkerDied
from supervisor.pool.pool import Pool
from supervisor.session.child_specs import child_spec
from tests.raw_worker import forked
from tests.supervisor.command import Family, children
from tests.supervisor.pool.harness import commit, pids
from workers.wire import messages

PATIENCE = 60


@pytest.fixture
def opened(root: Path) -> Iterator[int]:
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
async def pool(opened: int, root: Path, tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Pool]:
    """One on the root; its workers start when the test says so."""
    settings = Settings(Config(), tmp_path / "config.toml", tmp_path / "home")
    spec = child_spec(settings, Profile("operator", str(root), ("run_cmd",)), "shell")
    pool = Pool(forked(spec), opened)
    yield pool
    with trio.fail_after(PATIENCE):
        await pool.workers.close()


def arguments(command: str) -> bytes:
    return msgspec.json.encode({"command": command})


async def test_a_cancelled_command_is_gone_and_the_next_one_runs(pool: Pool, nursery: trio.Nursery) -> None:
    families: list[Family] = []

    def begun(_text: str) -> None:
        families.append(Family([pid for worker in pids(pool) for pid in children(worker)]))
        scope.cancel()

    with trio.fail_after(PATIENCE):
        await nursery.start(pool.workers.run)
        with trio.CancelScope() as scope:
            await commit(pool, "run_cmd", arguments("sleep 1000 & echo begun; wait"), output=begun)
        answer = await commit(pool, "run_cmd", arguments("echo again"))
        await pool.workers.close()
    assert isinstance(answer, messages.Done)
    assert len(families[0].handles) >= 3
    assert families[0].is_gone()


async def test_a_worker_that_dies_in_mid_command_is_reported(pool: Pool, nursery: trio.Nursery) -> None:
    def begun(_text: str) -> None:
        for first in [pid for worker in pids(pool) for pid in children(worker)[:1]]:
            os.kill(first, signal.SIGKILL)

    with trio.fail_after(PATIENCE):
        await nursery.start(pool.workers.run)
        with pytest.raises(WorkerDied, match="SIGKILL"):
            await commit(pool, "run_cmd", arguments("echo begun; sleep 1000"), output=begun)


async def test_the_root_is_what_was_opened_whatever_its_name_means_later(
    pool: Pool, root: Path, nursery: trio.Nursery
) -> None:
    root.rename(root.with_name("elsewhere"))
    root.mkdir()
    (root / "another").touch()
    with trio.fail_after(PATIENCE):
        await nursery.start(pool.workers.run)
        answer = await commit(pool, "run_cmd", arguments("ls; pwd"))
    assert isinstance(answer, messages.Done)
    assert msgspec.json.decode(answer.content)["stdout"] == f"a.txt\n{root}\n"
