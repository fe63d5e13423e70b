"""What git ignores, compared with git itself on random trees and lists of patterns."""

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from workers.tree.git_ignore import GitIgnore
from workers.tree.ignore_pattern import patterns_of
from workers.tree.root import closing

NAMES = ("a", "b", "ab", "foo", "bar.o", "x.log", "a b", "é", "-", "build", "[", "a\\b", "!a", "#a", "b ")
PIECES = (
    *(
        "*",
        "**",
        "?",
        "/",
        "/**/",
        "**/",
        "/**",
        "a",
        "b",
        "foo",
        "build",
        ".o",
        ".log",
        "x",
        "!",
        "#",
        " ",
        "\\ ",
        "\\",
    ),
    *(
        "[ab]",
        "[!a]",
        "[^b]",
        "[a-c]",
        "[]]",
        "[]-a]",
        "[a",
        "[[:alpha:]]",
        "[[:digit:]x]",
        "[[:no:]]",
        "[\\]]",
        "[a-]",
    ),
    *(
        "[--0]",
        "[[:",
        "[z-a]",
        "[/]",
        "\\*",
        "\\a",
        "é",
        "***",
        "[\\--a]",
        "[!/]",
        "[[a]",
        "[[:alpha]",
        "[é]",
        "\\[",
        "\\#",
    ),
)
ORDINARY = (
    *("*.o", "build/", "/foo", "a/b", "**/x.log", "foo/**", "!bar.o", "a/**/b", "!/a/", "*", "!*/", "/*", "*.log"),
    *("!build/foo", "foo*/**/b", "# no", "", "a/*", "!a/b", "**", "**/", "/**", "ab/../a", "./a", "//a", "a//b"),
)
SEEDS = range(int(os.environ.get("IGNORE_SEEDS", "40")))


def git(root: Path, *words: str, given: bytes = b"") -> bytes:
    done = subprocess.run(["git", *words], cwd=root, input=given, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def line(chance: random.Random) -> str:
    if chance.random() < 0.4:
        return chance.choice(ORDINARY)
    return "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 5)))


def plant(place: Path, chance: random.Random, depth: int) -> None:
    for name in chance.sample(NAMES, chance.randint(1, 6)):
        if depth and chance.random() < 0.5:
            (place / name).mkdir()
            plant(place / name, chance, depth - 1)
        else:
            (place / name).write_bytes(b"")
    if chance.random() < (0.3 if depth < 3 else 1):
        ends = chance.choice(("\n", "\n", "\r\n"))
        data = ends.join(line(chance) for _ in range(chance.randint(1, 6))) + chance.choice(("", ends))
        (place / ".gitignore").write_bytes(data.encode())


@pytest.mark.parametrize("seed", SEEDS)
def test_git_says_the_same_of_random_trees(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    git(tmp_path, "init", "-q", "--template=")
    plant(tmp_path, chance, 3)
    (tmp_path / ".git/info").mkdir()
    (tmp_path / ".git/info/exclude").write_text("\n".join(line(chance) for _ in range(2)))
    paths = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if ".git" not in each.parts)
    tracked = [each for each in paths if chance.random() < 0.2 and (tmp_path / each).is_file()]
    version = chance.choice(("2", "3", "4"))
    git(tmp_path, "-c", f"index.version={version}", "add", "-f", "--", *tracked or ["."])
    listed = git(tmp_path, "-c", "core.excludesFile=", "ls-files", "-oi", "--exclude-standard", "-z")
    files = [each for each in paths if not (tmp_path / each).is_dir()]
    root = os.open(tmp_path, os.O_PATH)
    try:
        ignored = GitIgnore(root)
        found = {each for each in files if ignored.ignores(each, is_directory=False, was_there=True)}
    finally:
        os.close(root)
    assert found == set(map(os.fsdecode, listed.split(b"\0"))) - {""}


TRACKED = "git init -q; echo '*.o' > .gitignore; : > x.o; git add -f x.o"
CASES = (
    ("nothing is ignored without a list", "git init -q", "x.o", False),
    ("what is tracked", TRACKED, "x.o", False),
    ("what is tracked, and was deleted", f"{TRACKED}; rm x.o", "x.o", False),
    ("beside what is tracked", f"{TRACKED}; : > y.o", "y.o", True),
    ("no index yet", "git init -q; echo '*.o' > .gitignore; : > x.o", "x.o", True),
    ("an index that cannot be read", f"{TRACKED}; : > y.o; echo no > .git/index", "y.o", False),
    ("an index too large to be read", f"{TRACKED}; truncate -s 65M .git/index", "x.o", False),
    ("an index that is a link", f"{TRACKED}; mv .git/index .git/i; ln -s i .git/index", "x.o", False),
    ("a split index", f"{TRACKED}; git update-index --split-index", "x.o", False),
    ("an index elsewhere", "echo gitdir: /elsewhere > .git; echo x.o > .gitignore; : > x.o", "x.o", False),
    ("an index elsewhere, a new file", "echo gitdir: /elsewhere > .git; echo x.o > .gitignore", "x.o", True),
    ("a repository within has its own rules",
     "git init -q; echo in > .gitignore; git init -q in; : > in/x", "in/x", False),
    ("a repository within whose directory is a link",
     "git init -q; echo in > .gitignore; git init -q in; : > in/x; git -C in add x; mv in/.git r; ln -s ../r in/.git",
     "in/x", False),
    ("what the one around tracks",
     "git init -q; mkdir in; : > in/x; git add in; mkdir in/.git; echo x > in/.gitignore", "in/x", False),
    ("git's own directory", "git init -q; echo '*' > .gitignore", ".git/hooks/post-commit", False),
    ("the same in other letters", "git init -q; echo '*' > .gitignore", "a/.GIT/config", False),
    ("a list that is a link", "git init -q; echo x > l; ln -s l .gitignore", "x", False),
    ("very deep", "git init -q; echo d > .gitignore", "d" + "/d" * 500, True),
)  # fmt: skip


@pytest.mark.parametrize(("made", "path", "ignored"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_ignored(made: str, path: str, ignored: bool, tmp_path: Path) -> None:
    with made_by(made, tmp_path) as ignore:
        was_there = os.path.exists(tmp_path / path)
        assert ignore.ignores(path, is_directory=False, was_there=was_there) is ignored


@contextmanager
def made_by(script: str, place: Path) -> Iterator[GitIgnore]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(place / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["sh", "-ec", script], cwd=place, env=environment, check=True)
    with closing(os.open(place, os.O_PATH)) as root:
        yield GitIgnore(root)


TRACKS = (
    ("what is tracked", TRACKED, "x.o", True),
    ("what is not", f"{TRACKED}; : > y.o", "y.o", False),
    ("an index that cannot be read", f"{TRACKED}; echo no > .git/index", "y.o", True),
    ("what an inner one tracks", "git init -q in; : > in/x; git -C in add x; mkdir .git", "in/x", True),
    ("what the one around tracks", "git init -q; mkdir in; : > in/x; git add in; mkdir in/.git", "in/x", True),
    ("no repository", ": > x", "x", False),
)


@pytest.mark.parametrize(("made", "path", "tracked"), [case[1:] for case in TRACKS], ids=[case[0] for case in TRACKS])
def test_what_is_tracked(made: str, path: str, tracked: bool, tmp_path: Path) -> None:
    with made_by(made, tmp_path) as ignore:
        assert ignore.tracks(path) is tracked


@pytest.mark.parametrize("damage", ["", "; echo no >> .git/index"])
def test_many_looks_say_what_the_first_ones_do(damage: str, tmp_path: Path) -> None:
    names = [f"d/{number}" for number in range(300)]
    some = " ".join(names[::2])
    with made_by(f"git init -q; mkdir d; touch {some} d/x; git add {some}{damage}", tmp_path) as ignore:
        assert [ignore.tracks(each) for each in names] == [True, False] * 150


UNTRACKS = (
    ("a name that goes", "", "git rm -q --cached x.o", True),
    ("a link that goes", "ln -s x.o l; git add l", "git rm -q --cached l", True),
    ("a name that was gone", "rm x.o", "git rm -q --cached x.o", False),
    ("another content", "", "echo 1 > x.o; git add -f x.o", False),
    ("one more", ": > y.o", "git add -f y.o", False),
    ("an index that cannot be read", "", "echo no > .git/index", True),
    ("one that could not be read", "echo no > .git/index", "rm .git/index; git add -f x.o", True),
    ("two that cannot be read", "echo no > .git/index", "echo none > .git/index", False),
)


@pytest.mark.parametrize(
    ("made", "change", "untracked"), [case[1:] for case in UNTRACKS], ids=[case[0] for case in UNTRACKS]
)
def test_what_an_index_tracks_no_more(made: str, change: str, untracked: bool, tmp_path: Path) -> None:
    script = f"{TRACKED}; {made or ':'}; cp .git/index before; {change}; mv .git/index after; mv before .git/index"
    with made_by(script, tmp_path) as ignore:
        data = (tmp_path / "after").read_bytes()
        assert ignore.untracks(".git/index", data) is untracked
        assert not ignore.untracks("after", data)
        assert not (data.startswith(b"DIRC") and made == "" and ignore.untracks(".git/index", data, {"x.o", "l"}))


def test_hostile_patterns_take_no_time() -> None:
    (pattern,) = patterns_of(b"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b")
    assert not pattern.regex.match(b"a" * 250)
    (pattern,) = patterns_of(b"x/**/a*/**/a*/**/a*/**/a*/**/a*/**/a*/**/b")
    assert not pattern.regex.match(b"x/" + b"a/" * 2000 + b"c")
