"""Proposals of write_file and edit_file: nothing changes until the commit, then exactly that."""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.tool_calls import refusal, refused, told
from tests.workers.files.conftest import UMASK
from workers import kernel
from workers.changes.diff import DIFFS, LINES, TEXT
from workers.changes.effects import Change, NodeState
from workers.files import atomic
from workers.files.edit_file import edit_file
from workers.files.proposal import FileProposal
from workers.files.text_limits import WRITE_LIMIT
from workers.files.write_file import write_file
from workers.tool import Replaced, ToolContext
from workers.tree.drafts import is_draft
from workers.wire.messages import PIECE

Look = dict[str, tuple[int, bytes, int]]


def writing(context: ToolContext, path: str, content: str = "new\n") -> FileProposal:
    result = write_file.run(write_file.args(path=path, content=content), context)
    assert isinstance(result, FileProposal)
    return result


def editing(context: ToolContext, path: str, old: str = "old", new: str = "new") -> FileProposal:
    result = edit_file.run(edit_file.args(path=path, old=old, new=new), context)
    assert isinstance(result, FileProposal)
    return result


def seen(root: Path) -> Look:
    """Return modes, content and modification times of everything, the root included."""
    return {
        str(path): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in (root, *root.rglob("*"))
    }


def texts(root: Path) -> dict[str, str]:
    """Return the text of every file; drafts are left out."""
    files = (path for path in root.rglob("*") if path.is_file() and not is_draft(path.name))
    return {str(path.relative_to(root)): path.read_text() for path in files}


def _names(root: Path) -> list[str]:
    return sorted(name for name in os.listdir(root) if not is_draft(name))


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


# --- the first phase ---------------------------------------------------------------------------------------------


PROPOSALS: list[tuple[str, Callable[[ToolContext], FileProposal]]] = [
    ("a new file", lambda context: writing(context, "x")),
    ("a new file in new directories", lambda context: writing(context, "a/b/x")),
    ("another text", lambda context: writing(context, "f")),
    ("an edit", lambda context: editing(context, "f")),
]


@pytest.mark.parametrize("propose", [row[1] for row in PROPOSALS], ids=[row[0] for row in PROPOSALS])
def test_a_proposal_changes_nothing_and_discarding_it_leaves_nothing(
    context: ToolContext, root: Path, propose: Callable[[ToolContext], FileProposal]
) -> None:
    (root / "f").write_text("old\n")
    before, descriptors = seen(root), len(os.listdir("/proc/self/fd"))
    proposal = propose(context)
    list(proposal.originals(WRITE_LIMIT, WRITE_LIMIT))
    assert seen(root) == before
    proposal.close()
    assert seen(root) == before
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_content_that_is_there_already_is_no_change(context: ToolContext, root: Path) -> None:
    (root / "f").write_text("é\n")
    before = seen(root)
    said, _ = told(write_file, context, path="f", content="é\n")
    assert said == "f has these 3 bytes already (unchanged)."
    assert seen(root) == before


def test_a_new_file_is_told_with_the_directories_that_it_needs(context: ToolContext, root: Path) -> None:
    (root / "a").mkdir()
    assert writing(context, "a/b/c/x", "new\n").effects.changes == (
        Change("a/b", "added", None, NodeState("dir", 0o777 & ~UMASK)),
        Change("a/b/c", "added", None, NodeState("dir", 0o777 & ~UMASK)),
        Change(
            "a/b/c/x",
            "added",
            None,
            NodeState("file", 0o666 & ~UMASK, 4, 0, sha256(b"new\n")),
            diff="@@ -0,0 +1 @@\n+new\n",
        ),
    )


def test_a_change_is_told_with_both_states(context: ToolContext, root: Path) -> None:
    (root / "f").write_text("one\nold\n")
    (root / "f").chmod(0o751)
    (root / "g").hardlink_to(root / "f")
    effects = editing(context, "f").effects
    assert effects.changes == (
        Change(
            "f",
            "modified",
            NodeState("file", 0o751, 8, (root / "f").stat().st_mtime_ns, sha256(b"one\nold\n")),
            NodeState("file", 0o751, 8, 0, sha256(b"one\nnew\n")),
            diff="@@ -1,2 +1,2 @@\n one\n-old\n+new\n",
            linked=True,
        ),
    )
    assert (effects.totals, effects.size) == ({"modified": 1}, 8)


def test_the_digest_stands_for_every_change_without_its_diff(context: ToolContext) -> None:
    effects = writing(context, "a/x").effects
    encoded = (msgspec.msgpack.encode(msgspec.structs.replace(each, diff="")) for each in effects.changes)
    assert effects.digest == sha256(b"".join(encoded))
    assert effects.digest != writing(context, "a/x", "other\n").effects.digest


LONG = "".join(f"{number:07}{'x' * 990}\n" for number in range(4000))
"""All of it fits beside what it takes the place of, but for some lines."""
SHOWN = [
    (b"\0" * 20, "new\n", "", "binary, 20 bytes, cannot be shown", ""),
    (b"\xffold\0\n", "new\n", "-\\xffold\0\n+new\n", "", "was UTF-8 with stray bytes, written as \\x..; is UTF-8"),
    ("café\n".encode("latin-1"), "café\n", "", "", "was Latin-1 (Windows-1252), decoded; is UTF-8"),
    ("one\n".encode("utf-16"), "two\n", "-one\n+two\n", "", "was UTF-16 LE with a byte order mark, decoded; is UTF-8"),
    (b"a\nb\n", "\n" * (LINES + 1), "", f"a text of {LINES + 1} lines is not compared; the most is {LINES}", ""),
    (b"x" * (TEXT + 1), "new", "", f"a file of {TEXT + 1} bytes is not compared; the most is {TEXT}", ""),
]


@pytest.mark.parametrize(("old", "new", "diff", "why", "how"), SHOWN, ids=range(len(SHOWN)))
def test_an_old_file_is_shown_or_said_not_to_be(
    context: ToolContext, root: Path, old: bytes, new: str, diff: str, why: str, how: str
) -> None:
    (root / "f").write_bytes(old)
    (change,) = writing(context, "f", new).effects.changes
    assert (change.diff.partition("@@\n")[2], change.diff_left_out, change.encoding) == (diff, why, how)


def test_lines_that_do_not_fit_a_frame_are_counted(context: ToolContext, root: Path) -> None:
    (root / "f").write_text(LONG)
    (change,) = writing(context, "f", LONG.replace("x", "y")).effects.changes
    left_out = re.fullmatch(r"([0-9]+) lines are left out", change.diff_left_out)
    assert left_out
    assert int(left_out[1]) + change.diff.count("\n") == 8001
    assert DIFFS - 2000 < len(change.diff) <= DIFFS


# --- the second phase --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("propose", [row[1] for row in PROPOSALS], ids=[row[0] for row in PROPOSALS])
@pytest.mark.parametrize("bits", [0o600, 0o755])
def test_the_effects_told_are_there_after_the_commit(
    context: ToolContext, root: Path, propose: Callable[[ToolContext], FileProposal], bits: int
) -> None:
    (root / "f").write_text("old\n")
    (root / "f").chmod(bits)
    proposal = propose(context)
    proposal.commit()
    for change in proposal.effects.changes:
        assert change.after == _state(root / change.path)


def test_a_directory_with_the_group_bit_has_a_say_in_the_modes(context: ToolContext, root: Path) -> None:
    root.chmod(0o2755)
    proposal = writing(context, "a/x")
    proposal.commit()
    assert [each.after for each in proposal.effects.changes] == [_state(root / "a"), _state(root / "a/x")]


class Meanwhile(NamedTuple):
    name: str
    propose: Callable[[ToolContext], FileProposal]
    change: Callable[[Path], Any]


def _rewrite(path: Path, text: str, *, times: bool = False) -> None:
    status = path.stat()
    path.write_text(text)
    if times:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _exchange(path: Path, text: str) -> None:
    path.with_name("other").write_text(text)
    path.with_name("other").replace(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path, other: str) -> None:
    path.rename(path.with_name(other))
    path.symlink_to(other)


def _another(path: Path, other: Path) -> None:
    path.rename(other)
    path.mkdir()


def _file(path: Path) -> None:
    path.rmdir()
    path.write_text("theirs")


CHANGES: list[tuple[str, Callable[[Path], Any]]] = [
    ("another text", lambda root: _rewrite(root / "f", "newer")),
    ("another text of the same size and time", lambda root: _rewrite(root / "f", "own\n", times=True)),
    ("another file", lambda root: _exchange(root / "f", "old\n")),
    ("another mode", lambda root: (root / "f").chmod(0o640)),
    ("nothing", lambda root: (root / "f").unlink()),
    ("a directory", lambda root: _directory(root / "f")),
    ("a link", lambda root: _link(root / "f", "g")),
]
APPEARS: list[tuple[str, Callable[[Path], Any]]] = [
    ("a file", lambda root: (root / "a/x").write_text("theirs")),
    ("a directory", lambda root: (root / "a/x").mkdir()),
    ("a link", lambda root: (root / "a/x").symlink_to("f")),
    ("no directory", lambda root: (root / "a").rmdir()),
    ("another directory", lambda root: _another(root / "a", root / "b")),
    ("a link to the directory", lambda root: _link(root / "a", "b")),
    ("a file for a directory", lambda root: _file(root / "a")),
]
CONFLICTS = [
    *(Meanwhile(f"write: {name}", lambda context: writing(context, "f"), change) for name, change in CHANGES),
    *(Meanwhile(f"edit: {name}", lambda context: editing(context, "f"), change) for name, change in CHANGES),
    *(Meanwhile(f"new: {name}", lambda context: writing(context, "a/x"), change) for name, change in APPEARS),
    Meanwhile("new: the directory", lambda context: writing(context, "c/d/x"), lambda root: (root / "c").mkdir()),
    Meanwhile(
        "new: a file as directory", lambda context: writing(context, "c/x"), lambda root: (root / "c").write_text("")
    ),
]


@pytest.mark.parametrize("row", CONFLICTS, ids=[row.name for row in CONFLICTS])
def test_a_change_in_between_is_a_conflict_and_stays(context: ToolContext, root: Path, row: Meanwhile) -> None:
    (root / "a").mkdir()
    (root / "f").write_text("old\n")
    proposal = row.propose(context)
    row.change(root)
    theirs = texts(root), sorted(os.listdir(root))
    with refused("conflict", "nothing was written. Read it again"):
        proposal.commit()
    assert (texts(root), sorted(os.listdir(root))) == theirs


# --- in the last moment ------------------------------------------------------------------------------------------


@pytest.fixture
def at_the_rename(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let things happen right before the first rename, the second, and so on."""
    real = kernel.rename

    def prepare(*steps: Callable[[], Any]) -> None:
        left = list(steps)

        def rename(*given: Any) -> None:
            if left:
                left.pop(0)()
            real(*given)

        monkeypatch.setattr(atomic, "rename", rename)

    return prepare


@pytest.fixture
def held(context: ToolContext, root: Path) -> FileProposal:
    """A write of the file f, which is there."""
    (root / "f").write_text("old\n")
    return writing(context, "f")


@pytest.mark.parametrize("change", [row[1] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_a_change_in_the_last_moment_comes_back(
    held: FileProposal, root: Path, at_the_rename: Callable[..., None], change: Callable[[Path], Any]
) -> None:
    theirs: list[Any] = []

    def late() -> None:
        change(root)
        theirs.extend([texts(root), _names(root)])

    at_the_rename(late)
    assert refusal(held.commit).kind == "conflict"
    assert [texts(root), sorted(os.listdir(root))] == theirs


def test_a_file_that_appears_in_the_last_moment_stays(
    context: ToolContext, root: Path, at_the_rename: Callable[..., None]
) -> None:
    proposal = writing(context, "f")
    at_the_rename(lambda: (root / "f").write_text("theirs"))
    assert refusal(proposal.commit).kind == "conflict"
    assert texts(root) == {"f": "theirs"}


@pytest.mark.parametrize(
    "second", [lambda path: path.write_text("second"), lambda path: _exchange(path, "second")], ids=["in", "over"]
)
def test_two_changes_in_the_last_moment_are_both_kept(
    held: FileProposal, root: Path, at_the_rename: Callable[..., None], second: Callable[[Path], Any]
) -> None:
    at_the_rename(lambda: _rewrite(root / "f", "first"), lambda: second(root / "f"))
    error = refusal(held.commit)
    left = texts(root)
    assert left.pop("f") == "first"
    ((name, text),) = left.items()
    assert text == "second"
    assert name in error.message


def _sweep(context: ToolContext, root: Path) -> None:
    """Sweep as another writer does, while a draft may hold what somebody wrote."""
    context.root.swept.clear()
    directory = os.open(root, os.O_RDONLY)
    atomic._sweep(context.root, directory)
    os.close(directory)


@pytest.mark.parametrize("second", [lambda _, root: (root / "f").unlink(), _sweep], ids=["removes it", "sweeps"])
def test_old_content_is_put_back_whatever_another_does_to_the_new_file(
    held: FileProposal,
    context: ToolContext,
    root: Path,
    at_the_rename: Callable[..., None],
    second: Callable[[ToolContext, Path], None],
) -> None:
    at_the_rename(lambda: _rewrite(root / "f", "first"), lambda: second(context, root))
    refusal(held.commit)
    assert texts(root) == {"f": "first"}


def test_a_directory_that_somebody_else_has_locked_can_be_written(
    context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_SWEEPING_S", 0)
    theirs = os.open(root, os.O_RDONLY)
    fcntl.flock(theirs, fcntl.LOCK_EX)
    writing(context, "x").commit()
    os.close(theirs)
    assert texts(root) == {"x": "new\n"}


def test_a_file_system_without_such_renames_gets_the_plain_one(
    context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_arguments: object) -> None:
        raise OSError(22, "Invalid argument", "renameat2")

    monkeypatch.setattr(atomic, "rename", cannot)
    (root / "f").write_text("old\n")
    writing(context, "f").commit()
    writing(context, "x").commit()
    assert texts(root) == {"f": "new\n", "x": "new\n"}


# --- originals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, PIECE, 2 * PIECE + 1])
def test_originals_hold_the_old_content_to_the_byte(context: ToolContext, root: Path, size: int) -> None:
    old = b"\0old"[:size] + os.urandom(max(0, size - 4))
    (root / "f").write_bytes(old)
    proposal = writing(context, "f")
    first, *content = proposal.originals(size, size)
    (change,) = proposal.effects.changes
    assert first == Replaced("f", change.before, change.after, kept=True)
    assert b"".join(_pieces(content)) == old
    assert all(0 < len(each) <= PIECE for each in _pieces(content))


def test_originals_name_what_is_new_parents_first(context: ToolContext) -> None:
    proposal = writing(context, "a/b/x")
    wanted = [Replaced(each.path, None, each.after) for each in proposal.effects.changes]
    assert list(proposal.originals(10, 10)) == wanted
    assert [each.path for each in wanted] == ["a", "a/b", "a/b/x"]


@pytest.mark.parametrize(("each", "total"), [(3, 100), (100, 3)])
def test_originals_leave_out_what_is_beyond_a_limit(held: FileProposal, each: int, total: int) -> None:
    (original,) = held.originals(each, total)
    assert isinstance(original, Replaced)
    assert not original.kept


@pytest.mark.parametrize("change", [row[1] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_originals_of_a_file_that_changed_are_a_conflict(
    context: ToolContext, root: Path, change: Callable[[Path], Any]
) -> None:
    (root / "f").write_text("old\n")
    proposal = editing(context, "f")
    change(root)
    assert refusal(list, proposal.originals(100, 100)).kind == "conflict"


def test_originals_that_change_while_they_are_read_are_a_conflict(held: FileProposal, root: Path) -> None:
    originals = held.originals(100, 100)
    next(originals)
    _rewrite(root / "f", "own\n", times=True)
    assert refusal(list, originals).kind == "conflict"


def _pieces(content: Iterable[Replaced | bytes]) -> list[bytes]:
    return [each for each in content if isinstance(each, bytes)]


def _state(path: Path) -> NodeState:
    status = path.stat()
    if path.is_dir():
        return NodeState("dir", status.st_mode & 0o7777)
    return NodeState("file", status.st_mode & 0o7777, status.st_size, 0, sha256(path.read_bytes()))
