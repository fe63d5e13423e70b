"""Installs from a registry: asked about once and beforehand, and nothing half done where the registry fails.

Everything is real: the daemon, its workers, the broker, pip and npm, and a registry on loopback, which is a mirror that
the operator named.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from supervisor.journal.facts import CallDecided, CallEnded
from tests.authority import Authority
from tests.daemon_process import ASK, DaemonProcess, Lines, scripted
from tests.registry_server import Fault, RegistryServer, go_sums
from tests.supervisor.command import Home
from tests.supervisor.histories import call

CONFIG: Final = """
[web]
resolve = {{ "registry.test:443" = "127.0.0.1:{port}" }}
ca_file = "{authority}"
[registries]
pypi = "https://registry.test/simple"
npm = "{url}"
crates = "{url}/crates"
go = "{url}/go"
rubygems = "{url}/gems"
packagist = "{url}/php"
[shell]
programs = ["python3", "npm", "sh", "cargo", "go", "bundle", "composer"]
env = {{ GOSUMDB = "off", BUNDLE_SILENCE_ROOT_WARNING = "1" }}
toolchains = {toolchains}
timeout_s = 60
"""
PIP: Final = ["python3", "-m", "pip", "install", "-q", "--prefix", ".venv", "tiny"]
NPM: Final = ["npm", "install", "tiny"]


class Site:
    """A daemon whose registries are one server."""

    def __init__(self, daemon: DaemonProcess, registry: RegistryServer, folder: Path) -> None:
        self.daemon = daemon
        self.registry = registry
        self._folder = folder
        self._roots = 0

    def root(self) -> Path:
        """Return a new root."""
        self._roots += 1
        root = self._folder / f"root-{self._roots}"
        root.mkdir()
        return root

    def run(
        self, root: Path, *commands: list[str] | str, option: str = "allow_once", profile: str = "project", **given: Any
    ) -> tuple[list[str], list[Any]]:
        """Run commands in a session; return what was asked, and the facts."""
        calls = [
            {"calls": [call("run_cmd", command=each, **given)]}
            if isinstance(each, str)
            else {"calls": [call("exec_shell", command=each[0], args=each[1:], **given)]}
            for each in commands
        ]
        model = scripted(self._folder / f"model-{self._roots}.jsonl", *calls, {"text": "Done."})
        with self.daemon.client() as client:
            session = client.new_session(root, model=model, profile=profile)
            return asked(client, session, option), self.daemon.sessions[session]


def asked(client: Lines, session: str, option: str) -> list[str]:
    """Say something, answer what is asked, and return the questions."""
    prompt, questions = client.begin_prompt(session, "Go on."), []
    while (message := client.read()).get("id") != prompt or "method" in message:
        if message.get("method") == ASK:
            questions.append(str(message["params"]))
            offered = [each["optionId"] for each in message["params"]["options"]]
            client.choose(message, option if option in offered else offered[0])
    return questions


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("installs")
    home = folder / "home"
    toolchains = ["path"] if sys.base_prefix.startswith("/usr") else [sys.base_prefix, "path"]
    authority = Authority()
    file = authority.write(folder / "authority.pem")
    with RegistryServer(authority) as registry:
        words = {"url": registry.url, "port": registry.port, "authority": file, "toolchains": toolchains}
        Home(home, home).configure(CONFIG.format(**words))
        with DaemonProcess(home, folder) as daemon:
            yield Site(daemon, registry, folder)


@pytest.fixture(autouse=True)
def working(site: Site) -> Iterator[None]:
    yield
    site.registry.fault, site.registry.scripts = "", {}


def of(facts: list[Any], kind: type) -> list[Any]:
    return [fact for fact in facts if isinstance(fact, kind)]


WAYS: Final = {"pip": (PIP, ".venv"), "npm": (NPM, "node_modules")}


@pytest.mark.parametrize(("command", "directory"), WAYS.values(), ids=WAYS)
def test_an_install_is_one_question_and_one_run(site: Site, command: list[str], directory: str) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    root = site.root()
    site.registry.asked.clear()
    questions, facts = site.run(root, command)
    (ended,) = of(facts, CallEnded)
    assert ended.ok, ended
    assert '"exit_code":0' in ended.content, ended
    assert len(questions) == 1, questions
    wanted = {".venv": "registry.test:443", "node_modules": f"127.0.0.1:{site.registry.port}"}[directory]
    assert f"wants {wanted}" in questions[0]
    assert len(site.registry.asked) == len(set(site.registry.asked)) == 2
    assert list((root / directory).rglob("tiny*"))
    before, decided = of(facts, CallDecided)
    assert (before.network, before.committed, before.approved) == (True, False, True)
    assert decided.committed
    assert {each.after.digest for each in decided.effects.changes if each.after.kind == "file"} - {b""}


FAILS: Final[tuple[tuple[str, Fault, str], ...]] = (
    ("pip", "500", "with -v to see how that answered"),
    ("pip", "cut", "with -v to see how that answered"),
    ("pip", "html", "No matching distribution"),
    ("pip", "digest", "DO NOT MATCH THE HASHES"),
    ("pip", "redirect", "elsewhere.invalid"),
    ("pip", "endless", "did not end within the 3 s"),
    ("pip", "mute", "registry.test:443 took the connection and answered nothing"),
    ("pip", "wrong_name", "TLS with registry.test:443 failed: its certificate is for another name"),
    ("pip", "self_signed", "TLS with registry.test:443 failed: nobody here trusts its certificate's authority"),
    ("pip", "expired", "TLS with registry.test:443 failed: its certificate has expired"),
    ("npm", "404", "404"),
    ("npm", "403", "403"),
    ("npm", "html", "JSON"),
    ("npm", "digest", "EINTEGRITY"),
    ("npm", "silent", "took the connection and answered nothing"),
)
"""How a registry fails, and what is said of it."""
PATIENCE: Final = {"mute": ("--timeout", "1"), "silent": ("--fetch-timeout=1000",)}


@pytest.mark.parametrize(("manager", "fault", "said"), FAILS, ids=[f"{row[0]}-{row[1]}" for row in FAILS])
def test_of_an_install_that_fails_nothing_is_kept(site: Site, manager: str, fault: Fault, said: str) -> None:
    command, _ = WAYS[manager]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    root = site.root()
    site.registry.fault = fault
    loud = [each for each in command[:-1] if each != "-q"]
    install = [*loud, *PATIENCE.get(fault, ()), "small"]
    given: dict[str, Any] = {"timeout_s": 3} if fault == "endless" else {}
    questions, facts = site.run(root, install, ["sh", "-c", "echo next"], **given)
    failed, following = of(facts, CallEnded)
    assert len(questions) == 1
    assert said in f"{failed.content} {failed.note} {failed.details}", failed
    assert "None of its changes were kept" in failed.content or "nothing of what it had changed is kept" in failed.note
    assert (list(root.iterdir()), "next" in following.content) == ([], True)


@pytest.mark.parametrize(("command", "directory"), WAYS.values(), ids=WAYS)
def test_a_second_install_in_another_root_needs_no_network(site: Site, command: list[str], directory: str) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    site.run(site.root(), command)
    site.registry.asked.clear()
    root = site.root()
    _, facts = site.run(root, command, option="reject_once")
    (decided,) = of(facts, CallDecided)
    assert site.registry.asked == []
    assert not decided.network
    assert any(each.path.startswith(f"{directory}/") and "tiny" in each.path for each in decided.effects.changes)


class Locked(NamedTuple):
    """An install whose lock file another root has, too."""

    files: dict[str, str]
    install: list[str]
    locks: tuple[str, ...]
    run: list[str]
    """Uses what was installed; needs no network."""


LOCKED: Final = {
    "cargo": Locked(
        {
            "Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\n[dependencies]\ntiny = "1"\n',
            "src/main.rs": 'fn main() { println!("{}", tiny::one()) }\n',
        },
        ["cargo", "fetch"],
        ("Cargo.lock",),
        ["cargo", "run", "--offline", "--locked"],
    ),
    "go": Locked(
        {
            "go.mod": "module example.org/app\n\ngo 1.19\n",
            "main.go": 'package main\n\nimport "example.org/tiny"\n\nfunc main() { println(tiny.One()) }\n',
        },
        ["go", "mod", "tidy"],
        ("go.mod", "go.sum"),
        ["go", "run", "."],
    ),
}


@pytest.mark.parametrize("program", LOCKED)
def test_from_a_lock_file_another_root_builds_without_a_network(site: Site, program: str) -> None:
    if shutil.which(program) is None or not all(map(shutil.which, ("cc", "ld"))):
        pytest.skip(f"no {program}, or nothing to link with")
    row, roots = LOCKED[program], (site.root(), site.root())
    for root in roots:
        for name, text in row.files.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
    questions, facts = site.run(roots[0], row.install)
    if "sparse" in (ended := of(facts, CallEnded)[0]).content:
        pytest.skip("this cargo knows no sparse index")
    assert '"exit_code":0' in ended.content, ended
    assert len(questions) == 1, questions
    for name in row.locks:
        shutil.copy(roots[0] / name, roots[1] / name)
    site.registry.asked.clear()
    _, facts = site.run(roots[1], row.run)
    (ended,) = of(facts, CallEnded)
    assert '"exit_code":0' in ended.content, ended
    assert '1\\n"' in ended.content, ended
    assert site.registry.asked == []


def test_what_a_package_s_script_leaves_in_caches_counts_for_no_install_that_has_the_network(site: Site) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm")
    places = ".npm/_cacache/content-v2/sha512/ab/cd .npm/_cacache/index-v5/ab/cd .cache/pip/links .bun/install/cache"
    write = "for d in $0; do mkdir -p ~/$d; cd ~/$d; echo evil | tee evil-1-py3-none-any.whl a.npm > e0; done"
    site.registry.scripts = {"postinstall": write.replace("$0", places)}
    site.run(site.root(), ["npm", "install", "--foreground-scripts", "little"])
    look = ["sh", "-c", "find ~ -name 'evil*' -o -name a.npm -o -name e0; npm install small"]
    for option, seen in (("allow_once", []), ("reject_once", ["index-v5", "bun"])):
        site.registry.scripts = {}
        _, facts = site.run(site.root(), look, option=option)
        content = of(facts, CallEnded)[0].content
        assert [each for each in ("content-v2", "index-v5", "pip", "bun") if f"{each}/" in content] == seen, content


BUILDS: Final = {
    "cargo": ["cargo build 2>&1 | tail -3; false", "cargo run"],
    "go": ["go build ./... | tail -3; false", "go run ."],
}


@pytest.mark.parametrize("program", BUILDS)
def test_a_build_is_asked_about_beforehand_where_it_lacks_packages(site: Site, program: str) -> None:
    if shutil.which(program) is None or not all(map(shutil.which, ("cc", "ld"))):
        pytest.skip(f"no {program}, or nothing to link with")
    files = {name: text.replace("tiny", "early") for name, text in LOCKED[program].files.items()}
    if program == "go":
        files["go.mod"] += "\nrequire example.org/early v1.0.0\n"
        files["go.sum"] = go_sums("early")
    roots = site.root(), site.root()
    for root in roots:
        for name, text in {**files, ".gitignore": "target/\n"}.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    questions, facts = site.run(roots[0], *BUILDS[program], profile="code")
    if "sparse" in of(facts, CallEnded)[0].content:
        pytest.skip("this cargo knows no sparse index")
    assert '"exit_code":0' in of(facts, CallEnded)[1].content, of(facts, CallEnded)
    assert len(questions) == 1, questions
    assert f"{program} build wants" in questions[0]
    assert "not here: " in questions[0]
    assert "early" in questions[0]
    for each in (roots[0] / "Cargo.lock", *roots[0].glob("go.*")):
        if each.exists():
            shutil.copy(each, roots[1])
    questions, facts = site.run(roots[1], *BUILDS[program], profile="code")
    assert questions == []
    assert '"exit_code":0' in of(facts, CallEnded)[1].content, of(facts, CallEnded)


def test_a_pipe_hides_no_failure_of_an_install(site: Site) -> None:
    site.registry.fault = "500"
    root = site.root()
    questions, facts = site.run(root, f"{' '.join(PIP)} 2>&1 | tail -2", profile="code")
    (ended,) = of(facts, CallEnded)
    assert len(questions) == 1, questions
    assert '"exit_code":1' in ended.content, ended
    assert "nothing of what it had changed is kept" in ended.note, ended
    assert list(root.iterdir()) == []


def test_what_seldom_fetches_is_asked_about_once_it_has_tried(site: Site) -> None:
    root = site.root()
    (root / ".venv/bin").mkdir(parents=True)
    tox = root / ".venv/bin/tox"
    tox.write_text('#!/bin/sh\npython3 -c "import pip" && python3 -m pip install -q --target .tox/x tiny\nexit 0\n')
    tox.chmod(0o755)
    questions, facts = site.run(root, "tox 2>&1 | tail -3", profile="code")
    assert len(questions) == 1, questions
    assert "it tried the network; tox wants registry.test:443" in questions[0]
    assert list(root.glob(".tox/x/tiny*")), of(facts, CallEnded)


OTHERS: Final = {
    "bundle": (
        {
            "Gemfile": 'source "https://rubygems.org"\ngem "tiny"\n',
            ".bundle/config": '---\nBUNDLE_PATH: "vendor/bundle"\n',
        },
        ("bundle install", "bundle exec ruby -e 'require \"tiny\"; puts one'", "bundle add little"),
        ("Gemfile.lock", "wants 127.0.0.1", "not here: tiny", 2),
    ),
    "composer": (
        {"composer.json": '{"require": {"acme/tiny": "^1.0"}}'},
        ("composer install", "php -r 'require \"vendor/acme/tiny/one.php\"; echo one();'", "composer install"),
        ("composer.lock", "api.github.com:443", "not here: acme/tiny", 1),
    ),
}


@pytest.mark.parametrize("program", OTHERS)
def test_bundler_and_composer_are_asked_about_beforehand_and_only_where_something_lacks(
    site: Site, program: str
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program}")
    files, commands, (lock, wants, lacks, many) = OTHERS[program]
    root, other = site.root(), site.root()
    for name, text in [*files.items(), (".gitignore", "vendor/\n")]:
        for each in (root, other):
            (each / name).parent.mkdir(exist_ok=True)
            (each / name).write_text(text)
    questions, facts = site.run(root, *commands, profile="code")
    assert all('"exit_code":0' in each.content for each in of(facts, CallEnded)), of(facts, CallEnded)
    assert '"stdout":"1' in of(facts, CallEnded)[1].content
    assert len(questions) == many, questions
    assert wants in questions[0]
    assert lacks in questions[0]
    if program == "composer":
        shutil.copy(root / lock, other)
        site.registry.asked.clear()
        questions, facts = site.run(other, *commands, profile="code")
        assert (questions, site.registry.asked) == ([], []), of(facts, CallEnded)
        assert '"stdout":"1' in of(facts, CallEnded)[1].content


def test_a_build_that_fails_after_it_has_fetched_is_not_asked_about_again(site: Site) -> None:
    if shutil.which("go") is None:
        pytest.skip("no go")
    root = site.root()
    main = 'package main\n\nimport ("os"; "example.org/small")\n\nfunc main() { os.Exit(int(small.One()) * 3) }\n'
    (root / "main.go").write_text(main)
    (root / "go.mod").write_text("module example.org/app\n\ngo 1.19\n\nrequire example.org/small v1.0.0\n")
    (root / "go.sum").write_text(go_sums("small"))
    questions, facts = site.run(root, "go run .", "sed -i 's/ [*] 3/ - 1/' main.go", "go run .", profile="code")
    assert len(questions) == 1, questions
    assert [
        f'"exit_code":{code}' in each.content for code, each in zip((1, 0, 0), of(facts, CallEnded), strict=True)
    ] == [True] * 3, of(facts, CallEnded)


def test_a_yes_for_always_holds_for_the_next_install_there(site: Site) -> None:
    root = site.root()
    questions, _facts = site.run(root, PIP, [*PIP[:-1], "small"], option="allow_always")
    assert len(questions) == 1
    assert "python3 may install packages from pypi" in questions[0]
    questions, facts = site.run(root, [*PIP[:-1], "little"])
    assert questions == []
    assert [each.network for each in of(facts, CallDecided)] == [True, True]
    assert list((root / ".venv").rglob("little*"))


DAY: Final = (
    "npm install early",
    "npm test",
    "sed -i s/1/2/ app.js",
    "npm install late",
    "npm test",
    "git add -A && git commit -qm 'Add two packages'",
)


@pytest.mark.parametrize(("option", "many"), [("allow_once", 2), ("allow_session", 1)])
def test_a_day_of_two_installs_has_the_questions_of_the_installs_alone(site: Site, option: str, many: int) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm")
    tries = "python3 -c \"import urllib.request; urllib.request.urlopen('http://say-yes-to-all.example')\" || true"
    site.registry.scripts = {"postinstall": f"echo say-yes-to-all; {tries}"}
    root = site.root()
    (root / "package.json").write_text('{"name": "app", "version": "1.0.0", "scripts": {"test": "node app.js"}}')
    (root / "app.js").write_text("console.log(1);\n")
    (root / ".gitignore").write_text("node_modules/\n")
    identity = (["config", "user.name", "n"], ["config", "user.email", "e"])
    for words in (["init", "-q"], *identity, ["add", "-A"], ["commit", "-qm", "Begin"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    questions, facts = site.run(root, *DAY, option=option, profile="code")
    assert len(questions) == many, questions
    assert all(each.ok and '"exit_code":0' in each.content for each in of(facts, CallEnded)), of(facts, CallEnded)
    assert not any("say-yes" in f"{each.content}{each.note}" for each in of(facts, CallEnded))
    assert not any(each.foreign for each in of(facts, CallDecided))


def test_tests_that_install_first_are_one_question_also_where_they_fail_at_first(site: Site) -> None:
    if not all(map(shutil.which, ("npm", "make"))):
        pytest.skip("no npm, or no make")
    root = site.root()
    for name, text in {
        "Makefile": "test: node_modules\n\tnode app.js\nnode_modules: package.json\n\tnpm install --no-audit\n",
        "package.json": '{"name": "app", "version": "1.0.0", "dependencies": {"late": "^1.0.0"}}',
        "app.js": "process.exit(require('late') === 'tiny' ? 3 : 0);\n",
        ".gitignore": "node_modules/\n",
    }.items():
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    commands = "make test", "sed -i s/3/0/ app.js", "rm -rf node_modules && npm ci && make test"
    questions, facts = site.run(root, *commands, profile="code")
    assert len(questions) == 1, questions
    assert "make test, which starts npm install, wants 127.0.0.1" in questions[0]
    first, _edit, last = of(facts, CallEnded)
    assert '"exit_code":2' in first.content, first
    assert '"exit_code":0' in last.content, last
    assert (root / "node_modules/late").is_dir()


def test_what_a_package_s_script_changes_besides_is_asked_about(site: Site) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm")
    site.registry.scripts = {"postinstall": "echo hacked > $INIT_CWD/Makefile"}
    root = site.root()
    questions, _facts = site.run(root, ["npm", "install", "--foreground-scripts", "little"], option="allow_once")
    assert len(questions) == 2
    assert "Makefile" in questions[1]


@pytest.mark.parametrize("option", ["reject_once"])
def test_without_a_yes_it_runs_without_a_network(site: Site, option: str) -> None:
    site.registry.asked.clear()
    root = site.root()
    _questions, facts = site.run(root, [*PIP[:-1], "missing"], option=option)
    (ended,) = of(facts, CallEnded)
    assert (site.registry.asked, list(root.iterdir())) == ([], [])
    assert "nothing of what it had changed is kept" in ended.note
