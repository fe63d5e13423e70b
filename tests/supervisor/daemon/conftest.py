"""A registry without a daemon around it."""

from collections.abc import AsyncIterator

import pytest
import trio

from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.journal.journal import open_journal
from supervisor.session.leases import Leases
from supervisor.session.resources import SessionResources
from tests.supervisor.daemon.harness import WatchedReader


@pytest.fixture
async def registry(resources: SessionResources, nursery: trio.Nursery) -> AsyncIterator[SessionRegistry]:
    """A registry of an empty home, with real workers."""
    settings = resources.settings
    with open_journal(settings.journal) as reading, Leases.open(settings.home) as leases:
        yield SessionRegistry(resources, nursery, leases, WatchedReader(reading))
        await resources.close()
