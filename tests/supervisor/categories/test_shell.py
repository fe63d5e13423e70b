"""Toolchains that commands are shown: programs, and no secrets."""

import os
from pathlib import Path

import pytest

from supervisor.categories.shown_places import HiddenPlaces
from supervisor.categories.toolchains import find_toolchains
from supervisor.config.settings import load
from supervisor.errors import ConfigError
from workers.shell.shell_inputs import ShellInputs


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, for which `~` stands."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def kept(person: Path) -> HiddenPlaces:
    return HiddenPlaces(str(person), ("/nonexistent/journal",))


def write_program(file: Path, text: str = "#!/bin/sh\n") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def in_home(person: Path, directories: tuple[str, ...]) -> list[str]:
    return [each.removeprefix(f"{person}/") for each in directories if each.startswith(str(person))]


def test_known_toolchains_that_are_there_are_shown(person: Path) -> None:
    newest = ".nvm/versions/node/v22.3.0"
    for each in (".cargo/bin", ".bun/bin", ".nvm/versions/node/v9.1.0/bin", f"{newest}/bin", f"{newest}/lib"):
        (person / each).mkdir(parents=True)
    found = find_toolchains(("known",), kept(person))
    assert in_home(person, found.shown) == [".cargo/bin", f"{newest}/bin", f"{newest}/lib", ".bun/bin"]
    assert in_home(person, found.path) == [".cargo/bin", f"{newest}/bin", ".bun/bin"]


def test_of_rust_the_default_toolchain_is_shown_before_its_installer(person: Path) -> None:
    write_program(person / ".cargo/bin/rustup")
    for name in ("stable-x", "nightly-x"):
        (person / ".rustup/toolchains" / name / "bin").mkdir(parents=True)
    (person / ".rustup/settings.toml").write_text('default_toolchain = "nightly-x"\n')
    path = find_toolchains(("known",), kept(person)).path
    assert in_home(person, path) == [".rustup/toolchains/nightly-x/bin", ".cargo/bin"]


@pytest.mark.parametrize(
    "settings", ["", "default_toolchain = 3", 'default_toolchain = "../../.ssh"', "= broken", None]
)
def test_settings_of_rust_that_say_nothing_or_are_a_fifo_show_nothing(person: Path, settings: str | None) -> None:
    (person / ".rustup/toolchains").mkdir(parents=True)
    write_program(person / ".cargo/bin/rustup")
    (person / ".ssh").mkdir()
    file = person / ".rustup/settings.toml"
    os.mkfifo(file) if settings is None else file.write_text(settings)
    assert in_home(person, find_toolchains(("known",), kept(person)).shown) == [".cargo/bin"]


def test_a_link_to_a_whole_home_shows_nothing(person: Path) -> None:
    (person / ".bun").mkdir()
    (person / ".bun/bin").symlink_to(person)
    assert in_home(person, find_toolchains(("known",), kept(person)).shown) == []


def test_toolchains_that_the_operator_names_replace_the_known_ones_or_add_to_them(person: Path) -> None:
    (person / ".cargo/bin").mkdir(parents=True)
    (person / "mine/bin").mkdir(parents=True)
    found = find_toolchains(("~/mine",), kept(person))
    assert found.shown == (str(person / "mine"),)
    assert found.path == (str(person / "mine/bin"),)
    assert find_toolchains((), kept(person)).shown == ()
    assert in_home(person, find_toolchains(("~/mine", "known"), kept(person)).shown) == ["mine", ".cargo/bin"]


NAMED_WRONGLY = [
    ("relative/tools", "absolute"),
    ("/no/such/directory", "directory"),
    ("~", "home"),
    ("/", "home"),
    ("/etc", "/etc"),
    ("$STATE", "journal"),
]


@pytest.mark.parametrize(("named", "words"), NAMED_WRONGLY)
def test_a_place_that_no_command_may_see_is_refused(named: str, words: str, person: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    named = named.replace("$STATE", str(state))
    (state / "config.toml").write_text(f'[shell]\ntoolchains = ["{named}"]\n')
    with pytest.raises(ConfigError, match=words):
        load({"STRONGROOM_HOME": str(state)})


def test_a_call_has_the_time_that_a_command_has_and_more(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[shell]\ntimeout_s = 300\n[limits.shell]\ncall_s = 10\n")
    assert load({"STRONGROOM_HOME": str(tmp_path)}).limits("shell").call_s > 300


@pytest.mark.parametrize(
    ("text", "most"), [("", 600), ("max_timeout_s = 60", 60), ("timeout_s = 900", 900), ("max_timeout_s = 10", 30)]
)
def test_a_command_may_ask_for_as_long_as_the_operator_says(text: str, most: float, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f"[shell]\n{text}\n")
    inputs = load({"STRONGROOM_HOME": str(tmp_path)}).inputs("shell")
    assert isinstance(inputs, ShellInputs)
    assert inputs.max_timeout_s == most


@pytest.mark.parametrize(
    "text",
    ['programs = ["a/b"]', 'programs = [""]', "timeout_s = 0", "max_timeout_s = 3601", "disk_mb = 0", "tiemout_s = 1"],
)
def test_nonsense_about_the_shell_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f"[shell]\n{text}\n")
    with pytest.raises(ConfigError, match="shell"):
        load({"STRONGROOM_HOME": str(tmp_path)})
