"""The process manager of the same name, in the same environment: doctor and the first client say so."""

import shutil
from pathlib import Path

from supervisor.doctor.checks import check_environment
from supervisor.system.foreign_files import ADVICE, foreign_files
from tests.supervisor.command import CODE, Strongroom


def test_an_environment_of_our_own_has_none() -> None:
    assert foreign_files() == ""


def test_the_process_manager_in_the_same_directory_is_told_by_doctor_and_as_a_client_starts(tmp_path: Path) -> None:
    for package in ("supervisor", "workers"):
        shutil.copytree(CODE / package, tmp_path / "site" / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "site/supervisor/supervisord.py").touch()
    strongroom = Strongroom.beside_a_root(tmp_path)
    strongroom.environment["PYTHONPATH"] = str(tmp_path / "site")
    told = f"`supervisor` is installed into the directory of Strongroom ({tmp_path}/site/supervisor)"
    assert told in strongroom.run("call", "list_files", "{}", "--root", "root").err
    (row,) = check_environment(foreign_files(str(tmp_path / "site/supervisor")))
    assert (row.verdict, told in row.detail, row.advice) == ("degraded", True, ADVICE)
