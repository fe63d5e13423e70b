"""Whatever a call did to a tree: an undo restores it byte for byte, and an undo of that does it again."""

import os
from typing import NamedTuple

import pytest

from tests.raw_worker import open_worker
from tests.workers.restore.conftest import House
from workers.wire import messages


class Row(NamedTuple):
    name: str
    script: str
    says: str


ROWS = (
    Row("a new file", "echo new > new", "Removed 1 file."),
    Row("an empty file", ": > new; : > text", "Restored 1 file, removed 1 file."),
    Row("a file overwritten", "echo new > text; printf x >> sparse", "Restored 2 files."),
    Row("a file deleted", "rm a b", "Restored 2 files."),
    Row("a file of more than a piece", "head -c 3000000 /dev/urandom > big; rm sparse", "Restored 2 files."),
    Row("a mode", "chmod 600 text; chmod 700 d/sub", "Restored 1 file and 1 directory."),
    Row("a mode of the root", "chmod 750 .; echo xx > d/x", "Restored 1 file and 1 directory."),
    Row("no right at all", "rm -rf e; chmod 000 text d", "Restored 2 files and 2 directories."),
    Row("a link", "ln -s text new; ln -sfn b link; rm dangling", "Restored 2 files, removed 1 file."),
    Row("a directory tree deleted", "rm -rf d", "Restored 4 files and 3 directories."),
    Row("everything deleted", "rm -rf -- *; rm -rf .[!.]* ", "Restored 20 files and 5 directories."),
    Row("a directory tree added", "mkdir -p n/m; echo x > n/m/x; echo y > n/y", "Removed 2 files and 2 directories."),
    Row("a directory renamed", "mv d f", "Restored 4 files and 3 directories, removed 4 files and 3 directories."),
    Row("a rename over a file", "mv text b", "Restored 2 files."),
    Row("another name of a file", "ln text d/too", "Removed 1 file."),
    Row("attributes", "setfattr() { python3 -c \"import os; os.setxattr('$1', 'user.$2', b'new')\"; }\n"
        "setfattr b note; setfattr d x; setfattr text long; rm -rf e", "Restored 3 files and 2 directories."),
    Row("times", "chmod 600 text; touch -d 2001-02-03 text; touch b", "Restored 1 file."),
    Row("a FIFO", "mkfifo -m 620 f; rm pipe", "Restored 1 file, removed 1 file."),
    Row("a name that is not UTF-8", r"mkdir $'d\xff'; mv text $'d\xff/\xc3'; ln -s $'\xff' l",
        "Restored 1 file, removed 2 files and 1 directory."),
    Row("a file in place of a directory", "rm -rf d; echo x > d", "Restored 4 files and 3 directories."),
    Row("a directory in place of a file", "rm text; mkdir -p text/in; echo x > text/in/x",
        "Restored 1 file, removed 1 file and 1 directory."),
    Row("many files", "mkdir n; for i in {1..60}; do echo $i > n/$i; done", "Removed 60 files and 1 directory."),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_call_is_undone_byte_for_byte_and_an_undo_as_well(row: Row, house: House) -> None:
    if row.name == "no right at all" and os.geteuid() != 0:
        pytest.skip("only root can see what is in a directory without rights")
    if row.name == "everything deleted":
        house.sh("rm socket")  # which nobody can restore
    before = house.look()
    pack = house.do(row.script)
    after = house.look()
    assert after != before

    undone, said = house.undo_and_keep(pack)
    assert house.look() == before
    assert said == row.says

    house.done(undone)
    assert house.look() == after


def test_changes_of_the_file_tools_are_undone(house: House) -> None:
    before = house.look()
    packs: list[str] = []
    with open_worker(house.tree) as files:
        for tool, arguments in (
            ("write_file", {"path": "new/deep/note.md", "content": "one"}),
            ("write_file", {"path": "text", "content": "two"}),
            ("edit_file", {"path": "e/q", "old": "q", "new": "three"}),
            ("edit_file", {"path": "new/deep/note.md", "old": "one", "new": "four"}),
        ):
            proposed = files.propose(tool, arguments)
            packs.append(house.keep(files, proposed))
            assert isinstance(files.decide(proposed, commit=True), messages.Done)
    for pack in reversed(packs):
        house.done(pack)
    assert house.look() == before
