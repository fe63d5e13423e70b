"""Commands through the pool, the router and a daemon: what is left when a call is cancelled or the daemon dies."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import trio

from supervisor.config.config_file import Config
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.errors import WorkerDied
from supervisor.pool.pool import Pool
from supervisor.session.resources import child_spec
from tests.raw_worker import gone
from tests.supervisor.pool.harness import commit
from tests.workers.shell.test_life import children
from workers.wire import messages

PATIENCE = 20
OPERATOR = Profile("operator", "", ("run_cmd",), ask=("run_cmd",))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(Config(), tmp_path / "config.toml", tmp_path / "home")


@contextmanager
def opened(root: Path) -> Iterator[int]:
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def pool_on(settings: Settings, root: Path, root_fd: int) -> Pool:
    return Pool(child_spec(settings, Profile("operator", str(root), OPERATOR.tools), "shell"), root_fd)


def arguments(command: str) -> bytes:
    return msgspec.json.encode({"command": command})


async def test_a_cancelled_command_is_gone_and_the_next_one_runs(settings: Settings, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    held: list[int] = []
    with opened(root) as root_fd, trio.fail_after(PATIENCE):
        pool = pool_on(settings, root, root_fd)
        async with trio.open_nursery() as nursery:
            await nursery.start(pool.workers.run)

            def begun(_text: str) -> None:
                busy = [slot.process.pid for slot in pool.workers.slots if slot.process is not None]
                held.extend(os.pidfd_open(pid) for worker in busy for pid in children(worker))
                scope.cancel()

            with trio.CancelScope() as scope:
                await commit(pool, "run_cmd", arguments("sleep 1000 & echo begun; wait"), output=begun)
            answer = await commit(pool, "run_cmd", arguments("echo again"))
            await pool.workers.close()
    assert isinstance(answer, messages.Done)
    assert len(held) >= 3
    assert all(map(gone, held))
    for each in held:
        os.close(each)


async def test_a_worker_that_dies_in_mid_command_is_reported(settings: Settings, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with opened(root) as root_fd, trio.fail_after(PATIENCE):
        pool = pool_on(settings, root, root_fd)
        async with trio.open_nursery() as nursery:
            await nursery.start(pool.workers.run)

            def begun(_text: str) -> None:
                workers = [slot.process.pid for slot in pool.workers.slots if slot.process is not None]
                for first in [pid for worker in workers for pid in children(worker)[:1]]:
                    os.kill(first, signal.SIGKILL)

            with pytest.raises(WorkerDied, match="SIGKILL"):
                await commit(pool, "run_cmd", arguments("echo begun; sleep 1000"), output=begun)
            await pool.workers.close()


async def test_the_root_is_what_was_opened_whatever_its_name_means_later(settings: Settings, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "mine").touch()
    with opened(root) as root_fd, trio.fail_after(PATIENCE):
        root.rename(tmp_path / "elsewhere")
        root.mkdir()
        (root / "another").touch()
        pool = pool_on(settings, root, root_fd)
        async with trio.open_nursery() as nursery:
            await nursery.start(pool.workers.run)
            answer = await commit(pool, "run_cmd", arguments("ls; pwd"))
            await pool.workers.close()
    assert isinstance(answer, messages.Done)
    assert msgspec.json.decode(answer.content)["stdout"] == f"mine\n{root}\n"
