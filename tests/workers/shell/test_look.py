"""Commands that only look, on the root itself: answers are those of an overlay, and nothing of the root is changed."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from supervisor.pool.template_process import worker_command
from tests.each_row import each_row
from tests.raw_worker import RawWorker, receive, send
from tests.workers.commit.snapshot import snapshot
from tests.workers.shell.conftest import open_shell, propose, write
from tests.workers.shell.run.test_attempts import ASKED_ALREADY
from workers.shell.look import ShownOnce
from workers.wire import messages

DEVICE = "stat -c %d ."
"""Prints the number of the file system that is seen as the root: an overlay has one of its own."""
WHERE = "stat --printf '%d\\n%i\\n' ."
"""Prints that and the number of the root: a copy has another one."""

TREE = """
git init -qb main sub; cd sub; echo s > s.txt; git add .; git commit -qm sub; cd ..
git init -qb main .; mkdir -p d/e out; printf 'out/\\n*.o\\n' > .gitignore
for n in 1 2 3 4 5; do echo $n > d/$n.txt; done
ln -s d/1.txt link; ln -s nowhere broken; echo A > Case; echo a > case2; chmod 755 d/2.txt
git -c protocol.file.allow=always submodule --quiet add ./sub module; git add .; git commit -qm one
git worktree add -q wt; echo more >> d/1.txt; rm d/2.txt; chmod 644 d/3.txt; ln -sfn d/3.txt link; echo new > untracked
echo o > out/o; echo x > x.o; echo racy > d/4.txt; git add d/4.txt; echo RACY > d/4.txt; touch d/5.txt
echo m >> module/s.txt; git mv Case CASE; rm -rf sub
"""

LINES = (
    "git status",
    "git status --porcelain=v2 --branch --ignored --untracked-files=all",
    "git diff",
    "git diff --cached --stat",
    "git log --stat --format=%s%n%an",
    "git show --name-status HEAD",
    "git ls-files -s -m -d -o --exclude-standard",
    "git -C module status",
    "git -C wt status",
    "git branch -a; git worktree list; git stash list",
    "git diff --submodule=log; git describe --always >/dev/null",
    "git blame d/1.txt | wc -l",
    "git grep -n more; git check-ignore x.o d",
    "cd d && cat *.txt | sort -r | head -n 3; ls -R ..",
    "find . -type l | sort; grep -rn new untracked d; stat -c '%n %i %s %Y' d/5.txt",
    "cat missing; echo $?",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("look") / "root"
    root.mkdir()
    subprocess.run(["/bin/bash", "-ec", TREE], cwd=root, check=True, env=bare(), stdout=subprocess.DEVNULL)
    return root


@pytest.fixture(scope="module")
def worker(root: Path) -> Iterator[RawWorker]:
    with open_shell(root) as opened:
        assert isinstance(opened.ready, messages.Ready), opened.ready
        yield opened


@pytest.fixture(scope="module", params=[False, True], ids=["in a sandbox", "beside the copies"])
def either(request: pytest.FixtureRequest, worker: RawWorker, root: Path) -> Iterator[RawWorker]:
    if not request.param:
        yield worker
        return
    with open_shell(root, **without_namespaces(root)) as opened:
        assert isinstance(opened.ready, messages.Ready), opened.ready
        yield opened
    assert os.listdir(root.parent / "copies") == []


def without_namespaces(root: Path) -> dict[str, Any]:
    return {"copies": str(root.parent / "copies"), "copy_mb": 8}


def bare() -> dict[str, str]:
    names = {f"GIT_{who}_{what}": "n" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {"PATH": "/usr/bin:/bin", "GIT_OPTIONAL_LOCKS": "0", "HOME": "/nonexistent", "LANG": "C.UTF-8", **names}


def device(root: Path) -> str:
    return str(root.stat().st_dev)


def ran(answer: messages.Up | None) -> tuple[str, int]:
    assert isinstance(answer, messages.Done), answer
    result = msgspec.json.decode(answer.content)
    return result["stdout"] + result["stderr"], result["exit_code"]


@pytest.mark.parametrize("line", LINES)
def test_an_answer_is_that_of_the_bare_program(either: RawWorker, root: Path, line: str) -> None:
    expected = subprocess.run(
        ["/bin/bash", "-c", line], cwd=root, env=bare(), capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    printed = ran(propose(either, line))
    assert printed == ((expected.stdout + expected.stderr).decode(), expected.returncode)


def test_what_only_looks_sees_the_root_itself_and_leaves_it_as_it_is(either: RawWorker, root: Path) -> None:
    before = snapshot(root)
    seen = {
        line: ran(propose(either, f"{line}; {WHERE}"))[0].splitlines()[-2:]
        for line in LINES
        if "$" not in line and "cd " not in line
    }
    assert {line for line, found in seen.items() if found != [device(root), str(root.stat().st_ino)]} == set()
    assert snapshot(root) == before


def test_whatever_else_is_rehearsed_after_all(either: RawWorker, root: Path) -> None:
    before = snapshot(root)
    for line, change in {
        "cat d/3.txt; uniq d/3.txt copy": {"added": 1},
        "sort -o d/3.txt d/1.txt": {"modified": 1},
        "git config --get x --unset-all y; git branch -l new --create-reflog": {},
    }.items():
        answer = propose(either, f"{line}; echo end")
        if change:
            assert isinstance(answer, messages.Proposed), (line, answer)
            assert answer.effects.totals == change
            answer = either.decide(answer, commit=False)
    assert snapshot(root) == before
    assert ran(propose(either, f"test -w d/3.txt && echo yes; {WHERE}"))[0].splitlines()[0] == "yes"
    assert str(root.stat().st_ino) not in ran(propose(either, f"test -w d/3.txt; {DEVICE}; {WHERE}"))[0].split()


def test_programs_that_a_repository_names_run_in_a_rehearsal(tmp_path: Path) -> None:
    subprocess.run(["/bin/bash", "-ec", "git init -q; echo 1 > a; git add a"], cwd=tmp_path, check=True, env=bare())
    write(tmp_path / "hook", '#!/bin/sh\necho run >> ran\ncat "$2" 2>/dev/null\n', 0o755)
    settings = {"diff.external": "./hook", "core.fsmonitor": "./hook"}
    with open_shell(tmp_path) as worker:
        for name, value in settings.items():
            subprocess.run(["/usr/bin/git", "config", name, value], cwd=tmp_path, check=True, env=bare())
            (tmp_path / "a").write_text(name)
            answer = propose(worker, "git diff" if name.startswith("diff") else "git status")
            assert isinstance(answer, messages.Proposed), (name, answer)
            assert [each.path for each in answer.effects.changes] == ["ran"]
            worker.decide(answer, commit=False)
            subprocess.run(["/usr/bin/git", "config", "--unset", name], cwd=tmp_path, check=True, env=bare())


def test_a_program_of_the_roots_own_is_rehearsed(tmp_path: Path) -> None:
    write(tmp_path / ".venv/bin/jq", "#!/bin/sh\necho mine > made\n", 0o755)
    with open_shell(tmp_path) as worker:
        assert isinstance(propose(worker, "jq . x"), messages.Proposed)


@pytest.mark.parametrize(
    "line", ["cat pipe", "cat p*", "cd d && cat ../pipe", "cat link", "grep -f pipe d/x", "od -tx1 {}"]
)
def test_nothing_is_taken_from_a_fifo(tmp_path: Path, line: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to("pipe")
    run_at_fifo(root, "pipe", line.format(root / "pipe"))


BY_THEMSELVES = {
    ".gitattributes": "git check-attr -a d/x",
    "sub/.gitattributes": "git -C sub check-attr -a x",
    ".mailmap": "git log",
    ".git/config": "git status",
    ".git/info/attributes": "git check-attr -a d/x",
    ".git/refs/heads/main": "git log",
    ".ignore": "rg for",
    "d/.gitignore": "rg for",
}


@pytest.mark.parametrize("name", BY_THEMSELVES)
def test_nothing_is_taken_from_a_fifo_that_a_program_finds_by_itself(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    subprocess.run(["/bin/bash", "-ec", "git init -qb main; git init -q sub"], cwd=root, check=True, env=bare())
    (root / name).unlink(missing_ok=True)
    run_at_fifo(root, name, BY_THEMSELVES[name])


def run_at_fifo(root: Path, name: str, line: str) -> None:
    write(root / "d/x", "x")
    os.mkfifo(root / name)
    pipe = os.open(root / name, os.O_RDWR | os.O_NONBLOCK)
    os.write(pipe, b"for others\n")
    for given in ({},) if str(root) in line else ({}, without_namespaces(root)):
        with open_shell(root, timeout_s=0.5, **given) as worker:
            answer = propose(worker, line)
        assert isinstance(answer, messages.Failed | messages.Done), answer
    assert os.read(pipe, 100) == b"for others\n"
    os.close(pipe)


def test_what_many_names_or_many_directories_match_is_rehearsed(tmp_path: Path) -> None:
    for at in range(5):
        write(tmp_path / f"d{at}/x", "x")
    with open_shell(tmp_path) as worker:
        for line, looks in {"echo d*": True, "echo */x": False, "echo " + "a " * 2001: False}.items():
            number = ran(propose(worker, f"{line}; {DEVICE}"))[0].splitlines()[-1]
            assert (number == device(tmp_path)) is looks, line


WATCHES_NOTHING = "import workers.shell.look as look; look.LookWatch.answer = lambda *_: -1\n"


@pytest.mark.parametrize("copies", [False, True], ids=["in a sandbox", "beside the copies"])
def test_the_root_is_read_only_even_where_nobody_watches(tmp_path: Path, copies: bool) -> None:
    write(tmp_path / "root/a", "a\n")
    entry = "import workers.__main__, workers.shell.sandbox.setup; workers.__main__.main()"
    given = without_namespaces(tmp_path / "root") if copies else {}
    with open_shell(tmp_path / "root", command=worker_command(WATCHES_NOTHING + entry), **given) as worker:
        printed, code = ran(propose(worker, "uniq a b"))
    assert code != 0
    assert "b: " in printed
    assert os.listdir(tmp_path / "root") == ["a"]


def test_who_asks_what_is_mounted_is_told_of_a_rehearsal(worker: RawWorker, root: Path) -> None:
    lines = [line.split() for line in ran(propose(worker, "cat /proc/self/mounts"))[0].splitlines()]
    assert [line[3].split(",")[0] for line in lines if line[1] == str(root)] == ["rw"]


def test_with_nobody_to_ask_everything_is_rehearsed(tmp_path: Path) -> None:
    with open_shell(tmp_path, command=worker_command(ASKED_ALREADY), forked=False) as worker:
        assert ran(propose(worker, DEVICE))[0] not in (device(tmp_path) + "\n", "")


def test_plan_mode_looks_too(root: Path) -> None:
    with open_shell(root, plan=True, writable=False) as worker:
        assert ran(propose(worker, DEVICE))[0] == device(root) + "\n"


def test_what_was_shown_before_a_rehearsal_is_shown_once(worker: RawWorker) -> None:
    send(worker.process, messages.Call(1, "run_cmd", b'{"command": "echo one; test -w . && echo two"}'))
    shown = ""
    while isinstance(answer := receive(worker.process), messages.Output):
        shown += answer.text
    assert ran(answer) == (shown, 0) == ("one\ntwo\n", 0)


@each_row(
    ("first", "second", "shown"),
    [
        (["one\n"], ["one\ntwo\n"], "one\ntwo\n"),
        (["one\n", "two\n"], ["one\n", "tw", "o\nthree\n"], "one\ntwo\nthree\n"),
        (["one\n"], ["other\n", "one\n"], "one\nother\none\n"),
        (["one\n"], ["o", "ther\n"], "one\nther\n"),
        ([], ["one\n"], "one\n"),
    ],
)
def test_a_second_run_shows_what_is_new(first: list[str], second: list[str], shown: str) -> None:
    parts: list[str] = []
    once = ShownOnce(parts.append)
    for text in first:
        once.show(text)
    for text in second:
        once.show_again(text)
    assert "".join(parts) == shown


def test_files_of_the_commands_own_may_be_written(worker: RawWorker, root: Path) -> None:
    lines = "seq 300000 | sort -S 64k -T /tmp | tail -n 1 2>/dev/null; ls missing &>/dev/null"
    assert ran(propose(worker, f"{lines}; {DEVICE}"))[0] == f"99999\n{device(root)}\n"
