"""Which effects are an install's alone, and need no second yes."""

import json
from typing import Any, Final

import pytest

from supervisor.rules.install_effects import only_installs
from supervisor.rules.installers import Install, covers, install_of
from supervisor.rules.rule import Rule
from tests.each_row import each_row
from tests.supervisor.changes import change as changed
from workers.changes.effects import Change, Effects, FoldedNames, Kind, NodeState


def change(path: str, kind: Kind = "file", target: str = "", **more: Any) -> Change:
    return Change(path, "added", None, NodeState(kind, 0o755, target=target), **more)


def link(path: str, target: str) -> Change:
    return change(path, "link", target, leaves=True)


WANTED: Final = [
    (change(".venv/lib/x.py"), True),
    (link(".venv/bin/python", "/usr/bin/python3"), True),
    (link("tools/.venv/bin/python3.11", "/root/.pyenv/versions/3.11.7/bin/python3.11"), True),
    (link(".venv/bin/python", "/etc/shadow"), False),
    (link(".venv/bin/python", "/../../bin/python"), False),
    (link(".venv/bin/pip", "/usr/bin/python3"), False),
    (link(".venv/lib/bin/python", "/usr/bin/python3"), False),
    (link("bin/python", "/usr/bin/python3"), False),
    (change("src/_version.py", ignored=True), True),
    (change("conftest.py", ignored=True, level="asked"), False),
    (change(".git/hooks/x", ignored=True, protected="git runs it"), False),
    (link("data", "/etc"), False),
    (change("src/app.py"), False),
]


@each_row(("one", "its"), WANTED, ids=[f"{each.path} {each.leaves}" for each, _ in WANTED])
def test_what_an_install_changes_is_told_from_the_rest(one: Change, its: bool) -> None:
    assert only_installs(Effects((one,), {"added": 1}, b""), ["pypi"]) is its
    assert only_installs(Effects((one,), {"added": 1}, b""), ["npm"]) is (its and one.ignored)


PYPI: Final = [
    ("a manifest in which dependencies change", changed("~ pyproject.toml", only_dependencies=True), True),
    ("a manifest in which more does", changed("~ pyproject.toml"), False),
    ("a lock file", changed("~ sub/uv.lock"), True),
    ("one of another registry", changed("~ package-lock.json"), False),
    ("one that goes", changed("- uv.lock"), False),
    ("one that can be run", change("uv.lock"), False),
    ("the directory", changed("+ .venv/"), True),
    ("a file in its place", changed("+ .venv"), False),
    ("a directory of a package", changed("+ tiny.egg-info/PKG-INFO"), True),
    ("one that is called alike", changed("+ egg-info.tiny/x"), False),
    ("a repository among packages", changed("+ .venv/src/.git/config"), False),
    ("packages in a repository", changed("+ .git/.venv/x"), False),
    ("a pipe among packages", change(".venv/x", "fifo"), False),
    ("a set-user-ID bit", Change(".venv/x", "added", None, NodeState("file", 0o4755)), False),
    ("one that was withheld", changed("+ .venv/x", withheld=0o4000), False),
    ("one that is ignored", changed("+ x", ignored=True, withheld=0o4000), False),
    ("a second name", changed("+ .venv/x", same_as="a.py"), False),
    ("a second name of what lies beside it", changed("+ .venv/x", same_as=".venv/y"), True),
    ("a second name of other packages", changed("+ .venv/x", same_as="sub/.venv/y"), False),
    ("a file with other names", changed("~ .venv/x", linked=True), False),
    ("what somebody else changes", changed("~ .venv/x", meanwhile=True), False),
]


@each_row(("one", "its"), [row[1:] for row in PYPI], ids=[row[0] for row in PYPI])
def test_an_install_changes_packages_lock_files_and_dependencies(one: Change, its: bool) -> None:
    assert only_installs(Effects((one,), {one.what: 1}, b""), ["pypi"]) is its


YARN: Final = [
    (change(".yarn", "dir", protected="yarn runs it"), True),
    (changed("+ web/.yarn/install-state.gz", protected="yarn runs it"), True),
    (changed("~ .yarn/build-state.yml"), True),
    (changed("+ .yarn/cache/x-1.zip"), True),
    (changed("- .yarn/unplugged/x-1/node_modules/x/index.js"), True),
    (changed("- .yarn/install-state.gz"), False),
    (changed("+ .yarn"), False),
    (change(".yarn", "link", "/tmp"), False),
    (change(".yarn/install-state.gz", "dir"), False),
    (changed("+ .yarn/releases/yarn.cjs"), False),
    (changed("+ .yarn/plugins/x.cjs"), False),
    (changed("+ x.yarn/cached/y"), False),
]


@each_row(("one", "its"), YARN, ids=[f"{each.what} {each.path} {its}" for each, its in YARN])
def test_yarn_keeps_the_state_of_an_install_and_runs_nothing_of_it(one: Change, its: bool) -> None:
    assert only_installs(Effects((one,), {one.what: 1}, b""), ["npm"]) is its
    assert not only_installs(Effects((one,), {one.what: 1}, b""), ["pypi"])


LOADERS: Final = [
    (change(".pnp.cjs", protected="node loads it"), True),
    (Change(".pnp.cjs", "modified", NodeState("file", 0o755), NodeState("file", 0o755), tracked=True), True),
    (change(".pnp.loader.mjs"), False),
    (change("web/.pnp.cjs", protected="node loads it"), False),
    (change(".pnp.cjs", "link", "/tmp/x"), False),
    (Change(".pnp.cjs", "added", None, NodeState("file", 0o4755)), False),
    (changed("- .pnp.cjs"), False),
    (changed("+ .pnp.cjs", withheld=0o4000), False),
    (changed("~ .pnp.cjs", linked=True), False),
]


@each_row(("one", "its"), LOADERS, ids=[f"{each.what} {each.path} {its}" for each, its in LOADERS])
def test_a_file_by_which_packages_are_found_is_an_install_s_where_the_question_named_it(one: Change, its: bool) -> None:
    found = Effects((one,), {one.what: 1}, b"")
    assert only_installs(found, ["npm"], loaders=(".pnp.cjs",)) is its
    assert not only_installs(found, ["npm"])


NOT_ITS_OWN: Final = [
    changed("- vendor/own/a.go", tracked=True),
    changed("~ .git/refs/heads/go.sum"),
    changed("~ sub/.git/go.mod", only_dependencies=True),
]


@pytest.mark.parametrize("one", NOT_ITS_OWN, ids=[each.path for each in NOT_ITS_OWN])
def test_what_git_tracks_or_keeps_for_itself_is_no_install_s(one: Change) -> None:
    assert not only_installs(Effects((one,), {one.what: 1}, b""), ["go"], builds=True)


@pytest.mark.parametrize("line", ["npx ''", "npx '' x", "; ".join(["npm i x"] * 9)])
def test_a_line_that_is_not_understood_installs_nothing(line: str) -> None:
    assert install_of("run_cmd", json.dumps({"command": line})) is None


def test_what_is_not_listed_is_no_install_s() -> None:
    assert not only_installs(Effects((WANTED[0][0],), {"added": 2}, b"", left_out={"added": 1}), ["pypi"])


def test_what_git_ignores_and_was_there_is_not_an_install_s_to_remove() -> None:
    gone = changed("- data/x", ignored=True)
    assert not only_installs(Effects((gone,), {"deleted": 1}, b""), ["npm"])


@pytest.mark.parametrize("name", ["package-lock.json", "package.json"])
def test_packages_come_from_the_places_that_the_question_named(name: str) -> None:
    one = changed(f"~ {name}", places=("npm.example:443",), only_dependencies=True)
    found = Effects((one,), {"modified": 1}, b"")
    assert only_installs(found, ["npm"], places={"npm.example:443"})
    assert not only_installs(found, ["npm"], places={"npm.example:80"})


PROGRAM: Final = NodeState("file", 0o755)
BUILT: Final = {
    "what cargo builds": (changed("+ target/debug/app"), True),
    "its second name": (changed("+ target/debug/app", same_as="target/debug/deps/app"), True),
    "a second name of another": (changed("+ target/debug/app", same_as="src/main.rs"), False),
    "a set-user-ID bit": (changed("+ target/debug/app", withheld=0o4000), False),
    "another directory": (changed("+ core/target/x"), False),
    "a program": (Change("bin/app", "added", None, PROGRAM), True),
    "a newer one": (Change("bin/app", "modified", PROGRAM, PROGRAM), True),
    "what was none": (Change("bin/app", "modified", NodeState("file", 0o644), PROGRAM), False),
    "a text": (Change("bin/app", "added", None, PROGRAM, diff="+#!/bin/sh"), False),
    "a program of another name": (Change("bin/other", "added", None, PROGRAM), False),
    "a link": (link("bin/app", "/bin/sh"), False),
    "what is obeyed": (Change("bin/app", "added", None, PROGRAM, level="told"), False),
}


@each_row(("one", "its"), BUILT.values(), ids=BUILT)
def test_a_build_changes_what_it_builds_besides(one: Change, its: bool) -> None:
    deps = changed("+ target/debug/deps/app")
    found = Effects((one, deps), {"added": 2}, b"")
    assert only_installs(found, ["crates"], builds=True, outputs=("bin/app",)) is its
    assert not only_installs(found, ["crates"])


FOLDED: Final = {
    "all of it, among packages": ((FoldedNames("web/node_modules", {"added": 3}, b""),), True),
    "but one": ((FoldedNames("web/node_modules", {"added": 2}, b""),), False),
    "another registry's": ((FoldedNames(".venv", {"added": 3}, b""),), False),
    "in a directory beneath": ((FoldedNames("node_modules/a", {"added": 3}, b""),), False),
    "anywhere": ((FoldedNames("src", {"added": 3}, b""),), False),
}


@each_row(("folded", "its"), FOLDED.values(), ids=FOLDED)
def test_names_that_are_told_together_are_an_install_s_where_packages_lie(
    folded: tuple[FoldedNames, ...], its: bool
) -> None:
    assert only_installs(Effects((), {"added": 3}, b"", left_out={"added": 3}, folded=folded), ["npm"]) is its


COVERED: Final = [
    (Rule("allow", registries=("npm", "pypi")), True),
    (Rule("allow", ("npm", "pip"), registries=("npm", "pypi")), True),
    (Rule("allow", ("npm",), registries=("npm", "pypi")), False),
    (Rule("allow", registries=("npm",)), False),
    (Rule("allow", writes=("**",), network=True), False),
    (Rule("ask", registries=("npm", "pypi")), False),
]


@each_row(("rule", "does"), COVERED)
def test_a_rule_covers_installs_from_its_registries_by_its_programs(rule: Rule, does: bool) -> None:
    install = Install(("npm", "pypi"), ("npm", "pip"), "npm ci", alone=True)
    assert covers(rule, install) is does
    assert not covers(rule, install._replace(alone=False))


COMMANDS: Final = {
    "npm ci": (("npm",), True),
    "npm --silent install left-pad": (("npm",), True),
    "yarn": (("npm",), True),
    "yarn build": None,
    "python3 -m pip install -r requirements.txt": (("pypi",), True),
    ".venv/bin/pip install x": (("pypi",), True),
    "uv pip install x && cargo fetch": (("pypi", "crates"), True),
    "cd web && pnpm i > /dev/null": (("npm",), True),
    "go mod download; ./run": (("go",), False),
    "npm test": None,
    "cargo build": (("crates",), True),
    "cd core && cargo +nightly test --locked": (("crates",), True),
    "go test ./... | tail": (("go",), True),
    "npx --no-install tape": None,
    "npx ./tool": None,
    "npx tape": (("npm",), True),
    "uv run pytest": (("pypi",), True),
    "cargo": None,
    "go vet --offline": None,
    "npm install --offline": None,
    "npm install --help": None,
    "python3 -m": None,
    "pip install --no-index x": None,
    "npm install $(cat names)": None,
    "eval npm install": None,
    "CI=1 NODE_ENV=test npm ci": (("npm",), True),
    "PATH=. npm install": None,
    "npm_config_registry=https://evil.example npm install": None,
    "X=$(run) npm install": None,
    "X=1": None,
    "bundle": (("rubygems",), True),
    "bundle add rake": (("rubygems",), True),
    "bundle exec rake": None,
    "bundle install --local": None,
    "gem install rake": (("rubygems",), True),
    "composer require a/b": (("packagist",), True),
    "composer test": None,
    "yarn -v": None,
    "echo npm install": None,
    "pip list install": None,
    "source .venv/bin/activate && pip install x": (("pypi",), True),
    "cd api; . ./venv/bin/activate; pip install -r requirements.txt | grep -v already": (("pypi",), True),
    "python3 -m venv .venv && source .venv/bin/activate && pip install x": (("pypi",), False),
    "set -euo pipefail; export CI=1 FORCE_COLOR=0; npm ci 2>&1 | tail -5": (("npm",), True),
    "timeout -k 5 300 npm ci": (("npm",), True),
    "time env CI=1 npm ci": (("npm",), True),
    "npm ci | tee log": (("npm",), False),
    "tox -e py311 -- -q": (("pypi",), True),
    "source ../other/bin/activate && pip install x": None,
    "source activate.sh && pip install x": None,
    "source $VENV/bin/activate && pip install x": None,
    "export PATH=bin; pip install x": None,
    "export PIP_INDEX_URL=https://x.example/; pip install x": None,
    "set -- npm ci": None,
    "timeout 5": None,
    "env": None,
}


@each_row("command", COMMANDS)
def test_installs_are_known_by_their_words(command: str) -> None:
    install = install_of("run_cmd", json.dumps({"command": command}))
    assert (install and (install.registries, install.alone)) == COMMANDS[command]


def test_what_seldom_fetches_is_no_reason_to_ask_beforehand() -> None:
    lines = ("tox", "hatch test", "tox; pip install x")
    found = [install_of("run_cmd", json.dumps({"command": each})) for each in lines]
    assert [each and each.always for each in found] == [False, False, True]


OUTPUTS: Final = {
    "go build -o bin/app ./cmd/x": ("bin/app",),
    "cd web && go build ./cmd/tool": ("web/tool",),
    "go build -o ../app": (),
    "go build -o /bin/app": (),
    "go test ./...": (),
}


@each_row("command", OUTPUTS)
def test_what_go_builds_is_known_by_its_words(command: str) -> None:
    install = install_of("run_cmd", json.dumps({"command": command}))
    assert install is not None
    assert install.locked[0].outputs == OUTPUTS[command]
