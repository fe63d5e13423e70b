import errno
import os
import platform
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.each_row import each_row
from tests.tool_calls import refused
from workers import kernel
from workers.errors import ToolError
from workers.tree.root import PROBLEMS, Root, about, declined, open_beneath, parts_of, shown

PHRASES = ("Path escape", "Access denied: path outside sandbox directory")

ESCAPES = ["/", "/etc/passwd", "//x", "..", "../x", "a/../..", "a/../../x", "./../x", "/\0", "../\0", "../" * 3000]

ERRNOS = {
    "path_escape": "EXDEV ELOOP EAGAIN",
    "not_found": "ENOENT",
    "not_a_directory": "ENOTDIR",
    "not_a_file": "EISDIR ENXIO",
    "permission_denied": "EACCES EPERM EROFS",
    "invalid_arguments": "ENAMETOOLONG",
    "disk_full": "ENOSPC EDQUOT",
    "resource_limit": "EFBIG EMFILE",
    "internal": "EIO ENOSYS",
}


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "vault").mkdir()
    descriptor = os.open(tmp_path / "vault", os.O_PATH | os.O_DIRECTORY)
    yield Root(descriptor, 0o022)
    os.close(descriptor)


@each_row("path", ESCAPES, ids=lambda path: shown(path)[:20])
def test_a_path_that_leads_out_is_refused_by_its_text_with_the_fixed_phrases(path: str) -> None:
    with refused("path_escape", *PHRASES, shown(path), "relative to the root"):
        parts_of(path)


@each_row("path", ["", "a\0b", "a\ud800", "n" * 256, "é" * 128, "a/" * 2048 + "b"])
def test_a_path_that_can_name_nothing_is_an_invalid_argument(path: str) -> None:
    with refused("invalid_arguments"):
        parts_of(path)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (".", ()),
        ("a/..", ()),
        ("./a//b/", ("a", "b")),
        ("a/../b", ("b",)),
        ("..a", ("..a",)),
        ("...", ("...",)),
        ("~/x", ("~", "x")),
        ("a\\..\\b", ("a\\..\\b",)),
        ("n" * 255, ("n" * 255,)),
    ],
)
def test_an_ordinary_path_is_taken_apart(path: str, parts: tuple[str, ...]) -> None:
    assert parts_of(path) == parts


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in ERRNOS.items() for name in names.split()])
def test_an_errno_has_a_kind(kind: str, name: str) -> None:
    error = declined(OSError(getattr(errno, name), "text"), "a/b")
    assert error.kind == kind
    assert "a/b" in error.message


@pytest.mark.parametrize("code", [code for code, problem in PROBLEMS.items() if problem.kind == "path_escape"])
def test_every_escape_that_the_kernel_finds_has_the_fixed_phrases(code: int) -> None:
    message = declined(OSError(code, ""), "link/x").message
    assert all(phrase in message for phrase in PHRASES)
    assert "link/x" in message


def test_an_unknown_errno_is_named() -> None:
    assert "EIO" in declined(OSError(errno.EIO, ""), "x").message


def test_a_message_shows_no_control_character_and_no_more_than_a_line() -> None:
    text = shown("a\n\x1b[31m\u202e\ud800" + "x" * 500)
    assert text.isprintable()
    assert len(text) <= 123


def test_an_error_of_the_system_never_tells_where_the_root_is(root: Root, tmp_path: Path) -> None:
    (tmp_path / "vault" / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ToolError) as caught, root.open_file("out"):
        pass
    assert str(tmp_path) not in caught.value.message + str(caught.value.details)


def test_the_body_of_a_reading_has_its_errors_told_too(root: Root, tmp_path: Path) -> None:
    (tmp_path / "vault" / "a").write_text("x")
    with refused("internal"), root.open_file("a"):
        raise OSError(errno.EIO, "broken disk")


def test_no_descriptor_stays_open(root: Root, tmp_path: Path) -> None:
    (tmp_path / "vault" / "a").write_text("x")
    before = os.listdir("/proc/self/fd")
    for path in ("a", ".", "gone", "../x"):
        with pytest.raises(ToolError), root.open_file(path):
            raise OSError(errno.EIO, "after opening")
        with pytest.raises(ToolError), root.listing(path):
            raise OSError(errno.EIO, "after opening")
        root.mode_of(path)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_without_openat2_nothing_opens(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vault" / "a").write_text("x")
    monkeypatch.setattr(kernel, "OPENAT2", 9999)
    with refused("internal", "ENOSYS"), root.open_file("a"):
        pass


def test_a_race_with_a_rename_is_tried_again_but_not_for_ever(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def busy(*_arguments: object) -> int:
        tried.append(1)
        raise BlockingIOError(errno.EAGAIN, "a rename happened")

    monkeypatch.setattr(kernel, "syscall", busy)
    with refused("path_escape"), about("a/../b"):
        open_beneath(root.fd, "a/../b", os.O_RDONLY, links=True)
    assert 10 < len(tried) < 1000


def test_a_signal_does_not_end_an_open(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def interrupted(*_arguments: object) -> int:
        tried.append(1)
        if len(tried) == 1:
            raise InterruptedError(errno.EINTR, "a signal")
        return 77

    monkeypatch.setattr(kernel, "syscall", interrupted)
    assert open_beneath(root.fd, "a", os.O_RDONLY, links=True) == 77


@pytest.mark.parametrize(("links", "resolve"), [(True, 0x08 | 0x02), (False, 0x08 | 0x02 | 0x04)])
def test_every_way_out_is_forbidden_by_name_also_where_another_word_implies_it(
    links: bool, resolve: int, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RESOLVE_BENEATH may not imply RESOLVE_NO_MAGICLINKS for ever, says openat2(2)."""
    asked: list[int] = []

    def syscall(_name: str, _number: int, _directory: int, _path: bytes, how: bytes, _size: int) -> int:
        asked.append(struct.unpack("=QQQ", how)[2])
        return -1

    monkeypatch.setattr(kernel, "syscall", syscall)
    open_beneath(root.fd, "a", os.O_RDONLY, links=links)
    assert asked == [resolve]


def test_this_machine_is_one_that_the_call_numbers_are_for() -> None:
    assert platform.machine() in {"x86_64", "aarch64"}
