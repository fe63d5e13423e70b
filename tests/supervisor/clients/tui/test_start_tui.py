"""The command `tui`: in a real terminal, and where something is missing."""

import subprocess
import sys
from pathlib import Path

from scripts.screenshots.terminal import Terminal
from tests.supervisor.clients.console.fake_daemon import FakeDaemon
from tests.supervisor.command import CODE

WITHOUT = "import sys; sys.modules['textual'] = None; from supervisor.cli.main import main; main(['tui'])"


def test_it_says_how_textual_is_installed(home: Path) -> None:
    environment = {"STRONGROOM_HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(CODE)}
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 2
    assert f"{sys.executable} -m pip install 'textual" in done.stderr
    assert not home.exists()
