"""The same for somebody who is not root, whom permission bits stop: on a tree of their own, and on one of others."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.commit.conftest import copy_of
from tests.workers.commit.namespaces import Rehearsing, open_rehearsing
from tests.workers.commit.snapshot import lasting, snapshot, untouched
from tests.workers.commit.test_operations import unlinked
from workers.changes.effects import CommitFailed, Committed
from workers.errors import CannotRehearse

USER = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory that everybody can reach."""
    base = Path("/dev/shm" if os.path.isdir("/dev/shm") else "/var/tmp") / f"rehearsal-{os.getpid()}"
    base.mkdir(mode=0o755)
    yield base
    subprocess.run(["/bin/rm", "-rf", str(base)], check=True)


@pytest.fixture(scope="module")
def nobody(place: Path) -> Iterator[Rehearsing]:
    with open_rehearsing(place / "scratch", USER) as opened:
        yield opened


@pytest.fixture
def own(place: Path, template: Path) -> Iterator[Path]:
    tree = copy_of(template, place / "tree")
    subprocess.run(["/bin/chown", "-hR", f"{USER}:{USER}", str(tree)], check=True)
    yield tree
    subprocess.run(["/bin/rm", "-rf", str(tree)], check=True)


def as_nobody(tree: Path, script: str) -> None:
    subprocess.run(["/bin/bash", "-c", script], cwd=tree, check=True, user=USER, group=USER)


COMMANDS = (
    "echo x >> text; rm -rf d; mkdir d; mv b c; ln text too; mkdir -p n/m; echo y > n/m/y",
    "rm -rf d e; mkdir d; echo x > d/x",
    "chmod 000 text; echo x > n; chmod 000 n; mkdir m; echo x > m/x; chmod 000 m",
    "mkdir -p n/m; echo x > n/m/x; chmod 555 n/m n",
    "chmod 555 d; chmod 500 d/sub/deep d/sub",
    "chmod 700 ro; rm -rf ro",
    "chmod 700 ro; echo x > ro/new; rm ro/old; chmod 555 ro",
    "chmod 700 ro; mkdir ro/n; echo x > ro/n/x; chmod 555 ro/n ro; mv e ro2 2>/dev/null; rm -f a a-too",
    "chmod 755 ro; rm -rf ro; echo x > ro",
    "chmod 600 closed; echo x >> closed; chmod 000 closed",
    'mkdir new; chmod 000 new; python3 -c \'import os; os.setxattr("closed", "user.x", b"1")\'; chmod 000 d/sub',
    "chmod 711 .; git init -q .; tar cf t.tar d; mkdir t; tar xf t.tar -C t; cp -a d d2",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_ordinary_user_gets_what_was_rehearsed(nobody: Rehearsing, own: Path, command: str) -> None:
    as_nobody(own, "mkdir -p ro none/in; echo o > ro/old; echo c > closed; chmod 555 ro; chmod 000 closed none/in none")
    before = snapshot(own)
    nobody.begin(own)
    ran = nobody.sh(command)
    effects = nobody.effects()
    assert snapshot(own) == before
    assert effects.changes, ran.output
    assert nobody.commit() == Committed(len(effects.changes))
    assert unlinked(lasting(snapshot(own))) == unlinked(lasting(untouched(ran.view, before)))
    assert nobody.ask("close") == []


def test_a_root_with_unreadable_content_cannot_be_compared(nobody: Rehearsing, own: Path) -> None:
    as_nobody(own, "mkdir -p none/in; chmod 000 none/in none")
    before = snapshot(own)
    with pytest.raises(CannotRehearse, match="cannot be compared with the root: Permission denied"):
        nobody.rehearse(own, "chmod 700 none none/in; echo x > none/in/x; chmod 000 none/in none")
    assert nobody.ask("close") == []
    assert snapshot(own) == before


def test_a_file_of_another_group_is_not_written(nobody: Rehearsing, own: Path) -> None:
    """The namespace knows one user and one group: the kernel copies nothing of others into the upper layer."""
    os.chown(own / "text", USER, 12)
    nobody.begin(own)
    ran = nobody.sh("echo x >> text; echo y > new")
    assert b"Value too large" in ran.output
    assert [each.path for each in nobody.effects().changes] == ["new"]


def test_a_tree_that_belongs_to_others_is_rehearsed_and_refused_whole(
    nobody: Rehearsing, place: Path, template: Path
) -> None:
    tree = copy_of(template, place / "others")
    tree.chmod(0o755)
    before = snapshot(tree)
    nobody.begin(tree)
    ran = nobody.ask("run", "cat text | head -1; echo x > new; echo x >> text; rm b; chmod 600 a")
    effects = nobody.effects()
    assert b"1\n" in ran.output
    if effects.changes:
        outcome = nobody.commit()
        assert isinstance(outcome, CommitFailed)
        assert outcome.stands == ()
    assert lasting(snapshot(tree)) == lasting(before)
    subprocess.run(["/bin/rm", "-rf", str(tree)], check=True)


def test_a_directory_that_nobody_may_read_is_no_root(nobody: Rehearsing, place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o711)
    with pytest.raises(CannotRehearse):
        nobody.begin(closed)
    closed.rmdir()
