"""Thinking between tags in a reply's text, through the readers of the servers that leave it there."""

import json
from typing import Final

import pytest

from supervisor.agent.models.chat_api import FORMAT
from supervisor.agent.models.event_stream import Event
from supervisor.agent.models.model import Progress, TextDelta, ThoughtDelta
from supervisor.agent.models.ollama_reader import OllamaReader
from tests.chat_server import chat_reply
from tests.supervisor.read_streams import whole

ANSWERS: Final[dict[str, tuple[str, str, str]]] = {
    "at the beginning": ("<think>hm, <b></b> </think>\n\nyes", "hm, <b></b> ", "yes"),
    "after space": ("\n <think>\nhm</think>yes </think>", "\nhm", "yes </think>"),
    "empty": ("<think>\n</think>\n\n yes", "\n", "yes"),
    "never ended": ("<think>hm </thin", "hm </thin", ""),
    "in the middle": ("a <think>b</think> c", "", "a <think>b</think> c"),
    "almost": ("<thinker>b</think> c", "", "<thinker>b</think> c"),
    "cut off": (" <thi", "", " <thi"),
    "none": ("  yes", "", "  yes"),
}
"""What a model writes, its thinking, and its answer."""


def told(shown: list[Progress], kind: type[TextDelta | ThoughtDelta]) -> str:
    return "".join(each.text for each in shown if isinstance(each, kind))


@pytest.mark.parametrize(("written", "thought", "answer"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_is_told_from_the_answer_wherever_it_is_cut(written: str, thought: str, answer: str, size: int) -> None:
    pieces = [written[at : at + size] for at in range(0, len(written), size)]
    for name, read in (("chat", chat), ("ollama", ollama)):
        shown: list[Progress] = []
        assert read(pieces, shown) == answer, name
        assert (told(shown, ThoughtDelta), told(shown, TextDelta)) == (thought, answer), name


def chat(pieces: list[str], shown: list[Progress]) -> str:
    reply = whole(FORMAT, chat_reply(pieces), shown=shown)
    assert "<think>" not in json.dumps(reply.origin.items if reply.origin else []), "it does not go back"
    return reply.text


def ollama(pieces: list[str], shown: list[Progress]) -> str:
    reader = OllamaReader(shown.append)
    for each in pieces:
        reader.feed(Event("", json.dumps({"message": {"role": "assistant", "content": each}, "done": False}).encode()))
    reader.feed(Event("", b'{"done": true, "done_reason": "stop"}'))
    reply = reader.reply()
    assert reply.origin is not None
    assert reply.origin.items[0]["message"] == {"role": "assistant", "content": reply.text}
    return reply.text


def test_text_is_not_kept_waiting() -> None:
    shown: list[Progress] = []
    ollama(["<think>a", "b</think>", "\n", "c", "<", "/"], shown)
    assert shown == [ThoughtDelta("a"), ThoughtDelta("b"), *map(TextDelta, ["c", "<", "/"])]
