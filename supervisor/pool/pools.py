"""The pools of one root: one a category, opened when it is first needed.

Rule: the root is opened once, as a descriptor, and every worker inherits that; what its path means later does not
matter. Pools close in the reverse order of their opening, then the descriptor.
"""

import os
from collections.abc import Callable, Mapping

import trio

from supervisor.errors import ConfigError, WorkerUnavailable
from supervisor.pool.orphans import Orphans
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec


class Pools:
    """The workers on one root.

    Args:
        root: absolute path of a directory.
        specs: makes the child spec of a category.
        nursery: runs the pools' tasks; its owner calls `close` before it ends.
        orphans: as for `Pool`.
    """

    def __init__(
        self,
        root: str,
        specs: Callable[[str], ChildSpec],
        nursery: trio.Nursery,
        orphans: Orphans | None = None,
    ) -> None:
        try:
            self._root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ConfigError(f"The root {root!r} cannot be opened: {error.strerror}.") from error
        self._specs = specs
        self._nursery = nursery
        self._orphans = orphans
        self._pools: dict[str, Pool] = {}

    @property
    def opened(self) -> Mapping[str, Pool]:
        """The pools that are open, by category, in the order of their opening."""
        return self._pools

    def pool(self, category: str) -> Pool:
        """Return the category's pool; opening it starts its first worker.

        Raises:
            WorkerUnavailable: the pools have been closed.
        """
        if self._root_fd < 0:
            raise WorkerUnavailable("The workers have been stopped.")
        pool = self._pools.get(category)
        if pool is None:
            pool = self._pools[category] = Pool(self._specs(category), self._root_fd, self._orphans)
            self._nursery.start_soon(pool.run)
        return pool

    async def close(self) -> None:
        """Stop every worker, the last opened category first; each within its `stop_timeout`."""
        with trio.CancelScope(shield=True):
            for pool in reversed(self._pools.values()):
                await pool.close()
            self._pools.clear()
            os.close(self._root_fd)
            self._root_fd = -1
