"""`strongroom doctor --root DIR` says what a command there finds, and why not the rest."""

import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.config.settings import load
from supervisor.doctor.programs import check_programs
from supervisor.doctor.table import CheckResult, lines
from supervisor.errors import ConfigError
from tests.each_row import each_row
from tests.supervisor.categories.homes import make

VERSION = "#!/bin/sh\necho $(basename $0) 1.2.3\n"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, CheckResult]]:
    """A home, and what is said of a root in it whose environment is broken."""
    home = tmp_path_factory.mktemp("doctor").resolve()
    make(home, ["tools/bin/jq", ".config/x/bin/dune", "root/node_modules/.bin/tsc", "root/.venv/bin/ruff"])
    (home / "root/.venv/bin/ruff").write_text("#!/gone/bin/python3\n")
    make(home, ["root/.venv/pyvenv.cfg = home = /gone/bin\n", "root/.venv/bin/python3 -> /gone/bin/python3"])
    (home / "tools/bin/jq").write_text(VERSION)
    path = f"{home}/tools/bin:{home}/.config/x/bin:.:/no/such:{home}:{home}/root/.venv/bin:/usr/bin:/bin"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        settings = load({"STRONGROOM_HOME": str(home / "state"), "HOME": str(home), "PATH": path})
        return home, {each.subject: each for each in check_programs(settings, str(home / "root"))}


def test_programs_are_told_with_place_and_version(told: tuple[Path, dict[str, CheckResult]]) -> None:
    home, rows = told
    assert rows["jq"] == CheckResult("jq", "ok", f"1.2.3  {home}/tools/bin/jq")
    assert rows["tsc"].detail == f"version unknown  {home}/root/node_modules/.bin/tsc"
    assert rows["ruff"] == CheckResult("ruff", "degraded", rows["ruff"].detail)
    assert rows["ruff"].detail.startswith(f"{home}/root/.venv/bin/ruff does not start: ")
    assert rows["git"].detail.endswith("  /usr/bin/git")


def test_directories_are_told_with_what_is_found_in_them(told: tuple[Path, dict[str, CheckResult]]) -> None:
    home, rows = told
    assert rows[f"{home}/tools/bin"] == CheckResult(f"{home}/tools/bin", "ok", "Found there: jq.")
    assert rows[f"{home}/root/node_modules/.bin"].detail == "Found there: tsc."
    assert "/usr/bin" not in rows
    assert rows["not there"] == CheckResult("not there", "ok", "Nothing is lost by them: /no/such.")


def test_it_can_be_read_in_80_columns(told: tuple[Path, dict[str, CheckResult]]) -> None:
    """No word is broken but paths, and these before a name."""
    rows = tuple(told[1].values())
    shown = [line for _, line in lines(rows, 80)]
    assert max(map(len, shown)) < 80
    text = "For what to do see: " + " ".join(f"{row.verdict} {row.subject} {row.detail} {row.advice}" for row in rows)
    words, names = set(text.split()), set(text.replace("/", " ").split())
    broken = [part for line in shown for part in line.split() if part not in words]
    assert [part for part in broken if not set(part.strip("/").split("/")) <= names] == []


REASONS = [
    ("dune", "/.config/x/bin/dune is not found by commands: it lies in .config"),
    ("HOME/.config/x/bin", ".config, where settings and credentials are kept. Not found there: dune."),
    (".", "relative"),
    ("HOME", "a home"),
    ("HOME/root/.venv", "/gone is not there. Make it anew: python3 -m venv --clear .venv"),
]


@each_row(("subject", "words"), REASONS)
def test_what_is_not_found_is_told_with_the_reason(
    subject: str, words: str, told: tuple[Path, dict[str, CheckResult]]
) -> None:
    home, rows = told
    row = rows[subject.replace("HOME", str(home))]
    assert row.verdict == "degraded"
    assert words in row.detail


def test_a_root_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--root"):
        check_programs(load({"STRONGROOM_HOME": str(tmp_path / "state")}), str(tmp_path / "none"))


def test_variables_that_lead_out_of_the_root_are_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state/config.toml").write_text('[shell]\nenv = { PYTHONPATH = "/srv/elsewhere" }\n')
    settings = load({"STRONGROOM_HOME": str(tmp_path / "state")})
    with pytest.raises(ConfigError, match=r"PYTHONPATH.*in the root"):
        check_programs(settings, str(tmp_path / "root"))


def test_it_can_be_typed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "supervisor", "doctor", "--root", str(tmp_path), "--model"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={"HOME": str(tmp_path)})
    assert done.returncode == 2
    assert "not both" in done.stderr
