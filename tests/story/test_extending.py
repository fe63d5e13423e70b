"""The extensions that CONTRIBUTING.md shows, made in a copy of the tree and run: one of each kind, by one row each."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from supervisor.acp.extensions import EXTENSIONS
from tests.daemon_process import DaemonProcess
from tests.supervisor.command import CODE, Strongroom
from tests.supervisor.journal.test_facts import FOLDS as ALL_FOLDS


def shown(heading: str) -> str:
    """Return the code that CONTRIBUTING.md shows beneath a heading."""
    _, _, after = (CODE / "CONTRIBUTING.md").read_text("utf-8").partition(f"### {heading}\n")
    lines = after.partition("\n### ")[0].splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines if not line or line.startswith("    "))


TOOL: Final = """
import os
from typing import Annotated
from msgspec import Meta
from workers.tool import Args, ToolContext, tool

""" + shown("A tool")

CATEGORY: Final = '''
"""The category `layout`: how wide text is shown, by the library wcwidth."""

from typing import Annotated, Final

from msgspec import Meta

from workers.confine.steps import Prepared
from workers.tool import Args, Tool, ToolContext, tool
from workers.wire import messages


class DisplayWidthArgs(Args, frozen=True):
    """The arguments of display_width."""

    text: Annotated[str, Meta(description="The text to measure.")]


@tool(DisplayWidthArgs, effect=False, kind="other", subject="text", profiles=("vault",))
def display_width(args: DisplayWidthArgs, context: ToolContext) -> str:
    """Say how many columns a text takes in a terminal."""
    return str(context.engine(args.text))


def prepare(_start: messages.Start, _inputs: messages.Inputs) -> Prepared:
    """Import the library, before the worker is locked in."""
    from wcwidth import wcswidth

    return Prepared(wcswidth)


TOOLS: Final[tuple[Tool, ...]] = (display_width,)
'''

SUPERVISORS_ROW: Final = """
from typing import Final
from supervisor.categories.row import CategoryRow, Library

"""

PROVIDER: Final = """
from typing import Final
from supervisor.agent.models.model import Model, ModelRequest, Reply
from supervisor.agent.models.provider import Provider
from supervisor.config.settings import Settings

def _answer(request: ModelRequest, _show: object) -> Reply:
    said = request.messages[-1]["content"][-1]["text"].upper()
    return Reply([{"type": "text", "text": said}], "end_turn", {})

""" + shown("A model provider")

MESSAGES: Final = """

class PingParams(Object, frozen=True):
    text: str


class PingResult(Object, frozen=True):
    text: str
"""

FACT: Final = '''
class NoteMade(_Fact, frozen=True):
    """The person made a note about the session."""

    text: str


'''

USE_FACT: Final = """
import sys
from supervisor.agent.transcript import Transcript
from supervisor.config.settings import load
from supervisor.journal.facts import NoteMade
from supervisor.journal.journal import open_journal

with open_journal(load().journal) as journal:
    session = journal.opened()[0].session
    journal.append(session, NoteMade("remember this"))
    Transcript(entry.fact for entry in journal.of_session(session))
    print(session)
"""

CHECK_FOLDS: Final = """
from tests.supervisor.journal import test_facts

of_fold = test_facts.test_a_fold_handles_or_ignores_each_fact.__wrapped__
for fold in test_facts.FOLDS:
    try:
        of_fold(fold)
    except AssertionError as error:
        print(error)
"""
FOLDS: Final = list(ALL_FOLDS)
IGNORED: Final = "Facts ignored: "


class Extended(NamedTuple):
    """A copy of the tree with one of each, and its daemon."""

    code: Path
    daemon: DaemonProcess
    program: Strongroom

    def python(self, text: str) -> str:
        """Run Python with the copy's modules; return what it prints."""
        environment = {"PYTHONPATH": str(self.code), **self.program.environment}
        command = [sys.executable, "-P", "-c", text]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


class Copied(DaemonProcess):
    """A daemon that runs the copy, and not what the tests have imported."""

    prelude = "\n"


def insert(file: Path, anchor: str, text: str) -> None:
    """Put text in front of its one anchor."""
    old = file.read_text("utf-8")
    assert old.count(anchor) == 1, (file, anchor)
    file.write_text(old.replace(anchor, text + anchor), "utf-8")


def extend(code: Path) -> None:
    """Add one of each."""
    supervisor, workers = code / "supervisor", code / "workers"
    (workers / "files/count_words.py").write_text(TOOL)
    insert(
        workers / "files/__init__.py",
        "from workers.files.edit_file",
        "from workers.files.count_words import count_words\n",
    )
    insert(workers / "files/__init__.py", "read_file, write_file,", "count_words, ")

    (workers / "layout").mkdir()
    (workers / "layout/__init__.py").write_text(CATEGORY)
    category, row, rest = shown("A category").partition("ROW: Final")
    (supervisor / "categories/layout.py").write_text(SUPERVISORS_ROW + row + rest)
    insert(workers / "catalog.py", "\n\nCATEGORIES: Final", f"\n\n{category}")
    insert(workers / "catalog.py", '"files": _files, ', '"layout": _layout, ')

    (supervisor / "agent/models/echo.py").write_text(PROVIDER)
    insert(supervisor / "agent/models/providers.py", '"offline", "scripted"', '"echo", ')

    for module, text in (("acp/extensions", MESSAGES), ("daemon/daemon_methods", shown("A method of the protocol"))):
        with (supervisor / f"{module}.py").open("a") as end:
            end.write(text)

    insert(supervisor / "journal/facts.py", "class BatchStarted(", FACT)
    insert(supervisor / "journal/facts.py", "    | BatchStarted\n", "    | NoteMade\n")
    for fold in FOLDS:
        file = supervisor / fold
        insert(file, file.read_text().partition(IGNORED)[2], "NoteMade, ")


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extended]:
    folder = tmp_path_factory.mktemp("extending")
    code, root = folder / "code", folder / "root"
    for package in ("supervisor", "workers", "tests/supervisor/journal"):
        shutil.copytree(CODE / package, code / package)
    extend(code)
    root.mkdir()
    (root / "a.txt").write_text("three short words")
    home, environment = folder / "home", {"PYTHONPATH": str(code)}
    with Copied(home, folder, **environment) as daemon:
        yield Extended(code, daemon, Strongroom(home, root, **environment))


@pytest.mark.parametrize(
    ("category", "tool", "arguments", "answer"),
    [("files", "count_words", '{"path": "a.txt"}', "3"), ("layout", "display_width", '{"text": "日記 x"}', "6")],
    ids=["a tool", "a category with a library"],
)
def test_a_tool_runs_in_its_worker(category: str, tool: str, arguments: str, answer: str, extended: Extended) -> None:
    done = extended.program.run("call", tool, arguments, "--root", ".")
    assert (done.code, done.json, done.err) == (0, {"ok": True, "content": answer}, "")
    pools = {pool["category"]: pool["workers"] for pool in extended.program.run("status", "--json").json["pools"]}
    assert "seccomp" in pools[category][0]["enforced"]


def test_a_provider_answers_in_the_console(extended: Extended) -> None:
    done = extended.program.run("console", "--plain", "--model", "echo", "--root", ".", stdin="hello there\n")
    assert (done.code, done.out) == (0, "HELLO THERE\n")
    assert "echo, offline, scripted:FILE" in extended.program.run("batch", "--help").out


def test_a_method_is_announced_and_answers(extended: Extended) -> None:
    with extended.daemon.lines() as client:
        capabilities = client.initialize()["agentCapabilities"]
        assert "_strongroom/ping" in capabilities["_meta"][EXTENSIONS]
        assert client.request("_strongroom/ping", {"text": "one two"}) == {"text": "one two"}


def test_a_fact_is_recorded_and_every_fold_says_what_it_makes_of_it(extended: Extended) -> None:
    assert extended.program.run("call", "read_file", '{"path": "a.txt"}', "--root", ".").code == 0  # there is a session
    session = extended.python(USE_FACT).strip()
    facts = [row["fact"] for row in extended.program.run("history", session, "--format", "json").json]
    assert facts[-1] == {"fact": "NoteMade", "text": "remember this"}
    fold = extended.code / "supervisor" / FOLDS[0]
    fold.write_text(fold.read_text().replace("NoteMade, ", ""))
    assert extended.python(CHECK_FOLDS) == f"{FOLDS[0]} neither handles nor ignores NoteMade\n"
