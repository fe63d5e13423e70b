"""The stand-in: plain commands become real tool calls, and it claims nothing that no result shows."""

import json
from typing import Any, Final, NamedTuple

import pytest

from supervisor.agent.models.immediate import ImmediateModel
from supervisor.agent.models.model import ModelRequest, Progress, TextDelta
from supervisor.agent.models.offline import answer
from supervisor.journal.facts import ToolsChanged
from supervisor.tools.outcomes import availability_notice
from tests.supervisor.bench import Bench
from tests.supervisor.histories import fault_in_facts

EVERY: Final = ("read_file", "write_file", "list_files", "list_directory", "fetch_url", "search_files")
VAULT: Final = ("read_file", "write_file", "edit_file", "list_files")


def quiet(_event: Progress) -> None:
    """Show nothing."""


def request(line: str, tools: tuple[str, ...], *results: tuple[str, dict[str, Any], str]) -> ModelRequest:
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": line}]}]
    for number, (name, given, content) in enumerate(results):
        use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": given}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": content}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return ModelRequest("", [{"name": name} for name in tools], messages, len(results))


class Command(NamedTuple):
    line: str
    calls: list[tuple[str, dict[str, str]]]
    tools: tuple[str, ...] = EVERY


COMMANDS: Final = [
    Command("read notes/idea.md", [("read_file", {"path": "notes/idea.md"})]),
    Command("Show  a b.md", [("read_file", {"path": "a b.md"})]),
    Command("CAT x", [("read_file", {"path": "x"})]),
    Command("list **/*.md", [("list_files", {"pattern": "**/*.md"})]),
    Command("ls .", [("list_directory", {"path": "."})], ("read_file", "list_directory")),
    Command("write notes/x.md: some text", [("write_file", {"path": "notes/x.md", "content": "some text"})]),
    Command("write x: one\ntwo", [("write_file", {"path": "x", "content": "one\ntwo"})]),
    Command("write x:", [("write_file", {"path": "x", "content": ""})]),
    Command("write x: a; read b", [("write_file", {"path": "x", "content": "a; read b"})]),
    Command("fetch https://x.y/z", [("fetch_url", {"url": "https://x.y/z"})]),
    Command("search some words", [("search_files", {"query": "some words"})]),
    Command(
        "read a; read b ;list *",
        [("read_file", {"path": "a"}), ("read_file", {"path": "b"}), ("list_files", {"pattern": "*"})],
    ),
    Command("digest *.md into d.md", [("list_files", {"pattern": "*.md"})]),
    Command("read ../../etc/passwd", [("read_file", {"path": "../../etc/passwd"})]),
    Command("hello", []),
    Command("", []),
    Command(";", []),
    Command("read a; dance", []),
    Command("fetch https://x.y", [], VAULT),
    Command("digest * into d.md", [], ("read_file", "list_files")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=[command.line[:30] or "nothing" for command in COMMANDS])
def test_a_command_becomes_calls(command: Command) -> None:
    reply = answer(request(command.line, command.tools), quiet)
    assert [(block["name"], block["input"]) for block in reply.content if block["type"] == "tool_use"] == command.calls
    assert reply.stop_reason == ("tool_use" if command.calls else "end_turn")
    assert command.calls or reply.text


def test_to_a_line_that_it_does_not_understand_it_says_what_it_is() -> None:
    shown: list[Progress] = []
    reply = answer(request("what is love?", VAULT), shown.append)
    assert "not a language model" in reply.text
    assert shown == [TextDelta(reply.text)]


def test_a_tool_that_is_not_offered_is_named() -> None:
    reply = answer(request("fetch https://x.y", VAULT), quiet)
    assert reply.text == "I have no tool fetch_url here, so I cannot: fetch https://x.y"


HITS: Final = [{"path": "a.md", "line": 3, "text": "one\ttwo"}, {"path": "b c.md", "line": 40, "text": "x" * 300}]
RESULTS: Final = {
    "a short text": ("hello", "hello"),
    "a long text": ("x" * 1000, "x" * 400 + " ..."),
    "a number": ("7", "7"),
    "a listing": ('["a.md","b c.md"]', "a.md\nb c.md"),
    "an empty one with a note": ("[]\n\n[no line matches]", "(no line matches)"),
    "a long one": (json.dumps(list(range(30))), "\n".join(map(str, range(20))) + "\n... and 10 more"),
    "matches": (json.dumps(HITS), "a.md:3: one two\nb c.md:40: " + "x" * 146 + "..."),
    "a directory": ('[{"name":"a","kind":"dir"}]', "a dir"),
}


@pytest.mark.parametrize(("content", "shown"), RESULTS.values(), ids=list(RESULTS))
def test_results_are_told_as_text(content: str, shown: str) -> None:
    for tool, text in (
        ("list_files", shown),
        ("read_file", content if len(content) <= 400 else content[:400] + " ..."),
    ):
        reply = answer(request("show a", VAULT, (tool, {"path": "a"}, content)), quiet)
        assert reply.text == f"{tool} a:\n{text}"


def test_the_same_request_has_the_same_reply() -> None:
    asked = request("read a; list *", VAULT)
    assert answer(asked, print) == answer(asked, print)


def test_only_results_since_the_last_line_count() -> None:
    asked = request("read a", VAULT, ("read_file", {"path": "a"}, "x"))
    messages = [
        *asked.messages,
        {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
        {"role": "user", "content": [{"type": "text", "text": "read b"}]},
    ]
    reply = answer(ModelRequest("", asked.tools, messages, 2), quiet)
    assert [block["input"] for block in reply.content] == [{"path": "b"}]


DIGESTS: Final = {
    "titles and first paragraphs": (
        {"b.txt": b"# Title of b\n\nFirst paragraph\nof b.\n\nSecond.\n"},
        "## a.txt\n\nhello ([a.txt])\n\n## Title of b\n\nFirst paragraph of b. ([b.txt])\n",
    ),
    "the last cannot be read": ({"b.txt": b"\xff\xfe"}, "## a.txt\n\nhello ([a.txt])\n\n- b.txt: could not be read\n"),
    "the first cannot be read": (
        {"a.txt": b"\xff\xfe", "b.txt": b"b"},
        "- a.txt: could not be read\n## b.txt\n\nb ([b.txt])\n",
    ),
}


@pytest.mark.parametrize(("files", "digest"), DIGESTS.values(), ids=DIGESTS)
async def test_a_digest_is_listed_read_and_written(bench: Bench, files: dict[str, bytes], digest: str) -> None:
    for name, content in files.items():
        (bench.root / name).write_bytes(content)
    session = bench.session(ImmediateModel("offline", answer))
    end = await session.conversation.run_turn("digest *.txt into notes/digest.md")
    assert end.answer.startswith("The digest is in notes/digest.md.")
    assert (bench.root / "notes/digest.md").read_text() == f"# Digest\n\n{digest}"
    assert fault_in_facts(bench.facts(session)) is None


async def test_a_digest_of_nothing_writes_nothing(bench: Bench) -> None:
    end = await bench.session(ImmediateModel("offline", answer)).conversation.run_turn("digest *.md into d.md")
    assert end.answer == "No file matches *.md: there is nothing to digest."
    assert not (bench.root / "d.md").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("digest ../* into d.md", "list_files ../* failed: "),
        ("digest *.txt into ../d.md", "write_file ../d.md failed: "),
        ("read ../../etc/passwd", "read_file ../../etc/passwd failed: "),
    ],
)
async def test_a_path_that_leads_out_is_refused_and_told(line: str, words: str, bench: Bench) -> None:
    end = await bench.session(ImmediateModel("offline", answer)).conversation.run_turn(line)
    assert end.answer.startswith(words)
    assert end.answer.endswith(" (path_escape)")
    assert not (bench.root / "d.md").exists()


@pytest.mark.parametrize("because", ["", "The workers died too often."])
def test_a_notice_about_tools_is_no_line_of_the_person(because: str) -> None:
    """Neither beside the line nor beside results."""
    notice = {"type": "text", "text": f"({availability_notice(ToolsChanged(1, 'search', ('search_files',), because))})"}
    begun = request("read a", VAULT)
    begun.messages[0]["content"].append(notice)
    reply = answer(begun, quiet)
    assert [(use.name, use.arguments) for use in reply.calls] == [("read_file", '{"path":"a"}')]
    answered = request("read a", VAULT, ("read_file", {"path": "a"}, "hello"))
    answered.messages[-1]["content"].append(notice)
    assert "hello" in (answer(answered, quiet)).text


async def test_warming_up_and_closing_cost_nothing() -> None:
    model = ImmediateModel("offline", answer)
    await model.warm()
    await model.aclose()
    assert (await model.reply(request("read a", VAULT), quiet)).calls
