"""Whole conversations in each wire format: the real daemon, real workers, real HTTP, and a server that judges.

Whatever the format, a turn that is killed between its calls and the next request is taken up with the same bytes; and a
session goes on with a model of another format, which is told all that was said and done before.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from types import GenericAlias
from typing import Any, Final, NamedTuple

import pytest
from pydantic import TypeAdapter

from supervisor.acp import extensions
from supervisor.journal.facts import ContentsRefused, Replied
from supervisor.journal.journal import open_journal
from supervisor.reports.history import history
from supervisor.reports.why import explain
from tests.chat_server import ChatServer, chat_reply
from tests.daemon_process import DaemonProcess, Lines
from tests.gemini_server import GeminiServer
from tests.gemini_server import reply as gemini_reply
from tests.media_files import picture
from tests.messages_server import MessagesServer, block, reply, start
from tests.ollama_server import MODEL, OllamaServer
from tests.ollama_server import reply as ollama_reply
from tests.responses_server import ResponsesServer, responses_reply
from tests.script_server import Recorded, ScriptServer
from tests.supervisor.command import wait_until
from tests.supervisor.histories import fault_in_facts

Call = tuple[str, Mapping[str, Any] | str]
READS: Final[Sequence[Call]] = (("read_file", '{ "path": "a.txt" }'), ("read_file", {"path": "b.txt"}))
"""Arguments as no encoder of ours writes them, and as any does."""
CALLS: Final = [("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})]
"""The same where a format has no text of them."""

THOUGHT: Final = "Both are needed."


class Format(NamedTuple):
    """A server, and how its replies look."""

    server: type[ScriptServer]
    calling: str
    done: str
    model: str = "m"


def thinking(calls: str) -> str:
    """Put a signed thought before a reply of the Messages API."""
    thought = block(0, {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"})
    later = calls.removeprefix(start()).replace('"index": 1', '"index": 2').replace('"index": 0', '"index": 1')
    return start() + thought + later


SAME: Final = ("same", "same")
CALLING: Final[Mapping[str, Callable[[Sequence[Any]], str]]] = {
    "messages": lambda calls: thinking(reply("", calls, ids=SAME)),
    "chat": lambda calls: chat_reply("I read.", calls, ids=SAME, thought=THOUGHT),
    "responses": lambda calls: responses_reply("I read.", calls, ids=SAME, thought=THOUGHT),
    "gemini": lambda calls: gemini_reply("I read.", calls, ids=SAME, signature=THOUGHT),
    "ollama": lambda calls: ollama_reply("I read.", calls, ids=SAME, thoughts=[THOUGHT]),
}
"""Makes a reply that thinks and calls, with ids that are no ids, where the format has any."""

FORMATS: Final = {
    "messages": Format(MessagesServer, CALLING["messages"](READS), reply("Done.")),
    "chat": Format(ChatServer, CALLING["chat"](READS), chat_reply("Done.")),
    "responses": Format(ResponsesServer, CALLING["responses"](READS), responses_reply("Done.")),
    "gemini": Format(GeminiServer, CALLING["gemini"](CALLS), gemini_reply("Done."), "gemini-3-test"),
    "ollama": Format(OllamaServer, CALLING["ollama"](CALLS), ollama_reply("Done."), MODEL),
}


@pytest.fixture
def servers(home: Path) -> Iterator[Mapping[str, ScriptServer]]:
    """One of each format, which is its provider's name in the configuration of a daemon."""
    home.mkdir(mode=0o700)
    with ExitStack() as stack, (home / "config.toml").open("w") as config:
        running = {name: stack.enter_context(form.server()) for name, form in FORMATS.items()}
        for name, server in running.items():
            config.write(f"[providers.{name}]\nbase_url = {server.url!r}\nformat = {name!r}\n")
        config.flush()
        yield running


@pytest.fixture(autouse=True)
def _notes(root: Path) -> None:
    for name in ("a", "b"):
        (root / f"{name}.txt").write_text(f"This is {name}.")


def asked(server: ScriptServer) -> Sequence[Recorded]:
    """Return the requests for replies: a server is also asked which models it has."""
    return [request for request in server.requests if request.method == "POST"]


def at_rest(client: Lines, session: str) -> None:
    def has_ended() -> bool:
        states = [each["state"] for each in client.status()["sessions"] if each["sessionId"] == session]
        return states == ["Input"]

    wait_until(has_ended, client.status)


def crash_at(number: int, server: ScriptServer, daemon: DaemonProcess) -> None:
    """Kill the daemon once it has made so many requests."""
    wait_until(lambda: len(asked(server)) == number, lambda: daemon.log)
    daemon.crash()


@pytest.mark.parametrize("name", FORMATS)
def test_a_turn_that_was_killed_before_the_next_request_makes_the_same_one(
    name: str, servers: Mapping[str, ScriptServer], home: Path, tmp_path: Path, root: Path
) -> None:
    server, form = servers[name], FORMATS[name]
    server.add(form.calling, {"sse": "", "then": "hang"}, form.done)
    daemon = DaemonProcess(home, tmp_path)
    daemon.start()
    with daemon.client() as client:
        session = client.new_session(root, model=f"{name}/{form.model}", profile="project")
        client.begin_prompt(session, "Read both.")
        crash_at(2, server, daemon)
    with daemon, daemon.client() as client:
        at_rest(client, session)
    first, second, third, *more = [json.dumps(request.body) for request in asked(server)]
    assert second == third
    assert more == []
    assert "This is a." in second
    assert "This is b." in second
    assert first != second
    assert [request.refused for request in asked(server)] == [None] * 3
    facts = daemon.sessions[session]
    assert fault_in_facts(facts) is None
    assert [each.origin.provider for each in facts if isinstance(each, Replied) and each.origin] == [name, name]


def half(done: str) -> str:
    """Return a reply up to its only text."""
    return f"{done[: done.index(chr(10), done.index('Done.'))]}\n\n"


def test_a_reply_that_a_person_or_a_kill_has_cut_is_known_to_a_model_of_any_format(
    servers: Mapping[str, ScriptServer], home: Path, tmp_path: Path, root: Path
) -> None:
    daemon, sessions = DaemonProcess(home, tmp_path), dict[str, str]()
    daemon.start()
    with daemon.client() as client:
        for name, form in FORMATS.items():
            cut = {"sse": half(form.done), "then": "hang"}
            servers[name].add(form.calling, cut, cut, form.done)
            session = sessions[name] = client.new_session(root, model=f"{name}/{form.model}", profile="project")
            prompt = client.begin_prompt(session, "Read both.")
            until_told(client, session, ["Done."])
            client.notify("session/cancel", {"sessionId": session})
            assert client.result(prompt)["stopReason"] == "cancelled"
            client.begin_prompt(session, "Go on.")
            until_told(client, session, ["Done."] * 2)
        daemon.crash()
    with daemon, daemon.client() as client:
        for name, session in sessions.items():
            at_rest(client, session)
            client.load(session)
            assert told_done(client, session) == ["Done."] * 3
            assert [request.refused for request in asked(servers[name])] == [None] * 4
            last = json.dumps(asked(servers[name])[-1].body)
            marks = [
                "Done.\\n\\n(This reply was cut here: cancelled.",
                "Go on.",
                "(This reply was cut here: interrupted.",
            ]
            assert sorted(marks, key=last.index) == marks
            assert last.count("Done.") == 2
            assert fault_in_facts(daemon.sessions[session]) is None


def told_done(client: Lines, session: str) -> list[str]:
    return [text for text in client.messages(session).values() if text == "Done."]


def until_told(client: Lines, session: str, texts: Sequence[str]) -> None:
    while told_done(client, session) != texts:
        client.heard.append(client.read())


REFUSALS: Final[Mapping[str, tuple[int, str]]] = {
    "messages": (400, "messages.0.content.0.image.source.base64.data: Image format not supported"),
    "chat": (400, "At most 0 image(s) may be provided in one request."),
    "responses": (400, "You uploaded an unsupported image."),
    "gemini": (400, "Request contains an invalid argument."),
    "ollama": (400, "Failed to load image or audio file"),
}
"""What servers say of an image that they do not take, each with its status."""


def test_an_image_that_a_server_refuses_is_words_from_then_on(home: Path, tmp_path: Path, root: Path) -> None:
    home.mkdir(mode=0o700)
    with ExitStack() as stack, (home / "config.toml").open("w") as config:
        running = dict[str, ScriptServer]()
        for name, form in FORMATS.items():
            status, said = REFUSALS[name]
            refuses = partial(_refused, said)
            running[name] = stack.enter_context(form.server([form.done] * 2, judge=refuses, refusal=status))
            config.write(f"[providers.{name}]\nbase_url = {running[name].url!r}\nformat = {name!r}\n")
            config.write(f'[models."{name}/{form.model}"]\nimages = true\n')
        config.flush()
        image = {"type": "image", "data": base64.b64encode(picture()).decode(), "mimeType": "image/png"}
        with DaemonProcess(home, tmp_path) as daemon, daemon.client() as client:
            for name, form in FORMATS.items():
                session = client.new_session(root, model=f"{name}/{form.model}")
                for prompt in ([image, {"type": "text", "text": "Look."}], [{"type": "text", "text": "And now?"}]):
                    client.request("session/prompt", {"sessionId": session, "prompt": prompt})
                assert [each.refused is None for each in asked(running[name])] == [False, True, True], name
                assert "the server of this model refuses it" in json.dumps(asked(running[name])[-1].body)
                (refused,) = daemon.facts_of(session, ContentsRefused)
                assert (refused.model, len(refused.contents)) == (f"{name}/{form.model}", 1)


def _refused(said: str, body: Any) -> str | None:
    """Return what is said of a request that holds a PNG."""
    return said if base64.b64encode(b"\x89PNG\r\n\x1a\n")[:10].decode() in json.dumps(body) else None


ORDERS: Final = [
    ("messages", "chat", "messages"),
    ("chat", "responses", "chat"),
    ("responses", "messages", "chat", "responses"),
    ("messages", "gemini", "messages", "ollama", "gemini"),
    ("gemini", "ollama", "chat", "ollama"),
]


@pytest.mark.parametrize("order", ORDERS, ids=["-".join(order) for order in ORDERS])
def test_a_session_goes_on_with_a_model_of_another_format_and_comes_back(
    order: Sequence[str], servers: Mapping[str, ScriptServer], home: Path, tmp_path: Path, root: Path
) -> None:
    with DaemonProcess(home, tmp_path) as daemon, daemon.client() as client:
        session = client.new_session(root, model=f"{order[0]}/{FORMATS[order[0]].model}", profile="project")
        for number, name in enumerate(order):
            servers[name].add(FORMATS[name].calling, FORMATS[name].done)
            if number:
                option = {"sessionId": session, "configId": "model", "value": f"{name}/{FORMATS[name].model}"}
                client.request("session/set_config_option", option)
            assert client.prompt(session, f"Read both, the {number}.")["stopReason"] == "end_turn"
        facts = daemon.sessions[session]
    for name, server in servers.items():
        assert [request.refused for request in asked(server)] == [None] * 2 * order.count(name)
    last = json.dumps(asked(servers[order[-1]])[-1].body)
    assert all(f"Read both, the {number}." in last for number in range(len(order)))
    assert last.count("This is a.") == len(order)
    assert THOUGHT in last  # what the first model thought has come back to it
    assert fault_in_facts(facts) is None


def test_what_a_fork_begins_with_is_looked_for_where_the_other_session_has_it(
    servers: Mapping[str, ScriptServer], daemon: DaemonProcess, root: Path
) -> None:
    usage = {"input_tokens": 5000, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1}
    done, calling = responses_reply("Done.", usage=usage), responses_reply("", CALLS[:1], usage=usage, ids=["a-call"])
    servers["responses"].add(done, done, calling, done)
    with daemon, daemon.client() as client:
        session = client.new_session(root, model="responses/m")
        client.prompt(session, "One.")
        for _ in range(2):  # the second one of the first
            forked = client.request("session/fork", {"sessionId": session, "cwd": str(root), "mcpServers": []})
            session = forked["sessionId"]
            client.prompt(session, "Two.")
        possible = [each["cachePossible"] for each in client.status()["sessions"] if each["sessionId"] == session]
    bodies = [request.body for request in asked(servers["responses"])]
    assert possible == [10_000]
    with open_journal(daemon.home / "journal.db") as journal:
        assert "; 5000 more could have: " in explain(journal, "a-call").cache
    assert len({body["prompt_cache_key"] for body in bodies}) == 1
    assert [body["input"][: len(bodies[0]["input"])] for body in bodies] == [bodies[0]["input"]] * 4


def test_what_a_rewinding_took_away_is_no_miss_of_the_cache(
    servers: Mapping[str, ScriptServer], daemon: DaemonProcess, root: Path
) -> None:
    for sent, cached in ((5000, 0), (9000, 5000), (6000, 5000)):
        usage = {"prompt_tokens": sent, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": cached}}
        servers["chat"].add(chat_reply("Done.", usage=usage))
    with daemon, daemon.client() as client:
        session = client.new_session(root, model="chat/m")
        client.prompt(session, "One.")
        client.prompt(session, "Two.")
        client.request(extensions.REWIND_METHOD, {"sessionId": session, "turn": 1})
        client.prompt(session, "Three.")
        (status,) = client.status()["sessions"]
    assert (status["cachePossible"], status["cacheReused"], "cacheMiss" in status) == (10_000, 10_000, False)


EXPORTED: Final[Mapping[str, tuple[str, str, str]]] = {
    "openai": ("responses", "input", "openai.types.responses.ResponseInputItemParam"),
    "chat": ("chat", "messages", "openai.types.chat.ChatCompletionMessageParam"),
    "gemini": ("gemini", "contents", "google.genai.types.ContentDict"),
    "anthropic": ("messages", "messages", "anthropic.types.MessageParam"),
}
"""Formats of a history, each with the server that takes it, as what, and what its vendor's client has for that.

Those clients are large, and so not imported for all tests.
"""


def uncached(value: Any) -> Any:
    """Return JSON without the marks of what the provider shall keep."""
    return json.loads(json.dumps(value), object_hook=lambda each: {k: each[k] for k in each if k != "cache_control"})


STEPS: Final = 8
"""Of each turn, its answer included: 40 in the five formats."""


def test_one_conversation_of_40_steps_goes_through_all_formats_and_a_kill_in_each(
    servers: Mapping[str, ScriptServer], home: Path, tmp_path: Path, root: Path
) -> None:
    """Parallel calls, a picture, thinking, and another provider each turn; no request is refused, and none differs."""
    (root / "red.png").write_bytes(picture())
    with (home / "config.toml").open("a") as config:
        for name, form in FORMATS.items():
            config.write(f'[models."{name}/{form.model}"]\nimages = true\n')
    session = ""
    for turn, (name, form) in enumerate(FORMATS.items()):
        looks: list[Sequence[Call]] = [
            [
                ("read_file", {"path": "red.png"} if step == 0 else {"path": "a.txt", "limit": 10 * turn + step + 1}),
                ("read_file", {"path": "b.txt", "limit": 10 * turn + step + 1}),
            ]
            for step in range(STEPS - 1)
        ]
        calling = [CALLING[name](calls) for calls in looks]
        servers[name].add(*calling[:4], {"sse": "", "then": "hang"}, *calling[4:], form.done)
        daemon = DaemonProcess(home, tmp_path)
        daemon.start()
        with daemon.client() as client:
            if session:
                client.request("session/resume", {"sessionId": session, "cwd": str(root), "mcpServers": []})
                option = {"sessionId": session, "configId": "model", "value": f"{name}/{form.model}"}
                client.request("session/set_config_option", option)
            else:
                session = client.new_session(root, model=f"{name}/{form.model}", profile="project")
            client.begin_prompt(session, f"Look at all of it, the {turn}.")
            crash_at(5, servers[name], daemon)
        with daemon, daemon.client() as client:
            at_rest(client, session)
        sent = [json.dumps(request.body) for request in asked(servers[name])]
        assert sent[4] == sent[5]
        assert [request.refused for request in asked(servers[name])] == [None] * (STEPS + 1)
        facts = daemon.sessions[session]
    replies = [fact for fact in facts if isinstance(fact, Replied)]
    assert [each.origin.provider for each in replies if each.origin] == [name for name in FORMATS for _ in range(STEPS)]
    for exported, (name, key, types) in EXPORTED.items():
        told = json.loads(history(daemon.settings, session, exported))
        last = asked(servers[name])[-1]
        sent = [uncached(each) for each in last.body[key] if each.get("role") != "system"]
        assert told[: len(sent)] == sent
        assert servers[name].fault_in_request(replace(last, body={**last.body, key: [*told, *told[:1]]})) is None
        many: Any = GenericAlias(list, resolve_name(types))
        assert len(TypeAdapter(many).validate_python(told)) == len(told)
