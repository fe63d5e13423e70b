"""A pool of fake workers for one test; whatever the test did, nothing of it is left afterwards."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import pytest
import trio

from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec
from tests.fake_worker import Step, fake
from tests.supervisor.pool import harness
from workers.wire.messages import Context


class OpenPool(Protocol):
    async def __call__(self, *steps: Step, warm: bool = True, **changes: Any) -> Pool:
        """Open a pool; `warm`: with its first worker and the spare ready. `changes` are those of the spec."""


@pytest.fixture
async def open_pool(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[OpenPool]:
    pools: list[Pool] = []
    fake([])  # its template lives on
    children, descriptors = harness.children(), harness.descriptors()
    root = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)

    async def open_one(*steps: Step, warm: bool = True, **changes: Any) -> Pool:
        usual: dict[str, Any] = {"restart": harness.QUICK, "call_timeout": harness.HANG}
        fields = usual | fake(list(steps), calls=tmp_path / "calls") | changes
        if "orphans" in changes or ("template" not in changes and "command" in changes):
            fields["template"] = None
        pool = Pool(ChildSpec("files", Context(str(tmp_path)), **fields), root)
        pools.append(pool)
        await nursery.start(pool.workers.run)
        if warm:
            await harness.until(lambda: len(harness.ready(pool)) >= 2)
        return pool

    yield open_one
    with trio.fail_after(harness.HANG):
        for pool in reversed(pools):
            await pool.workers.close()
    os.close(root)
    await harness.until(lambda: harness.survivors(tmp_path, children) == [])
    assert harness.descriptors() == descriptors
