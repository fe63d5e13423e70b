"""Closes what is unused: sessions without clients, workers without sessions, models without either.

It sweeps the home, too: old undo packs, contents that no session names, and what killed commands and undos have left.

Rule: what is closed is first taken out of everybody's reach, and only then waited for. Meanwhile the index of sessions
is kept up with the journal, so that nobody waits for it who lists them; and while nobody works, the chain is compared,
and memory given back.
"""

import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from supervisor.categories.restore import SCRATCH
from supervisor.categories.shell import COPIES
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.session.resources import OpenPools
from supervisor.system.garbage import give_back
from supervisor.system.safe_files import NO_LINK
from workers.tree.drafts import sweep_directory

_log: Final = logging.getLogger("strongroom.daemon")

_SESSION_IDLE: Final = 30.0
"""Seconds after which a session without clients and without a turn is closed."""
_POOLS_IDLE: Final = 60.0
"""Seconds after which workers that no open session uses are stopped."""
_KEPT: Final = 3600.0
"""Seconds after which it is looked again whether something was kept for too long."""
_SPARE_POOLS: Final = 4
"""Roots whose workers may wait so long; beyond that the oldest are stopped at once."""


class IdleCloser:
    """Closes what is not used, on the registry's behalf."""

    def __init__(self, registry: SessionRegistry) -> None:
        self._registry = registry
        self._unused: dict[int, float] = {}
        self._next_look = trio.current_time()

    async def run(self) -> None:
        """Clean up now and then, until cancelled."""
        while True:
            await _tried(self._sweep)
            await trio.sleep(_SESSION_IDLE / 4)
            await _tried(self._close_idle)
            await _tried(self._registry.reader.keep_up)
            if not any(session.busy for session in self._registry.sessions.values()):
                await _tried(self._registry.reader.check_on)
                await _tried(partial(trio.to_thread.run_sync, give_back))

    async def _sweep(self) -> None:
        if trio.current_time() >= self._next_look:
            resources = self._registry.resources
            await trio.to_thread.run_sync(resources.packs.tidy)  # fails where no thread can be started
            await trio.to_thread.run_sync(resources.contents.tidy)
            for each in (resources.settings.home / COPIES, resources.settings.packs / SCRATCH):
                await trio.to_thread.run_sync(_sweep_drafts, each)
            self._next_look = trio.current_time() + _KEPT

    async def _close_idle(self) -> None:
        now = trio.current_time()
        for session in tuple(self._registry.sessions.values()):
            if session.idle_for(now) > _SESSION_IDLE:
                self._registry.forget(session)
        await self.stop_surplus()
        await self._registry.resources.models.close_unused(
            session.session.model for session in self._registry.sessions.values()
        )

    async def stop_surplus(self) -> None:
        """Stop workers beyond the few that may wait: also after each session of a batch over many roots."""
        surplus = self._surplus(trio.current_time())
        for each in surplus:
            self._registry.resources.withdraw_pools(each)  # all of them, before the first one is waited for
        for each in surplus:
            _log.info("stopped the workers on %s: nobody uses them", each.profile.root)
            await each.pools.close()

    def _surplus(self, now: float) -> list[OpenPools]:
        used = {id(session.session.pools) for session in self._registry.sessions.values()}
        idle = [each for each in self._registry.resources.opened if id(each.pools) not in used]
        self._unused = {id(each.pools): self._unused.get(id(each.pools), now) for each in idle}
        idle.sort(key=lambda each: self._unused[id(each.pools)])
        beyond = max(0, len(idle) - _SPARE_POOLS)
        return [
            each
            for number, each in enumerate(idle)
            if number < beyond or now - self._unused[id(each.pools)] > _POOLS_IDLE
        ]


def _sweep_drafts(place: Path) -> None:
    """Remove the drafts of killed workers from a directory, if it is there, as far as they can be."""
    with suppress(OSError):
        directory = os.open(place, os.O_DIRECTORY | NO_LINK)
        try:
            sweep_directory(directory)
        finally:
            os.close(directory)


async def _tried(work: Callable[[], Awaitable[None]]) -> None:
    """Do some of it; a failure is logged and nobody else's."""
    try:
        await work()
    except Exception:  # noqa: BLE001 - the task's boundary: the next time may go better
        _log.exception("periodic clean-up failed")
