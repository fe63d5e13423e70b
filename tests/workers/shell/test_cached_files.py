"""What is kept of what commands have left in caches of package managers: nothing that could be another's, or is run."""

import io
import os
import zipfile
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.workers.shell.conftest import open_shell, shell
from workers.shell import cached_files
from workers.shell.cached_files import filled
from workers.shell.shell_inputs import RegistryHints


def wheel(*tags: str, directories: tuple[str, ...] = ("tiny-1.0.dist-info",)) -> bytes:
    with zipfile.ZipFile(made := io.BytesIO(), "w") as archive:
        for each in directories:
            archive.writestr(f"{each}/WHEEL", "".join(f"Tag: {tag}\n" for tag in tags))
    return made.getvalue()


def response(body: object) -> bytes:
    return b"cc=4," + msgspec.msgpack.encode({"response": {"body": body}})


FETCHED: Final = "http-v2/a/b.body"
TINY: Final = "links/tiny-1.0-py3-none-any.whl"
TOOK: Final[dict[str, tuple[str, str, bytes, str]]] = {
    "a content of npm": ("npm", "content-v2/sha512/ab", b"x", "content-v2/sha512/ab"),
    "a tool of npm": ("npm", "_npx/ab/tool.js", b"x", ""),
    "a crate": ("crates", "cache/index/a-1.crate", b"x", "cache/index/a-1.crate"),
    "a crate that is unpacked": ("crates", "src/index/a-1/build.rs", b"x", ""),
    "a module": ("go", "example.org/a/@v/v1.zip", b"x", "example.org/a/@v/v1.zip"),
    "sums of modules": ("go", "sumdb/sum.golang.org/a/@v/v1.info", b"x", ""),
    "another's": ("gems", "content-v2/a", b"x", ""),
    "a name with an escape": ("npm", "content-v2/a\x1bb", b"x", ""),
    "too large a file": ("npm", "content-v2/a", bytes(4097), ""),
    "the largest": ("npm", "content-v2/a", bytes(4096), "content-v2/a"),
    "a wheel": ("pypi", FETCHED, wheel("py3-none-any"), TINY),
    "a wheel in a response": ("pypi", FETCHED, response(wheel("py3-none-any")), TINY),
    "a wheel of several tags": (
        *("pypi", FETCHED, wheel("py2-none-any", "py3-none-any")),
        "links/tiny-1.0-py2.py3-none-any.whl",
    ),
    "a response that is none": ("pypi", FETCHED, response(["PK"]), ""),
    "a page": ("pypi", FETCHED, b"<html>", ""),
    "an archive that is no wheel": ("pypi", FETCHED, wheel(directories=()), ""),
    "two wheels in one": (
        *("pypi", FETCHED, wheel("py3-none-any", directories=("a-1.dist-info", "tiny-1.0.dist-info"))),
        "",
    ),
    "a wheel with a blank in its name": ("pypi", FETCHED, wheel("py3-none-any x"), ""),
    "a wheel with a directory in its name": ("pypi", FETCHED, wheel("py3-none-../../any"), ""),
}


@pytest.mark.parametrize("row", TOOK)
def test_what_is_kept_of_a_cache(row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_files, "_LARGEST", 4096)
    name, path, content, kept = TOOK[row]
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(content)
    assert [each for each, _content in found(name, tmp_path)] == [kept] * bool(kept)


def test_what_is_no_file_is_not_opened_and_no_more_names_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upper = tmp_path / "upper"
    (upper / "content-v2").mkdir(parents=True)
    (tmp_path / "secret").write_text("swordfish")
    (upper / "content-v2" / "link").symlink_to(tmp_path / "secret")
    (upper / "content-v2" / "directory").symlink_to(tmp_path)
    os.mkfifo(upper / "content-v2" / "pipe")
    assert found("npm", upper) == []
    for name in "abc":
        (upper / "content-v2" / name).write_text(name)
    monkeypatch.setattr(cached_files, "_NAMES", 2)
    assert len(found("npm", upper)) < 3


def test_a_command_sees_a_cache_read_only(tmp_path: Path) -> None:
    for name in ("root", "cache"):
        (tmp_path / name).mkdir()
    caches = RegistryHints(caches=(("npm", str(tmp_path / "cache")),))
    with open_shell(tmp_path / "root", registries=caches) as worker:
        mounted = shell(worker, "grep ' /.caches/npm ' /proc/self/mounts")["stdout"].split()
    assert {"ro", "nosuid", "nodev"} <= set(mounted[3].split(","))


def found(name: str, upper: Path) -> list[tuple[str, bytes]]:
    directory = os.open(upper, os.O_RDONLY)
    try:
        return list(filled(name, directory))
    finally:
        os.close(directory)
