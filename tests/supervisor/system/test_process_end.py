"""A program's end: all that matters is done, and nothing is taken apart."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from supervisor.system import process_end

PROGRAM: Final = """
import atexit, os, sys, threading
from supervisor.system.process_end import run_to_exit

class Loud:
    def __del__(self, write=os.write):
        write(2, b"apart\\n")

kept = Loud()
release = threading.Event()

def program():
    atexit.register(sys.stderr.write, "atexit\\n")
    threading.Thread(target=lambda: release.wait() and sys.stderr.write("thread\\n")).start()
    sys.stdout.write("text without a flush")
    release.set()
    {end}

run_to_exit(program)
"""


def ended(end: str, out: Path) -> tuple[int, str]:
    root = str(Path(process_end.__file__).parents[2])
    command = [sys.executable, "-c", PROGRAM.replace("{end}", end)]
    with out.open("w") as stdout:
        done = subprocess.run(
            command, cwd=root, env={}, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize(("end", "code"), [("return 3", 3), ("return None", 0), ("sys.exit(4)", 4), ("sys.exit()", 0)])
def test_threads_handlers_and_output_are_done_with_before_a_process_ends(end: str, code: int, tmp_path: Path) -> None:
    found, errors = ended(end, tmp_path / "out")
    assert (found, sorted(errors.split())) == (code, ["atexit", "thread"])
    assert (tmp_path / "out").read_text() == "text without a flush"


def test_an_end_that_is_no_exit_code_is_left_to_python(tmp_path: Path) -> None:
    assert ended("raise RuntimeError('a bug')", tmp_path / "out")[0] == 1
    code, errors = ended("sys.exit('words')", tmp_path / "out")
    assert (code, sorted(errors.split())) == (1, ["apart", "atexit", "thread", "words"])
    assert (tmp_path / "out").read_text() == "text without a flush"


def test_output_that_cannot_be_written_is_told_as_python_tells_it() -> None:
    code, errors = ended("return 0", Path("/dev/full"))
    assert code == 120
    assert "No space left on device" in errors


def test_a_program_that_has_closed_its_output_ends_with_its_own_code(tmp_path: Path) -> None:
    code, errors = ended("sys.stdout.close(); return 3", tmp_path / "out")
    assert (code, sorted(errors.split())) == (3, ["apart", "atexit", "thread"])
