"""Programs that change much at once, on a root on a disk."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.workers.rehearsal.namespaces import ENVIRONMENT, Rehearsing
from tests.workers.rehearsal.snapshot import lasting, snapshot
from tests.workers.rehearsal.test_operations import unlinked
from workers.effects import Committed

_PACKAGE = """
mkdir -p package/lib; echo '{"name": "small", "version": "1.0.0", "bin": {"small": "run.js"}}' > package/package.json
echo 'console.log(1)' > package/run.js; for i in {1..50}; do echo "exports.x = $i" > package/lib/$i.js; done
tar czf small.tgz package; rm -rf package; echo '{"name": "root", "version": "1.0.0"}' > package.json
"""


@pytest.mark.skipif(shutil.which("npm", path="/usr/bin") is None, reason="there is no npm")
def test_npm_installs_a_tarball(rehearsing: Rehearsing, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    subprocess.run(["/bin/bash", "-e", "-c", _PACKAGE], cwd=root, check=True)
    before = snapshot(root)
    rehearsing.begin(root)
    ran = rehearsing.sh("HOME=$TMPDIR npm install --offline --no-audit --no-fund --cache=$(mktemp -d) ./small.tgz")
    assert ran.code == 0, ran.output
    effects = rehearsing.effects()
    assert snapshot(root) == before
    paths = {each.path for each in effects.changes}
    assert {"package.json", "package-lock.json", "node_modules/small/lib/7.js", "node_modules/.bin/small"} <= paths
    assert isinstance(rehearsing.commit(), Committed)
    assert unlinked(lasting(snapshot(root))) == unlinked(lasting(ran.view))


def test_git_in_a_repository_with_many_objects(rehearsing: Rehearsing, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    commit = "git -c user.name=n -c user.email=e commit"
    make = f"git init -qb main .; for i in {{1..300}}; do echo $i > f$i; done; git add .; {commit} -qm one"
    subprocess.run(["/bin/bash", "-e", "-c", make], cwd=root, check=True, env={**ENVIRONMENT, "HOME": str(tmp_path)})
    before = snapshot(root)
    effects = rehearsing.rehearse(root, "git status; git log; git diff")
    assert {each.path for each in effects.changes} <= {".git/index"}
    rehearsing.begin(root)
    ran = rehearsing.sh(f"echo x >> f1; git add f1; {commit} -qm two")
    assert ran.code == 0, ran.output
    effects = rehearsing.effects()
    assert snapshot(root) == before
    assert not [each.path for each in effects.changes if each.protected]
    assert isinstance(rehearsing.commit(), Committed)
    assert unlinked(lasting(snapshot(root))) == unlinked(lasting(ran.view))
    check = subprocess.run(
        ["git", "fsck", "--strict"], cwd=root, check=True, capture_output=True, env={**ENVIRONMENT, "HOME": "/"}
    )
    assert b"error" not in check.stderr
    assert not [name for name in os.listdir(root) if name.startswith(".strongroom")]
