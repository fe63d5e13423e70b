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
    return reader.text, [call._replace(text="") for call in reader.calls], shown


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
    "behind a byte order mark": (f"\ufeff{LS}", "", [CALL]),
    "in a tag": (f"<tool_call>\n{LS}\n</tool_call>", "<tool_call>\n</tool_call>", [CALL]),
    "after a thought": (f"<think>\n{LS}\n</think>\n{LS}", f"<think>\n{LS}\n</think>\n", [CALL]),
    "after a thought that began in the prompt": (f"{LS}\n</think>\n{LS}", "</think>\n", [CALL]),
    "after a comment": (f"<!--\n{LS}\n-->\n{LS}", f"<!--\n{LS}\n-->\n", [CALL]),
    "after code that has not ended": (f"The ` key.\n```json\n{LS}\n```", "The ` key.\n", [CALL]),
    "after a quotation": (f"> so\n\n{LS}", "> so\n\n", [CALL]),
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
    "a program in a list": f"1. - ```python\n     x = 1\n{LS}\n     ```\n",
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
    "an element": f"<pre>\n{LS}\n</pre>",
    "a fence in an element": f"<pre>\n```json\n{LS}\n```\n</pre>",
    "an element in a line": f"It says <code>\n{LS}\n</code> there.",
    "a comment": f"<!-- so\n{LS}\n-->",
    "a thought": f"<think>\n{LS}\n</think>\nDone.",
    "code over lines": f"Write `\n{LS}\n` to see.",
    "an example": f"<example>\n{LS}\n</example>",
    "a result": f"[result ab12 of read_file]\n{LS}\n[end of result ab12]\nSo it says.",
    "another's tag in code": "Others write `<tool_call>` before it.",
    "a tool's name in a sentence": "I use run_cmd(command) for that.",
    "a program with a tool's name": '```python\nx = 1\nrun_cmd("ls")\n```',
    "JSON with a name": '{"name": "Ann", "arguments": ["for", "against"]}',
}


@pytest.mark.parametrize("text", LOOKS.values(), ids=LOOKS)
def test_what_only_looks_like_a_call_is_text(text: str) -> None:
    assert read(text) == (text, [], text)
    assert not reader_of(text).unread or text.startswith(" ")


def reader_of(text: str) -> CallReader:
    reader = CallReader(("run_cmd", "read_file"))
    reader.feed(text)
    reader.end()
    return reader


OTHER: Final = '{"name": "run_cmd", "arguments": {"command": "ls"}}'
UNREAD: Final = {
    "another's JSON": OTHER,
    "another's JSON in a fence": f"```json\n{OTHER}\n```",
    "another's tag": f"I look.\n<tool_call>\n{OTHER}\n</tool_call>",
    "a tag on its line": f"<tool_call>{LS}</tool_call>",
    "a tag with a name": '<function=run_cmd>{"command": "ls"}</function>',
    "an element with a name": '<invoke name="run_cmd">\n</invoke>',
    "a token": '[TOOL_CALLS] [{"name": "run_cmd"}]',
    "a token of Python": f"<|python_tag|>{OTHER}",
    "a function": 'run_cmd(command="ls")',
    "a function that is printed": '```tool_code\nprint(run_cmd(command="ls"))\n```',
    "a function as a program": '```python\nrun_cmd(command="ls")\n```',
    "a call as a program": f"```python\n{LS}\n```",
    "a label": f"**Tool call:** {LS}",
    "an action": f"Action: {LS}",
    "an action and its input": 'Action: run_cmd\nAction Input: {"command": "ls"}',
    "a channel": '<|channel|>commentary to=functions.run_cmd <|message|>{"command": "ls"}',
    "indented at the beginning": f"    {LS}",
    "right behind a quotation": f"> It says:\n{LS}",
    "code that does not end": f"Write `\n{LS}\n\nSo.",
    "an element that does not end": f"<pre>\n{LS}",
    "a thought that does not end": f"<think>\n{LS}",
    "a result that does not end": f"[result ab12 of read_file]\n{LS}",
}


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
def test_what_may_be_meant_as_a_call_is_none_and_is_not_overlooked(text: str) -> None:
    reader = reader_of(text)
    assert (reader.text, reader.calls) == (text, [])
    assert reader.unread


def test_beside_a_call_nothing_is_meant_as_one() -> None:
    assert reader_of(f"<tool_call>\n{LS}\n</tool_call>").unread == ""


BROKEN: Final = {
    "cut": ('{"tool": "run_cmd", "command": "ls', "run_cmd"),
    "a comma too many": ('{"tool": "run_cmd", "command": "ls",}', "run_cmd"),
    "single quotes": ("{'tool': 'run_cmd'}", "run_cmd"),
    "the tool later": ('{"command": {"a": "{"}, "tool": "run_cmd",}', "run_cmd"),
    "names without quotes": ('{tool: "run_cmd", command: "ls"}', "run_cmd"),
    "a value of Python's": ('{"all": True, "tool": "run_cmd"}', "run_cmd"),
    "a tool in a language of its own": ('{"tool": run_cmd}', "?"),
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
    assert reader_of(text).unread == ""
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
    every += UNREAD.values()
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
    assert (reader.end(), [call.tool for call in reader.calls]) == ("", ["run_cmd"])
