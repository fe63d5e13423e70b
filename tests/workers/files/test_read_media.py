"""Images and documents that read_file finds: handed on whole, told by their content."""

from pathlib import Path
from typing import Any

import pytest

from tests.media_files import HOSTILE, animation, pdf, photo, picture
from tests.raw_worker import open_worker
from workers.wire import messages

FILES = {
    "image/png": picture(),
    "image/jpeg": photo(),
    "image/gif": animation(2),
    "image/webp": picture("WEBP"),
    "application/pdf": pdf("x"),
}


def read(root: Path, **arguments: Any) -> messages.Done | messages.Failed:
    with open_worker(root) as worker:
        return worker.call("read_file", arguments)


@pytest.mark.parametrize("media_type", FILES)
@pytest.mark.parametrize("name", ["file", "file.txt", "file.png"])
def test_content_says_what_a_file_is_and_its_name_does_not(media_type: str, name: str, root: Path) -> None:
    (root / name).write_bytes(FILES[media_type])
    answer = read(root, path=name)
    assert isinstance(answer, messages.Done)
    assert (answer.content, answer.data) == (media_type, FILES[media_type])


@pytest.mark.parametrize("name", ["a.png", "a.JPG", "a.webp", "a.pdf"])
def test_text_with_the_name_of_an_image_is_no_image_and_can_be_read_by_its_lines(name: str, root: Path) -> None:
    (root / name).write_text("<html>\n")
    answer = read(root, path=name)
    assert isinstance(answer, messages.Failed)
    assert answer.kind == "not_text"
    assert "offset=1" in answer.message
    lines = read(root, path=name, offset=1)
    assert isinstance(lines, messages.Done)
    assert (lines.content, lines.data) == ("<html>\n", b"")


def test_bytes_of_another_kind_are_not_text_as_ever(root: Path) -> None:
    (root / "a.bmp").write_bytes(b"BM\0\0")
    answer = read(root, path="a.bmp")
    assert isinstance(answer, messages.Failed)
    assert answer.kind == "not_text"


@pytest.mark.parametrize("size", [7 * 2**20, 15 * 2**19 + 1])
def test_as_much_is_handed_on_as_can_be_looked_at(size: int, root: Path) -> None:
    (root / "a.png").write_bytes(picture().ljust(size, b"x"))
    answer = read(root, path="a.png")
    if size > 15 * 2**19:
        assert isinstance(answer, messages.Failed)
        assert (answer.kind, answer.details["size"]) == ("too_large", size)
    else:
        assert isinstance(answer, messages.Done)
        assert len(answer.data) == size


@pytest.mark.parametrize("name", ["a PNG of the largest size", "a GIF of comments without end"])
def test_nothing_is_decoded_here(name: str, root: Path) -> None:
    media_type, made = HOSTILE[name]
    (root / "a").write_bytes(made())
    answer = read(root, path="a")
    assert isinstance(answer, messages.Done)
    assert answer.content == media_type
