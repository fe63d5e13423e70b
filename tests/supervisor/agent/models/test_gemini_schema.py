"""Tools' schemas in the words that Gemini takes."""

import json
from typing import Any, Final

import pytest

from supervisor.agent.models.gemini_contents import function_name
from supervisor.agent.models.gemini_schema import parameters
from supervisor.tools.catalog import offers
from tests.each_row import each_row
from tests.gemini_server import fault_in
from workers.catalog import offered_tools

Schema = dict[str, Any]

TOLD: Final[dict[str, tuple[Schema, Schema]]] = {
    "a text": ({"type": "string", "title": "X", "format": "uri"}, {"type": "STRING"}),
    "a time": ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
    "or null": (
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None, "description": "D."},
        {"type": "INTEGER", "minimum": 1, "nullable": True, "description": "D."},
    ),
    "types in a list": ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
    "several": (
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
    ),
    "a constant": ({"const": "a"}, {"type": "STRING", "enum": ["a"], "format": "enum"}),
    "a choice": ({"enum": ["a", "b"]}, {"type": "STRING", "enum": ["a", "b"], "format": "enum"}),
    "a choice of numbers": ({"enum": [1, 2]}, {"type": "INTEGER", "description": "One of: 1, 2."}),
    "exclusive whole bounds": (
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
        {"type": "INTEGER", "minimum": 1, "maximum": 9},
    ),
    "exclusive bounds": ({"type": "number", "exclusiveMinimum": 0}, {"type": "NUMBER", "minimum": 0}),
    "a list of anything": ({"type": "array"}, {"type": "ARRAY", "items": {"type": "STRING"}}),
    "a list": (
        {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 3, "uniqueItems": True},
        {"type": "ARRAY", "items": {"type": "STRING", "minLength": 1}, "maxItems": 3},
    ),
    "a reference": ({"$ref": "#/$defs/Point", "description": "Where."}, {"type": "STRING", "description": "Where."}),
    "a reference to nothing": ({"$ref": "#/$defs/None"}, {"type": "STRING"}),
    "all of": (
        {"allOf": [{"$ref": "#/$defs/Point"}, {"description": "More."}]},
        {"type": "STRING", "description": "More."},
    ),
    "an object": (
        {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a", "b"], "patternProperties": {}},
        {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}, "required": ["a"]},
    ),
    "nothing at all": ({}, {"type": "STRING"}),
    "true": (True, {"type": "STRING", "description": "JSON."}),  # type: ignore[dict-item]
}


def of(schema: Any, **definitions: Any) -> Schema | None:
    point = {"Point": {"type": "string"}}
    return parameters({"type": "object", "properties": {"x": schema}, "$defs": {**point, **definitions}})


def refused(told: Schema | None) -> str | None:
    declaration = {"name": "t", "description": "T.", **({"parameters": told} if told else {})}
    contents = [{"role": "user", "parts": [{"text": "x"}]}]
    return fault_in({"contents": contents, "tools": [{"functionDeclarations": [declaration]}]})


@each_row(("schema", "told"), TOLD.values(), ids=TOLD)
def test_a_schema_is_told_in_the_subset(schema: Schema, told: Schema) -> None:
    found = of(schema)
    assert found == {"type": "OBJECT", "properties": {"x": told}}
    assert refused(found) is None


def test_a_tool_without_parameters_has_none() -> None:
    assert parameters({"type": "object", "properties": {}}) is None


@pytest.mark.parametrize("width", [1, 2, 9])
def test_a_schema_that_contains_itself_ends(width: int) -> None:
    tree = {"type": "object", "properties": {f"p{n}": {"$ref": "#/$defs/Tree"} for n in range(width)}}
    told = of({"$ref": "#/$defs/Tree"}, Tree=tree)
    assert refused(told) is None
    assert len(json.dumps(told)) < 500_000


def test_all_tools_of_ours_are_taken() -> None:
    found = offers(list(offered_tools()))
    assert len(found) > 10
    assert [name for name, offer in found.items() if refused(parameters(offer.input_schema))] == []


NAMES: Final = {
    "read_file": "read_file",
    "a.b:c-d": "a.b:c-d",
    "9a": "_9a",
    "-x": "_-x",
    "é/x": "__x",
    "": "_",
    "x" * 200: "x" * 128,
}


@each_row(("name", "told"), NAMES.items())
def test_names_have_the_letters_of_the_api(name: str, told: str) -> None:
    assert function_name(name) == told
