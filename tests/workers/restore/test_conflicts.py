"""Conflicts of an undo: only force restores over what has changed since; what others have made never goes."""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from tests.workers.restore.conftest import EACH, House, failed
from workers.errors import ToolError
from workers.restore.restore_plan import RestoreStep
from workers.restore.restored_layer import RestoredLayer
from workers.restore.restorer import Restorer
from workers.tree.root import Root
from workers.wire import messages


class Row(NamedTuple):
    name: str
    script: str
    since: str
    names: str
    says: str
    """How the undo by force ends."""
    differs: tuple[str, ...] = ()
    """What is another then than before the call."""


ROWS = (
    Row("a file written again", "echo new > text; rm a", "echo mine > text", '"text": it has changed since',
        "Restored 2 files."),
    Row("a mode", "echo new > text", "chmod 600 text", '"text": it has changed since', "Restored 1 file."),
    Row("a time", "echo new > text", "touch text", '"text": it has changed since', "Restored 1 file."),
    Row("another content of the same size and time", "echo new > text",
        "cp -a text t; echo own > text; touch -r t text; rm t", '"text": it has changed since', "Restored 1 file."),
    Row("a file made again", "rm text", "echo mine > text", '"text": it is there again', "Restored 1 file."),
    Row("a file removed since", "echo new > text", "rm text", '"text": it is gone', "Restored 1 file."),
    Row("a link in its place", "echo new > text", "ln -sf /etc/passwd text", '"text": it has changed since',
        "Restored 1 file."),
    Row("a directory in its place", "echo new > text", "rm text; mkdir text", '"text": it has changed since',
        "Restored 1 file."),
    Row("an added file written", "echo new > new", "echo mine > new", '"new": it has changed since', "Removed 1 file."),
    Row("a link with another target", "ln -sfn b link", "ln -sfn text link", '"link": it has changed since',
        "Restored 1 file."),
    Row("its directory gone", "echo new > d/sub/y", "rm -rf d/sub", '"d/sub/y": its directory is gone',
        "Restored 1 file and 1 directory.", ("d/sub/deep", "d/sub/deep/z")),
    Row("a deleted directory made again", "rm -rf d/sub", "mkdir -m 700 d/sub; echo mine > d/sub/mine",
        '"d/sub": it is there again', "Restored 2 files and 2 directories.", ("d/sub/mine",)),
    Row("something in an added directory", "mkdir -p n/m; echo x > n/m/x; echo y > n/y", "echo mine > n/m/mine",
        "\"n/m/mine\": it was put into 'n' since",
        "Removed 2 files. Left standing, because others have put something there: n; n/m.", ("n", "n/m", "n/m/mine")),
    Row("something in a directory that was a file", "rm text; mkdir text; echo x > text/x", "echo mine > text/mine",
        "\"text/mine\": it was put into 'text' since",
        "Removed 1 file. Left standing, because others have put something there: text.", ("text", "text/mine")),
    Row("a directory with things in place of a file", "echo new > text", "rm text; mkdir text; echo x > text/x",
        '"text": it has changed since',
        "Nothing had to be restored. Left standing, because others have put something there: text.",
        ("text", "text/x")),
)  # fmt: skip


def is_refused_and_forced(house: House, row: Row, kind: str, each: int = EACH) -> None:
    """Make a call, of which files of at most so many bytes are kept; see it refused by name, and undo it by force."""
    before = house.look()
    pack = house.do(row.script, each)
    house.sh(row.since)
    now = house.look()
    message = failed(house.undo(pack), kind)
    assert row.names in message
    assert "--force" in message
    assert house.look() == now
    assert house.done(pack, force=True) == row.says
    then = house.look()
    assert {os.fsdecode(path) for path in before.keys() | then.keys() if before.get(path) != then.get(path)} == set(
        row.differs
    )


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_path_that_has_changed_since_is_refused_by_name_and_restored_by_force(row: Row, house: House) -> None:
    is_refused_and_forced(house, row, "conflict")


def test_a_file_that_already_is_as_it_was_needs_nothing(house: House) -> None:
    before = house.look()
    pack = house.do("echo new > text; echo x > new; rm -rf d")
    house.sh("rm new; seq 100 > text; mkdir -p d/sub")
    assert house.done(pack) == "Restored 4 files and 1 directory."
    then = house.look()
    assert {path for path in before if before[path] != then[path]._replace(mtime_ns=before[path].mtime_ns)} == set()
    assert house.done(pack) == "Nothing had to be restored."


def test_a_time_that_was_not_known_is_not_compared(house: House) -> None:
    pack = house.do("echo new > text")
    [original, piece] = house.parts(pack)
    assert isinstance(original, messages.Original)
    assert original.after is not None
    house.sh("touch text")
    unknown = house.put(replace(original, after=replace(original.after, mtime_ns=0)), piece)
    house.done(unknown)


def test_something_else_on_the_way_is_in_the_way_even_by_force(house: House) -> None:
    pack = house.do("echo new > d/sub/y")
    house.sh("mv d elsewhere; ln -s elsewhere d")
    now = house.look()
    for force in (False, True):
        assert '"d" is a link now' in failed(house.undo(pack, force=force), "conflict")
    assert house.look() == now


def test_a_file_that_changes_before_the_decision_is_a_conflict(house: House) -> None:
    pack = house.do("echo new > text; rm a")
    proposed = house.propose(pack)
    house.sh("echo mine > text")
    now = house.look()
    assert '"text": somebody else changed it' in failed(house.worker.decide(proposed, commit=True), "conflict")
    assert house.look() == now


@pytest.mark.parametrize("deed", ["echo mine > a", "echo mine > a-new", "chmod 700 d", "rm text"])
def test_a_file_that_changes_while_it_is_looked_at_is_a_conflict(
    deed: str, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = house.do("rm a; mkdir d/sub/new; echo new > text; echo new > a-new")
    build = RestoredLayer.build

    def overtaken(upper: RestoredLayer, steps: Iterable[RestoreStep]) -> None:
        build(upper, steps)
        house.sh(deed)

    monkeypatch.setattr(RestoredLayer, "build", overtaken)
    with ExitStack() as stack:
        places = (house.tree, house.kept, house.kept / "scratch")
        root, kept, scratch = (os.open(each, os.O_PATH | os.O_DIRECTORY) for each in places)
        for each in (root, kept, scratch):
            stack.callback(os.close, each)
        with pytest.raises(ToolError, match=r"somebody else changed .* meanwhile") as caught:
            Restorer(kept, scratch, scratch).undo(Root(root, 0o022), pack, force=True)
    assert caught.value.kind == "conflict"


def test_a_discarded_undo_changes_nothing(house: House) -> None:
    pack = house.do("echo new > text; rm -rf d")
    now = house.look()
    proposed = house.propose(pack)
    assert isinstance(house.worker.decide(proposed, commit=False), messages.Done)
    assert house.look() == now


def test_the_effects_are_the_reverse_changes(house: House) -> None:
    pack = house.do("echo new > .envrc; sed -i s/50/fifty/ text; rm a")
    proposed = house.propose(pack)
    assert isinstance(proposed, messages.Proposed), proposed
    changes = {each.path: each for each in proposed.effects.changes}
    assert {path: each.what for path, each in changes.items()} == {
        ".envrc": "deleted",
        "a": "added",
        "text": "modified",
    }
    assert "\n-fifty\n+50\n" in changes["text"].diff
    assert changes[".envrc"].protected
    house.worker.decide(proposed, commit=False)


NOT_KEPT = (
    Row("a large file written", "echo x >> big; rm a", ":", '"big" (300000 bytes)',
        "Restored 1 file. Left as it is, because the old content was not kept: big.", ("big",)),
    Row("a large file deleted in a directory", "mv big e/; rm -r e", ":", '"big" (300000 bytes)',
        "Restored 1 file and 1 directory. Left as it is, because the old content was not kept: big.", ("big",)),
    Row("a directory in place of a large file", "rm big; mkdir big; echo x > big/x", ":", '"big" (300000 bytes)',
        "Removed 1 file. Left as it is, because the old content was not kept: big.", ("big",)),
)  # fmt: skip


@pytest.mark.parametrize("row", NOT_KEPT, ids=[row.name for row in NOT_KEPT])
def test_content_that_was_not_kept_is_named_and_left_by_force(row: Row, house: House) -> None:
    is_refused_and_forced(house, row, "too_large", each=10_000)


def test_a_content_that_is_still_there_need_not_have_been_kept(house: House) -> None:
    before = house.look()
    pack = house.do("chmod 600 big; touch big", each=10_000)
    house.done(pack)
    assert house.look() == before


def test_a_socket_is_not_made_again_and_that_is_said(house: House) -> None:
    before = house.look()
    pack = house.do("rm socket a")
    assert house.done(pack) == (
        "Restored 1 file. Not restored, because a socket or a device cannot be made again: socket."
    )
    assert {path for path in before if path not in house.look()} == {b"socket"}


def test_an_added_socket_is_removed(house: House) -> None:
    before = house.look()
    pack = house.do("python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"")
    house.done(pack)
    assert house.look() == before
