"""Undo is promised where it can be had, and only there: real workers, packs with little room, whatever files have."""

import errno
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.categories.restore import UndoConfig
from supervisor.undo.packs import PackStore
from supervisor.undo.promise import promise
from tests.raw_worker import RawWorker, open_worker, receive, send
from tests.workers.commit.conftest import without_a_disk
from tests.workers.commit.namespaces import Rehearsing, open_rehearsing
from tests.workers.commit.snapshot import Snapshot, lasting, snapshot
from tests.workers.restore.conftest import inputs
from workers.changes.effects import Effects
from workers.tree.attributes import ACCESS
from workers.wire import messages

CALLS: Final = int(os.environ.get("UNDONE_CALLS", "200"))
DEFAULT: Final = "system.posix_acl_default"
NOBODY: Final = 0xFFFFFFFF
LARGE: Final = 600 * 1024


class Desk:
    """A root, packs with little room, and one worker of each kind that changes or restores."""

    def __init__(self, base: Path, files: RawWorker, restorer: RawWorker, rehearsing: Rehearsing) -> None:
        self.root = base / "root"
        self.files, self.restorer, self.rehearsing = files, restorer, rehearsing
        self.store = PackStore(base / "kept", UndoConfig(each_mb=1, call_mb=1, total_mb=64))

    def write(self, path: str, content: str) -> tuple[str, str]:
        return self._worker(self.files, "write_file", {"path": path, "content": content})

    def edit(self, path: str, old: str, new: str) -> tuple[str, str]:
        return self._worker(self.files, "edit_file", {"path": path, "old": old, "new": new})

    def undo(self, pack: str, *, force: bool = False) -> messages.Up | None:
        return self.restorer.call("undo", {"pack": pack, "force": force})

    def command(self, script: str) -> tuple[str, str]:
        """Run a command; return what is said of its undo, and the pack."""
        effects = self.rehearsing.rehearse(self.root, script)
        with self.store.begin("s", "c") as pack:
            for name, content in self.rehearsing.ask("originals", *self.store.budget):
                pack.add(messages.Original(1, **{**name._asdict(), "attributes": dict(name.attributes)}))
                for at in range(0, len(content), messages.PIECE):
                    pack.add(messages.Piece(1, content[at : at + messages.PIECE]))
            kept = pack.finish()
        assert type(self.rehearsing.commit()).__name__ == "Committed"
        return promise(effects, self.store.budget), kept if effects.totals else ""

    def _worker(self, worker: RawWorker, tool: str, arguments: dict[str, Any]) -> tuple[str, str]:
        proposed = worker.propose(tool, arguments)
        if not isinstance(proposed, messages.Proposed):
            return "", ""  # it is so already, or cannot be done
        send(worker.process, messages.Keep(proposed.id, *self.store.budget))
        with self.store.begin("s", "c") as pack:
            while isinstance(part := receive(worker.process), messages.Original | messages.Piece):
                pack.add(part)
            assert isinstance(part, messages.Kept), part
            kept = pack.finish()
        answer = worker.decide(proposed, commit=True)
        assert isinstance(answer, messages.Done), answer
        return self.said(proposed.effects), kept

    def said(self, effects: Effects) -> str:
        return promise(effects, self.store.budget)

    def look(self) -> Snapshot:
        return {path: entry._replace(same_as=b"") for path, entry in lasting(snapshot(self.root)).items()}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with without_a_disk(tmp_path_factory.mktemp("desk")) as base:
        (base / "root").mkdir()
        with (
            open_worker(base / "root") as files,
            open_worker(base / "root", category="restore", inputs=inputs(base / "kept")) as restorer,
            open_rehearsing(tmp_path_factory.mktemp("scratch")) as rehearsing,
        ):
            assert files.report
            assert restorer.report
            yield Desk(base, files, restorer, rehearsing)
        subprocess.run(["/bin/chmod", "-R", "u+rwx", str(base)], check=True)


NAMES: Final = ("a", "b", "large", "d/x", "d/y", "e", "e/in", "$'\\xff'", "d/$'\\xfe'", "l")

SCRIPTS: Final = (
    "rm -rf {0} {1}", "mv -T {0} {1}", "mkdir -p d e; cp -rT {0} {1}", "chmod 600 {0}", "touch {0}", "echo more >> {0}",
    "head -c {size} /dev/zero | tr '\\0' x > {0}", "truncate -s {size} {0} {1}",
    "rm -rf {0}; mkdir -p {0}; echo in > {0}/in",
    "rm -rf {0}; ln -s {1} {0}", "rm -rf {0} p; mkfifo p", "ln -f {0} {1}", "mkdir -p d; echo x > d/x; chmod 750 d",
    "rm -rf d", "rm -rf *", "rm -rf [!l]*", "rm -f large b",
    "mkdir -p d; for i in 1 2; do head -c {size} /dev/urandom > d/$i; done",
)  # fmt: skip


def any_call(desk: Desk, chance: random.Random) -> tuple[str, str]:
    """Make some call; return what is said of its undo, and what was kept."""
    plain = [name for name in NAMES if "$" not in name]
    size = chance.choice([0, 5000, LARGE, 2**20 + 1])
    match chance.randrange(6):
        case 0 | 1 | 2:
            return desk.write(chance.choice(plain), chance.choice("wxyz") * size)
        case 3 | 4:
            return desk.edit(chance.choice(plain), chance.choice(["in", "more", "x\n"]), "other ")
        case _:
            script = chance.choice(SCRIPTS).format(*chance.choices(NAMES, k=2), size=size)
            return desk.command(f"({script}) 2> /dev/null || true")


def test_of_many_calls_exactly_those_are_undone_of_which_it_was_promised(desk: Desk) -> None:
    chance = random.Random(15)
    promised, refused = 0, 0
    for number in range(CALLS):
        before = desk.look()
        said, pack = any_call(desk, chance)
        if not pack or chance.random() < 0.5:  # half of them stay
            continue
        answer = desk.undo(pack)
        deed = isinstance(answer, messages.Done) and desk.look() == before
        assert deed == (not said), (number, said, answer)
        promised, refused = promised + deed, refused + (not deed)
    assert promised > CALLS / 5
    assert refused > CALLS / 50


def access_list(*entries: tuple[int, int, int]) -> bytes:
    """Return an access list as the kernel has it: tag, rights and number of each entry, the first three and a mask."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in entries)


MASKED: Final = access_list((1, 6, NOBODY), (4, 6, NOBODY), (16, 4, NOBODY), (32, 4, NOBODY))
NAMED: Final = access_list((1, 6, NOBODY), (2, 6, 1234), (4, 4, NOBODY), (16, 6, NOBODY), (32, 0, NOBODY))
INHERITED: Final = access_list((1, 7, NOBODY), (4, 7, NOBODY), (16, 5, NOBODY), (32, 0, NOBODY))
OTHERS: Final = "its access list names others"

# What the file or its directory gets first, and what is said of the undo of a write, and of a command.
HAVING: Final[dict[str, tuple[Callable[[Path], None], str, str]]] = {
    "attributes": (lambda file: os.setxattr(file, "user.note", b"hello"), "", ""),
    "long attributes": (lambda file: os.setxattr(file, "user.note", b"x" * 2000), "", ""),
    "a list": (lambda file: os.setxattr(file, ACCESS, MASKED), "", ""),
    "a list for others": (lambda file: os.setxattr(file, ACCESS, NAMED), OTHERS, "its access list"),
    "a directory with a list for what is new": (lambda file: os.setxattr(file.parent, DEFAULT, INHERITED), "", ""),
    "a directory with a list for others": (lambda file: os.setxattr(file.parent, DEFAULT, NAMED), "", ""),
    "a sticky bit": (lambda file: file.chmod(0o1640), "", ""),
    "a set-user-ID bit": (lambda file: file.chmod(0o4755), "its set-ID bits", "its set-ID bits"),
    "no rights for others": (lambda file: file.chmod(0o600), "", ""),
}


@pytest.fixture
def file(desk: Desk) -> Iterator[Path]:
    directory = desk.root / "having"
    directory.mkdir()
    (directory / "file").write_text("old\n")
    yield directory / "file"
    shutil.rmtree(directory)


def given(give: Callable[[Path], None], file: Path) -> None:
    try:
        give(file)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        pytest.skip("this file system has no such attributes")


def facts(file: Path) -> tuple[object, ...]:
    status = file.lstat()
    return status.st_mode, status.st_uid, status.st_gid, {name: os.getxattr(file, name) for name in os.listxattr(file)}


@pytest.mark.parametrize("by", ["write", "edit", "command"])
@pytest.mark.parametrize("row", HAVING)
def test_what_a_file_has_is_kept_and_brought_back_or_it_is_said(row: str, by: str, desk: Desk, file: Path) -> None:
    give, of_a_write, of_a_command = HAVING[row]
    given(give, file)
    has, before = facts(file), desk.look()
    if by == "write":
        said, pack = desk.write("having/file", "new\n")
    elif by == "edit":
        said, pack = desk.edit("having/file", "old", "new")
    else:
        said, pack = desk.command("echo new > having/file")
        if not pack:  # an overlay takes nothing up that has numbers which are not known there
            assert (facts(file), desk.look()) == (has, before)
            return
    assert file.read_text() == "new\n"
    lost = of_a_command if by == "command" else of_a_write
    assert said == (f"it cannot be undone: having/file ({lost})" if lost else "")
    if not lost or (by != "command" and lost == OTHERS):
        assert facts(file) == has
    answer = desk.undo(pack)
    if not lost:
        assert isinstance(answer, messages.Done), answer
        assert desk.look() == before
    elif by != "command" and lost == OTHERS:
        assert isinstance(answer, messages.Failed)
        assert answer.message.startswith('Access lists that name others cannot be given back: "having/file".')
        assert isinstance(desk.undo(pack, force=True), messages.Done)
        assert (file.read_text(), file.stat().st_mode & 0o777) == ("old\n", 0o640)
    else:
        assert file.read_text() == "old\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="a file of another group takes somebody who may give it away")
@pytest.mark.parametrize(("of_directory", "lost"), [(0o2775, ""), (0o775, "its group")], ids=["set-group-ID", "plain"])
def test_a_group_is_kept_and_brought_back_where_its_directory_gives_it(
    of_directory: int, lost: str, desk: Desk, file: Path
) -> None:
    os.chown(file.parent, -1, 1234)
    file.parent.chmod(of_directory)
    os.chown(file, -1, 1234)
    before = desk.look(), file.stat().st_gid
    said, pack = desk.write("having/file", "new\n")
    assert said == (f"it cannot be undone: having/file ({lost})" if lost else "")
    if not lost:
        assert file.stat().st_gid == before[1]
        assert isinstance(desk.undo(pack), messages.Done)
        assert (desk.look(), file.stat().st_gid) == before


def test_an_owner_that_is_another_is_said_to_be_lost(desk: Desk, file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a file of another owner takes somebody who may give it away")
    file.chmod(0o666)
    os.chown(file, 1234, -1)
    said, _pack = desk.write("having/file", "new\n")
    assert said == "it cannot be undone: having/file (its owner)"
