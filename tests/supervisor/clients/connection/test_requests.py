"""What clients make of a daemon that stands elsewhere."""

from pathlib import Path
from typing import Final

import pytest

from supervisor.acp import extensions
from supervisor.clients.connection.requests import explained
from supervisor.config.config_keys import Config
from supervisor.config.settings import Settings
from tests.daemon_process import DaemonProcess, scripted
from tests.forked import ForkedStrongroom

NEEDS: Final = "The model needs a key: set ANTHROPIC_API_KEY."
EXPLAINED: Final = {
    "a key that is here alone": (NEEDS, "sk", False, True),
    "no key anywhere": (NEEDS, None, False, False),
    "another problem": ("The root does not exist.", "sk", False, False),
    "another variable": ("It needs ANTHROPIC_BASE_URL.", "sk", False, False),
    "a private daemon": (NEEDS, "sk", True, False),
}


@pytest.mark.parametrize(("words", "key", "private", "why"), EXPLAINED.values(), ids=EXPLAINED)
def test_a_daemon_that_misses_what_is_set_here_is_explained(
    words: str, key: str | None, private: bool, why: bool, home: Path
) -> None:
    settings = Settings(Config(), home / "config.toml", home, {"ANTHROPIC_API_KEY": key or ""})
    daemon = extensions.Daemon(pid=7, version="1", home="", model="", profile="", private=private)
    said = explained(words, settings, daemon)
    assert said.startswith(words)
    assert ("`strongroom daemon --stop` ends it" in said) == why


def test_a_script_is_found_where_the_person_stands(daemon: DaemonProcess, place: Path) -> None:
    scripted(place / "here.jsonl", {"text": "Found."})
    done = ForkedStrongroom(daemon.home, place).run("console", "--model", "scripted:here.jsonl", stdin="go\n")
    assert (done.code, done.out) == (0, "Found.\n")
