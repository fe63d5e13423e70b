"""Files that somebody else may have put there: nobody is waited for."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor.system import safe_files
from supervisor.system.safe_files import read_bytes, replace_file, write_new


def test_a_file_is_read_through_links_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x\0y")
    (tmp_path / "link").symlink_to("file")
    assert read_bytes(tmp_path / "link") == read_bytes(tmp_path / "link", 3) == b"x\0y"
    with pytest.raises(OSError, match="it has more than 2 bytes"):
        read_bytes(tmp_path / "file", 2)


def test_a_fifo_a_device_and_a_directory_are_no_files_and_stay_not_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    before = os.listdir("/proc/self/fd")
    for path in (tmp_path / "fifo", Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match="it is not a regular file"):
            read_bytes(path)
    assert os.listdir("/proc/self/fd") == before


def test_a_file_of_our_own_is_no_link_and_nobody_else_may_write_it(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    file.chmod(0o644)
    (tmp_path / "link").symlink_to("file")
    assert read_bytes(file, own=True) == b"x"
    with pytest.raises(OSError, match="symbolic links"):
        read_bytes(tmp_path / "link", own=True)
    for mode in (0o664, 0o646):
        file.chmod(mode)
        with pytest.raises(PermissionError, match="that this user alone can write"):
            read_bytes(file, own=True)


def test_nothing_of_a_draft_that_was_left_is_in_the_file(tmp_path: Path) -> None:
    draft = tmp_path / "file.new"
    draft.write_bytes(b"of a program that was killed")
    draft.chmod(0o666)
    replace_file(tmp_path / "file.txt", b"new", durable=False)
    assert [each.name for each in tmp_path.iterdir()] == ["file.txt"]
    assert (tmp_path / "file.txt").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == 0o600


def test_what_another_program_has_just_written_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had the draft locked when this one opened it, and renames it before this one has its lock."""
    file, draft, lock = tmp_path / "file.txt", tmp_path / "file.new", safe_files.set_lock

    def renamed_before(descriptor: int, kind: int, start: int, length: int) -> None:
        draft.write_bytes(b"the other's")
        draft.rename(file)
        lock(descriptor, kind, start, length)

    monkeypatch.setattr(safe_files, "set_lock", renamed_before)
    with pytest.raises(FileNotFoundError):
        replace_file(file, b"ours", durable=False)
    assert file.read_bytes() == b"the other's"


def test_a_new_file_has_its_name_once_it_is_whole_and_takes_no_other_s(tmp_path: Path) -> None:
    file = tmp_path / "new"

    def parts() -> Iterator[bytes]:
        yield b"one, "
        assert list(tmp_path.iterdir()) == []
        yield b"two"

    write_new(file, parts(), 0o600)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"one, two", 0o600)
    with pytest.raises(FileExistsError):
        write_new(file, [b"three"], 0o600)
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (b"one, two", [file])


def test_where_no_file_is_without_a_name_nothing_is_left_of_one_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plainly = os.open

    def opened(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "")
        return plainly(path, flags, *more, **named)

    def parts() -> Iterator[bytes]:
        yield b"one"
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(OSError, match="28"):
        write_new(tmp_path / "new", parts(), 0o600)
    assert list(tmp_path.iterdir()) == []
    write_new(tmp_path / "new", [b"one"], 0o600)
    assert (tmp_path / "new").read_bytes() == b"one"
