"""A pack that is not whole is refused as a whole, and no name of one leads out of the root."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from tests.each_row import each_row
from tests.raw_worker import open_worker
from tests.workers.restore.conftest import EACH, Damage, House, failed, inputs, let_go
from workers.changes.effects import NodeState
from workers.restore.pack import read
from workers.wire import frames, messages
from workers.wire.pack_format import HEADER, Broken, PackedName, PackEnd, encoded

Part = messages.Original | messages.Piece

FILE = NodeState("file", 0o644, 3, 10**18, hashlib.sha256(b"old").digest())
FOLDER = NodeState("dir", 0o755)
LINK = NodeState("link", 0o777, mtime_ns=10**18, target="/etc")


def deleted(path: str, before: NodeState = FILE, content: bytes = b"old", **more: Any) -> tuple[Part, ...]:
    """Return the parts of a name that a call has removed."""
    kept = before.kind == "file"
    return messages.Original(1, path, before, None, kept=kept, **more), *pieces(*[content] * (kept and content != b""))


def pieces(*contents: bytes) -> tuple[Part, ...]:
    return tuple(messages.Piece(1, each) for each in contents)


def test_a_forged_pack_that_fits_together_is_as_good_as_one_that_was_kept(house: House) -> None:
    """So that what the rows below are refused for is what they say."""
    pack = house.put(*deleted("n", FOLDER), *deleted("n/x", attributes={"user.x": b"1"}), *deleted("n/l", LINK))
    house.done(pack)
    assert (house.tree / "n/x").read_text() == "old"
    assert os.getxattr(house.tree / "n/x", "user.x") == b"1"
    assert os.readlink(house.tree / "n/l") == "/etc"


class Forged(NamedTuple):
    name: str
    parts: tuple[Part, ...]
    says: str


FORGED = (
    Forged("up", deleted("../outside"), "no name beneath the root"),
    Forged("up in the middle", deleted("d/../../outside"), "no name beneath the root"),
    Forged("absolute", deleted("/tmp/outside"), "no name beneath the root"),
    Forged("empty", deleted(""), "no name beneath the root"),
    Forged("an empty part", deleted("d//x"), "no name beneath the root"),
    Forged("a dot", deleted("d/./x"), "no name beneath the root"),
    Forged("a NUL", deleted("d\0x"), "no name beneath the root"),
    Forged("up in bytes", deleted("x", raw_path=b"../\xff"), "no name beneath the root"),
    Forged("too long", deleted("d/" * 3000 + "x"), "no name beneath the root"),
    Forged("through its own link", (*deleted("l", LINK), *deleted("l/x")), "it lies in no directory"),
    Forged("through its own file", (*deleted("f"), *deleted("f/x")), "it lies in no directory"),
    Forged("a directory after what is in it", (*deleted("n/m/x"), *deleted("n", FOLDER)), "after what is in it"),
    Forged("twice", (*deleted("x"), *deleted("x")), "it is there twice"),
    Forged("nothing at all", (messages.Original(1, "x"),), "neither before nor after"),
    Forged("a content of a directory", (messages.Original(1, "x", FOLDER, None, kept=True),), "only files have"),
    Forged("an attribute of the system", deleted("x", attributes={"security.capability": b"1"}), "an attribute"),
    Forged("a mark of an overlay", deleted("x", attributes={"user.overlay.opaque": b"y"}), "an attribute"),
    Forged("too little content", deleted("x", content=b"ol"), "in the middle of a content"),
    Forged("too much content", deleted("x", content=b"older"), "out of turn"),
    Forged("more content", (*deleted("x"), messages.Piece(1, b"x")), "out of turn"),
    Forged("another content", deleted("x", content=b"new"), "its content is another one"),
    Forged("no content", (*deleted("x", content=b""), *deleted("y")), "out of turn"),
    Forged("an empty piece", (*deleted("x", content=b""), *pieces(b"", b"old")), "out of turn"),
)


@pytest.mark.parametrize("row", FORGED, ids=[row.name for row in FORGED])
def test_a_pack_that_does_not_fit_together_is_damaged(row: Forged, shared: House) -> None:
    now = shared.look()
    pack = shared.put(*row.parts)
    for force in (False, True):
        message = failed(shared.undo(pack, force=force), "internal")
        assert "is damaged" in message
        assert row.says in message
    assert shared.look() == now


def test_no_link_of_the_root_is_followed(house: House) -> None:
    """What lies behind links stays as it is, whatever a pack says and whoever insists."""
    outside = house.tree.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "x").write_text("mine")
    house.sh("ln -s ../outside hole; ln -s ../outside/x hole-too")
    into = house.put(*deleted("hole/y"), messages.Original(1, "hole/x", None, FILE))
    assert '"hole" is a link now' in failed(house.undo(into, force=True), "conflict")
    house.done(house.put(*deleted("hole-too")), force=True)
    assert stat.S_ISREG(os.lstat(house.tree / "hole-too").st_mode)
    assert {each.name: each.read_text() for each in outside.iterdir()} == {"x": "mine"}


def ended(*parts: bytes) -> list[bytes]:
    """Return parts with the end that makes them whole."""
    return [*parts, encoded(PackEnd(hashlib.sha256(HEADER + b"".join(parts)).digest()))]


class Damaged(NamedTuple):
    name: str
    damage: Damage
    says: str


WHOLE = (*deleted("x", replace(FILE, size=6, digest=b"")), messages.Piece(1, b"new"), *deleted("y"))
"""Five frames and an end. Nothing but the end knows which of the first file's pieces comes first."""

CUT, ELSE, ON, NO_END = "in the middle of a frame", "not what was written", "goes on after its end", "end is missing"
DAMAGED = (
    Damaged("no bytes", lambda _: [], NO_END),
    Damaged("cut between two names", lambda f: f[:3], NO_END),
    Damaged("cut before its end", lambda f: f[:-1], NO_END),
    Damaged("cut in a content", lambda f: f[:2], NO_END),
    Damaged("cut in a frame", lambda f: [*f[:4], f[4][:-1]], CUT),
    Damaged("cut in a length", lambda f: [*f[:4], f[4][:2]], CUT),
    Damaged("cut in its end", lambda f: [*f[:-1], f[-1][:-1]], CUT),
    Damaged("bytes after its end", lambda f: [*f, b"\0\0"], CUT),
    Damaged("a name after its end", lambda f: [*f, *f[3:5]], ON),
    Damaged("its end twice", lambda f: [*f, f[-1]], ON),
    Damaged("an end of what is before it in the middle", lambda f: [*ended(*f[:3]), *f[3:]], ON),
    Damaged("its end in the middle", lambda f: [*f[:3], f[-1], *f[3:-1]], ELSE),
    Damaged("the end of another pack", lambda f: [*f[:-1], ended(*f[:3])[-1]], ELSE),
    Damaged("an end within a content", lambda f: ended(*f[:2]), "in the middle of a content"),
    Damaged("a piece in place of another", lambda f: [*f[:2], f[1], *f[3:]], ELSE),
    Damaged("a piece twice", lambda f: [*f[:2], *f[1:]], "out of turn"),
    Damaged("pieces exchanged", lambda f: [f[0], f[2], f[1], *f[3:]], ELSE),
    Damaged("names exchanged", lambda f: [*f[3:5], *f[:3], f[-1]], ELSE),
    Damaged("a name gone", lambda f: [*f[:3], f[-1]], ELSE),
    Damaged("a name more", lambda f: [*f[:-1], encoded(PackedName("z", None, FILE)), f[-1]], ELSE),
    Damaged("another content", lambda f: [f[0], f[1].replace(b"old", b"new"), *f[2:]], ELSE),
    Damaged("another path", lambda f: [*f[:3], f[3].replace(b"\xa1y", b"\xa1z"), *f[4:]], ELSE),
    Damaged("a length of nothing", lambda f: [*f[:3], bytes(4), *f[3:]], "a frame of 0 bytes"),
    Damaged("a length above all limits", lambda f: [*f[:3], b"\xff" * 8, *f[3:]], "a frame of 4294967295 bytes"),
    Damaged("no message", lambda f: ended(*f[:3], frames.LENGTH.pack(3) + b"abc"), "not a message"),
    Damaged("another message", lambda f: ended(*f[:3], frames.frame(messages.Done(1, ""))), "not a message"),
    Damaged(
        "a name of the first version",
        lambda f: ended(*f[:3], frames.frame(messages.Original(1, "z", None, FILE))),
        "not a message",
    ),
    Damaged("text", lambda _: [b"once upon a time"], "a frame of 1869505381 bytes"),
)


@each_row("row", DAMAGED, ids=[row.name for row in DAMAGED])
def test_a_file_that_is_no_whole_pack_is_damaged(row: Damaged, shared: House) -> None:
    pack = shared.put(*WHOLE, damage=row.damage)
    for force in (False, True):
        message = failed(shared.undo(pack, force=force), "internal")
        assert message.startswith(f"The pack '{pack}' is damaged: ")
        assert row.says in message
    assert not {"x", "y", "z"} & set(os.listdir(shared.tree))


def test_wherever_a_pack_is_cut_and_whichever_byte_changes_it_is_damaged(shared: House, tmp_path: Path) -> None:
    data = (shared.kept / shared.put(*WHOLE)).read_bytes()
    others = [data[:at] for at in range(len(data))]
    others += [
        data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :] for at in range(len(data)) for bits in (0x01, 0x80, 0xFF)
    ]
    passed: list[bytes] = []
    with (tmp_path / "pack").open("w+b", buffering=0) as file:
        for each in (data, *others):
            file.truncate(0)
            os.pwrite(file.fileno(), each, 0)
            with suppress(Broken):
                read(file.fileno())
                passed.append(each)
    assert passed == [data]


def test_a_command_whose_pack_was_cut_between_two_files_is_taken_back_in_no_part(house: House) -> None:
    whole = house.do("for each in a b text; do echo new > $each; done")
    now = house.look()
    parts = house.parts(whole)
    names = [at for at, part in enumerate(parts) if isinstance(part, messages.Original)]
    assert len(names) == 3
    for end in names:
        cut = house.put(*parts, damage=lambda frames, end=end: frames[:end])  # type: ignore[misc]
        assert "is damaged" in failed(house.undo(cut), "internal")
    assert house.look() == now
    house.done(whole)


HOSTILE_NAMES = (
    "../root/text", "..", ".", "", "/etc/passwd", "scratch/../pack", ".hidden", "a b", "ü", "a\n", "a\0", "a/b"
)  # fmt: skip


@each_row("name", HOSTILE_NAMES)
def test_no_name_of_a_pack_leads_elsewhere(name: str, shared: House) -> None:
    assert "`$.pack`" in failed(shared.undo(name), "invalid_arguments")


@pytest.fixture
def beside(shared: House) -> Iterator[Path]:
    """Names in the directory of packs that are none."""
    os.symlink("../root/text", shared.kept / "link")
    os.mkfifo(shared.kept / "fifo")
    yield shared.kept
    for name in ("link", "fifo"):
        os.unlink(shared.kept / name)


@pytest.mark.parametrize("name", ["gone", "link", "fifo", "scratch"])
def test_a_name_that_is_no_pack_is_not_found(name: str, shared: House, beside: Path) -> None:
    failed(shared.undo(name), "not_found")


def test_remains_of_a_killed_worker_go_with_the_next_undo(house: House) -> None:
    house.sh(f"truncate -s {EACH} z{{1..8}}")  # more than is restored in memory
    pack = house.do("rm z*; rm -rf d; chmod 000 e")
    with open_worker(house.tree, category="restore", inputs=inputs(house.kept)) as other:
        assert isinstance(other.propose("undo", {"pack": pack, "force": True}), messages.Proposed)
    assert len(os.listdir(house.kept / "scratch")) == 1
    failed(house.undo("gone"), "not_found")
    assert os.listdir(house.kept / "scratch") == []


def test_two_undos_at_once_do_not_disturb_each_other(house: House) -> None:
    before = house.look()
    first, second = house.do("rm a"), house.do("echo new > text")
    with open_worker(house.tree, category="restore", inputs=inputs(house.kept)) as other:
        proposed = house.propose(first)
        other.done("undo", {"pack": second})
        let_go(other)
        assert isinstance(house.worker.decide(proposed, commit=True), messages.Done)
    assert house.look() == before


def test_a_root_that_is_only_read_is_not_restored(house: House) -> None:
    pack = house.do("echo new > text")
    now = house.look()
    with open_worker(house.tree, category="restore", inputs=inputs(house.kept), writable=False) as worker:
        failed(worker.call("undo", {"pack": pack}), "permission_denied")
    assert house.look() == now


def test_its_directories_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    kept = tmp_path / "home/kept"
    with open_worker(tmp_path / "root", category="restore", inputs=inputs(kept)) as worker:
        assert isinstance(worker.ready, messages.Ready)
    assert {stat.S_IMODE(each.stat().st_mode) for each in (kept, kept / "scratch")} == {0o700}


@pytest.mark.parametrize("what", ["open to others", "a link", "a file"])
def test_a_directory_that_is_not_its_own_is_refused(what: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    match what:
        case "open to others":
            (kept / "scratch").mkdir()
            (kept / "scratch").chmod(0o777)
        case "a link":
            (kept / "scratch").symlink_to(tmp_path)
        case _:
            (kept / "scratch").touch()
    with open_worker(tmp_path, category="restore", inputs=inputs(kept)) as worker:
        assert worker.refusal.missing == "restore"
        assert str(kept / "scratch") in worker.refusal.message
