"""Files that a person names, over a real socket: found by a few letters, and read for a prompt."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon_process import DaemonProcess, Lines
from tests.media_files import picture

CONFIG = """
[profiles.project]
tools = ["list_files"]
"""


@pytest.fixture
def client(home: Path, root: Path) -> Iterator[Lines]:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG)
    with DaemonProcess(home, root.parent) as daemon, daemon.client() as lines:
        yield lines


def found(client: Lines, session: str, typed: str) -> Any:
    return client.request("_strongroom/find", {"sessionId": session, "typed": typed})["paths"]


def attached(client: Lines, session: str, *paths: str) -> dict[str, Any]:
    answer = client.request("_strongroom/attach", {"sessionId": session, "paths": list(paths)})
    return {each.pop("path"): each for each in answer["files"]}


def test_files_are_found_and_read_as_the_profile_may(client: Lines, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("no")
    (root / "photo.png").write_bytes(picture())
    (root / "Über uns.md").write_text("Grüße\n")
    (root / "large.txt").write_text("x" * (2**18 + 1))
    (root / "larger.txt").write_text("x" * (2**21 + 1))
    (root / "data.bin").write_bytes(b"\0")
    (root / "ignored.log").write_text("log")
    (root / ".gitignore").write_text("*.log")
    (root / "shut.txt").touch(mode=0o000)
    session = client.new_session(root, profile="vault")
    assert found(client, session, "über") == ["Über uns.md"]
    assert found(client, session, "log") == []
    names = ["a.txt", "Über uns.md", "photo.png", "large.txt", "larger.txt", "data.bin", "ignored.log", "shut.txt"]
    files = attached(client, session, *names, "nothing", "../secret", ".", str(tmp_path / "secret"), "", "a\0b")
    assert files["a.txt"] == {"uri": (root / "a.txt").as_uri(), "size": 6, "text": "hello\n"}
    assert files["Über uns.md"]["text"] == "Grüße\n"
    assert files["photo.png"]["mediaType"] == "image/png"
    assert files["large.txt"]["problem"] == "it has 262,145 bytes; at most 262,144 go along"
    assert "larger than" in files["larger.txt"]["problem"]
    assert files["data.bin"]["problem"] == "it is not text"
    assert files["ignored.log"]["text"] == "log"
    assert files["shut.txt"]["problem"] == "the system denies access"
    assert list(files) == names

    for number in range(5):
        (root / f"{number}.txt").write_text("\x01" * 250_000)
    files = attached(client, session, *(f"{number}.txt" for number in (*range(5), 0)))
    assert [each.get("problem", "") for each in files.values()] == [
        *[""] * 4,
        "with the others it is more than 1,048,576 bytes",
    ]

    session = client.new_session(root, profile="project")
    assert "searches no files" in client.refused("_strongroom/find", {"sessionId": session, "typed": "a"})["message"]
    assert attached(client, session, "a.txt") == {}
