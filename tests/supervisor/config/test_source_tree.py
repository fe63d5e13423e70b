import os
from pathlib import Path

import pytest

from supervisor.config import source_tree
from supervisor.config.config_keys import Config
from supervisor.config.profiles import resolve
from supervisor.config.settings import Settings
from supervisor.config.source_tree import profile_here, tree_top

TREES = {
    # what there is -> the directory that a client is in, and the top of its tree
    "a repository": (["r/.git/HEAD", "r/src/a.py"], "r/src", "r"),
    "a worktree": (["r/.git", "r/src/a.py"], "r", "r"),
    "a repository in one": (["r/.git/HEAD", "r/sub/.git/HEAD", "r/sub/x/a"], "r/sub/x", "r/sub"),
    "a package of a repository": (["r/.git/HEAD", "r/packages/p/package.json"], "r/packages/p", "r"),
    "a tree without one": (["t/pyproject.toml", "t/src/p/a.py"], "t/src/p", "t"),
    "with a Makefile at each level": (["t/Makefile", "t/src/Makefile", "t/src/lib/Makefile"], "t/src/lib", "t"),
    "beneath one that is not its own": (["t/Makefile", "t/others/p/Cargo.toml"], "t/others/p", "t/others/p"),
    "notes": (["n/a.md"], "n", None),
    "a home that is a repository": (["home/.git/HEAD", "home/Makefile", "home/n/a.md"], "home/n", None),
    "home itself": (["home/.git/HEAD"], "home", None),
    "a repository in a home that is one": (["home/.git/HEAD", "home/r/.git/HEAD"], "home/r", "home/r"),
    "above home": ([".git/HEAD", "Makefile", "home/n/a.md"], "home/n", None),
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(Config(), tmp_path / "kept" / "config.toml", tmp_path / "kept")


@pytest.mark.parametrize("name", TREES)
def test_the_top_of_a_source_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings, name: str
) -> None:
    there, cwd, top = TREES[name]
    base = tmp_path / "base"
    monkeypatch.setenv("HOME", str(base / "home"))
    for each in there:
        (base / each).parent.mkdir(parents=True, exist_ok=True)
        (base / each).touch()
    at = os.path.realpath(base / cwd)
    assert tree_top(at) == (None if top is None else os.path.realpath(base / top))
    assert profile_here(settings, at) == ("vault" if top is None else "code")
    if top is not None:
        assert resolve(settings, "code", None, at).root == os.path.realpath(base / top)
        assert resolve(settings, "code", at, "/").root == at, "a root that is named is the root"


CHOICES = {
    # what there is, what is configured, whether the root is named -> the profile
    "vault wins over a manifest": (["vault/a.md", "Makefile"], None, False, "vault"),
    "a tree": (["Makefile"], None, False, "code"),
    "a tree that is named": (["Makefile"], None, True, "code"),
    "a directory beneath one that is named": (["../.git/HEAD"], None, True, "vault"),
    "notes that are named": (["a.md"], None, True, "vault"),
    "what is configured": (["Makefile"], "project", False, "project"),
    "vault, configured": (["Makefile"], "vault", True, "vault"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_the_profile_of_a_directory(tmp_path: Path, name: str) -> None:
    there, configured, named, profile = CHOICES[name]
    here = tmp_path / "a" / "b"
    for each in there:
        (here / each).parent.mkdir(parents=True, exist_ok=True)
        (here / each).touch()
    settings = Settings(Config(profile=configured), tmp_path / "config.toml", tmp_path / "kept")
    assert profile_here(settings, "/" if named else str(here), str(here) if named else None) == profile


@pytest.mark.parametrize(("makefile", "directory", "counts"), [(0, 0, True), (1, 0, False), (1, 1, True), (0, 1, True)])
def test_a_strangers_name_makes_no_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, makefile: int, directory: int, counts: bool
) -> None:
    """It belongs to this user (0) or to another (1)."""
    (tmp_path / "Makefile").touch()
    (tmp_path / "x").mkdir()
    own, users = source_tree._owner, (os.geteuid(), 4242)
    owners = {str(tmp_path / "Makefile"): users[makefile], str(tmp_path / "x"): users[directory]}
    monkeypatch.setattr(source_tree, "_owner", lambda path: owners.get(path, own(path)))
    assert tree_top(str(tmp_path / "x")) == (str(tmp_path) if counts else None)
