"""A yes to an ordinary command, and what the same program then tries under the rule that it made: none is covered.

The last ones show that the ordinary command itself is covered again.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from supervisor.rules.judge_effects import judge_effects
from supervisor.rules.rule import Rule, problem_of
from supervisor.rules.started_programs import started_by
from supervisor.rules.suggest import suggested_rule
from tests.raw_worker import RawWorker
from tests.supervisor.changes import TODAY
from tests.supervisor.rules.test_git_rule import arguments, rehearsed
from tests.workers.shell.conftest import open_shell

FORMAT: Final = "sh tools/format.sh"
INSTALL: Final = "sh tools/install.sh"
BUILD: Final = "sh tools/build.sh"
TREE: Final = {
    "src/a.py": "a = 1\n",
    "src/b.py": "b = 1\n",
    "tools/format.sh": "for each in src/a.py src/b.py; do echo '# formatted' >> $each; done\n",
    "tools/install.sh": (
        "mkdir -p modules/links; for at in $(seq 9); do dir=modules/m$at; mkdir -p $dir; date +%s%N > $dir/index.js\n"
        "printf '#!/bin/sh\\n' > $dir/run; chmod 755 $dir/run; ln -sf ../m$at/run modules/links/m$at; done\n"
    ),
    "tools/build.sh": "rm -rf out/*; for at in 1 2 3 4 5 6 7 8 9; do mkdir -p out/d; date +%s%N > out/d/$at.o; done\n",
    "out/d/old.o": "old\n",
}


class Place(NamedTuple):
    """A root, a worker on it, and the rule that each ordinary command made."""

    root: Path
    worker: RawWorker
    rules: dict[str, Rule]

    def decided(self, ordinary: str, command: str) -> str:
        effects, proposed = rehearsed(self.worker, command)
        self.worker.decide(proposed, commit=False)
        return judge_effects([self.rules[ordinary]], started_by("run_cmd", arguments(command)), effects, TODAY).decision


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root: Path = tmp_path_factory.mktemp("made") / "root"
    root.mkdir()
    for path, text in TREE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "etc").symlink_to("/etc")
    rules = {}
    with open_shell(root) as worker:
        for command in (FORMAT, INSTALL, BUILD):
            effects, proposed = rehearsed(worker, command)
            worker.decide(proposed, commit=True)
            rule = suggested_rule(started_by("run_cmd", arguments(command)), effects, TODAY)
            assert rule is not None, command
            assert problem_of(rule) == ""
            rules[command] = rule
        yield Place(root, worker, rules)


NEVER: Final = [
    ("a link to the outside", "ln -sf /etc/passwd {0}"),
    ("a link that climbs out", "ln -sf ../../../../etc/passwd {0}"),
    ("a link by way of one that leads out", "ln -sf ../etc/passwd {0}"),
    ("a link that comes back", "ln -sf x/../../../y {0}"),
    ("a new link to the outside", "ln -s /etc {1}/z"),
    ("a pipe", "rm -f {0}; mkfifo {0}"),
    ("a new pipe", "mkfifo {1}/pipe"),
    ("a socket", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"{1}/s\")'"),
    ("a sticky directory", "chmod +t {1}"),
    ("a closed directory", "chmod 700 {1}"),
    ("a program", "cp /bin/true {0}; chmod 755 {0}"),
    ("a new program", "cp /bin/true {1}/true"),
    ("zeros that may run", "head -c 9 /dev/zero > {0}; chmod +x {0}"),
    ("anybody may write it", "chmod 666 {0}"),
    ("nobody may read it", "chmod 000 {0}"),
    ("attributes", "python3 -c \"import os; os.setxattr('{0}', 'user.x', b'y')\""),
    ("a directory in its place", "rm -f {0}; mkdir {0}; touch {0}/a"),
    ("a link in the place of its directory", "mv {1} gone; ln -s /tmp {1}"),
    ("many bytes", "head -c 5000000 /dev/zero > {0}"),
    ("many files", "for at in $(seq 2000); do echo > {1}/$at; done"),
    ("another directory", "echo x > src/c.py"),
    ("a file of the root", "echo x > evil.py"),
    ("another's place", "echo x > tools/format.sh"),
    ("the root's mode", "chmod 700 ."),
    ("a repository", "mkdir -p {1}/.git/refs/heads; echo x > {1}/.git/refs/heads/main"),
    ("objects", "mkdir -p {1}/.git/objects; echo x > {1}/.git/objects/x"),
    ("the network", "echo x > {0}; python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 1)\""),
    ("a name that folds", "mkdir -p {1}/.GIT/refs; echo x > {1}/.GIT/refs/x"),
    ("hooks", "mkdir -p {1}/hooks; echo x > {1}/hooks/post-checkout"),
    ("settings", "mkdir -p {1}/.vscode; echo x > {1}/.vscode/tasks.json"),
]
UNDER: Final = [(FORMAT, "src/a.py", "src"), (INSTALL, "modules/m1/index.js", "modules"), (BUILD, "out/d/1.o", "out")]
BESIDES: Final = [
    ("a format deletes", FORMAT, "rm src/a.py"),
    ("a format makes it run", FORMAT, "chmod +x src/a.py"),
    ("a format links", FORMAT, "ln -sf b.py src/a.py"),
    ("an install deletes", INSTALL, "rm modules/m1/index.js"),
    ("a build makes a text run", BUILD, "chmod +x out/d/1.o"),
    ("a build links", BUILD, "ln -s 1.o out/d/l"),
    ("a build links hard", BUILD, "ln out/d/1.o out/d/hard"),
]
WAYS: Final = [
    *(
        (f"{ordinary}: {name}", ordinary, text.replace("{0}", file).replace("{1}", folder))
        for ordinary, file, folder in UNDER
        for name, text in NEVER
        if (ordinary, name) != (BUILD, "a directory in its place")  # as a build may delete what the last one made
    ),
    *BESIDES,
]


@pytest.mark.parametrize(("ordinary", "script"), [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
def test_another_kind_of_effect_is_asked_about(place: Place, ordinary: str, script: str) -> None:
    (place.root / "tools/hostile.sh").write_text(script)
    assert place.decided(ordinary, "sh tools/hostile.sh") == "ask"


@pytest.mark.parametrize("ordinary", [FORMAT, INSTALL, BUILD])
def test_the_ordinary_command_is_covered_again(place: Place, ordinary: str) -> None:
    assert place.decided(ordinary, ordinary) == "allow"
