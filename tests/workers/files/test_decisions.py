"""The two phases of a write over the wire, with a real, confined worker."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.raw_worker import RawWorker, open_worker, receive, send
from workers.changes.effects import NodeState
from workers.wire import messages

ENOUGH = 2**30
OLD = b"one\n" + os.urandom(2 * messages.PIECE)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("decisions")


@pytest.fixture(scope="module")
def worker(place: Path) -> Iterator[RawWorker]:
    with open_worker(place) as worker:
        yield worker


@pytest.fixture
def root(place: Path) -> Path:
    """The root, with nothing in it but the file f."""
    for name in sorted(place.rglob("*"), reverse=True):
        name.rmdir() if name.is_dir() else name.unlink()
    (place / "f").write_bytes(OLD)
    return place


def proposed(worker: RawWorker, path: str, content: str = "new\n") -> messages.Proposed:
    answer = worker.propose("write_file", {"path": path, "content": content})
    assert isinstance(answer, messages.Proposed)
    return answer


def kept(worker: RawWorker, number: int, each: int) -> tuple[list[messages.Original], bytes, messages.Up | None]:
    """Return the originals, their content and what ends them."""
    send(worker.process, messages.Keep(number, each, ENOUGH))
    originals: list[messages.Original] = []
    content = b""
    while isinstance(answer := receive(worker.process), messages.Original | messages.Piece):
        if isinstance(answer, messages.Original):
            originals.append(answer)
        else:
            content += answer.data
    return originals, content, answer


def decided(worker: RawWorker, number: int, *, commit: bool) -> messages.Up | None:
    send(worker.process, messages.Decide(number, commit))
    return receive(worker.process)


def files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}


def test_a_write_is_proposed_kept_and_committed(worker: RawWorker, root: Path) -> None:
    held = proposed(worker, "f")
    (change,) = held.effects.changes
    originals, content, answer = kept(worker, held.id, ENOUGH)
    assert originals == [messages.Original(held.id, "f", change.before, change.after, kept=True)]
    assert content == OLD
    assert answer == messages.Kept(held.id, 1, len(OLD), 0)
    assert files(root) == {"f": OLD}
    assert decided(worker, held.id, commit=True) == messages.Done(held.id, "Wrote 4 bytes to f (replaced).")
    assert files(root) == {"f": b"new\n"}


def test_content_that_is_too_large_to_keep_is_committed_without(worker: RawWorker, root: Path) -> None:
    held = proposed(worker, "f")
    _originals, content, answer = kept(worker, held.id, len(OLD) - 1)
    assert (content, answer) == (b"", messages.Kept(held.id, 1, 0, 1))
    assert isinstance(decided(worker, held.id, commit=True), messages.Done)
    assert files(root) == {"f": b"new\n"}


def test_a_file_that_may_be_written_but_not_read_is_not_kept(worker: RawWorker, root: Path) -> None:
    (root / "f").write_text("old\n")
    (root / "f").chmod(0o200)
    held = proposed(worker, "f")
    (change,) = held.effects.changes
    assert change.before
    assert (change.before.digest, change.diff_left_out) == (b"", "the old file cannot be read")
    originals, content, answer = kept(worker, held.id, ENOUGH)
    assert (len(originals), content, answer) == (1, b"", messages.Kept(held.id, 1, 0, 1))
    assert isinstance(decided(worker, held.id, commit=True), messages.Done)
    (root / "f").chmod(0o600)
    assert files(root) == {"f": b"new\n"}


def test_a_new_file_has_originals_without_content(worker: RawWorker, root: Path) -> None:
    held = proposed(worker, "a/x")
    originals, _content, answer = kept(worker, held.id, ENOUGH)
    assert [(each.path, each.before, each.after and each.after.kind) for each in originals] == [
        ("a", None, "dir"),
        ("a/x", None, "file"),
    ]
    assert answer == messages.Kept(held.id, 2, 0, 0)
    assert not (root / "a").exists()
    assert isinstance(decided(worker, held.id, commit=True), messages.Done)
    assert (root / "a/x").read_text() == "new\n"


def test_a_write_that_is_turned_down_leaves_everything(worker: RawWorker, root: Path) -> None:
    for path in ("f", "a/b/x"):
        assert decided(worker, proposed(worker, path).id, commit=False)
        assert [path.name for path in root.iterdir()] == ["f"]
        assert files(root) == {"f": OLD}


def test_a_change_while_a_write_is_held_is_a_conflict(worker: RawWorker, root: Path) -> None:
    held = proposed(worker, "f")
    (root / "f").write_bytes(b"theirs")
    _originals, _content, answer = kept(worker, held.id, ENOUGH)
    for failed in (answer, decided(worker, held.id, commit=True)):
        assert isinstance(failed, messages.Failed)
        assert failed.kind == "conflict"
    assert files(root) == {"f": b"theirs"}


def test_a_call_that_may_go_directly_is_proposed_all_the_same(worker: RawWorker, root: Path) -> None:
    answer = worker.propose("write_file", {"path": "f", "content": ""}, without_rehearsal=True)
    assert isinstance(answer, messages.Proposed)
    assert answer.effects.changes[0].after == NodeState("file", 0o644, 0, 0, sha256(b"").digest())
    decided(worker, answer.id, commit=False)


@pytest.mark.parametrize(
    "message", [messages.Call(99, "read_file", b'{"path": "f"}'), messages.Decide(99, commit=True), None]
)
def test_a_worker_that_holds_a_write_ends_without_it(root: Path, message: messages.Down | None) -> None:
    with open_worker(root) as worker:
        held = proposed(worker, "f")
        assert held.id != 99
        assert worker.process.stdin
        if message is None:
            worker.process.stdin.close()
        else:
            send(worker.process, message)
        assert receive(worker.process) is None
        assert (worker.process.wait() == 0) == (message is None)
    assert files(root) == {"f": OLD}
