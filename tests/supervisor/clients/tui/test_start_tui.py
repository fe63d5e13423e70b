"""The command `tui`: in a real terminal, and where something is missing."""

import subprocess
import sys
from pathlib import Path

from tests.supervisor.clients.console.fake_daemon import FakeDaemon
from tests.supervisor.clients.console.terminals import ALT_ENTER, ENTER, ESCAPE, Terminal
from tests.supervisor.command import CODE, HANG_GUARD, Strongroom


class FullTerminal(Terminal):
    COMMAND = "tui"


WITHOUT = "import sys; sys.modules['textual'] = None; from supervisor.cli.main import main; main(['tui'])"


def test_it_runs_in_a_terminal_and_leaves_that_as_it_was(home: Path, root: Path, daemon: FakeDaemon) -> None:
    with FullTerminal(home, root.parent) as terminal:
        assert not terminal.until("Ready").startswith("Traceback")
        terminal.type(f"one{ALT_ENTER}two{ENTER}", "Thinking")
        assert daemon.prompt() == "one\ntwo"
        daemon.reply("It *is* so.")
        terminal.until(lambda screen: "It is so." in screen and "Ready" in screen)
        terminal.type(ESCAPE)
        assert terminal.ended() == 0
        assert terminal.echoes
        assert terminal.raw.count(b"\x1b[?1049h") == terminal.raw.count(b"\x1b[?1049l") == 1


def test_it_says_how_textual_is_installed(home: Path) -> None:
    environment = {"STRONGROOM_HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(CODE)}
    command = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HANG_GUARD, check=False)
    assert done.returncode == 2
    assert f"{sys.executable} -m pip install 'textual" in done.stderr
    assert not home.exists()


def test_it_says_what_to_use_without_a_terminal(strongroom: Strongroom) -> None:
    done = strongroom.run("tui")
    assert done.code == 2
    assert "strongroom console --plain" in done.err
