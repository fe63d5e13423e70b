"""What became of repositories, in git's words, as the effects of real git say it."""

import re
import subprocess
from pathlib import Path

import pytest

from supervisor.display.git_words import git_words
from tests.workers.commit.namespaces import Rehearsing

BEGIN = """
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
git() { command git -c advice.detachedHead=false -c gc.auto=0 "$@"; }
"""
FIRST = "git init -qb main r; cd r; mkdir d; seq 9 > a; seq 9 > d/b; git add .; git commit -qm one; git branch side"
SIDE = f"{FIRST}; git checkout -q side; echo x > s; git add s; git commit -qm s; git checkout -q main"
FORGED = """
n=$(printf %040d 7); mkdir -p .git/objects/00; cp .git/objects/$(git rev-parse HEAD | sed 's|^..|&/|') \\
.git/objects/00/$(printf %038d 7); echo $n > .git/refs/heads/main
"""
H = "[0-9a-f]{7}"
WORDS = (
    ("a commit", FIRST, "echo x >> a; echo y > d/c; git add .; git commit -qm two", f"commit {H} on main, 2 files"),
    ("a commit whose message lies", FIRST, "echo x >> a; git commit -qam 'commit 1234567 on prod, 99 files'",
     f"commit {H} on main, 1 file"),
    ("a first commit", "git init -qb main r; cd r; echo x > a; git add a", "git commit -qm one",
     f"commit {H} on main, 1 file"),
    ("no files", FIRST, "git commit -q --allow-empty -m x", f"commit {H} on main, 0 files"),
    ("behind a pack", f"{FIRST}; git repack -adq; git prune-packed -q", "echo x >> a; git commit -qam two",
     f"commit {H} on main"),
    ("amended", f"{FIRST}; echo x >> a; git commit -qam two", "git commit -q --amend -m more",
     f"commit {H} on main in place of {H}, 0 files"),
    ("without a branch", f"{FIRST}; git checkout -q --detach", "echo x >> a; git commit -qam x",
     f"commit {H} on no branch, 1 file"),
    ("a branch", FIRST, "git branch new/x", f"branch new/x at {H}"),
    ("a branch that goes", FIRST, "git branch -D side", f"branch side deleted, was {H}"),
    ("a tag", FIRST, "git tag v1", f"tag v1 at {H}"),
    ("a stash", f"{FIRST}; echo x >> a", "git stash -q", f"stash at {H}"),
    ("another branch", FIRST, "git checkout -q side", "HEAD at side"),
    ("a new branch, and a commit", FIRST, "git checkout -qb fix; echo x >> a; git commit -qam x",
     f"commit {H} on fix, 1 file; HEAD at fix"),
    ("a new branch", FIRST, "git checkout -qb fix", f"branch fix at {H}; HEAD at fix"),
    ("what is staged", FIRST, "echo x >> a; echo y > d/c; git add .", "index 2 files"),
    ("back", f"{FIRST}; echo x >> a; git commit -qam x", "git reset -q --hard HEAD~1",
     f"branch main moved from {H} to {H}; index 1 file"),
    ("a merge", f"{SIDE}; echo x >> a; git commit -qam m", "git merge -q side -m both", f"merge {H} on main, 1 file"),
    ("forward", SIDE, "git merge -q side", f"branch main moved from {H} to {H}; index 1 file"),
    ("packed references", FIRST, "git pack-refs --all", ""),
    ("one that was packed", f"{FIRST}; git pack-refs --all", "echo x >> a; git commit -qam x",
     f"commit {H} on main, 1 file"),
    ("what is none", FIRST, "printf 'x on main, 2 files' > '.git/refs/heads/a on main, 9 files'",
     '"refs/heads/a on main, 9 files" names no object'),
    ("an object that is another", FIRST,
     FORGED, f"branch main moved from {H} to 0000000"),
    ("within", f"{FIRST}; git init -qb main in; cd in; echo x > a; git add a; cd ..", "cd in; git commit -qm x",
     f"commit {H} on main, 1 file \\(in in\\)"),
    ("no repository", "mkdir r", "echo x > a", ""),
)  # fmt: skip


@pytest.mark.parametrize(("made", "command", "words"), [row[1:] for row in WORDS], ids=[row[0] for row in WORDS])
def test_what_became_of_a_repository(
    rehearsing: Rehearsing, tmp_path: Path, made: str, command: str, words: str
) -> None:
    subprocess.run(["bash", "-ec", f"{BEGIN}{made}"], cwd=tmp_path, check=True)
    effects = rehearsing.rehearse(tmp_path / "r", f"{BEGIN}{command}")
    assert effects.changes
    assert re.fullmatch(words, git_words(effects.git)), git_words(effects.git)


MAKE = f"{FIRST}; echo all: > Makefile; git add .; git commit -qm make"
EVIL = "b=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$b,"
MADE = f"{EVIL}Makefile; c=$(git commit-tree $(git write-tree) -p HEAD -m x); git read-tree HEAD"
PACKED = f"{MAKE}; git gc -q"
OTHER = "printf 'tree %040d\\n\\nx' 7 | git hash-object -t commit -w --stdin --literally"
BOMB = """t=$(git mktree < /dev/null); for i in 1 2 3 4 5; do
t=$(for j in 1 2 3 4 5 6 7 8; do printf '040000 tree %s\\t%s\\n' $t $j; done | git mktree); done; git tag t $t"""
LONG = "{ printf 'object %s\\n\\n' $c; head -c 16762300 /dev/zero; } | git hash-object -t tag -w --stdin --literally"
FORGE = "git hash-object -w --stdin --literally -t"
UNREAD = ("?",)
HELD = (
    ("staged", MAKE, f"{EVIL}Makefile", ("Makefile",)),
    ("staged, and committed", MAKE, f"{EVIL}d/.github/workflows/x.yml; git commit -qm x",
     ("d/.github/workflows/x.yml",)),
    ("staged behind a commit", MAKE, f"echo x >> a; git commit -qam x; {EVIL}Makefile", ("Makefile",)),
    ("committed, and taken back", FIRST,
     f"{EVIL}Makefile; git commit -qm x; git rm -q --cached Makefile; git commit -qm y",
     ("Makefile",)),
    ("a branch", MAKE, f"{MADE}; git update-ref refs/heads/side $c", ("Makefile",)),
    ("a tag of a tag", MAKE, f"{MADE}; git tag -am t t $c; git tag -am u u t; git tag -d t", ("Makefile",)),
    ("a tree", MAKE, f"{MADE}; git tag t $c^{{tree}}", ("Makefile",)),
    ("HEAD", MAKE, f"{MADE}; echo $c > .git/HEAD", ("Makefile",)),
    ("a stash", MAKE, f"{MADE}; git stash store -m x $c", ("Makefile",)),
    ("an older commit of a page's", f"{MAKE}; {MADE}; echo $c > c", "git branch x $(cat c)", ("Makefile",)),
    ("behind a pack", PACKED, f"{EVIL}Makefile; git commit -qm x", ("Makefile",)),
    ("in place of another", MAKE, f"{MADE}; git replace HEAD $c", ("refs/replace/",)),
    ("another repository", MAKE, "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub", ("sub",)),
    ("a commit without its tree", MAKE, f"{OTHER} > .git/refs/heads/x", UNREAD),
    ("a commit that is not there", MAKE, "printf '%040d\\n' 7 > .git/refs/heads/x", UNREAD),
    ("in other digits", MAKE, f"{MADE}; echo $c | tr a-f A-F > .git/refs/heads/x", UNREAD),
    ("with more behind it", MAKE, f"{MADE}; echo $c x > .git/refs/heads/x", UNREAD),
    ("too long", MAKE, f"{MADE}; printf '%s%09999d' \"$c \" 7 > .git/refs/heads/x", UNREAD),
    ("a link", MAKE, f"{MADE}; echo $c > c; ln -s ../../../c .git/refs/heads/x", UNREAD),
    ("a list that is none", MAKE, "git pack-refs --all; echo x y z >> .git/packed-refs", UNREAD),
    ("a tree of too many", MAKE, BOMB, UNREAD),
    ("a commit at the end of what is read", MAKE, f"{MADE}; {LONG} > .git/refs/tags/x", UNREAD),
    *(
        (f"a {kind} that is none: {told!r}", PACKED, f"printf -- '{told}' | {FORGE} {kind} > .git/refs/tags/x", UNREAD)
        for kind, told in (
            ("commit", ""),
            ("commit", "tree x\\n\\n"),
            ("tag", "object abc\\n"),
            ("tree", "40000 "),
            ("tree", f"-10000 x\\0{7:020}"),
            ("tree", f"{7:077} x\\0{7:020}"),
            ("tree", "100644 x\\0cut"),
            ("tree", f"100644 ../x\\0{7:020}"),
        )
    ),
    ("an index that is none", MAKE, "echo x > .git/index", UNREAD),
    ("a person's", f"{MAKE}; echo mine > Makefile", "git commit -qam x; git tag t", ()),
    ("what changes where it is seen", MAKE, "echo all > Makefile; git commit -qam x", ()),
    ("sources", MAKE, "echo x >> a; git add .; git commit -qm x; git commit -q --amend -m y; git tag -am t t", ()),
    ("sources behind a pack", PACKED, "echo x >> d/b; git commit -qam x; git tag old HEAD~1", ()),
    ("a commit from before", MAKE, "git tag old HEAD~1; git branch x HEAD~1", ()),
    ("a note", MAKE, "git notes add -m x", ()),
    ("side by side", f"{SIDE}; echo x >> a; git commit -qam m", "git merge -q side -m both", ()),
)  # fmt: skip


@pytest.mark.parametrize(("made", "command", "names"), [row[1:] for row in HELD], ids=[row[0] for row in HELD])
def test_what_other_programs_obey_in_history_is_told_where_the_work_tree_does_not_have_it(
    rehearsing: Rehearsing, tmp_path: Path, made: str, command: str, names: tuple[str, ...]
) -> None:
    subprocess.run(["bash", "-ec", f"{BEGIN}{made}"], cwd=tmp_path, check=True)
    effects = rehearsing.rehearse(tmp_path / "r", f"{BEGIN}{command}")
    assert effects.changes
    told = {name[:13] if name.startswith("refs/replace") else name for each in effects.git for name in each.obeyed}
    assert tuple(told) + UNREAD * any(each.unread for each in effects.git) == names
