"""A root is one directory, whatever is called by its name later."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.errors import ConfigError
from supervisor.pool.open_root import OpenRoot


@pytest.fixture(params=["disk", "memory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=tmp_path if request.param == "disk" else "/dev/shm") as folder:
        path = Path(folder, "root")
        path.mkdir()
        yield path


@pytest.fixture
def root(path: Path) -> Iterator[OpenRoot]:
    root = OpenRoot(str(path))
    yield root
    root.close()


def test_a_root_that_is_deleted_is_gone_and_stays_so_when_another_gets_its_name(root: OpenRoot, path: Path) -> None:
    assert root.gone is None
    path.rmdir()
    path.mkdir()
    assert str(path) in str(root.gone)


def test_a_root_that_is_moved_is_not_gone_whatever_it_is_called_then(root: OpenRoot, path: Path) -> None:
    path.rename(path.with_name("root (deleted)"))
    assert root.gone is None


def test_a_root_that_is_moved_is_not_found_by_its_name_until_it_is_back(root: OpenRoot, path: Path) -> None:
    moved = path.with_name("moved")
    found = [root.found_by_name]
    path.rename(moved)
    found.append(root.found_by_name)
    path.mkdir()
    found.append(root.found_by_name)
    path.rmdir()
    moved.rename(path)
    found.append(root.found_by_name)
    assert found == [True, False, False, True]


def test_the_same_directory_is_opened_again_where_it_is_by_now(root: OpenRoot, path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.mkdir()
    again, other = root.reopened(), OpenRoot(str(path))
    assert (again.path, again.identity) == (root.path, root.identity)
    assert other.identity != root.identity
    again.close()
    other.close()


def test_a_root_that_is_closed_leads_nowhere(root: OpenRoot, path: Path) -> None:
    root.close()
    with pytest.raises(ConfigError, match="cannot be opened"):
        root.reopened()
    assert not os.path.exists(root.place)
    root.close()
    assert root.gone is None
