"""Files that somebody else may have put there: nobody is waited for."""

import os
from pathlib import Path

import pytest

from supervisor.system import plain_file


def test_what_is_in_a_file_is_read_through_links(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x\0y")
    (tmp_path / "link").symlink_to("file")
    assert plain_file.content(tmp_path / "link") == b"x\0y"
    assert plain_file.content(tmp_path / "link", 3) == b"x\0y"


def test_one_byte_more_than_may_be_is_too_much(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"xyz")
    with pytest.raises(OSError, match="it has more than 2 bytes"):
        plain_file.content(tmp_path / "file", 2)


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="it is not a regular file"):
        plain_file.content(tmp_path / "fifo")


def test_a_device_or_a_directory_is_no_file(tmp_path: Path) -> None:
    for path in (Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match="it is not a regular file"):
            plain_file.content(path)


def test_nothing_stays_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    before = os.listdir("/proc/self/fd")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(OSError, match="regular"):
            plain_file.content(path)
    assert os.listdir("/proc/self/fd") == before
