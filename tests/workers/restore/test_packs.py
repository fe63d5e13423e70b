"""A pack that is not whole is refused as a whole, and no name of one leads out of the root."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.direct import open_worker, receive, send
from tests.workers.restore.conftest import House, equipment, failed
from workers import wire
from workers.effects import State

Part = wire.Original | wire.Piece

FILE = State("file", 0o644, 3, 10**18, hashlib.sha256(b"old").digest())
FOLDER = State("dir", 0o755)
LINK = State("link", 0o777, mtime_ns=10**18, target="/etc")


def deleted(path: str, before: State = FILE, content: bytes = b"old", **more: Any) -> tuple[Part, ...]:
    """Return the parts of a name that a call has removed."""
    kept = before.kind == "file"
    pieces = (wire.Piece(1, content),) if kept and content else ()
    return wire.Original(1, path, before, None, kept=kept, **more), *pieces


def test_a_forged_pack_that_fits_together_is_as_good_as_one_that_was_kept(house: House) -> None:
    """So that what the rows below are refused for is what they say."""
    pack = house.put(*deleted("n", FOLDER), *deleted("n/x", attributes={"user.x": b"1"}), *deleted("n/l", LINK))
    assert isinstance(house.undo(pack), wire.Done)
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
    Forged("nothing at all", (wire.Original(1, "x"),), "neither before nor after"),
    Forged("a content of a directory", (wire.Original(1, "x", FOLDER, None, kept=True),), "only files have a content"),
    Forged("an attribute of the system", deleted("x", attributes={"security.capability": b"1"}), "an attribute"),
    Forged("a mark of an overlay", deleted("x", attributes={"user.overlay.opaque": b"y"}), "an attribute"),
    Forged("too little content", deleted("x", content=b"ol"), "in the middle of a content"),
    Forged("too much content", deleted("x", content=b"older"), "Piece out of turn"),
    Forged("more content", (*deleted("x"), wire.Piece(1, b"x")), "Piece out of turn"),
    Forged("another content", deleted("x", content=b"new"), "its content is another one"),
    Forged("no content", (*deleted("x", content=b""), *deleted("y")), "Original out of turn"),
    Forged("an empty piece", (*deleted("x", content=b""), wire.Piece(1, b""), wire.Piece(1, b"old")), "out of turn"),
)


@pytest.mark.parametrize("row", FORGED, ids=[row.name for row in FORGED])
def test_what_does_not_fit_together_is_damaged(row: Forged, shared: House) -> None:
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
    into = house.put(*deleted("hole/y"), wire.Original(1, "hole/x", None, FILE))
    assert '"hole" is a link now' in failed(house.undo(into, force=True), "conflict")
    assert isinstance(house.undo(house.put(*deleted("hole-too")), force=True), wire.Done)
    assert stat.S_ISREG(os.lstat(house.tree / "hole-too").st_mode)
    assert {each.name: each.read_text() for each in outside.iterdir()} == {"x": "mine"}


Damage = Callable[[bytes], bytes]
DAMAGES: tuple[tuple[str, Damage], ...] = (
    ("cut in a length", lambda data: data + b"\0\0"),
    ("cut in a frame", lambda data: data[:-1]),
    ("a length of nothing", lambda data: data + bytes(4)),
    ("a length above all limits", lambda data: data + b"\xff" * 8),
    ("no message", lambda data: data + wire.LENGTH.pack(3) + b"abc"),
    ("another message", lambda data: data + wire.frame(wire.Done(1, ""))),
    ("text", lambda _data: b"once upon a time"),
)


@pytest.mark.parametrize(("name", "damage"), DAMAGES, ids=[name for name, _ in DAMAGES])
def test_a_file_that_is_no_whole_pack_is_damaged(name: str, damage: Damage, shared: House) -> None:
    pack = shared.put(*deleted("x"))
    path = shared.kept / pack
    path.write_bytes(damage(path.read_bytes()))
    assert "is damaged" in failed(shared.undo(pack), "internal")
    assert not (shared.tree / "x").exists()


HOSTILE_NAMES = (
    "../root/text",
    "..",
    ".",
    "",
    "/etc/passwd",
    "scratch/../pack",
    ".hidden",
    "a b",
    "ü",
    "a\n",
    "a\0",
    "a/b",
)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
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
def test_what_is_no_pack_is_not_found(name: str, shared: House, beside: Path) -> None:
    failed(shared.undo(name), "not_found")


def test_what_a_killed_worker_left_goes_with_the_next_undo(house: House) -> None:
    pack = house.do("rm -rf d; chmod 000 e")
    with open_worker(house.tree, category="restore", equipment=equipment(house.kept)) as other:
        send(other.process, wire.Call(1, "undo", b'{"pack": "%s"}' % pack.encode()))
        assert isinstance(receive(other.process), wire.Proposed)
    assert len(os.listdir(house.kept / "scratch")) == 1
    failed(house.undo("gone"), "not_found")
    assert os.listdir(house.kept / "scratch") == []


def test_two_undos_at_once_do_not_disturb_each_other(house: House) -> None:
    before = house.look()
    first, second = house.do("rm a"), house.do("echo new > text")
    with open_worker(house.tree, category="restore", equipment=equipment(house.kept)) as other:
        proposed = house.propose(first)
        assert isinstance(proposed, wire.Proposed)
        assert isinstance(other.call("undo", {"pack": second}), wire.Done)
        assert isinstance(house.decide(proposed, commit=True), wire.Done)
    assert house.look() == before


def test_a_root_that_is_only_read_is_not_restored(house: House) -> None:
    pack = house.do("echo new > text")
    now = house.look()
    with open_worker(house.tree, category="restore", equipment=equipment(house.kept), writable=False) as worker:
        failed(worker.call("undo", {"pack": pack}), "permission_denied")
    assert house.look() == now


def test_its_directories_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    kept = tmp_path / "home/kept"
    with open_worker(tmp_path / "root", category="restore", equipment=equipment(kept)) as worker:
        assert isinstance(worker.ready, wire.Ready)
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
    with open_worker(tmp_path, category="restore", equipment=equipment(kept)) as worker:
        assert isinstance(worker.ready, wire.Refused)
        assert worker.ready.missing == "restore"
        assert str(kept / "scratch") in worker.ready.message
