"""scripts/demo, as somebody runs it who has just cloned the tree."""

import subprocess

from tests.supervisor.command import CODE

REFUSED = ("path_escape", "permission_denied", "domain_not_allowed")
SHOWN = ("# Digest", "would change", "-# Idea", "# Bench scales")
ENDS = ("restored notes/idea.md", "worker_crashed", "killed by SIGKILL", "Wrote 6 bytes", "What to try next")


def test_the_demo_shows_what_it_is_there_for() -> None:
    done = subprocess.run([CODE / "scripts/demo"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    missing = [text for text in (*REFUSED, *SHOWN, *ENDS) if text not in done.stdout + done.stderr]
    assert missing == []
    assert (CODE / "vault/demo/digest.md").is_file()
