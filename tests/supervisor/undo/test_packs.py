"""Packs for undo: whole or not at all, within its limits, and for its owner alone."""

import errno
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from supervisor.categories.restore import UndoConfig
from supervisor.errors import KeptError
from supervisor.undo.pack_name import is_pack
from supervisor.undo.packs import PackStore
from workers.changes.effects import NodeState
from workers.wire import messages
from workers.wire.pack_format import HEADER, PackedContent, PackedName, PackEnd, PackReader, encoded

PARTS: Final = (
    messages.Original(1, "d", NodeState("dir", 0o755)),
    messages.Original(1, "d/a", NodeState("file", 0o644, 3), kept=True),
    messages.Piece(1, b"old"),
)

KILLED: Final = """
import os, sys
from pathlib import Path
from supervisor.categories.restore import UndoConfig
from supervisor.undo.packs import PackStore
pack = PackStore(Path(sys.argv[1]), UndoConfig()).begin("s", "c")
print("begun", flush=True)
sys.stdin.read()
"""


def store(folder: Path, **limits: int) -> PackStore:
    return PackStore(folder / "kept", UndoConfig(**limits))


def kept(here: PackStore, call: str = "call_1", size: int = 0) -> str:
    with here.begin("20260101-000000-abc", call) as pack:
        for part in PARTS:
            pack.add(part)
        for _ in range(size):
            pack.add(messages.Piece(1, os.urandom(messages.PIECE)))
        return pack.finish()


def names(here: PackStore) -> list[str]:
    return sorted(os.listdir(here.directory))


def aged(here: PackStore, pack: str, seconds: float) -> None:
    at = here.path(pack).stat().st_mtime - seconds
    os.utime(here.path(pack), (at, at))


def test_a_pack_reads_back_as_what_was_added_and_ends_with_its_digest(tmp_path: Path) -> None:
    here = store(tmp_path)
    data = here.path(kept(here)).read_bytes()
    with here.path(kept(here)).open("rb") as file:
        parts = list(PackReader(file.fileno()).parts())
    assert parts == [
        PackedName("d", NodeState("dir", 0o755)),
        PackedName("d/a", NodeState("file", 0o644, 3), kept=True),
        PackedContent(b"old"),
    ]
    before = HEADER + b"".join(map(encoded, parts))
    assert data == before + encoded(PackEnd(hashlib.sha256(before).digest()))


def test_a_pack_is_its_owners_alone_and_has_a_plain_name(tmp_path: Path) -> None:
    here = store(tmp_path)
    (tmp_path / "kept").mkdir(mode=0o755)
    pack = kept(here, "../x y\n" + "z" * 500)
    assert is_pack(pack)
    assert names(here) == [pack]
    assert stat.S_IMODE(here.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(here.path(pack).stat().st_mode) == 0o600


def test_a_pack_that_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    here = store(tmp_path)
    with here.begin("s", "c") as pack:
        pack.add(PARTS[0])
        assert len(names(here)) == 1
    assert names(here) == []


FULL: Final = ((2**19, 1), (150, 0))
"""Bytes that there is room for, and the MiB that a pack is to have: the disk is full at a part, or only at its end."""


@pytest.mark.parametrize(("room", "size"), FULL, ids=["a part", "its end"])
def test_a_full_disk_is_an_error_with_a_kind_and_leaves_nothing(room: int, size: int, tmp_path: Path) -> None:
    code = f"""
import resource, signal
from pathlib import Path
from tests.supervisor.undo.test_packs import kept, names, store
from supervisor.errors import KeptError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))
here = store(Path({str(tmp_path)!r}))
try:
    kept(here, size={size})
except KeptError as error:
    print(error.kind, names(here), error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"disk_full [] What would be replaced cannot be kept for undo in {tmp_path}/kept: ")


def test_a_worker_cannot_fill_the_disk(tmp_path: Path) -> None:
    here = store(tmp_path, call_mb=0)
    assert here.budget == (0, 0)
    with here.begin("s", "c") as pack:
        pack._room = 100  # instead of writing 256 MiB of names
        pack.add(PARTS[0])
        with pytest.raises(KeptError) as caught:
            pack.add(messages.Piece(1, bytes(100)))
    assert caught.value.kind == "too_large"


def test_a_directory_that_cannot_be_had_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("")
    with pytest.raises(KeptError, match="kept cannot be used: Not a directory"):
        store(tmp_path).begin("s", "c")


def test_unfinished_packs_of_a_killed_process_are_removed_and_those_of_a_living_one_stay(tmp_path: Path) -> None:
    here = store(tmp_path)
    command = [sys.executable, "-c", KILLED, str(here.directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        here.tidy()
        assert len(names(here)) == 1
        process.kill()
        process.wait()
    here.tidy()
    assert names(here) == []


def test_the_oldest_goes_when_there_is_too_much_but_never_the_newest(tmp_path: Path) -> None:
    here = store(tmp_path, total_mb=3, small_percent=0)
    first = kept(here, size=1)
    aged(here, first, 20)
    second = kept(here, size=1)
    aged(here, second, 10)
    third = kept(here, size=1)
    assert not here.holds(first)
    assert sorted([second, third]) == names(here)
    last = kept(here, size=3)
    assert names(here) == [last]


def test_packs_of_edits_and_of_builds_take_no_room_from_each_other(tmp_path: Path) -> None:
    here = store(tmp_path, total_mb=4)  # 3 for large ones
    edits = [kept(here, f"edit_{number}") for number in range(5)]
    for each in edits:
        aged(here, each, 100)
    build = kept(here, "build", size=2)
    assert set(edits) < set(names(here))
    aged(here, build, 50)
    another = kept(here, "build_2", size=2)
    assert names(here) == sorted([*edits, another])
    here._limits = here._limits[0], 3 * 4096
    last = kept(here, "edit_5")
    assert names(here) == sorted([*edits[3:], another, last])


def test_a_call_keeps_no_more_than_builds_have(tmp_path: Path) -> None:
    assert store(tmp_path, total_mb=4).budget == (3 * 2**20, 3 * 2**20)
    assert store(tmp_path).budget == (64 * 2**20, 512 * 2**20)


def test_a_pack_of_a_call_that_is_begun_anew_is_forgotten(tmp_path: Path) -> None:
    here = store(tmp_path)
    kept(here)
    other = kept(here, "call_11")
    here.forget("20260101-000000-abc", "call_1")
    assert names(here) == [other]


def test_a_pack_that_nobody_decided_about_is_forgotten_once_nobody_can_any_more(tmp_path: Path) -> None:
    here = store(tmp_path)
    decided, named, nameless, new = (kept(here, f"call_{number}") for number in range(4))
    here.decided(decided)
    for pack in (decided, named, nameless):
        aged(here, pack, 3600)
    looked: list[tuple[str, str]] = []

    def is_named(session: str, pack: str) -> bool:
        looked.append((session, pack))
        return pack == named

    assert here.forget_undecided(is_named) == 1
    assert names(here) == sorted((decided, named, new))
    assert sorted(looked) == [("20260101-000000-abc", named), ("20260101-000000-abc", nameless)]
    assert here.forget_undecided(is_named) == 0
    assert len(looked) == 2


def test_packs_that_are_too_old_go(tmp_path: Path) -> None:
    here = store(tmp_path, days=2)
    old, new = kept(here), kept(here)
    aged(here, old, 3 * 86400)
    aged(here, new, 86400)
    here.tidy()
    assert names(here) == [new]


def test_nothing_is_kept_with_a_total_of_0(tmp_path: Path) -> None:
    kept(store(tmp_path))
    off = store(tmp_path, total_mb=0)
    assert not off.keeps
    off.tidy()
    assert names(off) == []


@pytest.mark.parametrize("name", ["", ".draft", "..", "a/b", "../a", "a b", "x" * 256])
def test_a_name_that_is_no_pack_is_held_by_nobody(tmp_path: Path, name: str) -> None:
    assert not store(tmp_path).holds(name)


LOST: Final = (
    ("rmdir kept", "is not there"),
    ("rmdir kept; mkfifo kept", "is no directory of ours"),
    ("rmdir kept; ln -s / kept", "is no directory of ours"),
    ("rmdir kept; cd ..; rmdir home; touch home", "cannot be looked into: Not a directory"),
)


@pytest.mark.parametrize(("done", "told"), LOST)
def test_no_pack_is_said_to_be_let_go_if_the_directory_itself_is_lost(done: str, told: str, tmp_path: Path) -> None:
    here = store(tmp_path / "home")
    here.directory.mkdir(parents=True)
    assert not here.holds("pack")
    subprocess.run(["/bin/sh", "-ec", done], cwd=tmp_path / "home", check=True)
    with pytest.raises(KeptError) as caught:
        here.holds("pack")
    assert str(caught.value) == f"{here.directory} {told}. Put back the directory that was there."


def test_to_make_room_is_the_advice_for_a_full_disk_alone(tmp_path: Path) -> None:
    full, short = (str(store(tmp_path).problem(OSError(each, "no"))) for each in (errno.ENOSPC, errno.EMFILE))
    assert "Make room there" in full
    assert short.endswith("kept: no. `strongroom doctor` looks at that directory.")


def test_tidying_where_nothing_was_ever_kept_makes_nothing(tmp_path: Path) -> None:
    store(tmp_path).tidy()
    assert not (tmp_path / "kept").exists()


def test_small_parts_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    system_write = os.write

    def write(file: int, data: memoryview) -> int:
        sizes.append(len(data))
        return system_write(file, data)

    monkeypatch.setattr(os, "write", write)
    here = store(tmp_path)
    with here.begin("s", "c") as pack:
        for number in range(1000):
            pack.add(messages.Original(1, f"f{number:06}", NodeState("file", 0o644, 3), kept=True))
            pack.add(messages.Piece(1, b"old"))
        name = pack.finish()
    assert sum(sizes) == here.path(name).stat().st_size
    assert len(sizes) < 2 + sum(sizes) / 2**16
