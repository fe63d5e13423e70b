import fcntl
import os
import stat
from pathlib import Path

import pytest

from tests.raw_worker import open_worker, receive, send
from tests.tool_calls import refusal, refused, told
from workers.files.list_directory import list_directory
from workers.files.list_files import list_files
from workers.files.text_limits import WRITE_LIMIT
from workers.files.write_file import write_file
from workers.tool import ToolContext
from workers.wire import messages

DEAD = ".strongroom-00000000000000aa.tmp"
ALIVE = ".strongroom-00000000000000bb.tmp"


def write(context: ToolContext, path: str, content: str = "text\n") -> str:
    return str(told(write_file, context, path=path, content=content)[0])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_it_says_how_much_it_wrote_where(context: ToolContext, root: Path) -> None:
    assert write(context, "notes/../notes/x.md", "é\n") == "Wrote 3 bytes to notes/x.md (new file)."
    assert write(context, "notes/x.md", "") == "Wrote 0 bytes to notes/x.md (replaced)."
    assert (root / "notes/x.md").read_bytes() == b""


def test_new_files_and_directories_have_the_modes_of_the_users_umask(context: ToolContext, root: Path) -> None:
    context.root.umask = 0o027
    write(context, "a/b/x")
    assert (mode(root / "a"), mode(root / "a/b"), mode(root / "a/b/x")) == (0o750, 0o750, 0o640)


@pytest.mark.parametrize("bits", [0o600, 0o644, 0o664, 0o755, 0o666, 0o700])
def test_a_replaced_file_keeps_its_mode(context: ToolContext, root: Path, bits: int) -> None:
    (root / "x").write_text("old")
    (root / "x").chmod(bits)
    write(context, "x")
    assert mode(root / "x") == bits


def test_a_confined_worker_keeps_modes_too(root: Path) -> None:
    (root / "x").write_text("old")
    (root / "x").chmod(0o755)
    with open_worker(root) as worker:
        assert isinstance(worker.call("write_file", {"path": "x", "content": "new"}), messages.Done)
        assert isinstance(worker.call("write_file", {"path": "y", "content": "new"}), messages.Done)
    umask = os.umask(0o022)
    os.umask(umask)
    assert (mode(root / "x"), mode(root / "y")) == (0o755, 0o666 & ~umask)


def test_other_names_of_the_same_file_keep_the_old_text(context: ToolContext, root: Path) -> None:
    (root / "x").write_text("old")
    (root / "y").hardlink_to(root / "x")
    write(context, "x")
    assert (root / "y").read_text() == "old"


def test_a_write_beyond_the_workers_file_size_leaves_nothing(root: Path) -> None:
    (root / "old").write_text("old")
    content = "x" * (2 * 2**20)
    with open_worker(root, limits=messages.Limits(file_mb=1)) as worker:
        for path in ("old", "a/b/new"):
            answer = worker.failed("write_file", {"path": path, "content": content})
            assert answer.kind == "resource_limit"
    assert names(root) == {"old"}
    assert (root / "old").read_text() == "old"


def test_nothing_is_proposed_for_a_read_only_root(root: Path) -> None:
    (root / "old").write_text("old")
    with open_worker(root, writable=False) as worker:
        for path in ("old", "new", "a/b/new"):
            answer = worker.propose("write_file", {"path": path, "content": "x"})
            assert isinstance(answer, messages.Failed)
            assert answer.kind == "permission_denied"
    assert names(root) == {"old"}


def test_directories_made_for_a_write_that_fails_are_removed(context: ToolContext, root: Path) -> None:
    (root / "a").mkdir()
    assert refusal(write, context, "a/b/c/" + "n" * 200 + "é" * 28).kind == "invalid_arguments"
    (root / "a/b").mkdir()
    (root / "a/b/x").mkdir()
    assert refusal(write, context, "a/b/x").kind == "not_a_file"
    assert names(root) == {"a", "a/b", "a/b/x"}


def test_the_most_that_may_be_written_passes(context: ToolContext, root: Path) -> None:
    write(context, "x", "x" * WRITE_LIMIT)
    assert (root / "x").stat().st_size == WRITE_LIMIT


def test_the_limit_counts_bytes_not_characters(context: ToolContext, root: Path) -> None:
    assert refusal(write, context, "x", "é" * (WRITE_LIMIT // 2 + 1)).kind == "too_large"
    assert names(root) == set()


def test_the_draft_of_a_dead_worker_is_removed_at_the_first_write(context: ToolContext, root: Path) -> None:
    (root / DEAD).write_text("half")
    write(context, "x")
    assert names(root) == {"x"}


def test_the_draft_of_a_living_worker_stays(context: ToolContext, root: Path) -> None:
    (root / ALIVE).write_text("half")
    with (root / ALIVE).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write(context, "x")
        assert names(root) == {ALIVE, "x"}


def test_a_write_whose_drafts_are_all_swept_away_says_so(
    context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.tree.drafts.locks", lambda _file: False)
    with refused("internal", 'Nothing was written: other writers removed every temporary file for "x". Try again.'):
        write(context, "x")
    assert names(root) == set()


def test_a_link_and_what_a_commit_has_begun_are_no_drafts_of_a_write(context: ToolContext, root: Path) -> None:
    (root / "target").write_text("precious")
    (root / DEAD).symlink_to("target")
    (root / ALIVE).mkdir()
    (root / ALIVE).chmod(0o1700)
    write(context, "x")
    assert names(root) == {DEAD, ALIVE, "target", "x"}


LIKE_DRAFTS = [
    ".strongroom-mine.tmp",
    ".strongroom-.tmp",
    ".strongroom-0123456789abcdef.tmp~",
    ".strongroom-0123456789ABCDEF.tmp",
    ".strongroom-0123456789abcde.tmp",
    ".strongroom-0123456789abcdef0.tmp",
    ".strongroom-0123456789abcdef.tmp\n",
]


@pytest.mark.parametrize("name", LIKE_DRAFTS)
def test_a_file_of_the_user_that_is_named_almost_like_a_draft_is_the_users(
    context: ToolContext, root: Path, name: str
) -> None:
    (root / name).write_text("precious")
    write(context, "x")
    assert (root / name).read_text() == "precious"
    assert {"name": name, "kind": "file"} in told(list_directory, context, path=".")[0]
    assert told(list_files, context, pattern=".*")[0] == [name]
    write(context, name, "mine\n")
    assert (root / name).read_text() == "mine\n"


@pytest.mark.parametrize("content", ["\0", "text\0", "\0" * 5000])
def test_nul_is_not_written_as_no_text_has_it(context: ToolContext, root: Path, content: str) -> None:
    (root / "x").write_text("old")
    with refused("invalid_arguments", f"there is a NUL at character {content.index(chr(0))}"):
        write(context, "x", content)
    assert names(root) == {"x"}
    assert (root / "x").read_text() == "old"


def test_a_directory_is_swept_once(context: ToolContext, root: Path) -> None:
    write(context, "x")
    (root / DEAD).write_text("half")
    write(context, "x")
    assert DEAD in names(root)


def test_no_descriptor_stays_open_after_success_or_refusal(context: ToolContext, root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    write(context, "a/b/x")
    for path in ("a", "a/b/x/y", ".git/config", "../x", "a/" + "n" * 300):
        refusal(write, context, path)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("old", [b"", b"old\n" * 2**18])
def test_a_worker_killed_in_the_middle_of_a_write_leaves_the_old_text_or_the_new(root: Path, old: bytes) -> None:
    target = root / "x"
    new = b"new\n" * (WRITE_LIMIT // 4)
    for _ in range(8):
        target.write_bytes(old)
        with open_worker(root) as worker:
            proposed = worker.propose("write_file", {"path": "x", "content": new.decode()})
            assert isinstance(proposed, messages.Proposed)
            send(worker.process, messages.Decide(1, commit=True))
            while len(names(root)) == 1 and target.stat().st_size == len(old):
                pass
            worker.process.kill()
            worker.process.wait()
        assert target.read_bytes() in {old, new}
    with open_worker(root) as worker:
        assert isinstance(worker.call("write_file", {"path": "y", "content": ""}), messages.Done)
    assert names(root) == {"x", "y"}


def test_readers_see_the_old_text_or_the_new_while_a_worker_writes(root: Path) -> None:
    texts = [bytes([97 + number]) * (2**20 + number) for number in range(2)]
    target = root / "x"
    target.write_bytes(texts[0])
    with open_worker(root) as worker:
        for number in range(20):
            proposed = worker.propose("write_file", {"path": "x", "content": texts[number % 2].decode()})
            if isinstance(proposed, messages.Done):  # the first one is what is there
                continue
            assert isinstance(proposed, messages.Proposed)
            send(worker.process, messages.Decide(proposed.id, commit=True))
            assert target.read_bytes() in texts
            assert isinstance(receive(worker.process), messages.Done)
            assert target.read_bytes() == texts[number % 2]
