"""Manifests in which dependencies alone change, and those in which anything else does."""

from typing import Final

import pytest

from workers.treediff.manifests import differs_in_dependencies

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
    "a module's replacement": ("go.mod", "module a\n", "module a\n\nreplace b => ../b\n", False),
    "another toolchain": ("go.mod", "module a\n", "module a\n\ntoolchain go1.99\n", False),
}


@pytest.mark.parametrize(("name", "before", "after", "alone"), ROWS.values(), ids=ROWS)
def test_what_differs_besides_dependencies_is_seen(name: str, before: str, after: str, alone: bool) -> None:
    assert differs_in_dependencies(name, before.encode(), after.encode()) is alone
