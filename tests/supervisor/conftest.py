from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from supervisor.journal.journal import open_journal
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from supervisor.tools.catalog import category_tools
from tests.supervisor.bench import Bench, vault


@pytest.fixture
async def bench(nursery: trio.Nursery, tmp_path: Path, root: Path) -> AsyncIterator[Bench]:
    """A real journal and real workers on `root`. Those that a test lets hang are not waited for long at the end."""

    def spec(category: str) -> ChildSpec:
        return ChildSpec(
            category, vault(root).context(), tools=category_tools(category), stop_timeout=0.1, commit_grace=0.2
        )

    pools = Pools(str(root), spec, nursery)
    with open_journal(tmp_path / "journal.db") as journal:
        yield Bench(root, journal, pools)
        await pools.close()
