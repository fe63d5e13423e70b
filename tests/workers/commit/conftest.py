"""One PID 1 for the tests of a module, and a small tree of every kind of file to work on."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.workers.commit.namespaces import Rehearsing, open_rehearsing

TREE = r"""
umask 022
echo alpha > a; echo beta > b; seq 100 > text; head -c 300000 /dev/zero | tr '\0' x > big
head -c 5000 /dev/zero > zeros; truncate -s 5M sparse; echo end >> sparse
mkdir -p d/sub/deep e empty; echo x > d/x; echo y > d/sub/y; echo z > d/sub/deep/z; echo q > e/q
ln a a-too; ln d/x x-too; ln -s a link; ln -s missing dangling; ln -s /etc/hostname absolute; ln -s ../../outside out
ln -s ../e/q d/l; ln -s d to-d
printf '#!/bin/sh\necho hi\n' > tool; chmod 755 tool; chmod 640 b; mkfifo -m 600 pipe
python3 - <<'P'
import os, socket
os.setxattr("b", "user.note", b"hello"); os.setxattr("e", "user.note", b"directory")
os.setxattr("b", "user.long", b"x" * 200)
socket.socket(socket.AF_UNIX).bind("socket")
P
find . -type f -o -type l | xargs touch -h -d '2001-02-03 04:05:06.789'
"""


@pytest.fixture(scope="module")
def rehearsing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsing]:
    with open_rehearsing(tmp_path_factory.mktemp("scratch")) as opened:
        yield opened


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Rehearsing]:
    """One for this test, which may spoil it."""
    with open_rehearsing(tmp_path / "scratch") as opened:
        yield opened


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree that is copied, never changed."""
    tree = tmp_path_factory.mktemp("template") / "tree"
    tree.mkdir()
    subprocess.run(["/bin/bash", "-e", "-c", TREE], cwd=tree, check=True)
    return tree


@contextmanager
def without_a_disk(usual: Path) -> Iterator[Path]:
    """Make a directory on a file system without a disk where there is one: nobody waits for syncs there."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else usual) as name:
        yield Path(name)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    with without_a_disk(tmp_path) as name:
        yield name
        subprocess.run(["/bin/chmod", "-R", "u+rwx", name], check=True)


@pytest.fixture
def tree(template: Path, tmp_path: Path) -> Path:
    return copy_of(template, tmp_path / "tree")


def copy_of(tree: Path, to: Path) -> Path:
    subprocess.run(["/bin/cp", "-a", str(tree), str(to)], check=True)
    return to
