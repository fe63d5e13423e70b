"""`strongroom doctor` imports what Strongroom stands on, for real and at a distance."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from supervisor.categories.row import Library
from supervisor.doctor.checks import explain_missing_libraries
from supervisor.doctor.libraries import CORE, LIBRARIES, LibraryCheck, check_libraries, try_libraries
from supervisor.doctor.msgspec_check import msgspec_problem
from supervisor.doctor.table import CheckResult
from tests.supervisor.command import CODE, Strongroom

BROKEN: Final = [
    ("raise ImportError('no such part')", "ImportError: no such part"),
    ("import there_is_no_such_module", "No module named 'there_is_no_such_module'"),
    ("raise SystemExit(3)", "SystemExit: 3"),
    ("1 / 0", "ZeroDivisionError"),
    ("import os; os._exit(7)", "ends Python with 7"),
    (None, "without a package in it"),
]
"""What stands in a library's first file, None where it has none; and what is said of it."""

WELL: Final = Library("msgspec", ("well_library",), "nothing works")


@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_a_library_that_is_broken_is_named_and_costs_the_others_nothing(
    text: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_library").mkdir()
    if text is not None:
        (tmp_path / "broken_library" / "__init__.py").write_text(text)
    (tmp_path / "well_library.py").write_text("print('hello')")
    monkeypatch.syspath_prepend(tmp_path)
    table = [Library("trio", ("broken_library",), "no worker starts"), WELL]
    good, bad = check_libraries(try_libraries(table))
    assert (good.verdict, good.detail.split()[0]) == ("ok", "msgspec")
    assert (bad.subject, bad.verdict, bad.advice) == ("trio", "missing", "pip install --force-reinstall trio")
    assert words in bad.detail
    assert "no worker starts" in bad.detail


def test_a_library_that_is_not_there_is_to_be_installed() -> None:
    table = [Library("no-such-library", ("no_such_library",), "nothing is written")]
    (finding,) = check_libraries(try_libraries(table))
    assert (finding.verdict, finding.detail) == ("missing", "not installed: nothing is written")
    assert finding.advice == "pip install no-such-library"


def test_every_library_that_is_needed_is_in_the_table() -> None:
    text = Path(__file__).parents[3].joinpath("pyproject.toml").read_text("utf-8")
    assert [each.name for each in LIBRARIES if f'"{each.name}' not in text] == []
    assert LIBRARIES[: len(CORE)] == CORE


def shadowed(strongroom: Strongroom, library: str) -> None:
    """Have a package of that name which is broken, before the one that is installed."""
    (strongroom.folder / library).mkdir()
    (strongroom.folder / library / "__init__.py").write_text("raise ImportError('broken')")
    strongroom.environment["PYTHONPATH"] = f"{strongroom.folder}:{CODE}"


def test_without_trio_there_is_a_table_all_the_same(strongroom: Strongroom) -> None:
    shadowed(strongroom, "trio")
    done = strongroom.run("doctor", "--json", wrapper=["env"])
    found = {each["subject"]: each for each in done.json}
    assert (done.code, done.err) == (1, "")
    assert "ImportError: broken" in found["trio"]["detail"]
    assert "trio" in found["workers"]["detail"]
    assert (found["workers"]["verdict"], found["journal"]["verdict"]) == ("missing", "ok")


def test_libraries_that_doctor_itself_needs_are_looked_at_first(strongroom: Strongroom) -> None:
    assert msgspec_problem() == ""
    shadowed(strongroom, "msgspec")
    environment = strongroom.environment
    program = "from supervisor.doctor.msgspec_check import msgspec_problem; print(msgspec_problem())"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("msgspec cannot be imported (ImportError: broken). Try: pip install")


def test_a_worker_that_lacks_a_library_says_so() -> None:
    httpcore = next(each for each in LIBRARIES if each.name == "httpcore")
    rows = [CheckResult(f"{name} worker", "missing", "died too often", "look") for name in ("web", "shell")]
    web, shell = explain_missing_libraries(
        rows, [LibraryCheck(httpcore, "1", "it is broken"), LibraryCheck(CORE[0], "1", "")]
    )
    assert web.advice == "It cannot work without httpcore: see above."
    assert shell.advice == "look"
