"""The path of ripgrep: beside Python, or where pip puts programs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.supervisor.command import CODE

ASK = """
import sys
sys.executable, sys.prefix, code = sys.argv[1:]
from supervisor.categories import search
from supervisor.categories.search import ripgrep
search.CODE = code
print(ripgrep())
"""

ASK_TWICE = """
import resource
from contextlib import suppress
from supervisor.categories.search import ripgrep
before = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
with suppress(OSError):
    ripgrep()
resource.setrlimit(resource.RLIMIT_NOFILE, before)
print(ripgrep())
"""


def found(folder: Path, code: str, *arguments: str) -> str:
    environment = {"PYTHONPATH": str(CODE), "PYTHONUSERBASE": str(folder)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("there", [["prefix", "user"], ["prefix/local", "user"], ["user"], ["python", "user"], []])
def test_ripgrep_is_found_beside_python_or_where_pip_puts_programs(there: list[str], tmp_path: Path) -> None:
    for place in there:
        (tmp_path / place / "bin").mkdir(parents=True)
        (tmp_path / place / "bin/rg").write_text("")
    code = str(tmp_path / "user/lib/python3/site-packages")
    wanted = tmp_path / (there[0] if there else "python") / "bin/rg"
    assert found(tmp_path, ASK, str(tmp_path / "python/bin/python"), str(tmp_path / "prefix"), code) == str(wanted)


@pytest.mark.parametrize("code", ["/", "/src", "/srv/src"])
def test_ripgrep_is_found_from_a_checkout_near_the_top(code: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/rg").write_text("")
    assert found(tmp_path, ASK, str(tmp_path / "bin/python"), str(tmp_path), code) == str(tmp_path / "bin/rg")


def test_without_descriptors_at_the_first_search_later_ones_find_it_all_the_same(tmp_path: Path) -> None:
    assert found(tmp_path, ASK_TWICE).endswith("/rg")
