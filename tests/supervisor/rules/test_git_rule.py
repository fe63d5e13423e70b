"""A yes to a commit: the same command is covered again and again, and nothing that moves more than its branch."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest

from supervisor.rules.judge_effects import judge_effects
from supervisor.rules.rule import Rule, problem_of
from supervisor.rules.rule_sentence import sentence
from supervisor.rules.started_programs import started_by
from supervisor.rules.suggest import suggested_rule
from tests.raw_worker import RawWorker
from tests.supervisor.changes import TODAY
from tests.workers.shell.conftest import open_shell
from workers.changes.effects import Effects
from workers.wire import messages

COMMIT: Final = "git commit -q -a -m 'one more'"
REPEATED: Final = 20
CONFIG: Final = "[user]\n\tname = n\n\temail = e\n[gc]\n\tauto = 1\n[alias]\n\tci = commit\n\tcommot = update-ref\n"


def git(root: Path, *words: str) -> str:
    """Run git as the person does."""
    environment = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
    done = subprocess.run(["git", *words], cwd=root, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Repository(NamedTuple):
    """A repository, a worker on it, and the rule that a yes to the first commit made."""

    root: Path
    worker: RawWorker
    rule: Rule

    def decided(self, command: str, *, commit: bool = False) -> str:
        """Return what the rule decides about a command, which is committed if that is wanted and it does."""
        effects, proposed = rehearsed(self.worker, command)
        found = judge_effects([self.rule], started_by("run_cmd", arguments(command)), effects, TODAY).decision
        self.worker.decide(proposed, commit=commit and found == "allow")
        return found


def arguments(command: str) -> str:
    return msgspec.json.encode({"command": command}).decode()


def rehearsed(worker: RawWorker, command: str) -> tuple[Effects, messages.Up | None]:
    proposed = worker.propose("run_cmd", {"command": command})
    assert isinstance(proposed, messages.Proposed), proposed
    return proposed.effects, proposed


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    root = tmp_path_factory.mktemp("git") / "root"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / ".git/config").write_text((root / ".git/config").read_text() + CONFIG)
    (root / "a").write_text("0\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "zero")
    git(root, "branch", "other")
    git(root, "tag", "v1")
    with ExitStack() as stack:
        worker = stack.enter_context(open_shell(root))
        (root / "a").write_text("1\n")
        effects, proposed = rehearsed(worker, COMMIT)
        worker.decide(proposed, commit=True)
        rule = suggested_rule(started_by("run_cmd", arguments(COMMIT)), effects, TODAY)
        assert rule is not None
        assert problem_of(rule) == ""
        yield Repository(root, worker, rule)


def test_the_rule_says_what_it_covers(repository: Repository) -> None:
    assert sentence(repository.rule) == (
        "git commit may add or change .git/COMMIT_EDITMSG, .git/index, .git/logs/HEAD, .git/logs/refs/heads/main, "
        ".git/objects/** and .git/refs/heads/main and delete nothing, at most 500 files and at most 20 MB, only "
        "content, moving no ref but heads/main, until 2027-11-21"
    )


def test_the_very_command_is_covered_every_time(repository: Repository) -> None:
    root, before = repository.root, int(git(repository.root, "rev-list", "--count", "main"))
    found = []
    for number in range(REPEATED):
        (root / "a").write_text(f"again {number}\n")
        if number == REPEATED // 2:  # the person's own repacking is none of the rule's
            git(root, "-c", "gc.auto=6700", "gc", "-q")
        found.append(repository.decided(COMMIT, commit=True))
    assert found == ["allow"] * REPEATED
    assert int(git(root, "rev-list", "--count", "main")) == before + REPEATED


NOT_COVERED: Final = [
    "git update-ref refs/heads/main HEAD~1",
    "git update-ref refs/heads/other main",
    "git tag -f v1 HEAD",
    "git tag v2",
    "git symbolic-ref HEAD refs/heads/other",
    "git symbolic-ref refs/heads/main refs/heads/other",
    "git read-tree HEAD~1",
    "git reflog expire --expire=now --all",
    "git branch -f other main",
    "git branch new",
    "git reset -q --hard HEAD~1",
    "git reset -q --soft HEAD~1",
    "git checkout -q -f other",
    "git switch -q -f other",
    "git push -q . main:other",
    "git config user.name somebody",
    "git worktree add -q ../root/tree other",
    "git replace HEAD HEAD~1",
    "git notes add -m x",
    "git commit -qam x; FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --msg-filter 'cat; echo x' HEAD",
    "git stash",
    "git gc -q --prune=now",
    "git repack -qad",
    "git prune --expire=now; git repack -qad",
    "git pack-refs --all --prune",
    "git commit -q -a --amend -m x",
    "git commit -q -a --am -m x",
    "git commit -q -a '--amen' -m x",
    "git -c user.name=somebody commit -q -a -m x",
    "git -c alias.x=commit x -q -a -m x",
    "git -C . commit -q -a -m x",
    "git --git-dir=.git commit -q -a -m x",
    "git ci -q -a -m x",
    "git commot refs/heads/main HEAD~1",
    "/usr/bin/git commit -q -a -m x",
    "GIT_AUTHOR_NAME=x git commit -q -a -m x",
    "env git commit -q -a -m x",
    "git commit -q -a -m x; git tag v3",
    "git commit -q -a -m x && git update-ref refs/heads/main HEAD~1",
    "git commit -q -a -m $(echo x)",
    "git checkout -q -b next; git commit -q -a -m x",
    "git commit -q -a -m x; rm -rf .git/refs",
    "git commit -q -a -m x; cp a .git/refs/heads/evil",
    "git commit -q -m x -- a*",
]


@pytest.mark.parametrize("command", NOT_COVERED)
def test_what_moves_more_or_is_not_understood_is_asked_about(repository: Repository, command: str) -> None:
    (repository.root / "a").write_text("more\n")
    assert repository.decided(command) == "ask"


ELSEWHERE: Final = [
    ("another branch is checked out", ("symbolic-ref", "HEAD", "refs/heads/other")),
    ("no branch is checked out", ("checkout", "-q", "--detach")),
]


@pytest.mark.parametrize("change", [row[1] for row in ELSEWHERE], ids=[row[0] for row in ELSEWHERE])
def test_the_same_words_on_another_branch_are_asked_about(repository: Repository, change: tuple[str, ...]) -> None:
    (repository.root / "a").write_text("there\n")
    git(repository.root, *change)
    try:
        assert repository.decided(COMMIT) == "ask"
    finally:
        git(repository.root, "symbolic-ref", "HEAD", "refs/heads/main")
    assert repository.decided(COMMIT) == "allow"


HOOKS: Final = [
    ("another ref", "git update-ref refs/tags/hooked HEAD~1"),
    ("an object", "git gc -q --prune=now"),
    ("alternates", "echo /tmp > .git/objects/info/alternates"),
    ("an object that git never makes", "cp a .git/objects/zz"),
    ("another file", "touch beside"),
    ("a link", "ln -s /etc/passwd .git/objects/aa; ln -s / .git/refs/heads/x"),
]


@pytest.mark.parametrize("hook", [row[1] for row in HOOKS], ids=[row[0] for row in HOOKS])
def test_a_commit_whose_hook_does_more_is_asked_about(repository: Repository, hook: str) -> None:
    (repository.root / "a").write_text("hooked\n")
    file = repository.root / ".git/hooks/post-commit"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\nunset GIT_INDEX_FILE\n{hook}\n")
    file.chmod(0o755)
    try:
        assert repository.decided(COMMIT) == "ask"
    finally:
        file.unlink()
