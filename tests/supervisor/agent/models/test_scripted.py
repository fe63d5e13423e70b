"""The model that replays: the step alone chooses the line."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.agent.models.model import Model, ModelRequest, Progress, Reply, Retrying, TextDelta, ToolUse
from supervisor.agent.models.scripted import open_script
from supervisor.errors import ConfigError, ModelError
from tests.supervisor.histories import Line, call, scripted


async def replied(model: Model, step: int = 0, shown: list[Progress] | None = None) -> Reply:
    return await model.reply(ModelRequest("", [], [], step), (shown if shown is not None else []).append)


async def test_the_step_chooses_the_line(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"text": "one"}, {"text": "two"})
    assert [(await replied(model, step)).text for step in (1, 0, 1)] == ["two", "one", "two"]


async def test_a_line_becomes_text_and_calls(tmp_path: Path) -> None:
    shown: list[Progress] = []
    line = {"text": "I look.", "calls": [call("read_file", path="a"), call("x")]}
    reply = await replied(scripted(tmp_path, line), shown=shown)
    assert shown == [TextDelta("I look.")]
    assert reply == Reply(
        [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "call_0_0", "name": "read_file", "input": {"path": "a"}},
            {"type": "tool_use", "id": "call_0_1", "name": "x", "input": {}},
        ],
        "tool_use",
        {"input_tokens": 1, "output_tokens": 1},
        [ToolUse("call_0_0", "read_file", '{"path":"a"}'), ToolUse("call_0_1", "x", "{}")],
    )


async def test_raw_arguments_go_as_they_are(tmp_path: Path) -> None:
    reply = await replied(scripted(tmp_path, {"calls": [{"tool": "x", "raw": '{"path": '}]}))
    assert reply.calls[0].arguments == '{"path": '
    assert reply.content[0]["input"] == {}


async def test_a_stop_reason_and_a_usage_can_be_given(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"text": "x", "stop_reason": "max_tokens", "usage": {"output_tokens": 9}}, {"text": "y"})
    first, second = [await replied(model, step) for step in (0, 1)]
    assert (first.stop_reason, first.usage) == ("max_tokens", {"output_tokens": 9})
    assert (second.stop_reason, second.usage) == ("end_turn", {"input_tokens": 1, "output_tokens": 1})


@pytest.mark.parametrize(
    ("line", "step", "kind", "words"),
    [({"fault": "rate_limited"}, 0, "rate_limited", "line 1"), ({"text": "one"}, 1, "bad_response", "has no line 2")],
    ids=["a fault", "used up"],
)
async def test_a_fault_and_a_script_that_is_used_up_are_errors(
    tmp_path: Path, line: Line, step: int, kind: str, words: str
) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        await replied(scripted(tmp_path, line), step)
    assert caught.value.kind == kind


async def test_a_fault_with_times_is_retried_before_the_reply(tmp_path: Path) -> None:
    shown: list[Progress] = []
    reply = await replied(scripted(tmp_path, {"fault": "overloaded", "times": 2, "text": "x"}), shown=shown)
    assert [event.attempt for event in shown if isinstance(event, Retrying)] == [1, 2]
    assert reply.text == "x"


async def test_blank_lines_are_no_replies(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text('\n{"text": "one"}\n  \n{"text": "two"}')
    assert (await replied(open_script(file), 1)).text == "two"


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


def a_huge_file(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(16 * 2**20 + 1)


NO_FILE: Final = "it is not a regular file"
NO_SCRIPTS: Final[dict[str, tuple[Callable[[Path], Any], str]]] = {
    "a fifo": (os.mkfifo, NO_FILE),
    "a device": (lambda file: file.symlink_to("/dev/null"), NO_FILE),
    "a directory": (Path.mkdir, NO_FILE),
    "a huge file": (a_huge_file, "it has more than 16777216 bytes"),
}


@pytest.mark.parametrize(("make", "reason"), NO_SCRIPTS.values(), ids=NO_SCRIPTS)
def test_a_file_that_is_no_script_is_neither_waited_for_nor_read(
    tmp_path: Path, make: Callable[[Path], Any], reason: str
) -> None:
    file = tmp_path / "s.jsonl"
    make(file)
    with pytest.raises(ConfigError) as caught:
        open_script(file)
    assert str(caught.value) == f"The script {str(file)!r} cannot be read: {reason}."


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        open_script(tmp_path / "x")
