"""Each limit stops an attacker in a real worker, and would not without it."""

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.doors import shared_workers
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker, open_worker, send
from tests.workers.confine.test_confined_files import LIMITS, started_by
from tests.workers.search.shared import RIPGREP
from workers.search.search_inputs import SearchInputs
from workers.wire import messages

Limited = Callable[..., RawWorker]


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    """Return the shared worker with narrow limits that lacks the given locks."""
    place = tmp_path_factory.mktemp("limited")
    (place / "file").touch()
    yield from shared_workers(lambda *removed: open_worker(place, command=hostile_command(*removed), limits=LIMITS))


FILE: Final = "file = context.agent.working_directory + '/file'\n"


class Excess(NamedTuple):
    name: str
    code: str
    stopped: str
    """What the attacker sees of the limit; without it the code succeeds."""


EXCESSES: Final = [
    Excess("open files", "kept = [open(file) for _ in range(30)]", "passed EMFILE"),
    Excess("file size", "open(file, 'wb').write(bytes(2**21))", "passed EFBIG"),
    Excess(
        "memory", "try: kept = bytearray(2**28)\nexcept MemoryError: raise OSError(errno.ENOMEM, '')", "passed ENOMEM"
    ),
]


@pytest.mark.parametrize("excess", EXCESSES, ids=[each.name for each in EXCESSES])
def test_a_limit_stops_the_attacker(excess: Excess, limited: Limited) -> None:
    assert limited().attack(FILE + excess.code) == excess.stopped


@pytest.mark.parametrize("excess", EXCESSES, ids=[each.name for each in EXCESSES])
def test_without_the_limit_it_would_not(excess: Excess, limited: Limited) -> None:
    assert limited("rlimits").attack(FILE + excess.code) == "did None"


# a core dump ---------------------------------------------------------------------------------------------------------

DUMPS: Final = [
    ("with the limit alone", ("undumpable",), os.CLD_KILLED),
    ("undumpable alone", ("rlimits",), os.CLD_KILLED),
    ("with neither", ("rlimits", "undumpable"), os.CLD_DUMPED),
]


@pytest.mark.skipif(
    Path("/proc/sys/kernel/core_pattern").read_text().startswith("|"), reason="core dumps go to a program here"
)
@pytest.mark.parametrize(("removed", "how"), [each[1:] for each in DUMPS], ids=[each[0] for each in DUMPS])
def test_a_crash_leaves_no_core_dump(removed: tuple[str, ...], how: int, tmp_path: Path) -> None:
    begin = f"os.chdir({str(tmp_path)!r}); resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))"
    with open_worker(tmp_path, command=started_by(begin, hostile_command(*removed))) as worker:
        send(worker.process, messages.Call(1, "attack", json.dumps({"code": "ctypes.string_at(0)"}).encode()))
        ended = os.waitid(os.P_PID, worker.process.pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    assert (ended.si_status, ended.si_code) == (signal.SIGSEGV, how)
    assert bool(list(tmp_path.glob("core*"))) == (how == os.CLD_DUMPED)


# processes -----------------------------------------------------------------------------------------------------------

SOMEBODY: Final = "65534"
AS_SOMEBODY: Final = (
    *("setpriv", "--reuid", SOMEBODY, "--regid", SOMEBODY, "--clear-groups"),
    *("--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"),
)
"""Root is exempt from the limit of processes; who is not may need a power to read the interpreter."""

BOMB: Final = """
started = []
end, _ = os.pipe()
try:
    while len(started) < 30:
        pid = os.fork()
        if not pid:
            os.read(end, 1)
        started.append(pid)
    result = len(started)
except OSError as error:
    result = len(started), errno.errorcode[error.errno]
"""

BOMBS: Final = [
    ("search", ("seccomp",), 16, "did (15, 'EAGAIN')"),
    ("search", ("seccomp", "rlimits"), 16, "did (15, 'EAGAIN')"),
    ("search", ("seccomp", "rlimits", "namespaces"), 16, "did 30"),
    ("files", ("seccomp",), 0, "did (0, 'EAGAIN')"),
    ("files", ("seccomp", "rlimits"), 0, "did 30"),
]


@pytest.fixture(scope="module")
def everybodys_ripgrep() -> Iterator[str]:
    """Return the search program where another user may execute it: the tree may lie in a directory of one's own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield shutil.copy(RIPGREP, folder)


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="needs setpriv to be another user")
@pytest.mark.parametrize(("category", "removed", "processes", "outcome"), BOMBS)
def test_a_fork_bomb_ends_at_the_limit(
    category: str, removed: tuple[str, ...], processes: int, outcome: str, tmp_path: Path, everybodys_ripgrep: str
) -> None:
    tmp_path.chmod(0o755)
    command = (*(AS_SOMEBODY if os.geteuid() == 0 else ()), *hostile_command(*removed, category=category))
    limits = messages.Limits(processes=processes)
    inputs = SearchInputs(everybodys_ripgrep) if category == "search" else messages.Inputs()
    with open_worker(tmp_path, category=category, command=command, limits=limits, inputs=inputs) as worker:
        try:
            assert worker.attack(BOMB) == outcome
        finally:
            os.killpg(worker.process.pid, signal.SIGKILL)
