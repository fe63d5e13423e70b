"""The model that replays: the step alone chooses the line."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.agent.models.model import ModelRequest, Progress, Retrying, TextDelta, ToolUse
from supervisor.agent.models.scripted import open_script
from supervisor.errors import ConfigError, ModelError
from tests.supervisor.histories import call, scripted


def request(step: int) -> ModelRequest:
    return ModelRequest("", [], [], step)


async def test_the_step_chooses_the_line(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"text": "one"}, {"text": "two"})
    replies = [await model.reply(request(step), lambda _event: None) for step in (1, 0, 1)]
    assert [reply.text for reply in replies] == ["two", "one", "two"]


async def test_a_line_becomes_text_and_calls(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"text": "I look.", "calls": [call("read_file", path="a"), call("x")]})
    shown: list[Progress] = []
    reply = await model.reply(request(0), shown.append)
    assert shown == [TextDelta("I look.")]
    assert reply.stop_reason == "tool_use"
    assert reply.calls == [ToolUse("call_0_0", "read_file", '{"path":"a"}'), ToolUse("call_0_1", "x", "{}")]
    assert reply.content == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call_0_0", "name": "read_file", "input": {"path": "a"}},
        {"type": "tool_use", "id": "call_0_1", "name": "x", "input": {}},
    ]


async def test_raw_arguments_go_as_they_are(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"calls": [{"tool": "x", "raw": '{"path": '}]})
    reply = await model.reply(request(0), lambda _event: None)
    assert reply.calls[0].arguments == '{"path": '
    assert reply.content[0]["input"] == {}


async def test_a_stop_reason_and_a_usage_can_be_given(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"text": "x", "stop_reason": "max_tokens", "usage": {"output_tokens": 9}}, {"text": "y"})
    first, second = [await model.reply(request(step), lambda _event: None) for step in (0, 1)]
    assert (first.stop_reason, first.usage) == ("max_tokens", {"output_tokens": 9})
    assert (second.stop_reason, second.usage) == ("end_turn", {"input_tokens": 1, "output_tokens": 1})


async def test_a_fault_is_an_error_of_its_kind(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        await scripted(tmp_path, {"fault": "rate_limited"}).reply(request(0), lambda _event: None)
    assert caught.value.kind == "rate_limited"


async def test_a_fault_with_times_is_retried_before_the_reply(tmp_path: Path) -> None:
    shown: list[Progress] = []
    reply = await scripted(tmp_path, {"fault": "overloaded", "times": 2, "text": "x"}).reply(request(0), shown.append)
    assert [event.attempt for event in shown if isinstance(event, Retrying)] == [1, 2]
    assert reply.text == "x"


async def test_a_script_that_is_used_up_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="has no line 2") as caught:
        await scripted(tmp_path, {"text": "one"}).reply(request(1), lambda _event: None)
    assert caught.value.kind == "bad_response"


async def test_blank_lines_are_no_replies(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text('\n{"text": "one"}\n  \n{"text": "two"}')
    assert (await open_script(file).reply(request(1), lambda _event: None)).text == "two"


WRONG: Final[list[tuple[bytes, str]]] = [
    (b'{"secret": "x"}', "line 1: not an object with text, calls, "),
    (b'{"text": "x"}\nsecret', "line 2: not JSON in UTF-8"),
    (b'{"fault": "secret"}', "not one of the faults authentication, permission"),
    (b'{"text": "\xff"}', "line 1: not JSON in UTF-8"),
    (b'["secret"]', "line 1: not an object"),
    (b'{"calls": [{"arguments": {"secret": 1}}]}', "line 1: not an object"),
    (b'{"calls": [{"tool": "x", "arguments": {"a": ' + b"[" * 100_000, "line 1: nested too deep"),
]


@pytest.mark.parametrize(("content", "words"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_a_line_that_is_none_is_named_and_not_quoted(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        open_script(file)
    assert f"{str(file)!r}, line " in str(caught.value)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def a_fifo(file: Path) -> None:
    os.mkfifo(file)


def a_device(file: Path) -> None:
    file.symlink_to("/dev/null")


def a_directory(file: Path) -> None:
    file.mkdir()


def a_huge_file(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(16 * 2**20 + 1)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (a_fifo, "it is not a regular file"),
        (a_device, "it is not a regular file"),
        (a_directory, "it is not a regular file"),
        (a_huge_file, "it has more than 16777216 bytes"),
    ],
)
def test_what_is_no_script_is_neither_waited_for_nor_read(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    file = tmp_path / "s.jsonl"
    make(file)
    with pytest.raises(ConfigError) as caught:
        open_script(file)
    assert str(caught.value) == f"The script {str(file)!r} cannot be read: {reason}."


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        open_script(tmp_path / "x")


async def test_warming_up_and_closing_cost_nothing(tmp_path: Path) -> None:
    model: Any = scripted(tmp_path, {"text": "x"})
    await model.warm()
    await model.aclose()
    assert (await model.reply(request(0), lambda _event: None)).text == "x"
