"""Structured answers: which schemas can be used, what is an answer by one, and what the model is told of another."""

import socket
from typing import Any, Final

import pytest

from supervisor.agent.answer_schema import InvalidAnswer, answer_in, problem_in_schema

COUNT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 0}, "names": {"type": "array", "items": {"type": "string"}}},
    "required": ["count"],
    "additionalProperties": False,
}
VALID: Final = {
    "bare": ('{"count": 1}', '{"count": 1}'),
    "with blanks": (' \n{"count": 1}\n', '{"count": 1}'),
    "in a fence": ('```json\n{"count": 1}\n```\n', '{"count": 1}'),
    "in a fence with other line ends": ('```json\r\n{"count": 1}\r\n```', '{"count": 1}'),
    "in a fence of no kind": ('```\n{"count": 1}\n```', '{"count": 1}'),
    "over several lines": ('{\n "count": 1,\n "names": ["a"]}', '{\n "count": 1,\n "names": ["a"]}'),
}
INVALID: Final = {
    "prose": ("There is one.", "it is not one JSON document"),
    "prose around it": ('Here: {"count": 1}', "it is not one JSON document"),
    "two documents": ('{"count": 1} {"count": 2}', "it is not one JSON document"),
    "nothing": ("", "it is not one JSON document"),
    "cut": ('{"count": 1', "it is not one JSON document"),
    "a name twice": ('{"count": 1, "count": 2}', "stands twice"),
    "not a number": ('{"count": NaN}', "NaN is not JSON"),
    "half a character": ('{"count": 1, "names": ["\\ud800"]}', "half a character"),
    "a number without bound": ('{"count": 1e999}', "too large"),
    "of another type": ('{"count": "1"}', "at $.count: '1' is not of type 'integer'"),
    "too small": ('{"count": -1}', "at $.count: -1 is less than the minimum"),
    "lacking": ("{}", "'count' is a required property"),
    "too much": ('{"count": 1, "x": 2}', "'x' was unexpected"),
    "deep within": ('{"count": 1, "names": ["a", 2]}', "at $.names[1]: 2 is not of type"),
    "a list": ("[1]", "is not of type 'object'"),
    "deep": ("[" * 100_000, "nested too deep"),
    "deep, and whole": ("[" * 500 + "]" * 500, "nested too deep"),
}


@pytest.mark.parametrize(("text", "document"), VALID.values(), ids=VALID)
def test_an_answer_is_its_document(text: str, document: str) -> None:
    assert answer_in(COUNT, text) == document


@pytest.mark.parametrize(("text", "words"), INVALID.values(), ids=INVALID)
def test_the_model_is_told_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        answer_in(COUNT, text)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_of_many_problems_the_first_are_told() -> None:
    with pytest.raises(InvalidAnswer, match="and 95 more"):
        answer_in({"items": {"type": "string"}}, str([1] * 100))


USABLE: Final[dict[str, Any]] = {
    "of nothing": {},
    "of objects": COUNT,
    "with a reference within": {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}},
    "of an older draft": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"},
    "of an old draft": {"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://x/y", "type": "string"},
    "of itself": {"properties": {"next": {"$ref": "#"}}},
    "with what only looks like a reference": {
        "properties": {"$ref": {"type": "string"}},
        "default": {"$ref": "#/no"},
        "enum": [{"$ref": "#/no"}],
    },
    "with a name for a part": {"$defs": {"n": {"$anchor": "here", "type": "integer"}}, "items": {"$ref": "#here"}},
    "of a draft nobody knows": {"$schema": "https://example.org/mine", "type": "string"},
}


@pytest.mark.parametrize("schema", USABLE.values(), ids=USABLE)
def test_a_schema_can_be_used(schema: Any) -> None:
    assert problem_in_schema(schema) == ""


UNUSABLE: Final[dict[str, tuple[Any, str]]] = {
    "a list": ([], "no JSON object"),
    "a draft that is no address": ({"$schema": 7}, "no address"),
    "a type that is none": ({"type": "text"}, "'text' is not valid"),
    "a number where a schema belongs": ({"properties": {"a": 7}}, "at $.properties.a: 7"),
    "a pattern that is none": ({"pattern": "("}, "'(' is not a 'regex'"),
    "too large": ({"description": "x" * 70_000}, "larger than"),
    "a reference that leads nowhere": ({"$ref": "#/$defs/nothing"}, "nothing"),
    "a reference to elsewhere": ({"$ref": "https://example.org/a.json"}, "example.org"),
    "one within that leads nowhere": ({"properties": {"a": {"$ref": "#/$defs/nothing"}}}, "$defs/nothing"),
    "one to what is no schema": ({"items": {"$ref": "#/required"}, "required": ["a"]}, "is no schema"),
    "one to a schema that cannot be used": ({"items": {"$ref": "#/x"}, "x": {"type": "text"}}, "'text' is not valid"),
    "one that needs itself": ({"$ref": "#"}, "refers to itself"),
    "two that need each other": (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}, "items": {"$ref": "#/$defs/a"}},
        "refers to itself",
    ),
}


@pytest.mark.parametrize(("schema", "words"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_schema_that_cannot_be_used_is_refused(schema: Any, words: str) -> None:
    assert words in problem_in_schema(schema)


def test_nothing_that_a_schema_refers_to_is_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        away = {"properties": {"a": {"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/a.json"}}}
        with pytest.raises(InvalidAnswer, match="cannot be used"):
            answer_in(away, '{"a": 1}')
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
