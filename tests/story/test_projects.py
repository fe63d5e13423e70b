"""Small projects that are made here, driven through a day's work in the real daemon, as `scripts/projects` does."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.proving.catalog import NEEDS, PROJECTS, Project
from scripts.proving.drive import GOOD, NONE, drive
from scripts.proving.registries import lay_out
from tests.daemon_process import DaemonProcess

DRIVEN = [each for each in PROJECTS if each.name in ("python-package", "node-local", "rust-library", "c-library")]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("projects")
    with DaemonProcess(folder / "home", folder) as daemon:
        yield daemon


@pytest.mark.parametrize("project", DRIVEN, ids=[each.name for each in DRIVEN])
def test_a_project_is_mended_built_tested_committed_and_undone(
    project: Project, running: DaemonProcess, tmp_path: Path
) -> None:
    if missing := [each for each in NEEDS[project.language] if shutil.which(each) is None]:
        pytest.skip(f"no {', '.join(missing)}")
    root = tmp_path / project.name
    root.mkdir()
    lay_out(project, root)
    outcome = drive(project, root, running, "code")
    assert set(outcome.steps.values()) <= {GOOD, NONE}, outcome.said
    assert len(outcome.asked) <= 1, outcome.asked
