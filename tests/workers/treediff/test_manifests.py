"""Manifests in which dependencies alone change, and those in which anything else does."""

import json
from typing import Final

import pytest

from workers.treediff.manifests import differs_in_dependencies, names_places, new_places

PACKAGE: Final = '{"name": "a", "scripts": {"test": "x"}}'
ROWS: Final = {
    "a dependency of npm's": ("package.json", PACKAGE, PACKAGE[:-1] + ', "dependencies": {"b": "^1"}}', True),
    "a new manifest": ("package.json", "", '{"dependencies": {"b": "^1"}}', True),
    "a new manifest with a script": ("package.json", "", '{"dependencies": {}, "scripts": {"install": "x"}}', False),
    "another script": ("package.json", PACKAGE, PACKAGE.replace('"x"', '"y"'), False),
    "a script said twice": ("package.json", PACKAGE, PACKAGE[:-1] + ', "scripts": {"test": "x"}}', False),
    "no object": ("package.json", PACKAGE, "[]", False),
    "no JSON": ("package.json", PACKAGE, "{", False),
    "a dependency of uv's": ("pyproject.toml", "[project]\nname='a'", "[project]\nname='a'\ndependencies=['b']", True),
    "a script of uv's": (
        "pyproject.toml",
        "[project]\nname='a'",
        "[project]\nname='a'\n[project.scripts]\nx='y'",
        False,
    ),
    "a backend": ("pyproject.toml", "", "[build-system]\nbuild-backend='x'\nbackend-path=['.']", False),
    "a crate": ("Cargo.toml", "[package]\nname='a'", "[package]\nname='a'\n[target.x.dependencies]\nb='1'", True),
    "a build script": ("Cargo.toml", "[package]\nname='a'", "[package]\nname='a'\nbuild='x.rs'", False),
    "a module": ("go.mod", "module a\n\ngo 1.22\n", "module a\n\ngo 1.22\n\nrequire (\n\tb v1.0.0\n)\n", True),
    "a gem": ("Gemfile", 'source "x"\n', 'source "x"\n\ngem "a", "~> 1.0"\n', True),
    "a gem from elsewhere": ("Gemfile", 'source "x"\n', 'source "x"\ngem "a", git: "https://x"\n', False),
    "a gem that runs": ("Gemfile", 'source "x"\n', 'source "x"\ngem "a", "#{`id`}"\n', False),
    "archives": ("composer.json", '{"name": "a"}', '{"name": "a", "require": {"b/c": "^1"}}', True),
    "archives and a script": ("composer.json", '{"name": "a"}', '{"name": "a", "scripts": {"test": "x"}}', False),
    "a module's replacement": ("go.mod", "module a\n", "module a\n\nreplace b => ../b\n", False),
    "another toolchain": ("go.mod", "module a\n", "module a\n\ntoolchain go1.99\n", False),
}


@pytest.mark.parametrize(("name", "before", "after", "alone"), ROWS.values(), ids=ROWS)
def test_what_differs_besides_dependencies_is_seen(name: str, before: str, after: str, alone: bool) -> None:
    assert differs_in_dependencies(name, before.encode(), after.encode()) is alone


def node(**more: str) -> str:
    return json.dumps({"homepage": "https://people.example", "repository": "a/b", "dependencies": {"x": "^1", **more}})


LOCK: Final = '{"packages": {"node_modules/x": {"resolved": "%s", "funding": {"url": "https://people.example"}}}}'
CRATES_IO: Final = "registry+https://github.com/rust-lang/crates.io-index"
EVIL: Final = ("evil.example:443",)
PLACES: Final = {
    "a version": ("package.json", node(y="^2"), ()),
    "an address": ("package.json", node(y="git+https://u@evil.example/y.git"), EVIL),
    "a port": ("package.json", node(y="http://evil.example:81/y.tgz"), ("evil.example:81",)),
    "a repository": ("package.json", node(y="github:evil/y#1"), ("the repository github:evil/y",)),
    "a directory": ("package.json", node(y="file:../y", z="npm:@s/z@1"), ()),
    "a requirement": ("pyproject.toml", '[project]\ndependencies = ["y @ https://evil.example/y.whl"]', EVIL),
    "a lock file": ("package-lock.json", LOCK % "https://evil.example/x.tgz", EVIL),
    "a lock file of the registry": ("Cargo.lock", f'source = "{CRATES_IO}"', ()),
    "a lock file of another": ("Cargo.lock", 'source = "git+ssh://git@evil.example/x"', ("evil.example:22",)),
    "a line of yarn's": ("yarn.lock", 'x@1:\n  resolved "https://evil.example/x.tgz#1"', EVIL),
    "another file": ("README.md", "resolved https://evil.example", ()),
}


@pytest.mark.parametrize(("name", "text", "places"), PLACES.values(), ids=PLACES)
def test_a_manifest_or_lock_file_names_where_packages_come_from(name: str, text: str, places: tuple[str, ...]) -> None:
    before = node() if name == "package.json" else ""
    found = new_places(name, before.encode(), text.encode()) if names_places(name) else ()
    assert found == places
    assert new_places(name, text.encode(), text.encode()) == ()


HIDDEN: Final = {
    "escaped slashes": ("package-lock.json", r'{"resolved": "https:\/\/evil.example\/x.tgz"}', "evil.example:443"),
    "a character in halves": ("package.json", r'{"x": "https://\uD83D\uDE80.example/x"}', "\U0001f680.example:443"),
    "half a character": ("package.json", r'{"x": "https://\ud83d.example/x"}', "\ufffd.example:443"),
    "an escaped colon": ("package-lock.json", r'{"resolved": "https\u003a//evil.example/x.tgz"}', "evil.example:443"),
    "capitals": ("package-lock.json", '{"resolved": "HTTPS://Evil.example/x.tgz"}', "evil.example:443"),
    "two users": ("package-lock.json", '{"resolved": "https://a@npm.example:443@evil.example/x"}', "evil.example:443"),
    "scp": ("package-lock.json", '{"resolved": "git@evil.example:a/b.git"}', "evil.example:22"),
}


@pytest.mark.parametrize(("name", "text", "place"), HIDDEN.values(), ids=HIDDEN)
def test_an_address_is_seen_however_it_is_written(name: str, text: str, place: str) -> None:
    assert new_places(name, b"", text.encode()) == (place,)


@pytest.mark.parametrize("text", ["require" + " " * 200_000 + "(", "require " * 40_000])
def test_a_file_of_many_beginnings_is_read_once(text: str) -> None:
    assert not differs_in_dependencies("go.mod", text.encode(), b"module x\n")
