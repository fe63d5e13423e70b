"""Git's index: two that name the same are the same, whatever git remembers of the files, and no others are."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from workers.tree.git_index import entries_of, gist, is_index, same, tree_of

CHANGES = (
    ("another time", "touch -d 2001-01-01 a; git update-index -q --refresh", True),
    ("another inode", "cp a b; mv b a; git update-index -q --refresh", True),
    ("an executable bit", "git update-index --chmod=+x a", False),
    ("another content", "echo 2 > a; git add a", False),
    ("another name", "git mv a b", False),
    ("one more", "echo 2 > b; git add b", False),
    ("none", "git rm -q --cached a d/c", False),
    ("assumed as it was", "git update-index --assume-unchanged a", False),
    ("no index", "echo DIRC > .git/index", False),
)


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize(("change", "alike"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_only_what_git_remembers_of_files_makes_no_difference(
    version: str, change: str, alike: bool, tmp_path: Path
) -> None:
    run(tmp_path, f"git init -q; mkdir d; echo 1 > a; echo 1 > d/c; git -c index.version={version} add .")
    before = (tmp_path / ".git/index").read_bytes()
    run(tmp_path, change)
    after = (tmp_path / ".git/index").read_bytes()
    assert after != before
    assert same(before, after) is alike
    assert (gist(before) == gist(after)) is alike
    assert not same(before[:-1], before[:-1])
    assert gist(before[:-1]) == b""


TREE = """
mkdir -p a b/c/d b.c 'e f'; for name in a/x a.b a-b ab b/c/d/y b.c/z 'e f/g h' 'ä'; do echo "$name" > "$name"; done
chmod +x ab; ln -s a link; git init -q sub; git -C sub -c user.name=a -c user.email=b commit -q --allow-empty -m x
"""


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
@pytest.mark.parametrize("what", [TREE, "true"])
def test_the_tree_of_an_index_is_that_which_git_writes(what: str, kind: str, tmp_path: Path) -> None:
    init = f"git init -q --object-format={kind}; export GIT_DEFAULT_HASH={kind}"
    run(tmp_path, f"{init}; {what.strip()}; git -c advice.addEmbeddedRepo=false add .; echo 1 > one; git add one")
    written = subprocess.run(["git", "write-tree"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert tree_of(entries_of((tmp_path / ".git/index").read_bytes()) or {}) == written.stdout.strip()
    assert tree_of({}) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@pytest.mark.parametrize(
    "names",
    [
        [b"\0%s\0" % (b"a" * 90)] * 50,
        [b"\xff" * 2**14 + b"\0a\0"],
        [b"\0%s\0" % (b"a" * 4000), *[b"\1b\0", b"\1c\0"] * 9000],
    ],
    ids=["each longer than the last", "a number without an end", "together more than it could say"],
)
def test_an_index_whose_names_would_be_longer_than_it_names_none(names: list[bytes]) -> None:
    data = (
        b"DIRC" + (4).to_bytes(4, "big") + len(names).to_bytes(4, "big") + b"".join(bytes(62) + each for each in names)
    )
    assert entries_of(data + hashlib.sha1(data, usedforsecurity=False).digest()) is None


def test_an_index_that_stands_for_whole_directories_names_not_all(tmp_path: Path) -> None:
    run(tmp_path, "git init -q; mkdir d; echo 1 > a; echo 1 > d/c; git add .")
    run(tmp_path, "git -c user.name=a -c user.email=a@b commit -qm x; git sparse-checkout set --cone --sparse-index")
    assert entries_of((tmp_path / ".git/index").read_bytes()) is None


@pytest.mark.parametrize(
    ("path", "found"), [(".git/index", True), ("a/.git/modules/b/index", True), ("index", False), (".git/HEAD", False)]
)
def test_an_index_lies_in_a_directory_of_git(path: str, found: bool) -> None:
    assert is_index(path) is found


def run(root: Path, script: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["sh", "-ec", script], cwd=root, env=environment, check=True)
