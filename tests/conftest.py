import gc
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from supervisor.system.descendants import Orphans
from tests import forked
from tests.daemon_process import DaemonProcess
from tests.huge_pages import collapse
from tests.supervisor.command import Strongroom
from workers.kernel import prctl

TIERS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "corpus": (
            *("faults/test_urls.py", "faults/test_worker_faults.py", "faults/test_clients.py", "faults/test_plan.py"),
            *("supervisor/agent/models/test_messages_api.py", "supervisor/agent/models/test_model_corpus.py"),
            *("supervisor/agent/test_any_conversation.py", "workers/commit/test_operations.py"),
            *("workers/files/test_path_corpus.py", "workers/search/test_path_corpus.py"),
            *("workers/shell/test_command_corpus.py", "workers/shell/test_copy_corpus.py"),
            *("workers/web/test_bodies.py", "workers/web/test_text.py"),
            "workers/tree/test_obeyed_names.py",
        ),
        "doors": (
            *("workers/confine", "workers/shell/sandbox", "workers/shell/proxy/test_proxy_locks.py"),
            *("workers/restore/test_doors.py", "workers/search/test_doors.py", "workers/web/test_doors.py"),
            "workers/shell/test_copy_doors.py",
            *("supervisor/tools/test_confined_calls.py", "supervisor/tools/test_confined_librarian.py"),
            "supervisor/config/test_own_code.py",
        ),
        "story": (
            "story",
            *("faults/test_daemon.py", "faults/test_disk.py", "supervisor/acp/test_python_sdk.py", "test_soak.py"),
            "supervisor/acp/test_typescript_sdk.py",
            *("supervisor/cli/test_main.py", "supervisor/clients/batch", "supervisor/clients/test_call.py"),
            *("supervisor/clients/test_repositories.py", "supervisor/doctor/test_checks.py"),
            *("supervisor/journal/test_journal.py", "supervisor/journal/test_journal_crash.py"),
            *("supervisor/pool/test_restarts.py", "workers/commit/test_conflicts.py"),
            *("supervisor/journal/test_database_files.py", "test_package.py"),
            *("supervisor/pool/test_calls.py", "supervisor/daemon/sessions/test_open_session.py"),
            *("supervisor/daemon/sessions/test_repositories.py", "supervisor/daemon/protocol/test_connection.py"),
            *("supervisor/cli/test_history_export_why_verify.py", "workers/shell/test_command_proposal.py"),
            *("workers/shell/test_life.py", "workers/search/test_life.py", "workers/web/test_prepare.py"),
            *("supervisor/tools/test_every_effect.py", "workers/restore/test_settlement.py"),
        ),
    }
)
"""What `scripts/test` leaves out and `scripts/test --all` runs: files and folders beneath tests/, by what they are."""
TIER_OF: Final = {Path(__file__).parent / place: tier for tier, places in TIERS.items() for place in places}


def tier_of(file: Path) -> str:
    """Return the tier of a file of tests; "" in the quick run."""
    return next((TIER_OF[place] for place in (file, *file.parents) if place in TIER_OF), "")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave the tiers' files unread; -m leaves out the rest")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not read what is left out: that takes as long as many a test, in each process."""
    return True if config.option.quick and tier_of(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its tier.

    Raises:
        pytest.UsageError: the table names what is not there.
    """
    if gone := [str(place) for place in TIER_OF if not place.exists()]:
        raise pytest.UsageError(f"tests/conftest.py, TIERS: {', '.join(gone)} does not exist")
    tiers = {file: tier_of(file) for file in {item.path for item in items}}
    for item in items:
        if tiers[item.path]:
            item.add_marker(tiers[item.path])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What collects garbage looks at no test: there are so many that each look would take a third of a second.

    And what tests fork need not copy where each of them is.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        collapse()


def pytest_configure() -> None:
    """Ctrl-C reaches what the tests start, also where a shell in the background started them, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", autouse=True)
def _garbage() -> None:
    """What tests before have left is searched once: to search it again and again takes a tenth of a second each."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _forking() -> Iterator[None]:
    """What forks processes for tests ends with them."""
    yield
    forked.close()


@pytest.fixture
def orphans() -> Iterator[Orphans]:
    """As the daemon has them. Afterwards what other tests left dying becomes no child of this process any more."""
    yield Orphans()
    prctl("PR_SET_CHILD_SUBREAPER", 36, 0)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What STRONGROOM_HOME names; not made yet."""
    return tmp_path / "home"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory that tools work on, with a note in it."""
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    return folder


@pytest.fixture
def umask_000() -> Iterator[None]:
    """Nothing is kept from others unless somebody says so."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def daemon(home: Path, tmp_path: Path) -> Iterator[DaemonProcess]:
    """A daemon that has not been started; ended if a test leaves it running."""
    process = DaemonProcess(home, tmp_path)
    yield process
    if process.running:
        process.end()


@pytest.fixture
def strongroom(home: Path, tmp_path: Path) -> Strongroom:
    """The command line, in `tmp_path`, with a home and nothing else of its own, in processes that are forked."""
    return forked.ForkedStrongroom(home, tmp_path)
