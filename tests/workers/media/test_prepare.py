"""The preparation of the media worker: it refuses to serve without its libraries, and says what to install."""

from pathlib import Path

import pytest

from supervisor.pool.template_process import worker_command
from tests.raw_worker import open_worker
from tests.supervisor.command import LOOKS_IN

LACKING = (
    "import sys; sys.path[:0] = sys.argv[1:3]; sys.modules[{!r}] = None; from workers.__main__ import main; main()"
)


@pytest.mark.parametrize("library", ["PIL", "pypdf"])
def test_without_a_library_the_worker_refuses_and_says_what_to_install(library: str, tmp_path: Path) -> None:
    command = worker_command(LACKING.format(library))
    with open_worker(tmp_path, category="media", command=command, forked=False) as worker:
        assert worker.refusal.missing == "media"
        assert "pip install pillow pypdf" in worker.refusal.message
        assert library in worker.refusal.message


@LOOKS_IN
def test_no_other_worker_loads_the_libraries(tmp_path: Path) -> None:
    for category in ("files", "media"):
        with open_worker(tmp_path, category=category) as worker:
            mapped = Path(f"/proc/{worker.process.pid}/maps").read_text()
            assert ("_imaging" in mapped) is (category == "media")
