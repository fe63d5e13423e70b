"""The provider's prompt cache, metered in each wire format: what could come from it does, and each miss has its cause.

One conversation of 40 steps with parallel calls and thinking. Two clients prompt it by turns, and the daemon is killed
once; the profile is changed once, and with it the tools; another model has a turn, and the first one comes back; at
last there are more images than a request has room for.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from supervisor.journal.facts import Replied
from supervisor.journal.journal import JournalEntry
from supervisor.reports.prompt_cache import PromptCache
from supervisor.reports.why import call_record_of
from tests import gemini_server, messages_server, ollama_server
from tests.cache_meter import CacheMeter
from tests.chat_server import ChatServer, chat_reply
from tests.daemon_process import DaemonProcess, Lines
from tests.media_files import picture
from tests.responses_server import ResponsesServer, responses_reply
from tests.script_server import ScriptServer
from tests.supervisor.command import wait_until

STEPS: Final = 8
"""Of each turn, its answer included."""
KILLED: Final = STEPS + STEPS // 2 + 1
"""The number of the request that the first daemon dies with; the next one makes it again."""
MANY: Final = 30
"""Calls of some steps: more results than Anthropic looks back for what it has kept, and a third of all images."""
ENOUGH: Final = 0.98
"""Of the tokens that the request before had as well."""
SHORT: Final = "so short a prompt is not kept, by some models not below 4096 tokens"
CAUSES: Final[Mapping[int, str]] = {
    2 * STEPS + 1: "the profile was changed",
    3 * STEPS + 1: "the model was changed",
    4 * STEPS + 1: "the model was changed",
    4 * STEPS + 5: "old images or documents were left out, to have room for new ones or as they are not kept",
}
"""Of the misses of every format, by the number of the reply."""

Call = tuple[str, dict[str, Any]]
Usage = Mapping[str, Any]


class Spoken(NamedTuple):
    """A format: its server, what a reply with a usage looks like, two models, and misses that no other format has."""

    server: Callable[[], ScriptServer]
    reply: Callable[[str, Sequence[Call], Usage], str]
    models: tuple[str, str] = ("m", "n")
    more: Mapping[int, str] = {}


def thoughtful(text: str, calls: Sequence[Call], usage: Usage) -> str:
    """Return a reply of the Messages API, with a signed thought."""
    thought = messages_server.block(0, {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"})
    made = [messages_server.call_block(at, *call, f"toolu_{uuid.uuid4().hex}") for at, call in enumerate(calls, 1)]
    made += [messages_server.text_block(1, text)] if text else []
    ending = messages_server.end("tool_use" if calls else "end_turn", usage)
    return messages_server.start(usage) + thought + "".join(made) + ending


SPOKEN: Final[Mapping[str, Spoken]] = {
    "messages": Spoken(messages_server.MessagesServer, thoughtful, ("claude-haiku-5-5", "claude-opus-5-5")),
    "chat": Spoken(ChatServer, lambda text, calls, usage: chat_reply(text, calls, usage=usage, thought="Hm.")),
    "responses": Spoken(
        ResponsesServer, lambda text, calls, usage: responses_reply(text, calls, usage=usage, thought="Hm.")
    ),
    "gemini": Spoken(
        gemini_server.GeminiServer,
        lambda text, calls, usage: gemini_server.reply(text, calls, usage=usage, signature="c2ln"),
        ("gemini-3-test", "gemini-3-other"),
        more={2: SHORT, 3: SHORT},
    ),
    "ollama": Spoken(
        lambda: ollama_server.OllamaServer(window=262_144),
        lambda text, calls, _usage: ollama_server.reply(text, calls, thoughts=["Hm."]),
        (ollama_server.MODEL, ollama_server.MODEL),
    ),
}


class Script:
    """The replies of the conversation, with the usage that the meter counts."""

    def __init__(self, spoken: Spoken, meter: CacheMeter, server: ScriptServer) -> None:
        self._spoken, self._meter, self._server = spoken, meter, server
        self._read = 0

    def add(self, model: str, *, shown: int = 0, killed: bool = False) -> None:
        """Add those of a turn, whose first steps have images shown; once there is none for a request at first."""
        for step in range(STEPS):
            if killed and step == STEPS // 2:
                self._server.add({"made": lambda body: str(self._meter.usage(body, model))[:0], "then": "hang"})
            text, calls = ("Done.", []) if step == STEPS - 1 else ("", self._calls(step, images=step < shown))
            self._server.add({"made": partial(self._reply, model, text, calls)})

    def _reply(self, model: str, text: str, calls: Sequence[Call], body: Any) -> str:
        return self._spoken.reply(text, calls, self._meter.usage(body, model))

    def _calls(self, step: int, *, images: bool) -> list[Call]:
        numbers = range(self._read, self._read + (MANY if images or step == 1 else 2))
        self._read = numbers.stop
        return [("read_file", {"path": f"{n}.png"} if images else {"path": "a.txt", "limit": 20 + n}) for n in numbers]


def choose(client: Lines, session: str, option: str, value: str) -> None:
    client.request("session/set_config_option", {"sessionId": session, "configId": option, "value": value})


def play(name: str, server: ScriptServer, meter: CacheMeter, home: Path, root: Path) -> tuple[list[JournalEntry], str]:
    """Run the conversation; return its journal, and what the daemon said of its last miss."""
    script, (first, second) = Script(SPOKEN[name], meter, server), SPOKEN[name].models
    daemon = DaemonProcess(home, home.parent)
    daemon.start()
    with daemon.client() as one, daemon.client() as other:
        session = one.new_session(root, model=f"{name}/{first}", profile="vault")
        script.add(first)
        one.prompt(session, "Read it.")
        other.resume(session)
        script.add(first, killed=True)
        other.begin_prompt(session, "Go on.")
        wait_until(lambda: len(meter.counts) == KILLED, lambda: daemon.log)
        daemon.crash()
    with daemon, daemon.client() as one:
        wait_until(lambda: [each["state"] for each in one.status()["sessions"]] == ["Input"], one.status)
        one.resume(session)
        choose(one, session, "profile", "project")
        for model, shown in ((first, 0), (second, 0), (first, 4)):
            choose(one, session, "model", f"{name}/{model}")
            script.add(model, shown=shown)
            assert one.prompt(session, "Once more.")["stopReason"] == "end_turn"
        (status,) = one.status()["sessions"]
    assert [request.refused for request in server.requests if request.refused] == []
    return [entry for entry in daemon.entries if entry.session == session], status.get("cacheMiss", "")


def misses(entries: Sequence[JournalEntry]) -> tuple[dict[int, str], dict[int, str]]:
    """Return the causes of a session's misses, and what `why` says of the first call of those replies, by number."""
    cache, number = PromptCache(), 0
    causes: dict[int, str] = {}
    said: dict[int, str] = {}
    for entry in entries:
        before = cache.misses
        cache.apply(entry.fact, entry.at)
        if isinstance(entry.fact, Replied):
            number += 1
            if cache.misses > before:
                causes[number] = cache.last_miss.partition(": ")[2]
                called = next(block["id"] for block in entry.fact.content if block["type"] == "tool_use")
                said[number] = call_record_of(entries, called).cache.rpartition(": ")[2]
    return causes, said


def lost(name: str, bodies: Sequence[Any]) -> set[int]:
    """Return the numbers of requests that an Ollama server can have kept little for, which tells nothing of it.

    Those for which it loads the model anew, with a larger context; the first of a turn, which no longer have what was
    thought in the one before; and that from which old images are left out.
    """
    if name != "ollama":
        return set()
    asked = [body for body in bodies if "messages" in body]
    loads = {
        number
        for number, (before, after) in enumerate(pairwise(asked), 2)
        if before["options"]["num_ctx"] != after["options"]["num_ctx"]
    }
    assert len(loads) <= 5  # from 8,192 tokens to 262,144
    return loads | {STEPS * turn + 1 + (turn > 1) for turn in range(5)} | {4 * STEPS + 6}


@pytest.mark.parametrize("name", SPOKEN)
def test_what_could_come_from_the_cache_does_and_each_miss_has_its_cause(name: str, home: Path, root: Path) -> None:
    meter = CacheMeter(name)
    (root / "a.txt").write_text("What stands in this note is of no importance whatever.\n" * 20)
    image = picture(size=(4, 4))
    for number in range(STEPS * 40):
        (root / f"{number}.png").write_bytes(image)
    home.mkdir(mode=0o700)
    with SPOKEN[name].server() as server:
        config = f"[providers.{name}]\nbase_url = {server.url!r}\nformat = {name!r}\n"
        config += "".join(f'[models."{name}/{each}"]\nimages = true\n' for each in sorted({*SPOKEN[name].models}))
        (home / "config.toml").write_text(config)
        entries, last = play(name, server, meter, home, root)
        bodies = [request.body for request in server.requests if request.method == "POST"]
    told = {} if name == "ollama" else {**SPOKEN[name].more, **CAUSES}
    found, said = misses(entries)
    assert (found, said) == (told, told)
    assert last.endswith(CAUSES[max(CAUSES)] if told else "")
    assert bodies[KILLED - 1] == bodies[KILLED]
    again = {number + (number >= KILLED) for number in told} | lost(name, bodies)
    last_before, back = meter.counts[3 * STEPS], meter.counts[4 * STEPS + 1]  # of the first model
    assert name == "ollama" or back.read >= ENOUGH * last_before.sent
    pairs = [
        (min(before.sent, after.sent), after.read)
        for number, (before, after) in enumerate(pairwise(meter.counts), 2)
        if number not in again
    ]
    assert len(pairs) >= 30
    assert sum(read for _, read in pairs) >= ENOUGH * sum(possible for possible, _ in pairs)
    assert all(read >= 0.9 * possible for possible, read in pairs), pairs
