from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from supervisor.config.settings import Settings, load
from supervisor.journal.journal import Journal, open_journal
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from supervisor.session.resources import SessionResources
from supervisor.system.descendants import Orphans
from supervisor.tools.catalog import category_tools
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.raw_worker import forked
from tests.supervisor.bench import Bench, vault
from tests.supervisor.histories import DONE, call


@pytest.fixture
def settings(home: Path) -> Settings:
    home.mkdir(mode=0o700)
    return load({"STRONGROOM_HOME": str(home)})


@pytest.fixture
def journal(settings: Settings) -> Iterator[Journal]:
    with open_journal(settings.journal) as journal:
        yield journal


@pytest.fixture
async def bench(nursery: trio.Nursery, tmp_path: Path, root: Path) -> AsyncIterator[Bench]:
    """A real journal and real workers on `root`. Those that a test lets hang are not waited for long at the end."""

    def spec(category: str) -> ChildSpec:
        spec = ChildSpec(category, vault(root).context(), tools=category_tools(category))
        return forked(replace(spec, stop_timeout=0.1, commit_grace=0.2))

    pools = Pools(str(root), spec, nursery)
    with open_journal(tmp_path / "journal.db") as journal:
        yield Bench(root, journal, pools)
        await pools.close()


@pytest.fixture
async def resources(
    settings: Settings, journal: Journal, nursery: trio.Nursery, orphans: Orphans
) -> AsyncIterator[SessionResources]:
    """What sessions of that home share, with real workers."""
    resources = SessionResources(settings, journal, nursery, orphans)
    yield resources
    await resources.close()


@pytest.fixture(scope="module")
def stopped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DaemonProcess:
    """A daemon for all tests of a module, configured as its CONFIG says, before it starts with PRELUDE."""
    folder = tmp_path_factory.mktemp("daemon")
    daemon = DaemonProcess(folder / "home", folder)
    daemon.configure(getattr(request.module, "CONFIG", ""))
    daemon.prelude = getattr(request.module, "PRELUDE", "")
    return daemon


@pytest.fixture(scope="module")
def daemon(stopped: DaemonProcess) -> Iterator[DaemonProcess]:
    """The same daemon while it runs; none of the tests has met a bug of it."""
    with stopped:
        yield stopped
        assert stopped.verdict.problem == ""
    assert "internal error" not in stopped.log
    assert "background task failed" not in stopped.log


@pytest.fixture
def client(daemon: DaemonProcess) -> Iterator[Lines]:
    with daemon.client() as lines:
        yield lines


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model that writes a file, which the profile `asking` asks about."""
    return scripted(tmp_path / "ask.jsonl", {"calls": [call("write_file", path="b.txt", content="x")]}, DONE)
