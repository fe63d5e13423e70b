"""What of a lock file is not here, by what lies in the root and in caches; and what was no need the last time."""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from supervisor.system.lock_files import Locked
from supervisor.system.locked_packages import built, remember, unmet
from supervisor.system.package_look import look
from supervisor.system.project_files import LARGEST, ProjectFiles

CARGO: Final = """# made by cargo
version = 3

[[package]]
name = "app"
version = "0.1.0"
dependencies = [
 "serde",
]

[[package]]
name = "serde"
version = "1.0.1"
source = "registry+https://example.org/index"
checksum = "00"
dependencies = [
 "windows-sys 0.1.0",
]

[[package]]
name = "windows-sys"
version = "0.1.0"
source = "sparse+https://example.org/"

[[package]]
name = "mine"
version = "0.1.0"
source = "git+https://example.org/mine#00"
"""
MANIFEST: Final = '[package]\nname = "app"\nversion = "0.1.0"\n[dependencies]\n'
MODULE: Final = (
    "module example.org/app\n\ngo 1.19\n\nrequire (\n\texample.org/Tiny v1.0.0\n\texample.org/x v1.0.0 // indirect\n)\n"
)
SUMS: Final = (
    "example.org/Tiny v1.0.0 h1:aa=\nexample.org/Tiny v1.0.0/go.mod h1:aa=\nexample.org/x v1.0.0/go.mod h1:aa=\n"
)
DIGEST: Final = b"\x01\x23\x45\x67"
INTEGRITY: Final = f"sha512-{base64.b64encode(DIGEST).decode()}"
OF_TINY: Final = {"version": "1.0.0", "resolved": "https://example.org/tiny.tgz", "integrity": INTEGRITY}


def lock(dependencies: Mapping[str, str], **packages: Any) -> str:
    return json.dumps({"packages": {"": {"dependencies": dependencies}, **packages}})


def manifest(**dependencies: str) -> str:
    return json.dumps({"name": "app", "dependencies": dependencies})


TINY: Final = {
    "package.json": manifest(tiny="^1"),
    "package-lock.json": lock({"tiny": "^1"}, **{"node_modules/tiny": OF_TINY, "node_modules/here": {"link": True}}),
}
UV: Final = (
    '[[package]]\nname = "app"\nversion = "1"\nsource = { virtual = "." }\n\n'
    '[[package]]\nname = "my.tool"\nversion = "2.0"\nsource = { registry = "https://example.org" }\n'
)
HERE: Final = "example.org/!tiny/@v/v1.0.0.zip"
PROJECT: Final = '[project]\nname = "app"\ndependencies = ["tiny>=1", "small[x]"]\n'


class Row(NamedTuple):
    """A root, and what a command in it lacks."""

    locked: Locked
    files: Mapping[str, str]
    lacks: list[str]
    cached: tuple[str, ...] = ()


BUILD: Final = Locked("crates", "core/src", "cargo build")
GO: Final = Locked("go", "", "go build")
NPM: Final = Locked("npm", "web", "npm install")
CI: Final = Locked("npm", "", "npm ci", clean=True)
RUN: Final = Locked("pypi", "", "uv run")
NPX: Final = Locked("npx", "web", "npx", "tape")
BUNDLE: Final = Locked("rubygems", "", "bundle install")
GEMFILE: Final = "source 'https://rubygems.org'\ngem 'mygem', '~> 13'\n  gem(\"rack\")\n"
GEMS: Final = (
    "PATH\n  remote: .\n  specs:\n    mine (0.1)\n\nGEM\n  remote: https://rubygems.org/\n  specs:\n"
    "    mygem (13.0.6)\n    rack (3.0.0)\n      mygem (>= 1)\n\nPLATFORMS\n  ruby (1)\n"
)
PHP: Final = Locked("packagist", "", "composer install")
PACKAGES: Final = '{"packages": [{"name": "a/b", "version": "1.0", "dist": {"url": "u"}}]}'
CRATES: Final = ["serde@1.0.1", "windows-sys@0.1.0"]
MANY: Final = ", ".join(f'"x{at}*"' for at in range(16))
ROWS: Final = {
    "crates": Row(BUILD, {"Cargo.lock": CARGO}, CRATES),
    "crates above": Row(BUILD, {"core/Cargo.toml": MANIFEST, "Cargo.lock": CARGO}, CRATES),
    "crates, one of them cached": Row(BUILD, {"Cargo.lock": CARGO}, CRATES[1:], ("cache/i-1/serde-1.0.1.crate",)),
    "crates that are vendored": Row(
        BUILD, {"Cargo.lock": CARGO, ".cargo/config.toml": '[source.crates-io]\nreplace-with = "vendored"\n'}, []
    ),
    "a manifest alone": Row(BUILD, {"core/Cargo.toml": f'{MANIFEST}serde = "1"\nmine = {{ path = "x" }}'}, ["serde"]),
    "a manifest with a key of many parts": Row(
        BUILD, {"Cargo.toml": f'{MANIFEST}serde = "1"\n{"a." * 600}a = 1\n'}, []
    ),
    "a manifest of nothing": Row(BUILD, {"Cargo.toml": MANIFEST}, []),
    "a workspace": Row(
        BUILD,
        {"Cargo.toml": '[workspace]\nmembers = ["libs/*"]\n', "libs/a/Cargo.toml": f'{MANIFEST}rand = "1"\n'},
        ["rand"],
    ),
    "a workspace of very many patterns": Row(
        BUILD,
        {
            "Cargo.toml": f'[workspace]\nmembers = [{MANY}, "libs/*", "own"]\n',
            "libs/a/Cargo.toml": f'{MANIFEST}rand = "1"\n',
            "own/Cargo.toml": f'{MANIFEST}serde = "1"\n',
        },
        ["serde"],
    ),
    "no cargo at all": Row(BUILD, {}, []),
    "modules": Row(GO, {"go.mod": MODULE, "go.sum": SUMS}, ["example.org/Tiny@v1.0.0"]),
    "modules without sums": Row(GO, {"go.mod": MODULE}, ["example.org/Tiny@v1.0.0", "example.org/x@v1.0.0"]),
    "a module that is cached": Row(GO, {"go.mod": MODULE, "go.sum": SUMS}, [], (HERE,)),
    "modules that are vendored": Row(GO, {"go.mod": MODULE, "go.sum": SUMS, "vendor/modules.txt": ""}, []),
    "a module beside": Row(GO, {"go.mod": f"{MODULE}replace example.org/Tiny => ./tiny\n"}, ["example.org/x@v1.0.0"]),
    "no module at all": Row(GO, {"go.sum": SUMS}, []),
    "a package": Row(NPM, TINY, ["tiny@1.0.0"]),
    "a package that is there": Row(NPM, {**TINY, "node_modules/tiny/package.json": ""}, []),
    "a package that is cached": Row(NPM, TINY, [], ("content-v2/sha512/01/23/4567",)),
    "a package that is new": Row(NPM, {**TINY, "package.json": manifest(tiny="^1", new="^2")}, ["new", "tiny@1.0.0"]),
    "no lock file": Row(NPM, {"package.json": manifest(tiny="^1")}, ["tiny"]),
    "no lock file, and it is there": Row(NPM, {"package.json": manifest(a="1"), "node_modules/a/x": ""}, []),
    "a package of a workspace": Row(
        NPM,
        {"package.json": "{}", "package-lock.json": lock({}, core={}), "core/package.json": manifest(new="1")},
        ["new"],
    ),
    "a workspace of packages without a lock file": Row(
        NPM, {"package.json": '{"workspaces": ["libs/*"]}', "libs/core/package.json": manifest(new="1")}, ["new"]
    ),
    "a package of a workspace, from its own directory": Row(
        NPM,
        {"package.json": "{}", "package-lock.json": lock({}, web={}), "web/package.json": manifest(new="1")},
        ["new"],
    ),
    "what is there, from its own directory": Row(
        NPM,
        {
            "package.json": "{}",
            "package-lock.json": lock({}, web={"dependencies": {"tiny": "1"}}, **{"node_modules/tiny": OF_TINY}),
            "web/package.json": manifest(tiny="1"),
            "node_modules/tiny/package.json": "",
        },
        [],
    ),
    "a manifest beside another's lock file": Row(NPM, {**TINY, "web/package.json": manifest(new="1")}, ["new"]),
    "nothing wanted": Row(NPM, {"package.json": "{}"}, []),
    "made anew": Row(CI, {**TINY, "node_modules/tiny/package.json": ""}, ["tiny@1.0.0"]),
    "made anew from a cache": Row(CI, TINY, [], ("content-v2/sha512/01/23/4567",)),
    "a distribution": Row(RUN, {"pyproject.toml": "", "uv.lock": UV}, ["my.tool@2.0"]),
    "one that is there": Row(
        RUN,
        {"pyproject.toml": "", "uv.lock": UV, ".venv/lib/python3/site-packages/my_tool-2.0.dist-info/RECORD": ""},
        [],
    ),
    "what a project wants": Row(RUN, {"pyproject.toml": PROJECT}, ["tiny", "small"]),
    "gems": Row(BUNDLE, {"Gemfile": GEMFILE, "Gemfile.lock": GEMS}, ["mygem@13.0.6", "rack@3.0.0"]),
    "gems, one of them here": Row(
        BUNDLE,
        {"Gemfile": "", "Gemfile.lock": GEMS, "vendor/bundle/ruby/3/specifications/mygem-13.0.6.gemspec": ""},
        ["rack@3.0.0"],
    ),
    "gems that are elsewhere": Row(
        BUNDLE,
        {
            "Gemfile": GEMFILE,
            ".bundle/config": '---\nBUNDLE_PATH: "gems"\n',
            "gems/ruby/3/specifications/mygem-13.0.6.gemspec": "",
        },
        ["rack"],
    ),
    "gems of Ruby's own": Row(
        BUNDLE, {"Gemfile": GEMFILE, "vendor/bundle/ruby/3/specifications/default/mygem-13.gemspec": ""}, ["rack"]
    ),
    "gems deeper than any are": Row(
        BUNDLE, {"Gemfile": "gem 'mygem'", "vendor/bundle/ruby/3/specifications/a/b/mygem-13.gemspec": ""}, ["mygem"]
    ),
    "gems where a pattern leads": Row(
        BUNDLE,
        {
            "Gemfile": "gem 'mygem'",
            ".bundle/config": 'BUNDLE_PATH: "g*"\n',
            "gems/ruby/3/specifications/mygem-13.gemspec": "",
        },
        ["mygem"],
    ),
    "archives": Row(PHP, {"composer.json": "{}", "composer.lock": PACKAGES}, ["a/b@1.0"]),
    "archives that are there": Row(
        PHP, {"composer.json": "{}", "composer.lock": PACKAGES, "vendor/composer/installed.json": PACKAGES}, []
    ),
    "archives in the cache": Row(
        PHP,
        {"composer.json": "{}", "composer.lock": PACKAGES},
        [],
        (f"files/a/b/{hashlib.sha1(b'u').hexdigest()}.zip",),
    ),
    "archives without a lock file": Row(
        PHP, {"composer.json": '{"require": {"php": "8", "a/b": "1", "c/d": "1"}}'}, ["a/b", "c/d"]
    ),
    "no project": Row(RUN, {}, []),
    "a program": Row(NPX, {}, ["tape"]),
    "a program that is there": Row(NPX, {"node_modules/.bin/tape": ""}, []),
    "a lock file that is none": Row(NPM, {"package.json": "[[[", "package-lock.json": "{"}, []),
    "names that are none": Row(BUILD, {"Cargo.lock": CARGO.replace('"serde"', '"a b; do it\\u202e"')}, CRATES[1:]),
}


def lacking(locked: Locked, root: str, caches: Mapping[str, str]) -> list[str]:
    return unmet(locked, look([locked], root, caches, ()).found[0], caches)


def laid_out(tmp_path: Path, row: Row) -> tuple[str, dict[str, str]]:
    root, cache = tmp_path / "root", tmp_path / "cache"
    for place, text in {
        **{root / name: text for name, text in row.files.items()},
        **{cache / name: "" for name in row.cached},
    }.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return str(root), {row.locked.kind: str(cache)}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_is_not_here_is_known_from_the_lock_file(tmp_path: Path, row: Row) -> None:
    root, caches = laid_out(tmp_path, row)
    assert lacking(row.locked, root, caches) == row.lacks
    if row.cached:
        assert lacking(row.locked, root, {}) != row.lacks


def test_what_was_no_need_is_none_the_next_time_but_for_another_command_s_own(tmp_path: Path) -> None:
    root, caches = laid_out(tmp_path, ROWS["crates"])
    remember(BUILD, look([BUILD], root, caches, ()).found[0], caches)
    assert lacking(BUILD, root, caches) == []
    test = BUILD._replace(group="cargo test")
    assert lacking(test, root, caches) == ["serde@1.0.1"]
    assert lacking(test, root, {}) == CRATES
    remember(test, look([test], root, caches, ()).found[0], caches)
    remember(test, look([test], root, caches, ()).found[0], caches)
    assert lacking(test, root, caches) == []
    assert len((tmp_path / "cache.unneeded").read_text().splitlines()) == 4


def test_a_build_may_write_over_a_program_and_over_nothing_else(tmp_path: Path) -> None:
    for name, text in {"tool": b"\x7fELF\2", "script": b"#!/bin/sh\n", "sub/empty": b""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    names = ("tool", "script", "sub/empty", "sub", "pipe", "dangling", "new")
    assert set(built(GO._replace(outputs=names), str(tmp_path), ProjectFiles(LARGEST))) == {"tool", "new"}


SLOW: Final = {
    "Cargo.lock": ("crates", '[[package]]\nname = "a"\nversion = "1"\ndependencies = [\n' * 20_000),
    "go.mod": ("go", f"x{'a' * 500_000} v1\n" * 2),
    "package.json": (
        "npm",
        '{"workspaces": ["../../../*/*/*/*/zzz", "/*/*/*/*", "**/x", "*/*/*"], "dependencies": [1]}',
    ),
    "pyproject.toml": ("pypi", "[" * 100_000),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_file_that_is_made_to_be_read_for_long_is_not(tmp_path: Path, name: str) -> None:
    kind, text = SLOW[name]
    (tmp_path / name).write_text(text)
    assert lacking(Locked(kind, "", ""), str(tmp_path), {}) == []
    assert look([], str(tmp_path), {}, [kind]).places == []


LONG: Final = " " * 2**18
LARGE: Final = {
    "crates": Row(BUILD, {"Cargo.lock": f"{CARGO}\n# {LONG}"}, CRATES),
    "a package": Row(NPM, {**TINY, "package-lock.json": TINY["package-lock.json"] + LONG}, ["tiny@1.0.0"]),
    "more than is read": Row(BUILD, {"Cargo.toml": '[workspace]\nmembers = ["*"]\n', "Cargo.lock/x": ""}, []),
}


@pytest.mark.parametrize("row", LARGE.values(), ids=LARGE)
def test_what_is_large_is_read_elsewhere_and_up_to_a_size(tmp_path: Path, row: Row) -> None:
    root, caches = laid_out(tmp_path, row)
    for number in range(0 if row.lacks else 5):
        (tmp_path / f"root/{number}").mkdir()
        with (tmp_path / f"root/{number}/Cargo.toml").open("wb") as file:
            file.write(f'{MANIFEST}serde = "1"\n#'.encode())
            file.truncate(LARGEST)
    assert lacking(row.locked, root, caches) == row.lacks


def test_a_pipe_and_a_large_file_hold_up_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Cargo.lock")
    assert lacking(BUILD._replace(directory=""), str(tmp_path), {}) == []
