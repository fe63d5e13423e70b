"""What is kept of what commands have left in caches of package managers: nothing that could be another's, or is run."""

import hashlib
import io
import os
import zipfile
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.workers.shell.conftest import open_shell, shell
from workers.shell import cached_files
from workers.shell.cache_table import is_kept, whole
from workers.shell.cached_files import filled
from workers.shell.shell_inputs import RegistryHints


def wheel(*tags: str, directories: tuple[str, ...] = ("tiny-1.0.dist-info",)) -> bytes:
    with zipfile.ZipFile(made := io.BytesIO(), "w") as archive:
        for each in directories:
            archive.writestr(f"{each}/WHEEL", "".join(f"Tag: {tag}\n" for tag in tags))
    return made.getvalue()


def response(body: object) -> bytes:
    return b"cc=4," + msgspec.msgpack.encode({"response": {"body": body}})


SHA: Final = hashlib.sha512(b"x").hexdigest()
OF_X: Final = f"content-v2/sha512/{SHA[:2]}/{SHA[2:4]}/{SHA[4:]}"
INDEX: Final = "index-v5/ab/cd"
STORE: Final = "store/v11/files"
FETCHED: Final = "http-v2/a/b.body"
TINY: Final = "links/tiny-1.0-py3-none-any.whl"
TOOK: Final[dict[str, tuple[str, str, bytes, str]]] = {
    "a content of npm": ("npm", OF_X, b"x", OF_X),
    "a content of npm that is another": ("npm", OF_X, b"y", ""),
    "a content of npm without a digest": ("npm", "content-v2/sha512/ab", b"x", ""),
    "an index of npm": ("npm-index", "index-v5/ab/cd/ef", b"x", "index-v5/ab/cd/ef"),
    "a tarball of yarn": ("yarn", "@a-b-1.0.0.tgz", b"x", "@a-b-1.0.0.tgz"),
    "a package of yarn, unpacked": ("yarn", "v6/npm-a-1/node_modules/a/index.js", b"x", ""),
    "an archive of berry": ("berry", "cache/a-npm-1-ab-10c0.zip", b"x", "cache/a-npm-1-ab-10c0.zip"),
    "a file of pnpm": ("pnpm", f"{STORE}/{SHA[:2]}/{SHA[2:]}-exec", b"x", f"{STORE}/{SHA[:2]}/{SHA[2:]}-exec"),
    "a file of pnpm that is another": ("pnpm", f"{STORE}/{SHA[:2]}/{SHA[2:]}", b"y", ""),
    "an index of pnpm that is none": ("pnpm", "store/v11/index.db", b"x", ""),
    "a tool of pnpm": ("pnpm", "store/v11/links/a/1/b/node_modules/a/x.js", b"x", ""),
    "a package of bun": ("bun", "@a/b@1.0.0@@@1/index.js", b"x", "@a/b@1.0.0@@@1/index.js"),
    "a package of bun that is empty": ("bun", "b@1.0.0@@@1/index.js", b"", "b@1.0.0@@@1/index.js"),
    "a tool of bun": ("bun", "bunx-0-a/index.js", b"x", ""),
    "a wheel of uv": ("uv", "archive-v0/ab/tiny.py", b"x", "archive-v0/ab/tiny.py"),
    "what a package has built": ("uv", "sdists-v11/pypi/a/1/wheel", b"x", ""),
    "a hash of a module": ("go", "example.org/a/@v/v1.ziphash", b"x", ""),
    "a tool of npm": ("npm", "_npx/ab/tool.js", b"x", ""),
    "a crate": ("crates", "cache/index/a-1.crate", b"x", "cache/index/a-1.crate"),
    "a crate that is unpacked": ("crates", "src/index/a-1/build.rs", b"x", ""),
    "a module": ("go", "example.org/a/@v/v1.zip", b"x", "example.org/a/@v/v1.zip"),
    "sums of modules": ("go", "sumdb/sum.golang.org/a/@v/v1.info", b"x", ""),
    "an archive of composer": ("packagist", f"files/a/b/{'0' * 40}.zip", b"x", f"files/a/b/{'0' * 40}.zip"),
    "what composer was told": (
        "packagist",
        "repo/https---h/provider-a~b.json",
        b"x",
        "repo/https---h/provider-a~b.json",
    ),
    "a repository of composer": ("packagist", "vcs/a/HEAD", b"x", ""),
    "another's": ("gems", "content-v2/a", b"x", ""),
    "a name with an escape": ("yarn", "a\x1bb.tgz", b"x", ""),
    "too large a file": ("npm-index", f"{INDEX}/e", bytes(4097), ""),
    "the largest": ("npm-index", f"{INDEX}/e", bytes(4096), f"{INDEX}/e"),
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
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(content)
    assert found(name, tmp_path) == [f"{name}/{kept}"] * bool(kept)


def test_nothing_that_is_kept_can_stand_in_the_way_of_another() -> None:
    """A file where a directory should be, or the other way round, would keep a cache from being filled for ever."""
    more = [("berry", "metadata/npm/a3/h.example/x.json"), ("berry", "metadata/npm/a3/h.example/@s/x.json")]
    more += [("pnpm", "cache/v12/metadata/h.example/@s/x.jsonl")]
    more += [
        ("uv", "simple-v28/pypi/a.rkyv"),
        ("uv", "wheels-v8/index/ab/a/1.http"),
        ("crates", "index/h/.cache/3/a/abc"),
    ]
    more += [("crates", "index/h/config.json"), ("go", "example.org/a/@v/list"), ("pypi", TINY), ("bun", "ab.npm")]
    paths = [*more, *((name, kept) for name, _path, _content, kept in TOOK.values() if kept)]
    assert all(is_kept(name, path) for name, path in paths)
    scoped = [(name, "/".join((*path.split("/")[:-1], f"@{path.split('/')[-1]}"))) for name, path in paths]
    for name, path in (*paths, *(each for each in scoped if is_kept(*each))):
        tails = [path, *path.split("/"), "x", "@v/list", "x.json", "x@1@@@1/x"]
        above = [tail for tail in tails if whole(name, path) == path and is_kept(name, f"{path}/{tail}")]
        assert not above, path


def test_what_is_no_file_is_not_opened_and_no_more_names_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upper = tmp_path / "upper"
    (upper / INDEX).mkdir(parents=True)
    (tmp_path / "secret").write_text("swordfish")
    (upper / INDEX / "ab").symlink_to(tmp_path / "secret")
    (upper / INDEX / "cd").symlink_to(tmp_path)
    os.mkfifo(upper / INDEX / "ef")
    assert found("npm-index", upper) == []
    for name in "abc":
        (upper / INDEX / name).write_text(name)
    with monkeypatch.context() as patched:
        patched.setattr(cached_files, "_TOGETHER", 2)
        assert len(found("npm-index", upper)) == 2
    monkeypatch.setattr(cached_files, "_NAMES", 2)
    assert len(found("npm-index", upper)) < 3


def test_a_command_sees_a_cache_read_only(tmp_path: Path) -> None:
    for name in ("root", "cache"):
        (tmp_path / name).mkdir()
    caches = RegistryHints(caches=(("npm", str(tmp_path / "cache")),))
    with open_shell(tmp_path / "root", registries=caches) as worker:
        mounted = shell(worker, "grep ' /.caches/npm ' /proc/self/mounts")["stdout"].split()
    assert {"ro", "nosuid", "nodev"} <= set(mounted[3].split(","))


def found(name: str, upper: Path) -> list[str]:
    directory = os.open(upper, os.O_RDONLY)
    try:
        return [each.path for each in filled((name,), directory)]
    finally:
        os.close(directory)
