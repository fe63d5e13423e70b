"""The agent in a Python session: what the functions print, return and remember."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import strongroom
from supervisor.acp import extensions
from supervisor.clients.python.dialogue import Dialogue
from supervisor.clients.python.repl import Chat
from supervisor.clients.python.typed_events import Question
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.facts import SessionOpened, TurnEnded
from tests.daemon_process import DaemonProcess, scripted
from tests.messages_server import MessagesServer
from tests.script_server import Recorded
from tests.supervisor.clients.shared import asked
from tests.supervisor.command import CODE
from tests.supervisor.histories import call

Output = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
Types = Callable[..., None]


@pytest.fixture(autouse=True)
def here(daemon: DaemonProcess, place: Path, monkeypatch: Patch) -> None:
    """Where the person stands."""
    monkeypatch.setenv("STRONGROOM_HOME", str(daemon.home))
    monkeypatch.setenv("PYTHONPATH", str(CODE))
    monkeypatch.chdir(place)


@pytest.fixture
def agent() -> Iterator[Chat]:
    with Chat("offline") as agent:
        yield agent


@pytest.fixture
def types(monkeypatch: Patch) -> Types:
    """Have a person at a terminal type these lines, and end the input."""

    def begin(*lines: str) -> None:
        def answer(_question: str) -> str:
            if not left:
                raise EOFError
            return left.pop(0)

        left = list(lines)
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("builtins.input", answer)

    return begin


def test_without_an_agent_it_says_what_to_do() -> None:
    for function in (lambda: strongroom.chat("hello"), strongroom.history, strongroom.clear):
        with pytest.raises(StrongroomError, match=r"call start\(\) first"):
            function()


def test_the_day_of_one_agent(daemon: DaemonProcess, capsys: Output) -> None:
    assert strongroom.start(model="offline") == ("ok", daemon.pid)
    assert strongroom.chat("read a.txt") == "ok"
    assert capsys.readouterr().out == "[read_file a.txt]\nread_file a.txt:\nhello\n"
    assert strongroom.chat("read ../x") == "ok"
    *first, refused, _said = strongroom.history()
    assert first == [
        {"role": "user", "content": "read a.txt"},
        {"role": "tool", "name": "read_file", "input": {"path": "a.txt"}, "output": "hello\n"},
        {"role": "assistant", "content": "read_file a.txt:\nhello\n"},
        {"role": "user", "content": "read ../x"},
    ]
    assert (refused["name"], refused["error"]["kind"]) == ("read_file", "path_escape")
    assert "Path escape" in refused["error"]["message"]
    assert strongroom.clear() == "ok"
    assert strongroom.history() == []
    assert strongroom.chat("hello") == "ok"
    assert [each["role"] for each in strongroom.history()] == ["user", "assistant"]
    assert strongroom.start(model="offline") == ("ok", daemon.pid)
    assert strongroom.history() == []


def test_it_works_on_the_root_that_is_named(place: Path) -> None:
    with Chat("offline", profile="project", root="vault") as agent:
        assert agent.chat("ls .") == "ok"
        assert "a.txt" in agent.history()[1]["output"]


def test_an_agent_that_cannot_be_started_says_why() -> None:
    with pytest.raises(ConfigError, match="No model 'nope'"):
        Chat("nope")
    with pytest.raises(ConfigError, match="does not exist"):
        Chat("offline", root="nowhere")


def test_without_a_key_a_notice_tells_who_answers(capsys: Output) -> None:
    with Chat() as agent:
        assert "NO LANGUAGE MODEL" in capsys.readouterr().out
        assert agent.chat("read a.txt") == "ok"


def test_control_characters_of_a_model_cannot_reach_the_terminal(place: Path, agent: Chat, capsys: Output) -> None:
    (place / "vault" / "evil.txt").write_text("\x1b[2Jgone")
    assert agent.chat("read evil.txt") == "ok"
    assert "\x1b" not in capsys.readouterr().out
    assert agent.history()[1]["output"] == "\x1b[2Jgone"


def test_a_model_that_fails_is_a_line_and_a_kind(place: Path, capsys: Output) -> None:
    with Chat(scripted(place / "fails.jsonl", {"fault": "overloaded"}, {"text": "better"})) as agent:
        assert agent.chat("go") == ("error", "overloaded")
        assert capsys.readouterr().out.startswith("error (overloaded): ")
        assert agent.chat("again") == "ok"
        assert agent.history()[-1] == {"role": "assistant", "content": "better"}


def test_a_retried_answer_stands_once(place: Path, capsys: Output) -> None:
    with Chat(scripted(place / "retried.jsonl", {"fault": "overloaded", "times": 2, "text": "at last"})) as agent:
        assert agent.chat("go") == "ok"
        assert capsys.readouterr().out.count("(overloaded: ") == 2
        assert agent.history() == [{"role": "user", "content": "go"}, {"role": "assistant", "content": "at last"}]


ANSWERS: Any = [("y", True, ""), ("", False, ""), ("no", False, ""), ("too long", False, "said: too long")]


@pytest.mark.parametrize(("said", "written", "words"), ANSWERS)
def test_a_person_at_a_terminal_decides(
    place: Path, agent: Chat, types: Types, said: str, written: bool, words: str
) -> None:
    types(said)
    assert agent.chat("write new.txt: x") == "ok"
    assert (place / "vault" / "new.txt").exists() == written
    (place / "vault" / "new.txt").unlink(missing_ok=True)
    assert words in agent.history()[1].get("error", {"message": ""})["message"]


RULE: Final = {"stage": "effects", "effects": extensions.ProposedEffects(totals={"added": 1}), "covers": "the rule\x1b"}
LONGER: Final[list[tuple[list[str], dict[str, Any], strongroom.Approval]]] = [
    (["y"], RULE, strongroom.Approval(True)),
    (["s", "y"], RULE, strongroom.Approval(True, scope="session")),
    (["a", "yes"], RULE, strongroom.Approval(True, scope="always")),
    (["a", "n"], RULE, strongroom.Approval(False)),
    (["a"], RULE, strongroom.Approval(False)),  # and then the end of the input
    (["s"], {}, strongroom.Approval(False, remark="s")),
]


@pytest.mark.parametrize(("said", "review", "answer"), LONGER)
def test_a_rule_is_printed_before_it_is_made(
    types: Types, capsys: Output, said: list[str], review: dict[str, Any], answer: strongroom.Approval
) -> None:
    types(*said)
    question, _ = asked(tool="exec_shell", arguments='{"command": "touch", "args": ["a b"]}', **review)
    assert Dialogue().decide(Question("s", "c", question.request)) == answer
    out = capsys.readouterr().out
    assert "exec_shell touch 'a b'\n" in out
    assert ("Would change 1 file" in out, "the rule\\x1b" in out) == (bool(review), bool(review) and said[0] in "sa")


def test_with_nobody_to_ask_a_change_is_declined(place: Path, agent: Chat, capsys: Output) -> None:
    assert agent.chat("write new.txt: x") == "ok"
    assert "nobody can be asked here" in capsys.readouterr().out
    assert not (place / "vault" / "new.txt").exists()


# interrupted -----------------------------------------------------------------------------------------------------


def test_ctrl_c_cancels_the_turn(place: Path, monkeypatch: Patch) -> None:
    def interrupt(_request: Recorded) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    home = place / "another"
    monkeypatch.setenv("STRONGROOM_HOME", str(home))
    with (
        MessagesServer([{"sse": "", "then": "hang"}], on_request=interrupt) as server,
        DaemonProcess(home, place, ANTHROPIC_BASE_URL=server.url) as other,
    ):
        with Chat("m") as agent:
            assert agent.pid == other.pid
            assert agent.chat("go") == ("error", "cancelled")
        assert [fact.status for fact in other.facts if isinstance(fact, TurnEnded)] == ["cancelled"]


def test_a_daemon_that_died_is_followed_by_another(daemon: DaemonProcess, agent: Chat) -> None:
    assert agent.chat("read a.txt") == "ok"
    before = agent.history()
    daemon.kill()
    daemon.wait()
    daemon.start()
    outcome = agent.chat("read a.txt")
    if outcome != "ok":  # it was lost while we asked
        assert outcome == ("error", "daemon_lost")
        assert agent.chat("read a.txt") == "ok"
    assert agent.pid == daemon.pid
    assert agent.history()[: len(before)] == before
    assert agent.history()[-1] == before[-1]


def test_a_turn_that_was_cut_off_goes_on_in_the_next_daemon(
    daemon: DaemonProcess, place: Path, monkeypatch: Patch
) -> None:
    asks: dict[str, Any] = {"calls": [call("write_file", path="x", content="x")]}
    with Chat(scripted(place / "cut.jsonl", asks, {"text": "done"}, {"text": "next"})) as agent:

        def die(_question: str) -> str:
            daemon.kill()
            daemon.wait()
            daemon.start()
            return "y"

        with monkeypatch.context() as patch:
            patch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
            patch.setattr("builtins.input", die)
            assert agent.chat("go") == ("error", "daemon_lost")
        assert agent.chat("and now?") == "ok"
        contents = [each["content"] for each in agent.history() if each["role"] != "tool"]
        assert contents == ["go", "done", "and now?", "next"]
        sessions = [fact.origin for fact in daemon.sessions[agent.session.id] if isinstance(fact, SessionOpened)]
        assert sessions == ["python"]


# in IPython, whose cells run in an event loop ---------------------------------------------------------------------

RUN: Final = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
for cell in json.load(sys.stdin):
    print("#", flush=True)
    shell.run_cell(cell)
"""
CELLS: Final = {
    "%load_ext strongroom": "",
    "%%strongroom model=offline\nread a.txt": "[read_file a.txt]\nread_file a.txt:\nhello\n",
    "import strongroom; print(len(strongroom.history()))": "3\n",
    "%%strongroom\nwrite b.txt: x": "nobody can be asked here",
    "async with strongroom.connect() as client:\n    session = await client.open()\n"
    "    print((await session.run('read a.txt')).status)": "ok\n",
    "with strongroom.connect() as client:\n    print(client.open().run('read a.txt').status)": "ok\n",
    "async def sync(): print(strongroom.chat('read a.txt'))\nawait sync()": "hello\nok\n",
    "%%strongroom nonsense\nread a.txt": "Not an option: nonsense. Write NAME=VALUE",
}
"""Cells, with what each shows."""


def test_cells_ask_the_agent_or_connect_in_either_way(daemon: DaemonProcess, place: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(list(CELLS)),
        env={"HOME": str(tmp_path), "STRONGROOM_HOME": str(daemon.home), "PYTHONPATH": str(CODE), "NO_COLOR": "1"},
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.split("#\n")[1:]
    assert len(shown) == len(CELLS)
    assert [cell for cell, said in zip(CELLS, shown, strict=True) if CELLS[cell] not in said] == [], done.stdout
