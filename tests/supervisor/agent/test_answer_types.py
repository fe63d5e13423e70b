"""Answers that msgspec decodes: which schemas have a type, and that none says other than the reference."""

import json
import random
from typing import Any, Final

import msgspec
import pytest

from supervisor.agent.answer_schema import InvalidAnswer, answer_in
from supervisor.agent.answer_types import typed_answer

VALUES: Final[list[Any]] = [
    *(0, 1, -1, 1.0, 1.5, True, False, None, "", "a", "ab", "\U0001f600", "1", [], [1], ["a"], [[]], {}, {"a": 1}),
    *(2**53, 2**63, 2**64, 10**30, 1e300, {"c": 1}, [None, 1], {"a": {"a": 1}}, {"a": [1, "a"]}, {"a": "x", "b": None}),
]
LIMITS: Final = (0, 1, 2, -1, 3, 2**53 - 1, 2**53, 0.5)
SIMPLE: Final[list[Any]] = [
    {},
    True,
    {"type": "string"},
    {"type": "integer"},
    {"$ref": "#/$defs/x"},
    {"$ref": "#/$defs/y"},
]
CHOICES: Final = ("a", "b", "", 1, None, True)
LIMITED: Final = {
    "string": ("minLength", "maxLength", "minimum"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "null": (),
    "boolean": (),
}


def any_schema(dice: random.Random, depth: int = 3) -> Any:
    """Return a schema of keywords that msgspec has, and of some that it has not."""
    kind = dice.choice([*LIMITED, "array", "object", "object", "several", "optional", "enum", "const"])
    if depth == 0 or dice.random() < 0.15:
        return dice.choice(SIMPLE)
    match kind:
        case "array":
            limits = {name: dice.choice(LIMITS[:5]) for name in ("minItems", "maxItems") if dice.random() < 0.3}
            return {"type": kind, **limits, **({"items": any_schema(dice, depth - 1)} if dice.random() < 0.8 else {})}
        case "object":
            names = dice.sample(["a", "b", "c", 'q"'], dice.randrange(4))
            more: dict[str, Any] = {"properties": {name: any_schema(dice, depth - 1) for name in names}}
            more |= {"required": dice.sample(["a", "b", "c"], dice.randrange(3))}
            more |= {"additionalProperties": dice.choice([True, False, False, {}, any_schema(dice, depth - 1)])}
            return {"type": kind, **{name: value for name, value in more.items() if dice.random() < 0.7}}
        case "optional":
            return {"anyOf": [any_schema(dice, depth - 1), {"type": "null"}]}
    several = dice.sample([*LIMITED, "array", "object"], dice.randrange(1, 4))
    others = {
        "several": {"type": several, "minLength": 1},
        "enum": {"enum": dice.sample(CHOICES, dice.randrange(1, 4))},
    }
    if found := (others | {"const": {"const": dice.choice(CHOICES)}}).get(kind):
        return found
    return {"type": kind, **{name: dice.choice(LIMITS) for name in LIMITED[kind] if dice.random() < 0.3}}


def any_value(dice: random.Random, schema: Any) -> Any:
    """Return a value, more often than not one that is valid."""
    kind = schema.get("type") if isinstance(schema, dict) and dice.random() < 0.9 else None
    match kind:
        case "object":
            told = {name: any_value(dice, each) for name, each in schema.get("properties", {}).items()}
            asked = dict.fromkeys(schema.get("required", []), 1)
            return {name: each for name, each in {**asked, **told}.items() if dice.random() < 0.9}
        case "array":
            return [any_value(dice, schema.get("items")) for _ in range(dice.randrange(4))]
        case "string":
            return dice.choice(["", "a", "ab", "abc"])
        case "integer" | "number":
            return dice.choice([0, 1, 2, 3, -1, 1.0, 0.5, 2**53, 2**53 - 1, 2**63])
    return dice.choice(schema["enum"] if isinstance(schema, dict) and schema.get("enum") else VALUES)


def test_what_is_decoded_is_valid_and_what_is_valid_is_decoded_but_for_whole_floats() -> None:
    dice, decoded, refused = random.Random(11), 0, 0
    for _ in range(700):
        schema = {
            "type": "object",
            "properties": {"v": any_schema(dice)},
            "required": ["v"],
            "additionalProperties": False,
        }
        schema["$defs"] = {"x": any_schema(dice, 1), "y": {"type": "array", "items": {"$ref": "#/$defs/x"}}}
        part: Any = schema["properties"]
        values = [any_value(dice, part["v"]) for _ in range(6)]
        texts = [json.dumps({"v": value}) for value in values]
        answers = [typed_answer(schema, text) for text in texts]
        decoded += sum(answer is not None for answer in answers)
        for text, answer in zip(texts, answers, strict=True):
            if answer is not None:
                assert answer_in(schema, text) == answer, (schema, text)
            elif any(answers) and ".0" not in text and "e+" not in text:
                refused += 1
                with pytest.raises(InvalidAnswer):
                    answer_in(schema, text)
    assert min(decoded, refused) > 200


TYPED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "of nothing": ({}, "[1]"),
    "of objects": ({"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}}, '{"a": 1, "b": 2}'),
    "of an older draft": ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}, '"a"'),
    "with references": (
        {"$defs": {"n": {"type": "number"}}, "items": {"$ref": "#/$defs/n"}, "type": "array"},
        "[1, 1.5]",
    ),
    "with null": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null"),
    "with a choice": ({"enum": ["a", "b"]}, '"b"'),
}


@pytest.mark.parametrize(("schema", "text"), TYPED.values(), ids=TYPED)
def test_these_schemas_have_types(schema: dict[str, Any], text: str) -> None:
    assert typed_answer(schema, f"```json\n{text}\n```") == text


REFERRED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "a pattern": ({"type": "string", "pattern": "a"}, '"a"'),
    "an old draft": ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "string"}, '"a"'),
    "parts that double": (
        {"$defs": {f"{n}": {"type": "array", "items": {"$ref": f"#/$defs/{n + 1}"}} for n in range(600)} | {"600": {}}}
        | {"$ref": "#/$defs/0"},
        "[]",
    ),
    "itself": (
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}},
        "{}",
    ),
    "another's name": ({"$id": "https://example.org/a", "type": "string"}, '"a"'),
    "alternatives": ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "1"),
    "one limit that floats do not hold": ({"type": "number", "minimum": 2**53}, str(2**53)),
    "a very long answer": ({"type": "string"}, msgspec.json.encode("a" * 2**18).decode()),
    "a name twice": ({"type": "object"}, '{"a": 1, "a": 2}'),
    "a whole float": ({"type": "integer"}, "1.0"),
}


@pytest.mark.parametrize(("schema", "text"), REFERRED.values(), ids=REFERRED)
def test_of_these_the_reference_decides(schema: dict[str, Any], text: str) -> None:
    assert typed_answer(schema, text) is None
