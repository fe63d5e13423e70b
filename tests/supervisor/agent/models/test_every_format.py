"""What holds for every wire format: whole, cut, damaged and shuffled answers, and connections that break."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from itertools import takewhile
from typing import Any, Final, NamedTuple

import pytest

from supervisor.agent.models import chat_api, gemini_api, messages_api, ollama_api, remote_model, responses_api
from supervisor.agent.models.model import ModelRequest, Progress, Reply, TextDelta
from supervisor.agent.models.wire_format import WireFormat
from supervisor.errors import ModelError
from tests import chat_server, gemini_server, messages_server, ollama_server, responses_server
from tests.script_server import Response, ScriptServer
from tests.supervisor.asked_model import Asked, asking_format
from tests.supervisor.read_streams import damaged, next_body, read, shuffled, whole

A: Final = '{"path": "a"}'
CALLS: Final[Any] = [("read_file", {"a": [1, {"b": None}]}), ("f", "{")]
GEMINI: Final = gemini_server.reply(
    ["Let ", "me look: é😀"], [("f", {"path": "a"}), ("b", {})], signature="c2ln", thoughts=["Hm."], ids=["i1"]
).replace("\r\n", "\n")


class Spoken(NamedTuple):
    """A format, a server that speaks it, and answers of such servers."""

    wire: WireFormat
    server: Callable[[], ScriptServer]
    reply: Callable[[str], str]
    """Returns a whole answer with a text."""
    fault_in: Callable[[Any, Reply], str | None]
    """Says what the server would refuse in the request after a reply."""
    ends: bytes
    """Where an answer says why it ended: with this event, or line, it is a reply."""
    answers: tuple[str, ...]
    model: str = "m"
    separator: bytes = b"\n\n"
    """Behind an event."""


def given(reply: Reply) -> frozenset[str]:
    """Return the signatures that a reply of Gemini's came with."""
    assert reply.origin is not None
    return frozenset(part["thoughtSignature"] for part in reply.origin.items if "thoughtSignature" in part)


FORMATS: Final = {
    "messages": Spoken(
        messages_api.FORMAT,
        messages_server.MessagesServer,
        messages_server.reply,
        lambda body, _: messages_server.fault_in(body),
        b"event: message_delta",
        (messages_server.reply(["some ", "text"], CALLS),),
    ),
    "chat": Spoken(
        chat_api.FORMAT,
        chat_server.ChatServer,
        chat_server.chat_reply,
        lambda body, _: chat_server.fault_in_chat(body),
        b'"finish_reason": "',
        (
            chat_server.chat_reply(["some ", "text"], CALLS, thought="hm", ids=["x", "y"]),
            chat_server.chunk({"reasoning_details": [{"type": "reasoning.text", "text": "h", "index": 0}]})
            + chat_server.chunk({"tool_calls": [{"function": {"name": "f", "arguments": A}}]})
            + chat_server.chunk({"tool_calls": [{"id": "y", "function": {"name": "g", "arguments": {"x": 1}}}]})
            + chat_server.chunk({"content": [{"type": "text", "text": "x"}, {"type": "thinking", "thinking": "hm"}]})
            + chat_server.end("stop"),
        ),
    ),
    "responses": Spoken(
        responses_api.FORMAT,
        responses_server.ResponsesServer,
        responses_server.responses_reply,
        lambda body, _: responses_server.fault_in_responses(body),
        b"event: response.completed",
        (
            responses_server.responses_reply(["some ", "text"], CALLS, thought="hm", ids=["x", "y"]),
            responses_server.event(
                "response.output_item.added",
                output_index=0,
                item={"id": "m", "type": "message", "role": "assistant", "content": []},
            )
            + responses_server.event("response.output_text.delta", output_index=0, delta="so ")
            + responses_server.event("response.refusal.delta", output_index=0, delta="no")
            + responses_server.event(
                "response.output_item.added", output_index=1, item=responses_server.call_item("f", "", "x")
            )
            + responses_server.event("response.function_call_arguments.delta", output_index=1, delta=A[:5])
            + responses_server.event("response.function_call_arguments.done", output_index=1, arguments=A)
            + responses_server.event(
                "response.output_item.done", output_index=2, item=responses_server.reasoning_item("hm")
            )
            + responses_server.event("response.completed", response=responses_server.response("completed")),
        ),
    ),
    "gemini": Spoken(
        gemini_api.FORMAT,
        gemini_server.GeminiServer,
        gemini_server.reply,
        lambda body, reply: gemini_server.fault_in(body, known=given(reply)),
        b'"finishReason"',
        (GEMINI,),
        model="gemini-3-test",
    ),
    "ollama": Spoken(
        ollama_api.FORMAT,
        ollama_server.OllamaServer,
        ollama_server.reply,
        lambda body, _: ollama_server.fault_in(body),
        b'"done": true',
        (
            ollama_server.reply(
                ["Let ", "me look: é😀"], [("f", {"path": "a"}), ("b", {})], thoughts=["Hm, ", "so."], ids=["i1"]
            ),
        ),
        model=ollama_server.MODEL,
        separator=b"\n",
    ),
}
SHOWN_AS_KEPT: Final = ("gemini", "ollama")
"""Formats in which a text stands once in an answer: whatever arrives, what was shown of it is what is kept."""

each_format = pytest.mark.parametrize("name", FORMATS)


# without a socket ---------------------------------------------------------------------------------------------


@each_format
def test_an_answer_is_the_same_wherever_its_bytes_are_cut(name: str) -> None:
    wire, raws = FORMATS[name].wire, [each.encode() for each in FORMATS[name].answers]
    for raw in raws:
        content = whole(wire, raw).content
        for cut in range(0, len(raw), 7):
            assert whole(wire, raw[:cut], b"", raw[cut:]).content == content, cut
        assert whole(wire, *(raw[at : at + 1] for at in range(len(raw)))).content == content


@each_format
def test_an_answer_that_is_cut_is_a_reply_only_once_it_has_said_why_it_ended(name: str) -> None:
    spoken = FORMATS[name]
    for raw in (each.encode() for each in spoken.answers):
        ends = raw.index(spoken.ends)
        for cut in range(len(raw)):
            try:
                reply = read(spoken.wire, raw[:cut])
            except ModelError as error:
                raise AssertionError(cut) from error
            assert (reply is not None) == (spoken.separator in raw[ends:cut]), cut


def assert_never_astray(name: str, answer: str | bytes) -> bool:
    """Read an answer: it breaks off, is a ModelError, or a reply that can be sent again; say whether it is one."""
    spoken = FORMATS[name]
    shown: list[Progress] = []
    try:
        reply = read(spoken.wire, answer, show=shown.append)
    except ModelError:
        return False
    if reply is None:
        return False
    if name in SHOWN_AS_KEPT:
        text = "".join(each.text for each in shown if isinstance(each, TextDelta))
        assert reply.text.strip() == text.strip(), answer
    body = next_body(spoken.wire, reply, model=spoken.model)
    assert spoken.fault_in(body, reply) is None, answer
    return True


@each_format
def test_a_damaged_answer_is_a_model_error_or_a_reply_that_can_be_sent_again(name: str) -> None:
    for answer in FORMATS[name].answers:
        replies = sum(assert_never_astray(name, each) for each in damaged(answer.encode(), 5000))
        assert 100 < replies < 4900


@each_format
def test_events_in_any_order_are_a_model_error_or_a_reply_that_can_be_sent_again(name: str) -> None:
    separator = FORMATS[name].separator.decode()
    for answer in FORMATS[name].answers:
        events = [each + separator for each in answer.split(separator)[:-1]]
        replies = sum(assert_never_astray(name, each) for each in shuffled(events, 1000))
        assert 30 < replies < 970


@each_format
def test_the_same_history_is_the_same_request_byte_for_byte(name: str) -> None:
    spoken = FORMATS[name]
    reply = whole(spoken.wire, spoken.answers[0])
    first, second = (next_body(spoken.wire, reply, model=spoken.model) for _ in range(2))
    assert json.dumps(first) == json.dumps(second)


# over HTTP ----------------------------------------------------------------------------------------------------


def asking(name: str, *responses: Response) -> AbstractAsyncContextManager[Asked]:
    spoken = FORMATS[name]
    served = {"served_as": spoken.model, "rest_timeout": 0.05}
    return asking_format(spoken.wire, spoken.server(), *responses, provider=name, **served)


@each_format
@pytest.mark.parametrize("then", ["reset", "hang"])
async def test_a_complete_reply_stays_complete_whatever_follows(name: str, then: str) -> None:
    reply = FORMATS[name].reply
    async with asking(name, {"sse": reply("all of it"), "then": then}, reply("done")) as asked:
        assert (await asked.reply()).text == "all of it"
        assert (await asked.reply()).text == "done"
    assert asked.retries == []


@each_format
@pytest.mark.parametrize("more", [{}, {"then": "reset"}], ids=["an end", "a reset"])
async def test_one_that_broke_off_is_asked_for_again(name: str, more: dict[str, str]) -> None:
    lines, ends = FORMATS[name].reply("all of it").splitlines(keepends=True), FORMATS[name].ends.decode()
    cut = "".join(takewhile(lambda line: ends not in line, lines))
    async with asking(name, {"sse": cut, **more}, FORMATS[name].reply("done")) as asked:
        assert (await asked.reply()).text == "done"
    assert [each.kind for each in asked.retries] == ["stream_truncated"]


@each_format
async def test_a_connection_serves_many_requests_until_the_model_is_closed(name: str) -> None:
    done = FORMATS[name].reply("done")
    async with asking(name, done, {"sse": done, "split": True}, {"sse": done, "gap": 0}, done) as asked:
        for _ in range(3):
            reply = await asked.reply()
            assert (reply.text, "".join(asked.text)) == ("done", "done")
            assert reply.origin is not None
            assert (reply.origin.provider, reply.origin.model) == (name, FORMATS[name].model)
            asked.shown.clear()
        await asked.model.aclose()
        assert (await asked.reply()).text == "done"
    assert [request.connection for request in asked.server.requests] == [0, 0, 0, 1]


@each_format
async def test_an_answer_that_is_larger_than_any_reply_is_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_model, "MAX_STREAM", 100)
    async with asking(name, FORMATS[name].reply("x" * 200)) as asked:
        error = await asked.error()
    assert (error.kind, "larger than 100 bytes" in str(error), asked.retries) == ("bad_response", True, [])


@each_format
async def test_a_message_that_is_a_text_alone_is_taken(name: str) -> None:
    async with asking(name, FORMATS[name].reply("done")) as asked:
        await asked.reply(ModelRequest("", [], [{"role": "user", "content": "plain"}], 0))
    assert '"plain"' in json.dumps(asked.server.bodies)
