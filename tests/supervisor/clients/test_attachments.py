"""Images and documents that a line names, or an item of a batch."""

import base64
import os
from pathlib import Path

import pytest

from supervisor.clients.connection.attachments import blocks_of, named_in, type_at
from supervisor.errors import ConfigError
from tests.media_files import pdf, picture


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.png").write_bytes(picture())
    (tmp_path / "two words.pdf").write_bytes(pdf("x"))
    (tmp_path / "notes.md").write_text("no image")
    (tmp_path / "lies.png").write_text("no image either")
    os.mkfifo(tmp_path / "fifo.png")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("What is in @a.png?", ["a.png"]),
        ("(as in @a.png).", ["a.png"]),
        ("@a.png", ["a.png"]),
        ('@"two words.pdf" and @a.png and @a.png', ["two words.pdf", "a.png"]),
        ("mail me@a.png", []),
        ("@notes.md @lies.png @none.png @fifo.png @. @", []),
        ("@~/a.png", ["~/a.png"]),
        ("@\0", []),
    ],
)
def test_a_line_names_images_and_documents_and_nothing_else(line: str, paths: list[str], folder: Path) -> None:
    assert named_in(line) == [os.path.expanduser(path) for path in paths]


def test_an_image_and_a_document_become_blocks(folder: Path) -> None:
    image, document = blocks_of(["a.png", "two words.pdf"])
    assert base64.b64decode(image["data"]) == picture()
    assert (image["mimeType"], image["uri"]) == ("image/png", (folder / "a.png").as_uri())
    assert document["resource"]["mimeType"] == "application/pdf"
    assert base64.b64decode(document["resource"]["blob"]) == pdf("x")


@pytest.mark.parametrize(
    ("path", "why"),
    [("notes.md", "it is not PNG"), ("none.png", "No such file"), ("fifo.png", "it is not a regular file")],
)
def test_what_cannot_go_along_is_said(path: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"{path}' cannot be sent along: {why}"):
        blocks_of([path])


def test_no_more_goes_along_than_a_message_can_carry(folder: Path) -> None:
    (folder / "a.png").write_bytes(picture() + bytes(7 * 2**20))
    with pytest.raises(ConfigError, match="together they have more than"):
        blocks_of(["a.png", "a.png"])
    (folder / "a.png").write_bytes(picture() + bytes(8 * 2**20))
    with pytest.raises(ConfigError, match="more than 7864320 bytes"):
        blocks_of(["a.png"])


def test_nobody_waits_for_a_pipe(folder: Path) -> None:
    assert type_at("fifo.png") == ""
