"""The private tree of a worker that restores: directories of this user alone, the same ones once it is locked in."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.raw_worker import open_worker
from tests.supervisor.command import CODE, HANG_GUARD
from tests.workers.restore.conftest import inputs


def refusal(root: Path, kept: Path) -> str:
    with open_worker(root, category="restore", inputs=inputs(kept)) as worker:
        return worker.refusal.message


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_in_which_others_write_is_refused(mode: int, root: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept").chmod(mode)
    assert f"Use: chmod 700 {tmp_path / 'kept'}" in refusal(root, tmp_path / "kept")


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else gives files away")
def test_a_directory_of_somebody_else_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir(mode=0o700)
    os.chown(tmp_path / "kept", 12345, -1)
    told = refusal(root, tmp_path / "kept")
    assert f"is not this user's own: it belongs to user 12345. Move it away, or, as root: chown {os.geteuid()} " in told
    assert "chmod" not in told


def test_a_name_that_leads_elsewhere_by_now_is_refused(root: Path, tmp_path: Path) -> None:
    """The worker stands in / as it opens the directories, and in the root as it mounts them."""
    kept = tmp_path / "kept"
    (root / kept.relative_to("/")).mkdir(parents=True)
    told = refusal(root, Path("/proc/self/cwd") / kept.relative_to("/"))
    assert "another directory by now" in told
    assert "allow_degraded" not in told


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else gives files away")
def test_a_root_that_this_user_cannot_enter_is_refused_whatever_is_allowed(root: Path, tmp_path: Path) -> None:
    """Root enters it, but not in namespaces of its own. No protection is missing: none is to be switched off."""
    os.chown(root, 12345, -1)
    root.chmod(0)
    given = inputs(tmp_path / "kept")
    with open_worker(root, category="restore", inputs=given, allow_degraded=("namespaces",)) as worker:
        assert worker.refusal.missing == "restore"
        assert (
            f"the root {root} cannot be used: Permission denied. Look at its owner and mode" in worker.refusal.message
        )


COVERED: Final = """
import os, subprocess, sys
from pathlib import Path
from tests.workers.restore.test_private_tree import refusal
root = Path(sys.argv[1])
under = os.open(root, os.O_PATH)
subprocess.run(["mount", "-t", "tmpfs", "over", str(root)], check=True)
print(refusal(Path(f"/proc/self/fd/{under}"), root.parent / "kept"))
"""
APART: Final = ("unshare", "--user", "--map-root-user", "--mount")


def test_a_root_that_something_is_mounted_over_is_refused(root: Path) -> None:
    if subprocess.run([*APART, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces, or no unshare(1), on this machine")
    done = subprocess.run(
        [*APART, sys.executable, "-c", COVERED, str(root)],
        capture_output=True,
        text=True,
        cwd=CODE,
        timeout=HANG_GUARD,
        check=True,
    )
    assert "another directory by now" in done.stdout
