"""Files that somebody else may have put there: nobody is waited for."""

import os
from pathlib import Path

import pytest

from supervisor.system.safe_files import read_bytes


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
