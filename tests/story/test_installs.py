"""Installs from a registry: asked about once and beforehand, and nothing half done where the registry fails.

Everything is real: the daemon, its workers, the broker, pip and npm, and a registry on loopback, which is a mirror that
the operator named.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.journal.facts import CallDecided, CallEnded
from tests.daemon_process import ASK, DaemonProcess, Lines, scripted
from tests.registry_server import Fault, RegistryServer
from tests.supervisor.command import Home
from tests.supervisor.histories import call

CONFIG: Final = """
[registries]
pypi = "{url}/simple"
npm = "{url}"
[shell]
programs = ["python3", "npm", "sh"]
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

    def run(self, root: Path, *commands: list[str], option: str = "allow_once") -> tuple[list[str], list[Any]]:
        """Run commands in a session; return what was asked, and the facts."""
        calls = [{"calls": [call("exec_shell", command=words[0], args=words[1:])]} for words in commands]
        model = scripted(self._folder / f"model-{self._roots}.jsonl", *calls, {"text": "Done."})
        with self.daemon.client() as client:
            session = client.new_session(root, model=model, profile="project")
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
    toolchains = [] if sys.base_prefix.startswith("/usr") else [sys.base_prefix]
    with RegistryServer() as registry:
        Home(home, home).configure(CONFIG.format(url=registry.url, toolchains=toolchains))
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
    assert f"wants 127.0.0.1:{site.registry.port}" in questions[0]
    assert len(site.registry.asked) == len(set(site.registry.asked)) == 2
    assert list((root / directory).rglob("tiny*"))
    before, decided = of(facts, CallDecided)
    assert (before.network, before.committed, before.approved) == (True, False, True)
    assert decided.committed
    assert {each.after.digest for each in decided.effects.changes if each.after.kind == "file"} - {b""}


@pytest.mark.parametrize("fault", ["500", "404", "cut"])
@pytest.mark.parametrize(("command", "directory"), WAYS.values(), ids=WAYS)
def test_of_an_install_that_fails_nothing_is_kept(site: Site, command: list[str], directory: str, fault: Fault) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    root = site.root()
    site.registry.fault = fault
    questions, facts = site.run(root, [*command[:-1], "small"])
    (ended,) = of(facts, CallEnded)
    assert len(questions) == 1
    assert list(root.iterdir()) == []
    assert ended.ok
    assert "nothing of what it had changed is kept" in ended.note


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


def test_a_yes_for_always_holds_for_the_next_session_there(site: Site) -> None:
    """In one and the same, what an install has printed is foreign text, after which a person is asked."""
    root = site.root()
    questions, _facts = site.run(root, PIP, option="allow_always")
    assert "python3 may install packages from pypi" in questions[0]
    questions, facts = site.run(root, [*PIP[:-1], "little"])
    assert questions == []
    assert [each.network for each in of(facts, CallDecided)] == [True, True]
    assert list((root / ".venv").rglob("little*"))


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
