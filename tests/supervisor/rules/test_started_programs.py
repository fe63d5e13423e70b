"""The programs that a text starts: those that a real shell would, or none that are known."""

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from supervisor.rules.started_programs import Started, making_programs, started_by
from tests.each_row import each_row

STARTED: Final = [
    ("git status", ("git",)),
    ("  git   status  ", ("git",)),
    ("git add . && git commit -m 'two words; and more' || touch x", ("git", "touch")),
    ("ls -la | grep x | wc -l", ("ls", "grep", "wc")),
    ("touch a; touch b;", ("touch",)),
    ("make\ntouch b\n", ("make", "touch")),
    ("cd sub && npm run build", ("npm",)),
    ("cargo build 2>&1 | tail -n 5 >/dev/null", ("cargo", "tail")),
    ("touch *.o src/?.c ~/x {a,b}", ("touch",)),
    ("'git' x && \"npm\" y && g\\it", ("git", "npm")),
    ("./build.sh && /usr/bin/git x", ("./build.sh", "/usr/bin/git")),
    ("git commit -m 'it costs $5 `now`'", ("git",)),
    ("touch a=b", ("touch",)),
    ("a &&\n b", ("a", "b")),
]

NOT_UNDERSTOOD: Final = [
    "", "cd x", "echo hi", "touch $HOME", 'touch "$HOME"', "touch $(ls)", "touch `ls`", "touch a > b", "touch a >> b",
    "cat < a", "cat <<E\nE", "touch a 2>&b", "touch a >/dev/nullx", "A=b git x", "A=b", "a[0]=b git", "(git x)",
    "{ git x; }", "! git x", "if git x; then touch y; fi", "for x in a; do touch b; done", "git() { rm x; }; git",
    "time git x", "export PATH=.; git x", "alias git=rm; git x", "eval rm x", ". ./x", "source x", "exec rm x",
    "command rm x", "printf -v PATH . && git x", "hash -p ./x git && git x", "git x &", "git x & touch y", "git x &&",
    "git x |& touch y", "| git", "git ;; touch", "git x # touch y", "g?t x", "~/git x", "git 'x", 'git "x',
    "git \\\n x", "git\\", "git x\0", "git x\r\nrm y", "git\u00a0x", "git " + "x" * 70_000,
]  # fmt: skip


@each_row(("text", "expected"), STARTED, ids=[repr(text) for text, _ in STARTED])
def test_programs_are_those_of_plain_commands(text: str, expected: tuple[str, ...]) -> None:
    assert started_by("run_cmd", json.dumps({"command": text})).programs == expected


@each_row("text", NOT_UNDERSTOOD, ids=lambda text: repr(text[:24]))
def test_a_text_that_is_more_than_plain_commands_has_no_programs(text: str) -> None:
    assert started_by("run_cmd", json.dumps({"command": text})).programs is None


def test_programs_of_a_call_without_a_shell_are_its_one() -> None:
    assert started_by("exec_shell", '{"command": "git", "args": ["&&", "rm"]}').programs == ("git",)
    assert started_by("exec_shell", '{"command": "a; b"}').programs == ("a; b",)
    assert started_by("write_file", '{"command": "git"}').programs == ()


@each_row("arguments", ["", "{}", "[]", '{"command": 3}', '{"command": ""}', "{", "[" * 10_000, "\udc80"])
@each_row("tool", ["exec_shell", "run_cmd"])
def test_arguments_that_are_none_have_no_programs(tool: str, arguments: str) -> None:
    assert started_by(tool, arguments).programs is None


TOKENS: Final = [
    "git", "touch", "'git'", "g\\it", '"touch"', "cd", "echo", ":", "true", "false", "export", "X=1", "printf", "if",
    "then", "fi", "{", "}", "(", ")", "&&", "||", ";", "|", ";;", "&", ">", "<", "<<", "2>&1", ">/dev/null", "*",
    "$X", "$(touch)", "`touch`", "#", "!", "time", "exec", "eval", "command", "a", "b", "'a;b'", '"$(git)"', "\\;",
    "&&", ";", "|", "git", "touch",
]  # fmt: skip
SHELL: Final = """
exec 9>log
PATH=/nowhere
command_not_found_handle() { echo "$at $1" >&9; }
at=0
for text in "$@"; do
    (eval "$text") >/dev/null 2>&1 </dev/null
    at=$((at + 1))
done
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_a_real_shell_starts_no_other_programs_than_those_that_are_told(tmp_path: Path) -> None:
    chance = random.Random(7)
    drawn = [
        chance.choice(["", " "]).join(chance.choices([*TOKENS, "\n", " "], k=chance.randint(1, 7))) for _ in range(4000)
    ]
    texts = {text: found for text in drawn if (found := started_by("run_cmd", json.dumps({"command": text})).programs)}
    assert len(texts) > 100
    subprocess.run(["bash", "-c", SHELL, "bash", *texts], cwd=tmp_path, env={}, timeout=60, check=True)
    lines = [line.split(" ", 1) for line in (tmp_path / "log").read_text().splitlines()]
    assert {name for _, name in lines} >= {"git", "touch"}
    told = list(texts.items())
    assert [(told[int(at)], name) for at, name in lines if name not in told[int(at)][1]] == []


GIT: Final = [
    ("git commit -m x", ("commit",)),
    ("git add -A && git commit -qm 'x; y' && ls", ("add", "commit")),
    ("git 'commit' -m x", ("commit",)),
    ("git add *.py", ("add",)),
    ("ls", ()),
    ("git commit --amend", ("commit --amend",)),
    ("git commit '--am'", ("commit --amend",)),
    ("git commit -m \"*\" -m '{a,b}' -m \\*", ("commit",)),
    ("git commit a*", None),
    ("git commit -m 'a'[b]", None),
    ("git commit {--amend,}", None),
    ("git commit ~", None),
    ("git", None),
    ("git -c a.b=c commit", None),
    ("git -C x commit", None),
    ("git --git-dir=x commit", None),
    ("git Commit", None),
    ("git ../x", None),
    ("/usr/bin/git commit", None),
    ("./git commit", None),
    ("git commit $(x)", None),
]


@each_row(("text", "expected"), GIT, ids=[text for text, _ in GIT])
def test_subcommands_of_git_are_those_right_behind_it(text: str, expected: tuple[str, ...] | None) -> None:
    assert started_by("run_cmd", json.dumps({"command": text})).git == expected


def test_words_that_no_shell_reads_are_what_they_are() -> None:
    words = {"command": "git", "args": ["commit", "-m", "*"]}
    assert started_by("exec_shell", json.dumps(words)) == Started(("git",), ("commit",))
    words["args"] = ["-c", "a.b=c", "commit"]
    assert started_by("exec_shell", json.dumps(words)) == Started(("git",), None)
    assert started_by("write_file", "{}") == Started(())
    assert started_by("no_tool", "{}") == Started(None, None)


LAUNCHED: Final = [
    ("sh -c 'rm a'", True),
    ("/bin/bash -ec 'rm a'", True),
    ("ls | xargs rm", True),
    ("env rm a", True),
    ("touch b; busybox rm a", True),
    ("find . -name a -exec rm a +", True),
    ("find . -delete", False),
    ("sh build.sh", False),
    ("make clean", False),
    ("rm a", False),
]


@each_row(("text", "launches"), LAUNCHED, ids=[text for text, _ in LAUNCHED])
def test_a_program_behind_another_may_be_any(text: str, launches: bool) -> None:
    started = started_by("run_cmd", json.dumps({"command": text}))
    assert (started.launches, started.programs is not None) == (launches, True)


def test_of_very_many_commands_nothing_is_known() -> None:
    for count, programs in ((500, ("ls",)), (501, None)):
        assert started_by("run_cmd", json.dumps({"command": "ls x;" * count})).programs == programs


MAKING: Final = {
    "sed -i 's/a - b/a + b/' src/add.ts && npx vitest run": ("npx",),
    "mkdir -p src/x; touch src/x/y.js; npm test": ("npm",),
    "sed -i s/1/2/ app.js": ("sed",),
    "sed -i s/1/2/ node_modules/x/index.js && npm test": ("sed", "npm"),
    "sed -i s/1/2/ no*/x/index.js && npm test": ("sed", "npm"),
    "sed -n 'w x/y' app.js && npm test": ("sed", "npm"),
    "sed '1e ./run' app.js && npm test": ("sed", "npm"),
    "sed s/a/b/e app.js && npm test": ("sed", "npm"),
    "cp a.js ../b && npm test": ("cp", "npm"),
    "rm -rf node_modules && npm test": ("rm", "npm"),
    "sed -i 's|x|./run|e' app.js && npm test": ("sed", "npm"),
    "sed -n '/x/{w y' app.js && npm test": ("sed", "npm"),
    "sed -nf edits app.js && npm test": ("sed", "npm"),
    "sed -i -e 's|we are|x|' app.js && npm test": ("npm",),
    "cd node_modules/x && sed -i s/1/2/ index.js; cd -; npm test": ("sed", "npm"),
    "cd no*/x && sed -i s/1/2/ index.js; npm test": ("sed", "npm"),
    "cd /srv/app && sed -i s/1/2/ app.js && npm test": ("npm",),
    "npm test > $LOG": None,
}


@each_row("line", MAKING)
def test_edits_beside_a_program_say_nothing_of_what_it_makes(line: str) -> None:
    assert making_programs("run_cmd", json.dumps({"command": line})) == MAKING[line]
