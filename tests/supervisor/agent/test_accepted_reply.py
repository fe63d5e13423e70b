"""Replies as the API takes them back, whatever a model wrote."""

from typing import Final, NamedTuple

import pytest

from supervisor.agent.accepted_reply import accepted
from supervisor.agent.models.model import Reply, ToolUse
from supervisor.agent.transcript import Transcript
from supervisor.tools.outcome_bounds import CALLS_ANSWERED
from tests.supervisor.agent.test_transcript import asked, did, replied, text, use
from tests.supervisor.histories import fault_in_history


class Naming(NamedTuple):
    name: str
    wanted: list[str]
    ids: list[str]


NAMINGS: Final = [
    Naming("good ids", ["a", "toolu_01-X"], ["a", "toolu_01-X"]),
    Naming("twice in one reply", ["a", "a", "a"], ["a", "call_3", "call_4"]),
    Naming("seen in an earlier step", ["old", "old"], ["call_2", "call_3"]),
    Naming("empty", [""], ["call_2"]),
    Naming("too long", ["x" * 65], ["call_2"]),
    Naming("as long as may be", ["x" * 64], ["x" * 64]),
    Naming("letters that an id cannot have", ["a b", "é", "a\n", "a.b"], ["call_2", "call_3", "call_4", "call_5"]),
    Naming("the next name is taken", ["call_2", ""], ["call_2", "call_3"]),
    Naming("a later one has the name that was made", ["", "call_2"], ["call_2", "call_3"]),
]


@pytest.mark.parametrize("naming", NAMINGS, ids=[naming.name for naming in NAMINGS])
def test_a_call_gets_an_id_that_is_its_own(naming: Naming) -> None:
    transcript = Transcript([asked(), replied(use("old")), did("old")])
    content = [use(name) for name in naming.wanted]
    calls = [ToolUse(name, "read_file", "{}") for name in naming.wanted]
    named = accepted(Reply(content, "tool_use", {}, calls), transcript.ids)
    assert [block["id"] for block in named.content] == naming.ids
    assert [each.id for each in named.calls] == naming.ids
    transcript.apply(replied(*named.content))
    for name in naming.ids:
        transcript.apply(did(name))
    assert fault_in_history(transcript.messages) is None


TOOLS: Final = [
    ("read_file", "read_file"),
    ("read file", "read_file"),
    ("läs", "l_s"),
    ("", "_"),
    ("../etc\n", "___etc_"),
    ("x" * 200, "x" * 128),
]


@pytest.mark.parametrize(("wanted", "kept"), TOOLS, ids=[ascii(wanted)[:20] for wanted, _ in TOOLS])
def test_a_name_is_kept_in_letters_that_the_api_takes(wanted: str, kept: str) -> None:
    transcript = Transcript([asked()])
    named = accepted(Reply([use("a", wanted)], "tool_use", {}, [ToolUse("a", wanted, "{}")]), transcript.ids)
    assert [block["name"] for block in named.content] == [kept]
    assert [each.name for each in named.calls] == [wanted]
    for fact in (replied(*named.content), did("a")):
        transcript.apply(fact)
    assert fault_in_history(transcript.messages) is None


def test_empty_text_is_dropped_and_the_rest_kept_in_order() -> None:
    content = [text(" "), use("a"), text(""), text("x"), use("b"), text("\n")]
    calls = [ToolUse("a", "t", "1"), ToolUse("b", "t", "2")]
    named = accepted(Reply(content, "tool_use", {}, calls), frozenset())
    assert [block["type"] for block in named.content] == ["tool_use", "text", "tool_use"]
    assert [each.arguments for each in named.calls] == ["1", "2"]


def test_naming_changes_nothing_of_the_models_own_reply() -> None:
    content = [use("a"), use("a")]
    accepted(Reply(content, "tool_use", {}, [ToolUse("a", "t", "{}")] * 2), frozenset())
    assert content == [use("a"), use("a")]


def test_of_very_many_calls_the_first_are_answered() -> None:
    uses = [ToolUse(f"c{number}", "read_file", "{}") for number in range(CALLS_ANSWERED + 9)]
    taken = accepted(Reply([use(each.id) for each in uses], "tool_use", {}, uses), frozenset())
    assert [each.id for each in taken.calls] == [each.id for each in uses[:CALLS_ANSWERED]]
    assert [each["id"] for each in taken.content] == [each.id for each in uses[:CALLS_ANSWERED]]


def test_of_the_usage_only_figures_are_kept_that_can_be_counted() -> None:
    usage = {"input_tokens": -5, "cache_read_input_tokens": 0, "output_tokens": 7, "more": 2**80}
    assert accepted(Reply([text("x")], "end_turn", usage), frozenset()).usage == {
        "cache_read_input_tokens": 0,
        "output_tokens": 7,
    }
