"""Another model than the one that was asked is told of, once; the same one by a longer name is not."""

from typing import Final

from supervisor.agent.models.answering_model import AnsweringModel, answered_by
from supervisor.journal.facts import ReplyOrigin
from tests.each_row import each_row

ASKED: Final = [
    ("claude-haiku-4-5", "claude-haiku-4-5-20251001", False),
    ("claude-haiku-4-5-20251001", "claude-haiku-4-5", False),
    ("gpt-5.1", "GPT-5.1-2025-11-13", False),
    ("gpt-5-latest", "gpt-5-2025", False),
    ("llama3", "llama3:latest", False),
    ("m", "models/m", False),
    ("meta-llama/Llama-3", "llama-3", False),
    ("gpt-5.1", "", False),
    ("gpt-5.1", "gpt-4o", True),
    ("claude-opus-4-5", "claude-haiku-4-5", True),
    ("llama3:70b", "llama3:8b", True),
    ("openrouter/auto", "anthropic/claude-haiku-4-5", True),
]


@each_row(("asked", "answered", "other"), ASKED)
def test_a_model_is_another_by_more_than_a_date(asked: str, answered: str, other: bool) -> None:
    answering = AnsweringModel()
    answering.see(f'{{"model": "{answered}"}}'.encode())
    assert answering.other_than(asked) == (answered if other else "")


FIRST: Final = {
    "messages": b'{"type":"message_start","message":{"id":"msg_1","type":"message","model":"other"}}',
    "chat": b'{"id":"1","object":"chat.completion.chunk","model":"other","choices":[]}',
    "responses": b'{"type":"response.created","response":{"id":"resp_1","model":"other"}}',
    "gemini": b'{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"modelVersion":"other"}',
    "ollama": b'{"model":"other","message":{"role":"assistant","content":"a"}}',
}


@each_row("first", FIRST.values(), ids=FIRST)
def test_each_format_says_it_in_its_first_event(first: bytes) -> None:
    answering = AnsweringModel()
    for data in (b"", first, b'{"model":"third"}'):
        answering.see(data)
    assert answering.other_than("m") == "other"


def test_a_model_in_a_reply_s_text_or_late_is_none() -> None:
    answering = AnsweringModel()
    for data in (rb'{"text":"{\"model\": \"x\"}"}', b"{}", b"{}", b'{"model":"late"}'):
        answering.see(data)
    assert answering.other_than("m") == ""


def test_a_person_is_told_both_names() -> None:
    assert answered_by(ReplyOrigin("openai", "gpt-5.1")) == ""
    said = "openai/gpt-5.1 was asked; its server says that gpt-4o has answered."
    assert answered_by(ReplyOrigin("openai", "gpt-5.1", answering="gpt-4o")) == said
