"""A registry without a daemon around it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from supervisor.config.settings import load
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.journal.journal import open_journal
from supervisor.pool.orphans import Orphans
from supervisor.session.leases import Leases
from supervisor.session.resources import SessionResources
from tests.supervisor.daemon.harness import WatchedReader


@pytest.fixture
async def registry(home: Path, nursery: trio.Nursery) -> AsyncIterator[SessionRegistry]:
    """A registry of an empty home, with real workers."""
    home.mkdir(mode=0o700)
    settings = load({"STRONGROOM_HOME": str(home)})
    with (
        open_journal(settings.journal) as journal,
        open_journal(settings.journal) as reading,
        Leases.open(home) as leases,
    ):
        core = SessionResources(settings, journal, nursery, Orphans())
        yield SessionRegistry(core, nursery, leases, WatchedReader(reading))
        await core.close()
