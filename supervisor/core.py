"""What every program stands on: the journal, the workers of each root, and sessions on them.

Rule: things are opened in one order (home, journal, pools as roots are needed) and closed in the reverse. The
nursery is here, where somebody waits; nothing hides one around a yield. The program owns its process: whatever
its workers leave behind is killed.
"""

import contextlib
import signal
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from supervisor.agent.model import Model
from supervisor.config import Settings, secure_home
from supervisor.errors import ModelError, StrongroomError
from supervisor.journal import Journal, open_journal
from supervisor.pool.orphans import Orphans
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from supervisor.profiles import Profile
from supervisor.tools.catalog import category_tools
from workers import kernel
from workers.wire import Limits

_SET_DUMPABLE: Final = 4
_CLOSE_TIMEOUT: Final = 1.0
"""Seconds that the models' connections have to close."""

_T = TypeVar("_T")


class Core:
    """The open journal and the pools, shared by the sessions of one process."""

    def __init__(self, settings: Settings, journal: Journal, nursery: trio.Nursery, orphans: Orphans) -> None:
        self.settings = settings
        self.journal = journal
        self._nursery = nursery
        self._orphans = orphans
        self._pools: dict[Profile, Pools] = {}
        self._models: list[Model] = []

    def pools(self, profile: Profile) -> Pools:
        """Return the workers on the profile's root; the same for every session of that profile and root."""
        if profile not in self._pools:
            self._pools[profile] = Pools(
                profile.root,
                lambda category: child_spec(self.settings, profile, category),
                self._nursery,
                self._orphans,
            )
        return self._pools[profile]

    async def release(self, profile: Profile) -> None:
        """Stop the workers on the profile's root: nobody will use them again."""
        pools = self._pools.pop(profile, None)
        if pools is not None:
            await pools.close()

    def adopt(self, model: Model) -> None:
        """Warm a model up in the background, and close it with everything else."""
        self._models.append(model)
        self._nursery.start_soon(_warm, model)

    async def close(self) -> None:
        """Close the models, then stop the workers of all roots at once, within the pools' bound."""
        with trio.move_on_after(_CLOSE_TIMEOUT, shield=True):
            for model in self._models:
                await model.aclose()
        async with trio.open_nursery() as nursery:
            for pools in reversed(self._pools.values()):
                nursery.start_soon(pools.close)
        self._pools.clear()


def child_spec(settings: Settings, profile: Profile, category: str) -> ChildSpec:
    """Return what to start for a category in sessions of `profile`."""
    limits = settings.limits(category)
    return ChildSpec(
        category,
        profile.context(),
        profile.writable,
        category_tools(category),
        Limits(**{name: getattr(limits, name) for name in Limits.__struct_fields__}),
        settings.config.allow_degraded,
        limits.workers,
        limits.call_s,
    )


async def _warm(model: Model) -> None:
    with contextlib.suppress(ModelError):  # the first reply says it to somebody who listens
        await model.warm()


async def with_core(settings: Settings, use: Callable[[Core], Awaitable[_T]]) -> _T:
    """Run `use` on an open core; close it whatever happens. SIGTERM cancels like Ctrl-C.

    Raises:
        ConfigError: the home directory cannot be used.
        JournalError: the journal cannot be opened.
        KeyboardInterrupt: SIGINT or SIGTERM came; running turns are recorded as cancelled.
    """
    secure_home(settings.home)
    kernel.prctl("PR_SET_DUMPABLE", _SET_DUMPABLE, 0)  # no worker, and nobody else's debugger, reads our memory
    kernel.keep_heap()
    interrupted = False
    failure: StrongroomError | OSError | None = None

    async def watch_signals(scope: trio.CancelScope, task_status: trio.TaskStatus[None]) -> None:
        nonlocal interrupted
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                interrupted = True
                scope.cancel()

    with open_journal(settings.journal) as journal:
        async with trio.open_nursery() as nursery:
            core = Core(settings, journal, nursery, Orphans())
            with trio.CancelScope() as scope:
                await nursery.start(watch_signals, scope)
                try:
                    result = await use(core)
                except* (StrongroomError, OSError) as group:
                    failure = _first(group)  # out of the nurseries, so that it arrives alone and not in a group
            await core.close()
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if interrupted:
        raise KeyboardInterrupt
    return result


def _first(group: ExceptionGroup[StrongroomError | OSError]) -> StrongroomError | OSError:
    """Return one error for a group: tasks that fail together fail of the same cause, such as a full disk."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, StrongroomError | OSError)
    error.__cause__ = group
    return error
