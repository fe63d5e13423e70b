"""`strongroom inbox`: questions of all sessions, answered from anywhere, and exactly one answer counts."""

from pathlib import Path
from typing import Any

import pytest

from supervisor.acp import extensions
from tests.daemon_process import ASK, DaemonProcess, Lines, scripted
from tests.forked import ForkedStrongroom
from tests.supervisor.clients.console.terminals import END, ENTER, Terminal
from tests.supervisor.histories import DONE, call

YES: Any = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
NO: Any = {"outcome": {"outcome": "selected", "optionId": "reject_once"}}


class InboxTerminal(Terminal):
    COMMAND = "inbox"


class Asking:
    """A session whose model wants to write a file, and waits."""

    def __init__(
        self, daemon: DaemonProcess, client: Lines, root: Path, path: str, wanted: Any = None, **options: str
    ) -> None:
        self.daemon, self.client, self.file = daemon, client, root / path
        calls = {"calls": [wanted or call("write_file", path=path, content="x\n")]}
        model = scripted(root.parent / f"{root.name}.jsonl", calls, DONE)
        session = client.new_session(root, model=model, **options)
        self.prompt = client.begin_prompt(session, f"go \x1b[2J {root.name}")
        self.asked = client.until(ASK)
        self.id = next(each["id"] for each in self.waiting() if each["asked"]["sessionId"] == session)

    def waiting(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.request(extensions.INBOX_METHOD, {})["questions"]
        return found

    def ends(self) -> bool:
        """Say whether the file is there when the turn has ended."""
        assert self.client.ends_turn(self.prompt)
        return self.file.exists()


@pytest.fixture
def command(daemon: DaemonProcess) -> ForkedStrongroom:
    return ForkedStrongroom(daemon.home, daemon.folder)


def test_a_question_is_listed_and_answered_by_its_id_once(
    daemon: DaemonProcess, client: Lines, command: ForkedStrongroom, root: Path
) -> None:
    asking = Asking(daemon, client, root, "new.txt")
    text = command.run("inbox").out
    assert text == command.run("inbox", "list").out
    assert "\x1b" not in text
    assert (text.split("  ")[0], "new.txt" in text, str(root) in text) == (asking.id, True, True)
    (row,) = command.run("inbox", "--json").json
    assert (row["id"], row["request"]["tool"], row["request"]["stage"]) == (asking.id, "write_file", "effects")
    assert command.run("inbox", "yes", asking.id).out == "answered: yes\n"
    assert asking.ends()
    late = command.run("inbox", "no", asking.id)
    assert (late.code, late.out) == (1, "It had been answered already, by inbox: yes. This answer does not count.\n")
    command.run("inbox", "yes", "0123abcd").assert_refused("No question 0123abcd waits", code=1)
    assert command.run("inbox").out == "No question waits.\n"


def test_a_question_about_a_command_has_what_it_printed(
    daemon: DaemonProcess, client: Lines, command: ForkedStrongroom, root: Path
) -> None:
    wanted = call("run_cmd", command="echo tidied; touch new.txt")
    asking = Asking(daemon, client, root, "new.txt", wanted, profile="code", mode="ask")
    (row,) = command.run("inbox", "--json").json
    assert (row["request"]["tool"], row["printed"]) == ("run_cmd", "tidied\n")
    assert command.run("inbox", "yes", asking.id).code == 0
    assert asking.ends()


def test_a_no_tells_the_model_why(daemon: DaemonProcess, client: Lines, command: ForkedStrongroom, root: Path) -> None:
    asking = Asking(daemon, client, root, "new.txt")
    assert command.run("inbox", "no", asking.id, "not", "today").out == "answered: no\n"
    assert not asking.ends()
    assert any("not today" in str(fact) for fact in daemon.facts)


def test_of_answers_at_one_instant_exactly_one_counts(daemon: DaemonProcess, client: Lines, root: Path) -> None:
    asking = Asking(daemon, client, root, "new.txt")
    with daemon.client() as second, daemon.client() as third:
        clients = [(second, YES), (third, NO), (second, NO), (third, YES)]
        begun = [
            (each, answer, each.begin(extensions.ANSWER_METHOD, {"question": asking.id, "answer": answer}))
            for each, answer in clients
        ]
        client.allow(asking.asked)
        results = [(answer is YES, each.answer(number)["result"]) for each, answer, number in begun]
    counted = [said for said, result in results if result["counts"]]
    assert len(counted) <= 1
    written = asking.ends()
    assert written == (counted[0] if counted else True)
    assert {result["approved"] for _, result in results} == {written}


def test_a_dangerous_yes_wants_the_word_at_a_terminal(
    daemon: DaemonProcess, client: Lines, command: ForkedStrongroom, root: Path
) -> None:
    asking = Asking(daemon, client, root, "AGENTS.md")
    assert "(it changes protected names)" in command.run("inbox", "list").out
    command.run("inbox", "yes", asking.id).assert_refused("it changes protected names", "at a terminal")
    with InboxTerminal(daemon.home, daemon.folder, "yes", asking.id) as terminal:
        terminal.until("type yes to allow it")
        terminal.type("y" + ENTER, "It was not answered, and still waits.")
    assert [each["id"] for each in asking.waiting()] == [asking.id]
    with InboxTerminal(daemon.home, daemon.folder, "yes", asking.id) as terminal:
        terminal.until("type yes to allow it")
        terminal.type("yes" + ENTER, "answered: yes")
    assert asking.ends()


def test_a_dialogue_asks_one_after_the_other_and_drops_what_is_answered_elsewhere(
    daemon: DaemonProcess, client: Lines, command: ForkedStrongroom, root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    first = Asking(daemon, client, root, "first.txt")
    with daemon.client() as second_client, InboxTerminal(daemon.home, daemon.folder, rows=60) as terminal:
        terminal.until("? [y/N")
        second = Asking(daemon, second_client, other, "second.txt")
        assert command.run("inbox", "no", first.id).code == 0
        terminal.until(lambda screen: screen.count("? [y/N") == 2)
        assert "Answered meanwhile by inbox: no." in terminal.text
        assert not first.ends()
        terminal.type("y" + ENTER, "No question waits.")
        assert second.ends()


def test_who_leaves_a_dialogue_has_answered_nothing(daemon: DaemonProcess, client: Lines, root: Path) -> None:
    asking = Asking(daemon, client, root, "new.txt")
    with InboxTerminal(daemon.home, daemon.folder) as terminal:
        terminal.until("? [y/N")
        terminal.type(END, "It still waits.")
    assert [each["id"] for each in asking.waiting()] == [asking.id]
    client.allow(asking.asked)
    assert asking.ends()


def test_where_no_daemon_runs_nothing_waits(strongroom: ForkedStrongroom) -> None:
    assert strongroom.run("inbox").out == "No question waits.\n"
    assert strongroom.run("inbox", "--json").json == []
