"""Commands on an overlay of the root, in a real worker: nothing is changed before a commit, and then what was told."""

import errno
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from supervisor.pool.template_process import worker_command
from tests.raw_worker import RawWorker, receive, send
from tests.supervisor.command import Family, children
from tests.workers.commit.conftest import without_a_disk
from tests.workers.commit.snapshot import Snapshot, lasting, snapshot
from tests.workers.confine.test_fails_closed import Fault, on_a_kernel_with
from tests.workers.shell.conftest import LIMITS, effects_of, open_shell, propose, python, shell
from workers.changes.effects import Change
from workers.wire import messages

USER = 65534

AS_SOMEBODY = f"""\
import ctypes, os
import socket, workers.__main__, workers.shell.sandbox.setup, workers.confine.template
for category in workers.__main__.CATEGORIES.values():  # all of the code, which somebody else may not be able to read
    category.confinement()
    for name in category.late:
        __import__(name)
workers.__main__.read_names()
os.setgroups([])
os.setresgid({USER}, {USER}, {USER})
os.setresuid({USER}, {USER}, {USER})
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: or /proc/self would be root's
workers.__main__.main()
"""

CLOSED = "400" if os.geteuid() else "000"
"""Of a file that only root can then look into."""
TREE = f"""
umask 022; mkdir -p d/sub e; echo alpha > a.txt; seq 100 > d/text; echo y > d/sub/y; ln d/text hard; ln -s d to-d
printf '#!/bin/sh\\necho hi\\n' > tool; chmod 755 tool; mkfifo pipe
git init -qb main .; git add .; git -c user.name=n -c user.email=e commit -qm one
echo secret > closed; chmod {CLOSED} closed
"""


class Place(NamedTuple):
    """A worker and its root."""

    worker: RawWorker
    root: Path

    def rehearse(self, command: str) -> messages.Proposed:
        """Rehearse a command that changes something."""
        answer = propose(self.worker, command)
        assert isinstance(answer, messages.Proposed), answer
        return answer


@pytest.fixture(scope="module", params=[0, USER], ids=["root", "somebody"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A worker of this user's and, where that is root, one of somebody else's."""
    if request.param and os.geteuid():
        pytest.skip("only root can become somebody else")
    command = worker_command(AS_SOMEBODY) if request.param else None
    with ExitStack() as stack:
        root = stack.enter_context(without_a_disk(tmp_path_factory.mktemp("rehearsed"))) / "root"
        root.mkdir()
        own = request.param if os.geteuid() == 0 else os.geteuid()
        os.chown(root, own, own)
        worker = stack.enter_context(open_shell(root, command=command))
        assert worker.report
        shell(worker, TREE)
        yield Place(worker, root)


@pytest.fixture
def place(opened: Place) -> Iterator[Place]:
    """The worker, and its root as it was."""
    before = opened.root.with_name("before")
    subprocess.run(["/bin/cp", "-a", f"{opened.root}/.", str(before)], check=True)
    yield opened
    subprocess.run(["/bin/rm", "-rf", *map(str, opened.root.iterdir())], check=True)
    subprocess.run(["/bin/cp", "-a", f"{before}/.", str(opened.root)], check=True)
    subprocess.run(["/bin/rm", "-rf", str(before)], check=True)


# --- what is told is what happens --------------------------------------------------------------------------------

BUILD = "mkdir build; i=0; while [ $i -lt 1000 ]; do echo $i > build/$i.o; i=$((i+1)); done"
NPM = """
mkdir -p package/lib; echo '{"name": "small", "version": "1.0.0", "bin": {"small": "run.js"}}' > package/package.json
echo 'console.log(1)' > package/run.js; i=0; while [ $i -lt 50 ]; do echo $i > package/lib/$i.js; i=$((i+1)); done
tar czf small.tgz package; rm -rf package; echo '{"name": "root", "version": "1.0.0"}' > package.json
"""
INSTALL = NPM + "npm install --offline --no-audit --no-fund ./small.tgz"
UNPACK = NPM + "mkdir node_modules; tar xzf small.tgz -C node_modules"
COMMANDS = {
    "remove everything": "rm -rf * .git",
    "commit": "echo x >> a.txt; git add a.txt; git -c user.name=n -c user.email=e commit -qm two",
    "build": BUILD,
    "install": INSTALL if shutil.which("npm", path="/usr/bin") else UNPACK,
    "every kind": "rm hard; mv d f; ln a.txt too; ln -sfn a.txt to-d; chmod 700 tool; mkdir -m 500 new; echo n > n; "
    f"chmod {CLOSED} n; rm -r e; echo e > e; chmod 600 closed; touch -d 2001-02-03 a.txt; mv pipe queue; chmod 711 .",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_effects_shown_are_the_effects_committed(command: str, place: Place) -> None:
    before = snapshot(place.root)
    proposed = place.rehearse(COMMANDS[command])
    assert snapshot(place.root) == before
    assert not proposed.effects.left_out
    answer = place.worker.decide(proposed, commit=True)
    assert isinstance(answer, messages.Done), answer
    assert msgspec.json.decode(answer.content)["exit_code"] == 0, answer
    after = snapshot(place.root)
    assert {os.fsencode(each.path) for each in proposed.effects.changes} == different(before, after)
    for each in proposed.effects.changes:
        assert is_as_told(each, after), each
    assert not [name for name in os.listdir(place.root) if name.startswith(".strongroom")]


def different(before: Snapshot, after: Snapshot) -> set[bytes]:
    """Return the names that are not the same; of the root itself, as effects name it."""
    olds, news = lasting(before), lasting(after)
    return {path or b"." for path in olds.keys() | news.keys() if _alone(olds, path) != _alone(news, path)}


def _alone(tree: Snapshot, path: bytes) -> Any:
    """Return what a name is, whichever other names it has."""
    return tree[path]._replace(same_as=b"") if path in tree else None


def is_as_told(change: Change, tree: Snapshot) -> bool:
    path = b"" if change.path == "." else os.fsencode(change.path)
    if change.after is None:
        return path not in tree
    entry, state = tree[path], change.after
    content = state.kind != "file" or bytes.fromhex(entry.content) == state.digest
    kinds = {"file": stat.S_ISREG, "dir": stat.S_ISDIR, "link": stat.S_ISLNK, "fifo": stat.S_ISFIFO}
    return (
        kinds[state.kind](entry.kind)
        and (entry.mode, entry.mtime_ns, os.fsdecode(entry.target)) == (state.mode, state.mtime_ns, state.target)
        and content
    )


def test_the_originals_of_everything_are_sent(place: Place) -> None:
    proposed = place.rehearse("rm -rf d a.txt; echo n > n; chmod 700 tool")
    send(place.worker.process, messages.Keep(proposed.id, 2**20, 2**20))
    frames = [receive(place.worker.process)]
    while not isinstance(frames[-1], messages.Kept | messages.Failed):
        frames.append(receive(place.worker.process))
    found: dict[str, bytes] = {}
    for each in frames:
        if isinstance(each, messages.Original):
            assert each.kept == (each.before is not None and each.before.kind == "file")
            found[each.path] = b""
        elif isinstance(each, messages.Piece):
            found[next(reversed(found))] += each.data
    assert set(found) == {each.path for each in proposed.effects.changes}
    for change in proposed.effects.changes:
        if change.before and change.before.kind == "file":
            assert hashlib.sha256(found[change.path]).digest() == change.before.digest
    assert isinstance(place.worker.decide(proposed, commit=True), messages.Done)
    assert (place.root / "n").read_text() == "n\n"


LOOKING = """
touch a.txt d/text; ls -laR > /dev/null; cat a.txt d/text > /dev/null; grep -r alpha . ; find . -type f -newer tool
git status; git status --porcelain=v2; git log --stat; git diff; git diff --stat HEAD; git stash list; git branch -a
git show; git blame a.txt; git ls-files -m; git grep alpha; git rev-parse HEAD; git describe --always; du -s .; wc a.txt
"""


def test_looking_changes_nothing(place: Place) -> None:
    """Not even where git finds that its index is older than the files, which it would like to note."""
    shell(place.worker, LOOKING.splitlines()[1].partition(";")[0])
    before = snapshot(place.root)
    for command in "; ".join(LOOKING.strip().splitlines()).split("; ")[1:]:
        answer = propose(place.worker, command)
        assert isinstance(answer, messages.Done), (command, answer)
    assert snapshot(place.root) == before


def test_an_index_of_git_that_differs_in_more_than_times_is_a_change(place: Place) -> None:
    for version in (2, 3, 4):
        shell(place.worker, f"git update-index --index-version {version}")
        shell(place.worker, "echo n > new; git add -N new; git update-index --no-assume-unchanged a.txt; touch d/text")
        assert isinstance(propose(place.worker, "git diff --stat"), messages.Done)
        for change in ("--assume-unchanged a.txt", "--chmod=+x a.txt", "--force-remove a.txt"):
            effects = effects_of(place.worker, f"git update-index {change}")
            assert ".git/index" in {each.path for each in effects.changes}, change


# --- what is not committed ---------------------------------------------------------------------------------------


def test_a_rejected_command_has_changed_nothing(place: Place) -> None:
    before = snapshot(place.root)
    proposed = place.rehearse("rm -rf d .git; echo x >> a.txt; mkdir -p n/m; chmod 000 n; chmod 700 .; mv e f; echo y")
    ended = place.worker.decide(proposed, commit=False)
    assert isinstance(ended, messages.Done)
    assert msgspec.json.decode(ended.content) == {"stdout": "y\n", "stderr": "", "exit_code": 0}
    assert snapshot(place.root) == before
    assert shell(place.worker, "cat a.txt; ls -d n f 2>/dev/null; ls d")["stdout"].split() == ["alpha", "sub", "text"]


OTHERS = {
    "changed": ("echo ours >> a.txt; rm -r d", "a.txt", "echo theirs > a.txt"),
    "gone": ("echo ours >> a.txt; echo n > n", "a.txt", "rm a.txt"),
    "there": ("echo ours > n; rm -r d", "n", "echo theirs > n"),
    "put into what goes": ("rm -r d", "d/new", "echo theirs > d/new"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_change_by_somebody_else_meanwhile_is_a_conflict_and_kept(other: str, place: Place) -> None:
    command, path, meanwhile = OTHERS[other]
    proposed = place.rehearse(command)
    subprocess.run(["/bin/sh", "-c", meanwhile], cwd=place.root, check=True)
    theirs = snapshot(place.root)
    answer = place.worker.decide(proposed, commit=True)
    assert isinstance(answer, messages.Failed)
    assert (answer.kind, answer.details) == ("conflict", {"path": path})
    assert f'"{path}"' in answer.message
    assert "Run it again" in answer.message
    assert lasting(snapshot(place.root)) == lasting(theirs)


def test_the_changes_of_a_command_have_so_much_room_and_the_next_one_has_it_anew(tmp_path: Path) -> None:
    with open_shell(tmp_path, disk_mb=3) as worker:
        for _ in range(3):
            assert effects_of(worker, "head -c 2500000 /dev/zero > x").size == 2500000
        found = shell(worker, "head -c 5000000 /dev/zero > y")
    assert "No space left" in found["stderr"]
    assert not (tmp_path / "x").exists()


def test_a_worker_that_is_killed_with_a_proposal_has_changed_nothing(place: Place) -> None:
    before, mounts = snapshot(place.root), Path("/proc/self/mountinfo").read_text()
    with open_shell(place.root) as worker:
        assert isinstance(propose(worker, "rm -rf * .git; echo x > x"), messages.Proposed)
        family = Family(children(worker.process.pid))
        os.killpg(worker.process.pid, signal.SIGKILL)
        assert family.is_gone()
    assert snapshot(place.root) == before
    assert Path("/proc/self/mountinfo").read_text() == mounts


# --- directories that get another name ---------------------------------------------------------------------------

RENAMES = (
    "rename('d', 'other')",
    "rename(os.path.abspath('d'), os.getcwd() + '/other/')",
    "rename('d', 'e/other')",
    "rename('d', 'e')",
    "rename('d', 'other', src_dir_fd=os.open('.', 0))",
    "rename('d', 'x'); os.rename('x', 'other')",
    "mkdir('n'); os.rename('d', 'n/d'); os.rename('n', 'other')",
    "rename('d/sub', 'd/bus'); os.rename('d', 'other')",
)
REFUSED_RENAMES = (
    ("d", "full", errno.ENOTEMPTY),
    ("d", "file", errno.ENOTDIR),
    ("d", "d/sub/x", errno.EINVAL),
    ("d", "none/x", errno.ENOENT),
    ("root/tmp", "root/tmp2", errno.EROFS),
)


CASES = "".join(
    f"mkdir -p c{number}/d/sub c{number}/e; echo y > c{number}/d/sub/y; echo t > c{number}/d/t; chmod 750 c{number}/d\n"
    for number in range(len(RENAMES))
)


def test_directories_get_other_names_as_on_any_file_system(place: Place, tmp_path: Path) -> None:
    script = "import os\n" + "".join(
        f"os.chdir('c{number}'); os.{rename}; os.chdir('..')\n" for number, rename in enumerate(RENAMES)
    )
    subprocess.run(["/bin/sh", "-c", f"umask 022; {CASES}"], cwd=tmp_path, check=True)
    shell(place.worker, f"umask 022; {CASES}")
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    proposed = place.rehearse(f'{python()} -Ic "{script}" && git mv d f && git status --short')
    answer = place.worker.decide(proposed, commit=True)
    assert isinstance(answer, messages.Done)
    assert "d/text -> f/text" in answer.content
    for number in range(len(RENAMES)):
        now, wanted = (
            {path: (each.kind, each.mode, each.content) for path, each in snapshot(root / f"c{number}").items()}
            for root in (place.root, tmp_path)
        )
        assert now == wanted, RENAMES[number]


def test_other_names_of_directories_are_refused_as_on_any_file_system(place: Place) -> None:
    shell(place.worker, "mkdir full; touch full/x file; ln -s / root")
    script = "".join(f"move('{old}', '{new}')\n" for old, new, _ in REFUSED_RENAMES)
    define = "import os\ndef move(*names):\n try: os.rename(*names)\n except OSError as e: print(e.errno)\n"
    answer = propose(place.worker, f'{python()} -Ic "{define}{script}"')
    assert isinstance(answer, messages.Done), answer
    assert json.loads(answer.content)["stdout"].split() == [str(number) for *_, number in REFUSED_RENAMES]


# --- what cannot be rehearsed ------------------------------------------------------------------------------------


def is_unrehearsable(worker: RawWorker, command: str, why: str) -> None:
    answer = propose(worker, command)
    assert isinstance(answer, messages.Unrehearsable), answer
    assert why in answer.why


def runs_on_the_root(worker: RawWorker, command: str) -> None:
    assert isinstance(propose(worker, command, without_rehearsal=True), messages.Done)


def test_a_command_that_cannot_be_rehearsed_says_so_and_runs_on_the_root_itself_if_somebody_wants_it(
    tmp_path: Path,
) -> None:
    command = on_a_kernel_with(Fault("", "fsetxattr", errno.EOPNOTSUPP))
    with open_shell(tmp_path, command=command) as worker:
        is_unrehearsable(worker, "touch x", "no user attributes")
        assert os.listdir(tmp_path) == []
        runs_on_the_root(worker, "touch x")
        assert os.listdir(tmp_path) == ["x"]


DEEP = "i=0; while [ $i -lt 100 ]; do n=dddddddddddddddddddddddddddddddddddddddd; mkdir $n; cd $n; i=$((i+1)); done"
MANY = "import os; [os.close(os.open(f'n{i:06}', os.O_CREAT)) for i in range(4000)]"
BOUNDS = 'python3 -c "import os; '
"""The beginning of a command in Python."""
OWN_REHEARSAL = [
    ("a tree deeper than a path", DEEP, "resource_limit"),
    ("a path too long below what the root has", f"cd d/sub; {DEEP}", "resource_limit"),
    ("more bytes than can be read", "truncate -s 3G x", "resource_limit"),
    ("many holes", "for i in 1 2 3; do truncate -s 1G x$i; done", "resource_limit"),
    ("more bytes than its layer has", "head -c 99000000 /dev/zero > x; exit 0", ""),
    ("more names than its layer has", f'{BOUNDS}{MANY[11:]}"; exit 0', ""),
    ("a whiteout by hand", "mknod w c 0 0; exit 0", ""),
    ("a device", "mknod w c 1 3; exit 0", ""),
    ("an opaque mark by hand", f"{BOUNDS}os.setxattr('d', 'user.overlay.opaque', b'y')\"; exit 0", ""),
    ("a metacopy mark by hand", f"{BOUNDS}os.setxattr('a.txt', 'user.overlay.metacopy', b'')\"; exit 0", ""),
    ("a redirect mark by hand", f"{BOUNDS}os.setxattr('d', 'user.overlay.redirect', b'/e')\"; exit 0", ""),
    ("closed directories", "mkdir -p n/m; echo x > n/m/x; chmod 000 n/m n; chmod 000 d/sub d .", ""),
    ("everything gone", "rm -rf * .git", ""),
    ("gone, and its directory closed", "rm -rf d; mkdir -m 000 d", ""),
    ("a mount", "mount -t tmpfs none d; umount .; unshare -rm true; exit 0", ""),
    ("the words of an overlay that lacks something", "echo 'Value too large for defined data type' >&2; exit 1", ""),
    ("another name too long", "touch $(head -c 300 /dev/zero | tr '\\0' a); exit 0", ""),
    ("all of its memory", f'{BOUNDS}x = bytearray(2**31)"', "resource_limit"),
    ("files that only it has open", "exec 3> x; rm x; head -c 1000 /dev/zero >&3", ""),
    ("sockets and queues", f"mkfifo q; {BOUNDS}import socket; socket.socket(1).bind('s')\"", ""),
]


def test_a_command_that_spoils_its_own_rehearsal_is_offered_no_other_run(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    subprocess.run(["/bin/sh", "-c", TREE], cwd=root, check=True)
    before = snapshot(root)
    with open_shell(root, msgspec.structs.replace(LIMITS, file_mb=4096), disk_mb=8) as worker:
        for name, command, kind in OWN_REHEARSAL:
            answer = propose(worker, command)
            assert not isinstance(answer, messages.Unrehearsable), (name, answer)
            assert (answer.kind if isinstance(answer, messages.Failed) else "") == kind, (name, answer)
            if isinstance(answer, messages.Proposed):
                worker.decide(answer, commit=False)
            assert snapshot(root) == before, name


GUARDED = (
    "echo x >> .git/config",
    "echo x > .git/hooks/pre-commit",
    "rm -rf .git/hooks",
    "mv .git other",
    "mv sub sub2",
    "echo x >> sub/.vscode/settings.json",
    "rm sub/.vscode/settings.json",
    "ln -f a.txt .envrc",
    "mv a.txt .envrc",
    "chmod 777 .envrc",
)


def test_without_a_rehearsal_what_programs_obey_is_read_only(tmp_path: Path) -> None:
    (tmp_path / "sub/.vscode").mkdir(parents=True)
    (tmp_path / "sub/.vscode/settings.json").write_text("{}")
    for name in (".envrc", "a.txt"):
        (tmp_path / name).write_text("alpha\n")
    subprocess.run(["/usr/bin/git", "init", "-q", "."], cwd=tmp_path, check=True)
    (tmp_path / ".git/hooks").mkdir(exist_ok=True)
    before = lasting(snapshot(tmp_path))
    with open_shell(tmp_path) as worker:
        for command in GUARDED:
            answer = propose(worker, command, without_rehearsal=True)
            assert isinstance(answer, messages.Done), (command, answer)
            assert json.loads(answer.content)["exit_code"] != 0, (command, answer.content)
            assert lasting(snapshot(tmp_path)) == before, command
        runs_on_the_root(worker, "git add a.txt; git -c user.name=n -c user.email=e commit -qm one; echo b > sub/b")
    assert (tmp_path / "sub/b").read_text() == "b\n"
    log = subprocess.run(["/usr/bin/git", "log", "--oneline"], cwd=tmp_path, capture_output=True, check=True)
    assert log.stdout.endswith(b" one\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_group_cannot_be_changed_in_a_rehearsal(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("x\n")
    os.chown(tmp_path / "theirs", 0, USER)
    with open_shell(tmp_path) as worker:
        assert isinstance(propose(worker, "cat theirs"), messages.Done)
        answer = propose(worker, "echo y >> theirs")
        assert isinstance(answer, messages.Done)
        assert "another user or group" in answer.note
        runs_on_the_root(worker, "echo y >> theirs")
    assert (tmp_path / "theirs").read_text() == "x\ny\n"


MOUNTED = """
import ctypes, os, sys
libc, root, at, options = ctypes.CDLL(None), *sys.argv[1:4]
[held] = [int(each) for each in os.listdir("/proc/self/fd") if os.path.realpath(f"/proc/self/fd/{each}") == root]
assert libc.unshare(0x20000) == 0
assert libc.mount(None, b"/", None, ctypes.c_ulong(16384 | 1 << 18), None) == 0
assert libc.mount(b"tmpfs", os.fsencode(at), b"tmpfs", ctypes.c_ulong(0), options.encode()) == 0
os.dup2(os.open(root, os.O_PATH), held)
os.execv(sys.argv[4], sys.argv[4:])
"""


def with_a_mount(root: Path, at: Path, options: str) -> tuple[str, ...]:
    """Return the command of a worker in whose mount namespace a file system in memory is mounted."""
    return (sys.executable, "-c", MOUNTED, str(root), str(at), options, *worker_command())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts things")
def test_a_root_in_which_something_is_mounted_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with open_shell(tmp_path, command=with_a_mount(tmp_path, tmp_path / "sub", "size=1m")) as worker:
        is_unrehearsable(worker, "touch x", "another file system is mounted in the root, at 'sub'")
        runs_on_the_root(worker, "touch x")
    assert (tmp_path / "x").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts things")
def test_a_commit_that_the_disk_has_no_room_for_changes_nothing(tmp_path: Path) -> None:
    with open_shell(tmp_path, command=with_a_mount(tmp_path, tmp_path, "size=1m")) as worker:
        shell(worker, "echo alpha > a")
        answer = worker.failed("run_cmd", {"command": "head -c 3000000 /dev/zero > x; rm a"})
        assert answer.kind == "disk_full"
        assert "Nothing was changed" in answer.message
        assert shell(worker, "ls -A; cat a")["stdout"] == "a\nalpha\n"


# --- sockets -----------------------------------------------------------------------------------------------------

SERVE = """
import os, socket
server = socket.socket(socket.AF_UNIX)
server.bind("own")
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("own")
print("connected")
os.unlink("own")
"""


def test_a_command_may_connect_to_what_it_has_bound_itself(place: Place) -> None:
    command = f"{python()} -Ic '{SERVE}'"
    answer = propose(place.worker, command)
    assert isinstance(answer, messages.Done), answer
    assert "connected" in answer.content
    direct = propose(place.worker, command, without_rehearsal=True)
    assert isinstance(direct, messages.Done)
    assert "PermissionError" in direct.content
    (place.root / "own").unlink()
