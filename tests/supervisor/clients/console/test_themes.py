"""Themes of the console: ours, a person's own, and files that are wrong."""

from pathlib import Path

import pytest

from supervisor.clients.console.bottom_lines import style_of
from supervisor.clients.console.markdown_display import RichMarkdown
from supervisor.clients.console.theme_command import chosen, loaded
from supervisor.config.config_keys import Config
from supervisor.config.settings import Settings
from supervisor.display.fragments import styled
from supervisor.display.themes import CODES, DARK, THEMES, TONES, theme_of
from supervisor.errors import ConfigError
from tests.supervisor.clients.console.fake_daemon import FakeDaemon
from tests.supervisor.clients.console.terminals import ENTER, Terminal


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "themes").mkdir()
    return Settings(Config(), tmp_path / "config.toml", tmp_path)


def test_every_theme_is_one_for_all_that_draws() -> None:
    for theme in (*THEMES.values(), theme_of("all", {tone: " ".join(CODES) for tone in TONES})):
        style = style_of(theme)
        for tone in TONES:
            assert style.get_attrs_for_style_str(f"class:{tone}") is not None
        for colour in (True, False):
            markdown = RichMarkdown(colour=colour, theme=theme)
            assert "code" in markdown.terminal_text("# A\n- `code` [a](b)\n\n```py\nx = 1\n```\n> b", 60)


def test_a_theme_says_what_a_tone_looks_like() -> None:
    line = [("bold green", "a"), ("dim", "b"), ("", "c")]
    own = theme_of("own", {"green": "bright-blue underline", "dim": "", "light": True})
    assert styled(line, colour=True) == "\x1b[1;32ma\x1b[0m\x1b[2mb\x1b[0mc"
    assert styled(line, colour=True, theme=own) == "\x1b[1;94;4ma\x1b[0mbc"
    assert styled(line, colour=False, theme=own) == "\x1b[1;4ma\x1b[0mbc"
    assert styled(line, colour=True, theme=THEMES["none"]) == "\x1b[1ma\x1b[0m\x1b[2mb\x1b[0mc"


WRONG = {
    'red = "bold"\n\n greeen = "x"': "line 3, `greeen`: no such tone; there are bold, ",
    'green = "bold verdant"': "line 1, `green`: no such word 'verdant'; there are bold, ",
    "dim = 3": "line 1, `dim`: must be words, such as ",
    'light = "yes"': "line 1, `light`: must be true or false.",
    '# a\n["bo\\u0078"]\nx = 1': "`box`: no such tone",
    "red = \nx": "line 1",
    "red = \xff": "not UTF-8",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_named_with_line_and_key(settings: Settings, text: str) -> None:
    file = settings.home / "themes" / "own.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        loaded(settings, "own")
    assert str(file) in str(caught.value)
    assert WRONG[text] in str(caught.value)
    (settings.home / "console-theme").write_text("own\n")
    assert chosen(settings) == (DARK, str(caught.value))


@pytest.mark.parametrize("name", ["none-such", "../config", "", "a/b", "x\0"])
def test_a_theme_that_is_none_is_said(settings: Settings, name: str) -> None:
    with pytest.raises(ConfigError, match=r"^There is no theme"):
        loaded(settings, name)


def test_a_theme_is_taken_and_kept(home: Path, root: Path, daemon: FakeDaemon) -> None:
    (home / "themes").mkdir()
    (home / "themes" / "mine.toml").write_text('green = "blue"\n')
    with Terminal(home, root.parent, columns=120) as console:
        console.until("Ready")
        assert console.colour_of("Ready") == "green"
        console.type("/theme" + ENTER, lambda screen: "theme:" in screen and "> dark" in screen)
        console.type("mine" + ENTER, "The theme is mine now.")
        console.until(lambda screen: "Ready" in screen and console.colour_of("Ready") == "blue")
        console.type("/theme nothing" + ENTER, "There is no theme 'nothing'")
    with Terminal(home, root.parent, columns=120) as console:
        console.until("Ready")
        assert console.colour_of("Ready") == "blue"
    (home / "themes" / "mine.toml").unlink()
    with Terminal(home, root.parent, columns=120, NO_COLOR="1") as console:
        console.until(lambda screen: "Ready" in screen and "There is no theme 'mine'" in screen)
        console.type("/theme light" + ENTER, "There are no colours here")
