"""Clean-up is tried again after a failure."""

from pathlib import Path
from typing import Final

import trio
import trio.testing

from supervisor.categories.restore import UndoConfig
from supervisor.daemon.sessions.idle import IdleCloser
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.undo.packs import PackStore
from tests.daemon_process import DaemonProcess
from tests.supervisor.command import wait_until
from tests.supervisor.daemon.harness import WatchedReader

NO_THREADS: Final = """
import threading
threading.stack_size(2**62)
"""
"""No memory has room for such a stack: every start of a thread fails, as it does at a limit of processes."""


class FailingStore(PackStore):
    """Cannot be tidied up the first time; says when it was."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, UndoConfig())
        self.tried = 0
        self.tidied = trio.Event()

    def tidy(self, but: str = "", now: float | None = None) -> None:  # noqa: ARG002 - as the store has it
        self.tried += 1
        if self.tried == 1:
            raise RuntimeError("can't start new thread")
        trio.from_thread.run_sync(self.tidied.set)


async def test_packs_are_tidied_up_the_next_time_when_it_failed(
    autojump_clock: trio.testing.MockClock, registry: SessionRegistry, tmp_path: Path
) -> None:
    store = FailingStore(tmp_path / "kept")
    registry.resources.packs = store
    async with trio.open_nursery() as nursery:
        nursery.start_soon(IdleCloser(registry).run)
        await store.tidied.wait()
        nursery.cancel_scope.cancel()
    assert store.tried == 2


async def test_the_index_of_sessions_keeps_up_with_the_journal(
    autojump_clock: trio.testing.MockClock, registry: SessionRegistry
) -> None:
    registry.reader = reader = WatchedReader(registry.resources.writer.journal)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(IdleCloser(registry).run)
        await reader.looked.wait()
        await reader.compared.wait()
        nursery.cancel_scope.cancel()
    assert reader.checked.problem == ""


def test_a_daemon_that_can_start_no_thread_goes_on(home: Path, tmp_path: Path, root: Path) -> None:
    daemon = DaemonProcess(home, tmp_path)
    daemon.prelude = NO_THREADS
    with daemon, daemon.client() as client:
        wait_until(lambda: client.status() and "periodic clean-up failed" in daemon.log)
        session = client.new_session(root, model="offline")
        assert client.prompt(session, "hello")["stopReason"] == "end_turn"


async def test_what_killed_commands_and_undos_left_is_swept_and_nothing_else(registry: SessionRegistry) -> None:
    settings = registry.resources.settings
    places = settings.home / "copies", settings.packs / "scratch"
    for place in places:
        (place / ".strongroom-0123456789abcdef.tmp" / "root" / "d").mkdir(parents=True)
        (place / "theirs").mkdir()
    await IdleCloser(registry)._sweep()
    assert [each.name for place in places for each in place.iterdir()] == ["theirs", "theirs"]
