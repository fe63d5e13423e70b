"""`strongroom config`: what holds and from where, and changes that keep what a person wrote."""

import stat
from pathlib import Path
from typing import Final

import pytest

from supervisor.config.config_editor import set_value, unset
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.config_reader import config_values
from supervisor.config.reference import as_toml
from supervisor.config.settings import Settings, load
from supervisor.errors import ConfigError
from tests.forked import ForkedStrongroom

WRITTEN: Final = """\
# mine
max_steps = 7   # enough

#[web]
[daemon]  # short
log_mb    = 3
# the end
[[rules]]
decision = "ask"
"""


def settings(home: Path, text: str = WRITTEN) -> Settings:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(text)
    return load({"STRONGROOM_HOME": str(home)}, read=False)


CHANGES: Final[dict[str, tuple[str, str, str, str]]] = {
    "a value": ("max_steps", "80", "max_steps = 7   # enough", "max_steps = 80   # enough"),
    "a value of a table": ("daemon.log_mb", "4", "log_mb    = 3", "log_mb    = 4"),
    "a key above tables": ("model", "offline", "\n#[web]", '\nmodel = "offline"\n#[web]'),
    "a text that is a number": ("model", "5", "\n#[web]", '\nmodel = "5"\n#[web]'),
    "a new key of a table": ("daemon.workers", "3", "# the end\n", "# the end\nworkers = 3\n"),
    "a new table": ("web.allow", '["a.example"]', '"ask"\n', '"ask"\n\n[web]\nallow = ["a.example"]\n'),
    "a table in a table": ('models."o/q".window', "2048", '"ask"\n', '"ask"\n\n[models."o/q"]\nwindow = 2048\n'),
}


@pytest.mark.parametrize(("key", "value", "before", "after"), CHANGES.values(), ids=CHANGES)
def test_a_change_keeps_all_the_rest(key: str, value: str, before: str, after: str, home: Path) -> None:
    file = set_value(settings(home), key, value)
    assert file.read_text() == WRITTEN.replace(before, after)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    load({"STRONGROOM_HOME": str(home)})


def test_a_key_stands_at_its_comment_and_is_taken_out_again(home: Path) -> None:
    here = settings(home, as_toml())
    file = set_value(here, "max_steps", "80")
    assert "may take.\nmax_steps = 80\n#max_steps = 50\n" in file.read_text()
    unset(here, "max_steps")
    assert file.read_text() == as_toml()


def test_a_link_stays_one_and_a_file_that_is_not_there_is_made(home: Path, tmp_path: Path) -> None:
    here = settings(home)
    (home / "config.toml").rename(tmp_path / "mine.toml")
    (home / "config.toml").symlink_to(tmp_path / "mine.toml")
    assert set_value(here, "max_steps", "8") == tmp_path / "mine.toml"
    assert (home / "config.toml").is_symlink()
    (home / "config.toml").unlink()
    assert set_value(here, "max_steps", "8").read_text() == "max_steps = 8\n"


WRONG: Final[dict[str, tuple[str, str, str]]] = {
    "an unknown key": ("max_step", "5", "Unknown name 'max_step'; did you mean 'max_steps'?"),
    "an unknown key of a table": ("daemon.workrs", "5", "`daemon`: unknown name 'workrs'; did you mean 'workers'?"),
    "too much": ("max_steps", "5000", "`max_steps` is 5000; it must be a whole number from 1 to 1000."),
    "none of those allowed": (
        "waiting.fallback",
        "never",
        "`waiting.fallback` is 'never'; it must be one of allow, ask.",
    ),
    "no such profile": ("profile", "nope", "There is no profile 'nope'."),
    "a list of tables": ("rules.decision", "deny", "`rules` is no table of keys"),
    "a second line": ("max_steps", "5\nmodel = 'x'", "`max_steps` is '5"),
    "no key": ("max steps", "5", "'max steps' is no key."),
    "two keys": ("a = 1\nb", "5", "is no key."),
}


@pytest.mark.parametrize(("key", "value", "words"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_changes_nothing(key: str, value: str, words: str, home: Path) -> None:
    here = settings(home)
    with pytest.raises(ConfigError) as caught:
        set_value(here, key, value)
    assert words in str(caught.value)
    assert (home / "config.toml").read_text() == WRITTEN


def test_a_mistake_that_was_there_before_is_named_with_its_line_and_can_be_mended(home: Path) -> None:
    here = settings(home, "max_steps = 0\n")
    with pytest.raises(ConfigError, match=r"config\.toml:1: `max_steps` is 0"):
        set_value(here, "model", "offline")
    assert set_value(here, "max_steps", "1").read_text() == "max_steps = 1\n"


def test_each_key_is_told_with_its_place(home: Path, tmp_path: Path) -> None:
    text = WRITTEN + '[network]\nproxy = "http://me:CANARY@h:1"\n'
    here = settings(home, text)
    places = {each.path: (each.value, each.line) for each in config_values(here.locations)}
    assert (places["max_steps",], places["daemon", "log_mb"]) == ((7, 2), (3, 6))
    assert places["daemon", "workers"] == (24, 0)
    strongroom = ForkedStrongroom(home, tmp_path, GOOGLE_API_KEY="sk-CANARY")
    done = strongroom.run("config")
    assert "CANARY" not in done.out
    for line in ("# key of gemini  (GOOGLE_API_KEY)", f"# home: {home}  (STRONGROOM_HOME)", f"# {home}/config.toml:6"):
        assert line in done.out
    assert strongroom.run("config", "get", "max_steps", "--json").json["source"] == f"{home}/config.toml:2"
    strongroom.run("config", "get", "max_step").assert_refused("Unknown key 'max_step'; did you mean 'max_steps'?")
    strongroom.run("config", "get", "nothing").assert_refused("Unknown key 'nothing'; `strongroom config` shows all")
    strongroom.run("config", "set", "max_steps", "-1").assert_refused("`max_steps` is -1; it must be a whole number")
    assert strongroom.run("config", "get", "model").out == f"{DEFAULT_MODEL}\n"
    assert strongroom.run("config", "set", "max_steps", "9").code == 0
    assert strongroom.run("config", "get", "max_steps").out == "9\n"
