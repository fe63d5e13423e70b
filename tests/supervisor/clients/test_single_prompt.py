"""`strongroom "PROMPT"`: an answer on standard output, an exit code that tells, and nobody who is asked."""

import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Final

import pytest

from supervisor.acp import extensions
from supervisor.clients.single_prompt import Printers, PromptListener
from supervisor.journal.facts import Replied, SessionChanged, SessionOpened, TurnEnded, TurnStarted
from tests.forked import ForkedStrongroom
from tests.messages_server import error, reply
from tests.script_server import silent_port
from tests.supervisor.clients.shared import Guest
from tests.supervisor.command import LOOKS_IN, Strongroom, finished, wait_until

OFFLINE: Final = ("--model", "offline", "--root", "root")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Strongroom:
    """A command line where no daemon runs."""
    return ForkedStrongroom.beside_a_root(tmp_path_factory.mktemp("alone"))


@pytest.fixture
def fresh(tmp_path: Path) -> Strongroom:
    """The same, with a home and a root of its own."""
    return ForkedStrongroom.beside_a_root(tmp_path)


WAYS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "a prompt": (("read a.txt",), ""),
    "a prompt behind -p": (("-p", "read a.txt"), ""),
    "options before it": (("--profile", "vault", "read a.txt"), ""),
    "logged": (("-v", "read a.txt"), ""),
    "from standard input": (("-p",), "read a.txt"),
    "as text, by name": (("read a.txt", "--output-format", "text"), ""),
}


@pytest.mark.parametrize(("words", "stdin"), WAYS.values(), ids=WAYS)
def test_the_answer_is_all_that_is_printed(alone: Strongroom, words: tuple[str, ...], stdin: str) -> None:
    done = alone.run(*words, *OFFLINE, stdin=stdin)
    assert (done.code, done.out.strip()) == (0, "read_file a.txt:\nhello")
    assert "-v" in words or done.err == ""


CONSOLES: Final = [("--profile", "vault"), ("-v", "--mode", "ask"), ("--continue",), ("--session", "FIRST")]


@pytest.mark.parametrize("options", CONSOLES, ids=" ".join)
def test_options_without_a_prompt_are_the_consoles(guest: Guest, options: tuple[str, ...]) -> None:
    (guest.folder / "vault").mkdir()
    guest.play([reply("One."), reply("Two.")])
    first = guest.run("first one", "--model", "claude-test", "--json").json["session"]
    words = [first if each == "FIRST" else each for each in options]
    done = guest.run(*words, "--model", "claude-test", stdin="typed\n")
    assert (done.code, "> typed" in done.out + done.err) == (0, True)


def test_json_is_one_document_with_the_fields_of_a_batch(alone: Strongroom) -> None:
    done = alone.run("read a.txt", *OFFLINE, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["status"] == "ok"
    assert done.json["tool_calls"] == [
        {"tool": "read_file", "arguments": {"path": "a.txt"}, "ok": True, "error_kind": None}
    ]
    assert done.json["session"] in alone.sessions


def test_events_are_lines_and_the_last_is_the_result(alone: Strongroom) -> None:
    lines = alone.run("-p", "read a.txt", *OFFLINE, "--output-format", "stream-json").lines
    assert [line["type"] for line in lines if line["type"] != "update"] == [*["state"] * 6, "result"]
    kinds = [line["update"]["sessionUpdate"] for line in lines if line["type"] == "update"]
    assert {"tool_call", "tool_call_update", "agent_message_chunk"} <= set(kinds)
    assert lines[-1]["answer"] == "read_file a.txt:\nhello\n"


def test_the_turn_is_recorded_and_can_be_continued(fresh: Strongroom) -> None:
    first = fresh.run("read a.txt", *OFFLINE, "--json").json["session"]
    second = fresh.run("-p", "list **/*", "--continue", "--json").json["session"]
    third = fresh.run("-p", "read a.txt", "--session", first[-6:], "--json").json["session"]
    assert first == second == third
    assert [fact.text for fact in fresh.facts_of(first, TurnStarted)] == ["read a.txt", "list **/*", "read a.txt"]
    (opened,) = fresh.facts_of(first, SessionOpened)
    assert (opened.origin, opened.attended) == ("prompt", False)


def test_what_is_said_of_a_continued_session_holds(fresh: Strongroom) -> None:
    first = fresh.run("read a.txt", *OFFLINE, "--json").json
    done = fresh.run("-p", "write b.txt: x", "--continue", "--mode", "plan", "--profile", "project", "--json")
    assert (done.code, done.json["session"]) == (0, first["session"])
    assert "b.txt" in done.json["tool_calls"][0]["would_change"]
    (changed,) = fresh.facts_of(first["session"], SessionChanged)
    assert changed.profile == "project"
    other = fresh.run("-p", "x", "--continue", "--root", "/usr")
    assert (other.code, "and stays there: leave out --root /usr" in other.err) == (2, True)


def test_a_turn_of_somebody_else_s_goes_on_where_the_session_is_refused(guest: Guest) -> None:
    (guest.folder / "vault").mkdir()
    asked, answered = threading.Event(), threading.Event()

    def later(_body: object) -> str:
        answered.wait()
        return reply("One.")

    guest.play([{"made": later}], lambda _request: asked.set())
    first = guest.begin(("a b", "--model", "claude-test"), ("supervisor",), (), subprocess.DEVNULL, subprocess.PIPE)
    try:
        assert asked.wait(60)
        second = guest.run("-p", "x", "--continue")
    finally:
        answered.set()
    assert (second.code, second.out) == (1, "")
    assert "A turn of this session runs" in second.err
    done = finished(first)
    assert (done.code, done.out, done.err) == (0, "One.\n", "")


def test_a_person_sees_what_goes_on() -> None:
    told: list[str] = []
    listener = PromptListener("text", Printers(told.append, told.append, told.append))
    listener.session = "s"
    for state, retry in (("Thinking", ""), ("Thinking", "HTTP 529: " + "x" * 99), ("Executing", ""), ("Done", "")):
        listener.hear(extensions.TurnState(session_id="s", state=state, turn=1, retry=retry))
    assert told == ["thinking", "HTTP 529: " + "x" * 57, "running", ""]


def test_events_that_cannot_be_printed_end_the_turn(fresh: Strongroom) -> None:
    with open("/dev/full", "wb") as full:
        done = fresh.run("-p", "list **/*", *OFFLINE, "--output-format", "stream-json", stdout=full.fileno())
    assert (done.code, done.err) == (1, "error: the output cannot be written: No space left on device\n")


def test_standard_input_may_be_a_socket(guest: Guest) -> None:
    (guest.folder / "vault").mkdir()
    guest.play([reply("Fine.")])
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            words = ("-p", "Review this.", "--model", "claude-test")
            running = guest.begin(words, ("supervisor",), (), theirs.fileno(), subprocess.PIPE)
        ours.sendall(b"+ a line\n")
    assert finished(running).code == 0
    assert "+ a line" in guest.requests[0].body["messages"][0]["content"][-1]["text"]


def test_standard_input_that_cannot_be_read_is_a_sentence(fresh: Strongroom) -> None:
    done = fresh.run("-p", "list **/*", *OFFLINE, wrapper=("sh", "-c", 'exec "$@" 0>written', "sh"))
    done.assert_refused("Standard input cannot be read: Bad file descriptor.")


def test_what_stands_in_standard_input_goes_with_the_prompt(guest: Guest) -> None:
    (guest.folder / "vault").mkdir()
    guest.play([reply("Fine.")])
    done = guest.run("Review this.", "--model", "claude-test", stdin="+ a line\n")
    assert (done.code, done.out, done.err) == (0, "Fine.\n", "")
    (asked,) = guest.requests
    said = asked.body["messages"][0]["content"][-1]["text"]
    assert said.startswith("<resource uri='stdin:' id=")
    assert "\n+ a line\n\n</resource id=" in said
    assert said.endswith("Review this.")


def test_what_would_be_asked_is_denied_and_named(fresh: Strongroom) -> None:
    fresh.configure("[profiles.vault]\nask = ['write_file']\n")
    done = fresh.run("write b.txt: x", *OFFLINE, "--json")
    assert done.code == 1
    assert done.json["tool_calls"][0]["error_kind"] == "denied"
    assert done.err.startswith("denied, because nobody is there to be asked: write_file ")
    assert not (fresh.folder / "root" / "b.txt").exists()


def test_a_change_that_would_be_asked_about_is_denied_and_named(fresh: Strongroom) -> None:
    done = fresh.run("write b.txt: x", *OFFLINE, "--mode", "ask")
    assert (done.code, done.err) == (
        1,
        'denied, because nobody is there to be asked: write_file {"path":"b.txt","content":"x"}\n',
    )


def test_an_empty_answer_is_told_of(guest: Guest) -> None:
    guest.play([reply("")])
    done = guest.run("-p", "say nothing", "--model", "claude-test")
    assert (done.code, done.out, done.err.strip()) == (0, "", "note: the model's answer is empty")


def test_a_turn_that_fails_says_why_and_the_code_tells(guest: Guest) -> None:
    (guest.folder / "vault").mkdir()
    refused = error(401, "no", "authentication_error")
    guest.play([refused, refused])
    done = guest.run("hello you", "--model", "claude-test")
    assert (done.code, done.out) == (1, "")
    assert "(authentication)" in done.err
    as_json = guest.run("hello you", "--model", "claude-test", "--json")
    assert (as_json.code, as_json.err, as_json.json["error"]["kind"]) == (1, "", "authentication")


WRONG: Final[dict[str, tuple[tuple[str, ...], str | bytes, str]]] = {
    "nothing to ask": (("-p", *OFFLINE), "", "There is no prompt"),
    "blanks": (("-p", "  ", *OFFLINE), "", "There is no prompt"),
    "a model without a key": (("hello you", "--root", "root"), "", "needs a key"),
    "two sessions": (("-p", "x", "--session", "a", "--continue"), "", "not both"),
    "two formats": (("-p", "x", "--json", "--output-format", "text"), "", "not both"),
    "a format nobody has": (("-p", "x", "--output-format", "xml"), "", "xml"),
    "nothing to continue": (("-p", "x", "--continue", "--model", "offline"), "", "no session of this directory"),
    "a word that is no command": (("stauts",), "", "strongroom -p stauts"),
    "what is no text": (("-p", "x", *OFFLINE), b"\xff\xfe", "not UTF-8"),
    "a prompt that is no text": (("-p", os.fsdecode(b"\xff"), *OFFLINE), "", "UTF-8"),
    "a profile nobody has": (("-p", "x", "--profile", "nobody"), "", "nobody"),
}


@pytest.mark.parametrize(("words", "stdin", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_asked_is_refused_with_a_sentence(
    fresh: Strongroom, words: tuple[str, ...], stdin: str | bytes, said: str
) -> None:
    fresh.run(*words, stdin=stdin).assert_refused(said)


def test_more_on_standard_input_than_goes_with_a_prompt_is_refused(fresh: Strongroom) -> None:
    fresh.run("-p", "x", *OFFLINE, stdin="x" * (8 * 2**20 + 1)).assert_refused("Name a file")


SCHEMA: Final = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture
def counting(guest: Guest) -> Guest:
    """A guest with a schema in a file."""
    (guest.folder / "vault").mkdir()
    (guest.folder / "n.json").write_text(json.dumps(SCHEMA))
    return guest


def test_an_answer_is_held_against_a_schema_and_asked_for_again(counting: Guest) -> None:
    counting.play([reply("Three."), reply('```json\n{"n": 3}\n```')])
    done = counting.run("How many?", "--model", "claude-test", "--schema", "n.json")
    assert (done.code, done.out, done.err) == (0, '{"n": 3}\n', "")
    first, second = (asked.body["messages"] for asked in counting.requests)
    assert '"required":["n"]' in first[0]["content"][-1]["text"]
    assert second[:1] == [{**first[0], "content": second[0]["content"]}]
    assert "This answer is not valid by the JSON Schema: it is not one JSON document" in second[2]["content"][0]["text"]
    (refused,) = [fact for fact in counting.facts if isinstance(fact, Replied) and fact.refused]
    assert refused.content == [{"type": "text", "text": "Three."}]


def test_an_answer_that_stays_invalid_fails_within_a_bound(counting: Guest) -> None:
    counting.play([reply("One."), reply('{"n": "x"}'), reply("[]"), reply("never asked for")])
    done = counting.run("How many?", "--model", "claude-test", "--schema", "n.json", "--json")
    assert (done.code, len(counting.requests)) == (1, 3)
    assert done.json["error"]["kind"] == "invalid_answer"
    assert "is not of type 'object'" in done.json["error"]["message"]
    assert "data" not in done.json


def test_only_the_final_answer_is_held_against_the_schema(counting: Guest) -> None:
    (counting.folder / "vault" / "a.txt").write_text("hello\n")
    looks = reply("I look.", calls=[("read_file", {"path": "a.txt"})])
    counting.play([looks, reply('{"n": 1}')])
    done = counting.run("How many?", "--model", "claude-test", "--schema", "n.json", "--json")
    assert (done.code, done.json["data"], done.json["tool_calls"][0]["ok"]) == (0, {"n": 1}, True)


def test_a_schema_that_cannot_be_used_is_refused_before_anything_is_asked(counting: Guest) -> None:
    counting.play([])
    for text, words in (("[]", "no JSON object"), ("{", "not JSON"), ('{"type": "text"}', "'text' is not valid")):
        (counting.folder / "n.json").write_text(text)
        counting.run("x y", "--model", "claude-test", "--schema", "n.json").assert_refused(words)
    counting.run("x y", "--model", "claude-test", "--schema", "no.json").assert_refused("cannot be read")
    assert counting.requests == []


def test_a_batch_has_schemas_for_all_items_or_for_one(counting: Guest) -> None:
    items = [{"id": "all", "prompt": "a"}, {"id": "own", "prompt": "b", "schema": {"type": "string"}}]
    (counting.folder / "in.jsonl").write_text("\n".join(map(json.dumps, items)))
    counting.play([reply('{\n  "n": 1\r\n}'), reply('"text"')])  # on one line all the same
    words = ("batch", "in.jsonl", "--output", "out.jsonl", "--root", "vault", "--model", "claude-test")
    assert counting.run(*words, "--schema", "n.json").code == 0
    lines = [json.loads(line) for line in (counting.folder / "out.jsonl").read_text().splitlines()]
    assert {line["id"]: line["data"] for line in lines} == {"all": {"n": 1}, "own": "text"}


def test_a_batch_with_a_schema_that_cannot_be_used_asks_nothing(counting: Guest) -> None:
    (counting.folder / "in.jsonl").write_text('{"id": 7, "prompt": "a", "schema": {"type": "text"}}')
    counting.play([])
    words = ("batch", "in.jsonl", "--output", "out.jsonl", "--root", "vault", "--model", "claude-test")
    counting.run(*words).assert_refused("item 7", "'text' is not valid")
    assert (counting.requests, (counting.folder / "out.jsonl").exists()) == ([], False)


@LOOKS_IN
def test_ctrl_c_cancels_the_turn_and_nothing_is_left(fresh: Strongroom) -> None:
    with silent_port() as port:
        fresh.environment |= {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}"}
        words = ("hello you", "--model", "claude-test", "--root", "root")
        running = fresh.begin(words, ("supervisor",), (), subprocess.DEVNULL, subprocess.PIPE)
        wait_until(lambda: fresh.has_done_anything and fresh.asked)
        running.send_signal(signal.SIGINT)
        done = finished(running)
    assert (done.code, done.out) == (130, "")
    assert fresh.ends == ["cancelled"]
    assert any(isinstance(fact, TurnEnded) for fact in fresh.facts)
