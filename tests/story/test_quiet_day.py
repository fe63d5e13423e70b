"""A day's commands in projects as people have them: how often a person is asked, and about what.

Each project is one row: what is in it, what the model runs, and how many questions that may be. Outputs that git
ignores are none; what is planted where git ignores it, and programs obey it, is one.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import trio

from supervisor.categories.shell import ShellConfig
from supervisor.config.config_keys import Config
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.pool.pools import Pools
from supervisor.session.child_specs import child_spec
from tests.raw_worker import forked
from tests.supervisor.tools.test_execution import UNASKED, Site, yes

TEST: Final = """
import added, unittest

class T(unittest.TestCase):
    def test(self):
        assert added.add(1, 2) == 3
"""
PYTHON: Final = {
    "added.py": "def add(a, b):\n    return a + b\n",
    "test_added.py": TEST,
    ".gitignore": "__pycache__/\n*.log\n/htmlcov/\nreport.xml\n.venv/\n",
}
C: Final = {
    "src/app.c": "int main(void) { return 0; }\n",
    "Makefile": "build/app: build/app.o\n\tcc -o $@ $<\nbuild/app.o: src/app.c\n\tmkdir -p build; cc -c -o $@ $<\n"
    "clean:\n\trm -rf build\n",
    ".gitignore": "/build/\n",
}
CMAKE: Final = {
    "app.c": "int main(void) { return 0; }\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.13)\nproject(x C)\nenable_testing()\n"
    "add_executable(app app.c)\nadd_test(NAME app COMMAND app)\n",
    ".gitignore": "/build/\n",
}
CMAKE_BUILD: Final = (
    "cmake -S . -B build >/dev/null && cmake --build build 2>&1 | tail -3 && ctest --test-dir build 2>&1 | tail -n 4"
)
NODE_TEST: Final = """
const fs = require('fs')
for (const place of ['coverage', 'node_modules/.cache']) {
  fs.mkdirSync(place, {recursive: true})
  fs.writeFileSync(`${place}/x`, String(Date.now()))
}
"""
NODE: Final = {
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "node test.js"}}\n',
    "test.js": NODE_TEST,
    "node_modules/dep/index.js": "module.exports = 1\n",
    ".gitignore": "node_modules\ncoverage\n",
}
RUST: Final = {
    "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/main.rs": "fn main() {}\n#[test]\nfn works() {}\n",
    ".gitignore": "/target\n",
}
SHELL: Final = {
    "test.sh": "mkdir -p out tmp/deep; date +%s%N > out/now; date > tmp/deep/x.log; rm -rf out/old; echo passed\n",
    "tool/.gitignore": "*\n!.gitignore\n!kept\n",
    "tool/kept": "kept\n",
    ".gitignore": "/out/\n*.log\n",
    ".venv/bin/activate": "",
}


class Project(NamedTuple):
    """One row."""

    needs: str
    """A program."""
    files: Mapping[str, str]
    commands: tuple[str, ...]
    questions: int


PYTEST: Final = f"{sys.executable} -m pytest -q"
PLANT: Final = f"{sys.executable} -c \"import os; os.mkdir('.venv'); open('.venv/x.pth', 'w').write('import os')\""
ROWS: Final = {
    "unittest": Project("", PYTHON, (f"{sys.executable} -m unittest -q",) * 2, 0),
    "pytest": Project("", PYTHON, (f"{PYTEST} --junitxml=report.xml", f"touch added.py; {PYTEST} > run.log"), 0),
    "make": Project("cc", C, ("make", "make", "touch src/app.c; make", "make clean", "make"), 0),
    "make, and a change": Project("cc", C, ("make", "sed -i s/0/1/ src/app.c && make"), 1),
    "make of CMake, and its output cut": Project(
        "cmake", CMAKE, (CMAKE_BUILD, "cmake --build build --target clean"), 0
    ),
    "npm test": Project("npm", NODE, ("npm test", "npm test --silent"), 0),
    "cargo": Project("cargo", RUST, ("cargo build --offline", "cargo test --offline", "cargo clean --offline"), 1),
    "a script": Project("", SHELL, ("sh test.sh", "mkdir -p out/old && sh test.sh", "sh test.sh"), 0),
    "a nested list": Project("", SHELL, ("echo x > tool/new", "rm tool/new"), 0),
    "what is tracked there": Project("", SHELL, ("echo x > tool/kept", "rm tool/kept"), 2),
    "no list says so": Project("", SHELL, ("echo x > new",), 1),
    "the list, and what it then has": Project("", SHELL, ("echo '*' > .gitignore; echo x > new",), 1),
    "a new list beside": Project("", SHELL, ("mkdir d; echo '*' > d/.gitignore; echo x > d/new",), 1),
    "a list of one's own": Project("", SHELL, ("mkdir -p .git/info; echo '*' > .git/info/exclude; echo x > new",), 1),
    "what programs obey": Project("", {**SHELL, ".gitignore": "*"}, ("echo x > .env", "echo x > conftest.py"), 2),
    "an environment": Project("", PYTHON, ("mkdir -p .venv/bin; cp /bin/true .venv/bin/python",), 1),
    "a package": Project("", NODE, ("echo 1 > node_modules/dep/index.js", "rm -rf node_modules/dep"), 2),
    "a run that plants": Project("", PYTHON, (PLANT,), 1),
    "a link to the outside": Project("", SHELL, ("mkdir -p out; ln -s /etc out/etc",), 1),
    "a link in place of a directory": Project("", SHELL, ("rm -rf out; ln -s tool out; echo x > out/kept",), 1),
}


@pytest.fixture
async def site(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[Site]:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    own = tuple(dict.fromkeys((sys.prefix, sys.base_prefix)))
    settings = Settings(Config(sections=(ShellConfig(toolchains=("known", *own)),)), tmp_path / "config.toml", home)
    profile = Profile("unasked", str(root), UNASKED.tools)
    pools = Pools(str(root), lambda category: forked(child_spec(settings, profile, category)), nursery)
    yield Site(root, home, pools)
    await pools.close()


def begin(root: Path, files: Mapping[str, str]) -> None:
    """Make a repository of a project, with its first commit."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    kept = [["add", "-f", "tool"]] if "tool/kept" in files else []
    for words in (["init", "-q"], ["add", "-A"], *kept, ["commit", "-qm", "begin"]):
        subprocess.run([*git, *words], cwd=root, check=True)


def has(program: str) -> bool:
    places = f"/usr/local/bin:/usr/bin:/bin:{os.path.expanduser('~/.cargo/bin')}"
    return not program or shutil.which(program, path=places) is not None


@pytest.mark.parametrize("row", ROWS.values(), ids=[*ROWS])
async def test_a_person_is_asked_so_often(site: Site, row: Project) -> None:
    if not has(row.needs):
        pytest.skip(f"there is no {row.needs}")
    begin(site.root, row.files)
    for command in row.commands:
        ended = await site.run(site.router(UNASKED, yes), command, tool="run_cmd")
        assert ended.ok, ended
        assert '"exit_code":0' in ended.content, ended
    reasons = [ask.reason for ask in site.asked]
    assert len(reasons) == row.questions, reasons
    assert not any("target/" in reason or "build/" in reason for reason in reasons)
