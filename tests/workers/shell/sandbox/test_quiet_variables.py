"""Programs leave no caches in the root, and what people expect there stays where it is."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.raw_worker import RawWorker
from tests.workers.shell.conftest import open_shell, propose, shell
from workers.wire import messages


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in Python."""
    root = tmp_path_factory.mktemp("quiet") / "root"
    root.mkdir()
    (root / "added.py").write_text("def add(a, b): return a + b\n")
    test = "class T(unittest.TestCase):\n    def test(self): self.assertEqual(added.add(1, 2), 3)\n"
    (root / "test_added.py").write_text(f"import unittest, added\n{test}")
    return root


@pytest.fixture(scope="module")
def python(source: Path) -> Iterator[RawWorker]:
    """A worker whose commands see this Python."""
    with open_shell(source, toolchains=(sys.base_prefix,), path=(f"{sys.base_prefix}/bin",)) as opened:
        yield opened


def test_a_test_run_leaves_nothing_behind(python: RawWorker) -> None:
    answer = propose(python, "python3 -m unittest -q")
    assert isinstance(answer, messages.Done), answer
    assert '"exit_code":0' in answer.content


def test_caches_are_in_the_commands_own_places(python: RawWorker, source: Path) -> None:
    found = shell(python, "env | grep -i 'cache.*='")["stdout"]
    assert str(source) not in found
    assert {line.partition("=")[0] for line in found.splitlines()} >= {"PYTEST_ADDOPTS", "MYPY_CACHE_DIR", "GOCACHE"}
