"""The pools of one root: one a category, opened when it is first needed.

Rule: the root is opened once, as a descriptor, and every worker inherits that; what its path means later does not
matter. Once the directory has been deleted, there is no pool for it. Pools close in the reverse order of their opening,
then the descriptor.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import trio

from supervisor.errors import WorkerUnavailable
from supervisor.pool.open_root import OpenRoot
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec

PLAN: Final = " (plan)"
"""Behind a category's name: its workers that rehearse and commit nothing, whatever they are asked."""


class Pools:
    """The workers on one root.

    Args:
        root: absolute path of a directory, or one that is open, which is closed with the pools.
        specs: makes the child spec of a category.
        nursery: runs the pools' tasks; its owner calls `close` before it ends.

    Raises:
        ConfigError: the root cannot be opened.
    """

    def __init__(self, root: str | OpenRoot, specs: Callable[[str], ChildSpec], nursery: trio.Nursery) -> None:
        self.root = OpenRoot(root) if isinstance(root, str) else root
        self._specs = specs
        self._nursery = nursery
        self._pools: dict[str, Pool] = {}
        self._outdated: list[Pool] = []
        """Pools on their way out: others have taken their place, or they were refused."""
        self._closed = False

    @property
    def opened(self) -> Mapping[str, Pool]:
        """The pools that are open, by category, in the order of their opening."""
        return self._pools

    def pool(self, category: str) -> Pool:
        """Return the category's pool, with `PLAN` behind its name one that only rehearses; opening it starts a worker.

        Raises:
            RootGone: the root directory has been deleted.
            WorkerUnavailable: the pools have been closed.
        """
        if self._closed:
            raise WorkerUnavailable("The workers have been stopped.")
        if (gone := self.root.gone) is not None:
            raise gone
        pool = self._pools.get(category)
        if pool is not None and pool.outdated:
            del self._pools[category]
            self._outdated.append(pool)
            self._nursery.start_soon(self._close_outdated, pool)
            pool = None
        if pool is None:
            spec = self._specs(category.removesuffix(PLAN))
            pool = self._pools[category] = Pool(replace(spec, plan=category.endswith(PLAN)), self.root.descriptor)
            self._nursery.start_soon(pool.workers.run)
        return pool

    async def _close_outdated(self, pool: Pool) -> None:
        await pool.workers.close()
        if pool in self._outdated:
            self._outdated.remove(pool)

    async def refusal(self, category: str) -> str:
        """Return why this category's workers refuse to serve here; "" where one serves, or where that is not known.

        Starts the first one if need be, and waits for it. A refusal is not remembered: the next call tries anew.
        """
        if (failed := self._pools.get(category)) is not None and failed.workers.refusal:
            await self._drop(category, failed)
        try:
            pool = self.pool(category)
        except WorkerUnavailable:
            return ""
        try:
            await pool.ready()
        except WorkerUnavailable:
            if pool.workers.refusal:
                await self._drop(category, pool)
            return pool.workers.refusal
        return ""

    async def _drop(self, category: str, pool: Pool) -> None:
        if self._pools.get(category) is pool:  # else somebody was faster
            del self._pools[category]
            self._outdated.append(pool)
            await self._close_outdated(pool)

    async def close(self) -> None:
        """Stop every worker, the last opened category first; each within its `stop_timeout`."""
        self._closed = True  # at once: no pool is opened meanwhile, on a root whose descriptor is about to be closed
        with trio.CancelScope(shield=True):
            for pool in reversed((*self._outdated, *self._pools.values())):
                await pool.workers.close()
            self._pools.clear()
            self.root.close()
