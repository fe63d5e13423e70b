"""The systemd unit: what systemd itself says to it, and that every path comes through."""

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from supervisor.config.config_keys import Config, DaemonConfig
from supervisor.config.settings import load
from supervisor.daemon.process.systemd_unit import unit
from supervisor.errors import ConfigError
from tests.each_row import each_row
from tests.supervisor.command import HANG_GUARD

NAMES: Final = ["plain", "two words", "100%s %h %%", "$HOME ${x} $$", "star * [a] ?", "é日😀", "; # - @", "trailing "]
ODD_NAMES: Final = ['a "quoted" name', "it's", "back\\slash \\n \\x41"]
"""systemd takes them anywhere but in the path of a program."""


@pytest.fixture
def executable(tmp_path: Path) -> Path:
    found = tmp_path / "bin" / "strongroom"
    found.parent.mkdir()
    found.write_text("#!/bin/sh\n")
    found.chmod(0o755)
    return found


def made(home: Path | str, executable: Path | str = "/usr/bin/strongroom") -> str:
    return unit(load({"STRONGROOM_HOME": str(home)}), str(executable))


def lines(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


def words(value: str) -> list[str]:
    """Read a value as systemd does: quotes as a shell's, then specifiers."""
    assert value.count("%") % 2 == 0
    return [word.replace("%%", "%") for word in shlex.split(value)]


def complaints(text: str, folder: Path) -> str:
    """Return what systemd has against a unit."""
    file = folder / "strongroom.service"
    file.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", str(file)],
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
        check=False,
        env={
            "XDG_RUNTIME_DIR": str(folder),
            "HOME": str(folder),
            "PATH": "/usr/bin:/bin",
            "SYSTEMD_LOG_LEVEL": "notice",
        },
    )
    return done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_has_nothing_against_it(home: Path, tmp_path: Path, executable: Path) -> None:
    assert complaints(made(home, executable), tmp_path) == ""


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_the_executable_whatever_its_path(tmp_path: Path, executable: Path) -> None:
    """systemd checks that the command is there, and so that it has read the path that we meant."""
    text = ""
    for number, name in enumerate(NAMES):
        moved = tmp_path / name / "strongroom"
        moved.parent.mkdir()
        shutil.copy(executable, moved)
        text = made(tmp_path / name, moved)
        (tmp_path / f"u{number}").mkdir()
        assert complaints(text, tmp_path / f"u{number}") == "", name
    assert "not executable" in complaints(text.replace("trailing", "elsewhere"), tmp_path)


@each_row("name", [*NAMES, *ODD_NAMES])
def test_the_path_of_the_home_comes_through(name: str) -> None:
    home = Path("/srv", name)
    assert [words(line) for line in lines(made(home), "Environment")] == [[f"STRONGROOM_HOME={home}"]]


@pytest.mark.parametrize("name", NAMES)
def test_the_path_of_the_program_comes_through(home: Path, name: str) -> None:
    text = made(home, f"/opt/{name}/strongroom")
    assert [words(line) for line in lines(text, "ExecStart")] == [[f"/opt/{name}/strongroom", "daemon"]]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_program_that_systemd_would_not_start_is_refused(home: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no quotes and backslashes"):
        made(home, f"/opt/{name}/strongroom")


@pytest.mark.parametrize("path", ["/a\nExecStartPre=evil", "/a\tb", "/a\x1bb", "/a\udcffb"])
def test_a_path_that_no_unit_can_hold_is_refused(home: Path, path: str) -> None:
    for arguments in ((home, path), (path,)):
        with pytest.raises(ConfigError, match="control characters"):
            made(*arguments)


ENVIRONMENTS: Final[list[tuple[Mapping[str, str], list[str]]]] = [
    ({"HOME": "/h"}, []),
    ({"HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/1", "ANTHROPIC_API_KEY": "secret-key"}, []),
    (
        {"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "relative"},
        ["XDG_DATA_HOME=/d", "XDG_STATE_HOME=/s"],
    ),
    ({"STRONGROOM_HOME": "/x", "XDG_DATA_HOME": "/d"}, ["STRONGROOM_HOME=/x"]),
]


@pytest.mark.parametrize(("environ", "repeated"), ENVIRONMENTS)
def test_it_repeats_what_says_where_things_are(environ: Mapping[str, str], repeated: list[str]) -> None:
    text = unit(load(environ), "/usr/bin/strongroom")
    assert [word for line in lines(text, "Environment") for word in words(line)] == repeated
    assert "secret-key" not in text


FILES: Final = [
    ("/h/.config", "-/h/.config/strongroom/environment"),
    ("/100% [a] b", "-/100%% \\[a] b/strongroom/environment"),
]


@pytest.mark.parametrize(("folder", "line"), FILES)
def test_the_key_has_a_file_beside_the_configuration(folder: str, line: str) -> None:
    text = unit(load({"HOME": "/h", "XDG_CONFIG_HOME": folder}), "/usr/bin/strongroom")
    assert lines(text, "EnvironmentFile") == [line]


@pytest.mark.parametrize("seconds", [0, 10, 10.5, 600])
def test_systemd_waits_longer_than_the_daemon_drains(home: Path, seconds: float) -> None:
    config = Config(daemon=DaemonConfig(drain_s=seconds))
    settings = replace(load({"STRONGROOM_HOME": str(home)}), config=config)
    (value,) = lines(unit(settings, "/usr/bin/strongroom"), "TimeoutStopSec")
    assert int(value) >= seconds + 10


def test_a_relative_executable_is_made_absolute(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    executables = [words(line)[0] for line in lines(made(home, ".venv/bin/strongroom"), "ExecStart")]
    assert executables == [str(tmp_path / ".venv/bin/strongroom")]


def test_it_says_how_it_is_installed(home: Path) -> None:
    comments = [line[1:].strip() for line in made(home).splitlines() if line.startswith("#")]
    assert "strongroom daemon --print-unit > ~/.config/systemd/user/strongroom.service" in comments
    assert "systemctl --user enable --now strongroom" in comments


def test_it_asks_for_a_cgroup_in_which_workers_can_be_limited(home: Path) -> None:
    assert lines(made(home), "Delegate") == ["memory pids"]
