"""The official TypeScript SDK drives `strongroom acp`; `scripts/typescript/story.mjs` has the steps."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.supervisor.command import CODE, HANG_GUARD

STORY = CODE / "scripts" / "typescript"
NODE = shutil.which("node")


@pytest.mark.skipif(
    NODE is None or not (STORY / "node_modules").exists(),
    reason="the SDK is not installed: scripts/acp-typescript does it",
)
def test_every_step_of_an_editor_s_day_is_as_it_should_be() -> None:
    command = [str(NODE), str(STORY / "story.mjs"), str(Path(sys.executable).with_name("strongroom"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * HANG_GUARD, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.splitlines()[-1] == "ok strongroom acp ends with the editor"
