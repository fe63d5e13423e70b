"""Another program changes the tree between rehearsal and commit: the commit is refused, and nothing is lost."""

import errno
import fcntl
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.workers.commit.conftest import copy_of
from tests.workers.commit.namespaces import Rehearsing, before_each, open_rehearsing
from tests.workers.commit.snapshot import Snapshot, lasting, snapshot
from tests.workers.files.corpus import EXCHANGE
from workers.changes.effects import CommitFailed, Committed, Conflicted
from workers.commit.exchange import Exchange
from workers.commit.operations import Operation
from workers.commit.staging import Staging

CHANGED, MADE, GONE = "somebody else changed it", "somebody else made it", "it is gone"
AWAY = "its directory is gone, or is a link now"
_REVERSED = "tac text > t; touch -r text t; cat t > text; touch -r t text; rm t"

MEDDLING = (
    ("echo new > text", "echo other > text", "text", CHANGED),
    ("echo new > text", _REVERSED, "text", CHANGED),
    ("echo new > text", "chmod 600 text", "text", CHANGED),
    ("echo new > text", "touch text", "text", CHANGED),
    ("echo new > text", "rm text", "text", GONE),
    ("echo new > text", "rm text; mkdir text", "text", CHANGED),
    ("echo new > text", "cp text t; ln -sfn t text", "text", CHANGED),
    ("echo new > b", "python3 -c 'import os; os.setxattr(\"b\", \"user.note\", b\"2\")'", "b", CHANGED),
    ("echo new > new", "echo other > new", "new", MADE),
    ("echo new > new", "mkdir new", "new", MADE),
    ("echo new > new", "ln -s /nowhere new", "new", MADE),
    ("mkdir new; echo x > new/x", "mkdir new", "new", MADE),
    ("rm text", "echo other >> text", "text", CHANGED),
    ("rm text", "rm text", "text", GONE),
    ("rm -rf d", "echo other > d/sub/deep/other", "d/sub/deep/other", MADE),
    ("rm -rf d", "echo other > d/sub/y", "d/sub/y", CHANGED),
    ("rm -rf d", "rm d/sub/y", "d/sub/y", GONE),
    ("rm -rf d", "chmod 700 d/sub", "d/sub", CHANGED),
    ("rm -rf d; mkdir d", "echo other > d/sub/other", "d/sub/other", MADE),
    ("rm -rf d; echo x > d", "echo other > d/other", "d/other", MADE),
    ("echo x > d/sub/new", "mv d/sub away", "d/sub/new", AWAY),
    ("echo x > d/sub/new", "mv d/sub ../s; ln -s ../../s d/sub", "d/sub/new", AWAY),
    ("echo x > d/sub/new", "mv d/sub away; ln -s ../away d/sub", "d/sub/new", AWAY),
    ("ln -sfn b link", "ln -sfn text link", "link", CHANGED),
    ("chmod 700 d", "chmod 711 d", "d", CHANGED),
    ("ln text too", "echo other > text", "text", CHANGED),
    ("mv text b; echo x > new; rm -rf e", "echo other >> e/q", "e/q", CHANGED),
    ("chmod 644 pipe", "rm pipe; mkfifo -m 600 pipe", "pipe", CHANGED),
)  # fmt: skip


def meddle(tree: Path, script: str) -> None:
    subprocess.run(["/bin/bash", "-e", "-c", script], cwd=tree, check=True)


@pytest.mark.parametrize(("command", "other", "path", "why"), MEDDLING)
def test_a_change_in_between_is_a_conflict_and_nothing_is_applied(
    rehearsing: Rehearsing, tree: Path, command: str, other: str, path: str, why: str
) -> None:
    rehearsing.rehearse(tree, command)
    meddle(tree, other)
    before = snapshot(tree)
    outcome = rehearsing.commit()
    assert isinstance(outcome, Conflicted), outcome
    assert (path, why) in {(each.path, each.why) for each in outcome.conflicts}
    assert snapshot(tree) == before


MAPPED = (
    ("echo new > text", "text"),
    ("rm text", "text"),
    ("rm -rf d", "d/sub/y"),
    ("rm -rf d; mkdir d", "d/sub/y"),
    ("ln text too", "text"),
)


@pytest.mark.parametrize(("command", "path"), MAPPED)
def test_a_change_through_a_mapping_is_found_though_no_time_tells_of_it(
    rehearsing: Rehearsing, tree: Path, command: str, path: str
) -> None:
    (tree / path).write_text("before\n")
    with open(tree / path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:1] = b"B"  # from here on the page is writable, and the kernel sees no more of it
        rehearsing.rehearse(tree, command)
        mapped[:1] = b"A"
        outcome = rehearsing.commit()
    assert isinstance(outcome, Conflicted), outcome
    assert (path, CHANGED) in {(each.path, each.why) for each in outcome.conflicts}
    assert (tree / path).read_text() == "Aefore\n"


ELSEWHERE = (
    ("echo new > text", "echo other > b; echo n > n; rm -rf d"),
    ("rm -rf d", "echo other > text; echo n > n"),
    ("echo new > d/new", "echo other > d/other; rm d/x"),
    ("mkdir new", "touch other; chmod 600 text"),
    ("chmod 700 d", "echo other > d/other"),
    ("echo new > text", "ln text too; rm too"),
    ("echo new > text", "cat text d/*"),
)


@pytest.mark.parametrize(("command", "other"), ELSEWHERE)
def test_a_change_elsewhere_is_kept_and_is_no_conflict(
    rehearsing: Rehearsing, tree: Path, command: str, other: str
) -> None:
    rehearsing.rehearse(tree, command)
    meddle(tree, f"({other}) 2>&1 > /dev/null || true")
    assert isinstance(rehearsing.commit(), Committed)
    left = rehearsing.rehearse(tree, f"({other}) 2>&1 > /dev/null || true")
    assert {each.what for each in left.changes} <= {"times", "modified"}


def test_a_change_while_the_command_ran_is_a_conflict(rehearsing: Rehearsing, tree: Path) -> None:
    rehearsing.begin(tree)
    rehearsing.sh("echo new > text; rm -rf d; echo x > e/x")
    meddle(tree, "echo other > text; echo other > d/other; echo other > e/y")
    effects = rehearsing.effects()
    assert {each.path for each in effects.changes if each.meanwhile} == {"text", "d", "d/other"}
    before = snapshot(tree)
    outcome = rehearsing.commit()
    assert isinstance(outcome, Conflicted)
    assert {each.why for each in outcome.conflicts} == {"somebody else changed it while the command ran"}
    assert snapshot(tree) == before


def test_many_conflicts_are_listed_in_part(rehearsing: Rehearsing, tree: Path) -> None:
    rehearsing.rehearse(tree, "mkdir n; touch {1..150}")
    meddle(tree, "touch {1..150}")
    outcome = rehearsing.commit()
    assert isinstance(outcome, Conflicted)
    assert (len(outcome.conflicts), outcome.more) == (100, 50)


@contextmanager
def beside(*arguments: str, cwd: Path) -> Iterator[IO[bytes]]:
    """Run Python for the body, once it has said a line; give what else it says. It must not have ended by itself."""
    with subprocess.Popen([sys.executable, *arguments], cwd=cwd, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            yield process.stdout
            assert process.poll() is None
        finally:
            process.kill()


@pytest.mark.parametrize(
    "command", ["echo new > d/w; echo new > d/sub/w", "rm d/x; rm -rf d/sub", "echo y > d/x; chmod 711 d"]
)
def test_a_directory_that_is_exchanged_with_a_link_in_a_loop_leads_no_commit_outside(
    rehearsing: Rehearsing, tree: Path, command: str
) -> None:
    outside = tree.parent / "outside"
    meddle(tree, "cp -a d ../outside; ln -s ../outside way")
    before = snapshot(outside)
    endings = set()
    for _ in range(10):
        rehearsing.rehearse(tree, command)
        with beside("-c", EXCHANGE, "d", "way", cwd=tree):
            outcome = rehearsing.commit()
        endings.add(type(outcome))
        rehearsing.ask("close")
        if (tree / "d").is_symlink():
            (tree / "d").unlink()
            (tree / "way").rename(tree / "d")
            (tree / "way").symlink_to("../outside")
        assert snapshot(outside) == before
        if isinstance(outcome, Committed):
            meddle(tree, "rm -rf d; cp -a ../outside d")
    assert endings <= {Committed, Conflicted, CommitFailed}


@pytest.mark.parametrize("writes", ["rename", "append"])
def test_a_program_that_writes_during_commits_loses_nothing(rehearsing: Rehearsing, tree: Path, writes: str) -> None:
    """It replaces a file, or adds to it, and counts; whatever is committed was made from a count that it wrote."""
    code = {
        "rename": "open('t', 'w').write(f'{n}\\n'); os.replace('t', 'counted')",
        "append": "f = open('counted', 'a'); f.write(f'{n}\\n'); f.close()",
    }[writes]
    step = f"n += 1\n {code}\n if n % 50 == 0: print(n, flush=True)"
    loop = f"import os\nn = 0\nprint(flush=True)\nwhile True:\n {step}"
    (tree / "counted").write_text("0\n")
    with beside("-c", loop, cwd=tree) as output:
        for _ in range(10):
            rehearsing.rehearse(tree, "echo ours >> counted; rm -f t")
            outcome = rehearsing.commit()
            assert isinstance(outcome, Conflicted | Committed | CommitFailed)
            rehearsing.ask("close")
            output.readline()
    if writes == "append":
        lines = (tree / "counted").read_text().split()
        counted = [int(line) for line in lines if line != "ours"]
        assert counted == sorted(counted)


def test_a_full_disk_takes_nothing(rehearsing: Rehearsing, tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "small"
    root.mkdir()
    rehearsing.ask("tmpfs_at", str(root), "size=1m")
    rehearsing.ask("call", os.mkdir, f"{root}/d")
    before = rehearsing.ask("call", snapshot, root)
    rehearsing.begin(root)
    rehearsing.sh("echo x > d/x; head -c 2000000 /dev/urandom > big; chmod 700 d; echo y > y")
    said = 'The disk is full; nothing was written: "big". Nothing was changed.'
    assert rehearsing.commit() == CommitFailed(said, errno=errno.ENOSPC)
    assert lasting(rehearsing.ask("call", snapshot, root)) == lasting(before)
    rehearsing.ask("unmount", str(root))


def refuse_the_last() -> None:
    """Let every rename of a name that begins with z fail, as on a failing disk, in the process that is asked."""

    def refuse(operation: Operation, *_given: int) -> None:
        if operation.name.startswith("z"):
            raise OSError(5, "Input/output error", "renameat2")

    for name in ("_out", "_in"):
        before_each(Exchange, name, refuse)


def meddle_at_the_last_moment(root: str, script: str) -> None:
    """Change the root after all checks and before the first rename, in the process that is asked."""
    meddles = ["/bin/bash", "-e", "-c", script]
    before_each(Staging, "sync", lambda: subprocess.run(meddles, cwd=root, check=True, umask=0o022))


AT_THE_LAST = (
    ("echo new > text", "echo other > text", "text"),
    ("echo new > text", "cp -p text t; echo X | dd of=t conv=notrunc status=none; touch -r text t; mv t text", "text"),
    ("echo new > text", "rm text", "text"),
    ("echo new > new", "echo other > new", "new"),
    ("mkdir new; echo x > new/x", "mkdir new", "new"),
    ("rm text", "echo other > text", "text"),
    ("rm text", "rm text", "text"),
    ("rm -rf d", "echo other > d/sub/other", "d/sub/other"),
    ("rm -rf d", "echo other > d/sub/y", "d/sub/y"),
    ("rm -rf d; echo x > d", "echo other > d/other", "d/other"),
    ("chmod 700 e", "chmod 711 e", "e"),
    ("ln -sfn b link", "ln -sfn a-too link", "link"),
)


@pytest.mark.parametrize(("command", "other", "path"), AT_THE_LAST)
def test_a_change_after_all_checks_is_found_by_the_rename(
    alone: Rehearsing, tree: Path, tmp_path: Path, template: Path, command: str, other: str, path: str
) -> None:
    alone.ask("call", meddle_at_the_last_moment, str(tree), other)
    alone.rehearse(tree, f"{command}; echo a > a0; rm b")
    outcome = alone.commit()
    assert isinstance(outcome, Conflicted), outcome
    assert path in {each.path for each in outcome.conflicts}
    wanted = copy_of(template, tmp_path / "wanted")
    meddle(wanted, other)
    assert untimed(snapshot(tree)) == untimed(snapshot(wanted))


def untimed(tree: Snapshot) -> Snapshot:
    return {path: entry._replace(ctime_ns=0, mtime_ns=0) for path, entry in tree.items()}


@pytest.mark.parametrize(("last", "name"), [("echo z > z", "z"), ("rm zeros", "zeros")])
def test_a_failure_in_the_middle_is_taken_back(alone: Rehearsing, tree: Path, last: str, name: str) -> None:
    meddle(tree, "mkdir -p ro; echo o > ro/old; chmod 555 ro")
    before = snapshot(tree)
    alone.ask("call", refuse_the_last)
    alone.rehearse(
        tree,
        "echo new > text; echo n > n; rm -rf d; mkdir d; mkdir -p m/o; chmod 555 m; chmod 700 e; ln -sfn b link;"
        "rm b; chmod 700 ro; rm -rf ro; rm tool; mkdir tool; rm -rf empty; echo x > empty; " + last,
    )
    said = f'The system failed with EIO: "{name}". Nothing was changed.'
    assert alone.commit() == CommitFailed(said, errno=errno.EIO)
    assert lasting(snapshot(tree)) == lasting(before)


OLD, NEW = b"old " * 5000 + b"\n", b"new " * 5000 + b"\n"


def test_killed_in_the_middle_each_file_is_the_old_one_or_the_new(
    rehearsing: Rehearsing, tmp_path: Path, memory: Path
) -> None:
    root = memory / "root"
    script = "sed -i s/old/new/g d/f*; mkdir n; cp d/* n; rm d/f?"
    for turn in range(0, 50, 10):
        subprocess.run(["/bin/rm", "-rf", str(root)], check=True)
        (root / "d").mkdir(parents=True)
        for number in range(100):
            (root / "d" / f"f{number}").write_bytes(OLD)
        with open_rehearsing(tmp_path / f"scratch{turn}") as killed:
            killed.rehearse(root, script)
            killed.tell("commit")
            wait_for(root, turn)
            killed.kill()
        for path in [*(root / "d").iterdir(), *root.glob("n/*"), *root.glob("t")]:
            assert path.is_dir() or path.read_bytes() in {OLD, NEW}, path
    rehearsing.rehearse(root, "echo x > x")
    assert isinstance(rehearsing.commit(), Committed)
    assert not [name for name in os.listdir(root) if name.startswith(".strongroom")]


def wait_for(root: Path, turn: int) -> None:
    """Wait until the commit is so far: something made ready, then so many of the files replaced."""
    names = [root / "d" / f"f{number}" for number in range(10, 10 + turn)]
    while not (root / "n").exists():
        begun = any(name.startswith(".strongroom") for name in os.listdir(root))
        if begun and all(name.read_bytes()[:3] == b"new" for name in names):
            return


def test_staging_of_a_killed_commit_is_removed_by_the_next_and_that_in_use_stays(
    rehearsing: Rehearsing, tree: Path
) -> None:
    dead, alive = tree / ".strongroom-00000000000000aa.tmp", tree / ".strongroom-00000000000000bb.tmp"
    for directory in (dead, alive):
        (directory / "0" / "deep").mkdir(parents=True)
        (directory / "0" / "deep" / "x").touch()
        (directory / "link").symlink_to(tree)
    held = os.open(alive, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    rehearsing.rehearse(tree, "echo x > x")
    assert isinstance(rehearsing.commit(), Committed)
    os.close(held)
    assert not dead.exists()
    assert (alive / "0" / "deep" / "x").exists()
    assert (tree / "text").exists()
