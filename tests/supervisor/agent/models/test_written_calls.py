"""Calls in text: what is one, what only looks like one, and that neither depends on how the text arrives."""

import json
import random
from typing import Final

import pytest

from supervisor.agent.models.written_calls import CallReader, WrittenCall

LS: Final = '{"tool": "run_cmd", "command": "ls"}'
CALL: Final = WrittenCall("run_cmd", '{"command": "ls"}', {"command": "ls"})


def read(*pieces: str) -> tuple[str, list[WrittenCall], str]:
    """Return the text, the calls, and what was shown."""
    reader = CallReader()
    shown = "".join(map(reader.feed, pieces)) + reader.end()
    return reader.text, reader.calls, shown


FOUND: Final = {
    "alone": (LS, "", [CALL]),
    "after a text": (f"I look.\n{LS}", "I look.\n", [CALL]),
    "before a text": (f"{LS}\nThat was it.", "That was it.", [CALL]),
    "two": (f"{LS}\n{LS}\n", "", [CALL, CALL]),
    "two on a line are one text": (f"{LS} {LS}", "", [CALL, CALL]),
    "in a fence": (f"Here:\n```json\n{LS}\n```\nDone.", "Here:\nDone.", [CALL]),
    "in a fence of no kind": (f"~~~\n{LS}\n~~~", "", [CALL]),
    "two in a fence": (f"```json\n{LS}\n{LS}\n```", "", [CALL, CALL]),
    "a list in a fence": (f"```json\n[{LS},\n {LS}]\n```", "", [CALL, CALL]),
    "a list": (f"[{LS}, {LS}]\nDone.", "Done.", [CALL, CALL]),
    "a list over lines": (f"[\n  {LS},\n  {LS}\n]", "", [CALL, CALL]),
    "with the line ends of Windows": (f"I look.\r\n{LS}\r\n", "I look.\r\n", [CALL]),
    "in a fence with those": (f"```json\r\n{LS}\r\n```\r\nDone.", "Done.", [CALL]),
    "in a fence of a list": (f"- ```json\n  {LS}\n  ```\nDone.", "Done.", [CALL]),
    "in a fence without an end": (f"```tool_call\n{LS}", "", [CALL]),
    "in a longer fence": (f"````json\n{LS}\n````", "", [CALL]),
    "over several lines": ('{\n  "tool": "run_cmd",\n\n  "command": "ls"\n}', "", [CALL]),
    "indented a little": (f"  {LS}", "", [CALL]),
    "its tool last": ('{"command": "ls", "tool": "run_cmd"}', "", [CALL]),
    "arguments of their own": ('{"tool": "run_cmd", "arguments": {"command": "ls"}}', "", [CALL]),
    "one that is called arguments": (
        '{"tool": "x", "arguments": 1}',
        "",
        [WrittenCall("x", '{"arguments": 1}', {"arguments": 1})],
    ),
    "no arguments": ('{"tool": "x"}', "", [WrittenCall("x", "{}", {})]),
}


@pytest.mark.parametrize(("text", "rest", "calls"), FOUND.values(), ids=FOUND)
def test_a_call_is_found(text: str, rest: str, calls: list[WrittenCall]) -> None:
    assert read(text) == (rest, calls, rest)


LOOKS: Final = {
    "a sentence": f"You could write {LS} to see.",
    "quoted": f"> {LS}",
    "inline code": f"`{LS}`",
    "an indented block": f"    {LS}",
    "a program": f"```python\nx = {LS}\n{LS}\n```\n",
    "a program in a list": f"1. - ```python\n     {LS}\n{LS}\n     ```\n",
    "a link": "[a link](x.md) and [ ] a box",
    "a list of other JSON": '[{"a": 1}, 2]',
    "a shell's fence": f"```sh\n{LS}\n```\n",
    "other JSON": '{"name": "run_cmd", "command": "ls"}',
    "other JSON in a fence": '```json\n{"a": 1}\n```',
    "JSON with a call below": f'```json\n{{"a": 1}}\n{LS}\n```',
    "a list": f"- {LS}",
    "a brace": "{ is a brace",
    "nothing": "",
    "a fence of words": "```\nwords\n```",
    "a tool within": '{"example": {"tool": "run_cmd"}}',
}


@pytest.mark.parametrize("text", LOOKS.values(), ids=LOOKS)
def test_what_only_looks_like_a_call_is_text(text: str) -> None:
    assert read(text) == (text, [], text)


BROKEN: Final = {
    "cut": ('{"tool": "run_cmd", "command": "ls', "run_cmd"),
    "a comma too many": ('{"tool": "run_cmd", "command": "ls",}', "run_cmd"),
    "single quotes": ("{\"tool\": 'run_cmd'}", "?"),
    "a line break in a string": ('{"tool": "run_cmd", "command": "a\nb"}', "run_cmd"),
    "a name twice": ('{"tool": "run_cmd", "command": "ls", "command": "rm -r ."}', "run_cmd"),
    "the tool twice": ('{"tool": "read_file", "tool": "run_cmd", "command": "ls"}', "read_file"),
    "not a number": ('{"tool": "x", "n": NaN}', "x"),
    "half a character": ('{"tool": "x", "n": "\\ud800"}', "x"),
    "words behind it": (f"{LS} and then I look", "run_cmd"),
    "a tool that is no name": ('{"tool": 7, "command": "ls"}', "?"),
    "in a fence": ('```json\n{"tool": "run_cmd", "command": }\n```', "run_cmd"),
    "too deep": ('{"tool": "x", "n": ' + "[" * 100_000, "x"),
}


@pytest.mark.parametrize(("text", "tool"), BROKEN.values(), ids=BROKEN)
def test_a_call_that_cannot_be_read_is_one_whose_arguments_do_not_parse(text: str, tool: str) -> None:
    rest, (call,), _ = read(text)
    assert (rest, call.tool, call.inputs) == ("", tool, {})
    assert not _is_plain_object(call.arguments)


def _is_plain_object(text: str) -> bool:
    """Say whether a tool would take this for its arguments."""
    try:
        return "tool" not in json.loads(text)
    except (ValueError, RecursionError):
        return False


def test_what_stands_before_a_broken_call_counts() -> None:
    text, calls, _ = read(f'{LS}\n{{"tool": "run_cmd", "command": }}')
    assert (text, [call.tool for call in calls], calls[0]) == ("", ["run_cmd", "run_cmd"], CALL)
    assert calls[1].inputs == {}


@pytest.mark.parametrize("between", [",,", ", ,", ",\n,"], ids=repr)
def test_of_calls_with_commas_too_many_what_is_meant_is_not_known(between: str) -> None:
    text, calls, _ = read(f"{LS}{between}{LS}")
    assert (text, [(call.tool, call.inputs) for call in calls]) == ("", [("run_cmd", {})])


def test_calls_are_the_same_however_the_text_arrives() -> None:
    every = [row[0] for row in FOUND.values()] + list(LOOKS.values()) + [row[0] for row in BROKEN.values()]
    every = [text for text in every if len(text) < 1000]
    for seed in range(500):
        chance = random.Random(seed)
        text = "\n\n".join(chance.sample(every, 3))
        whole = read(text)
        cuts = sorted(chance.sample(range(len(text) + 1), 5))
        pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert read(*pieces) == whole, (seed, text)
        assert read(*text) == whole, (seed, text)
        assert whole[0] == whole[2]


def test_words_are_shown_before_their_line_has_ended() -> None:
    reader = CallReader()
    assert [reader.feed(piece) for piece in ("I lo", "ok.\n", '{"to', 'ol": "x"}\n', "Well")] == [
        *("I lo", "ok.\n", "", "", "Well")
    ]


def test_a_program_is_shown_line_by_line() -> None:
    reader = CallReader()
    assert [reader.feed(piece) for piece in ("```python\n", "x = 1\n", "``", "`\n", LS)] == [
        *("```python\n", "x = 1\n", "", "```\n", "")
    ]
    assert (reader.end(), reader.calls) == ("", [CALL])
