"""JSON Schema as Gemini takes it: a subset of OpenAPI's.

Rule: pure. What the subset cannot say is left out, or said more loosely: a tool checks its arguments itself.

Source: https://ai.google.dev/api/caching#Schema
"""

from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, Any]

_KEPT: Final = (
    *("description", "items", "maxItems", "minItems", "maxLength", "minLength", "pattern", "maximum", "minimum"),
    *("maxProperties", "minProperties"),
)
_FORMATS: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"date-time"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}
"""The API refuses a tool that has any other."""
_DEEPEST: Final = 12
_MOST: Final = 1000
"""Levels and nodes of a schema that are told: one that contains itself has no end."""
_ANYTHING: Final[Schema] = {"type": "STRING", "description": "JSON."}


def parameters(schema: Mapping[str, Any]) -> Schema | None:
    """Return a tool's parameters; None where it has none, as the API takes no object without properties there."""
    told = _Subset(schema).of(schema, 0)
    return told if told.get("properties") else None


class _Subset:
    """Translates one schema with the definitions at its root."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._definitions: Mapping[str, Any] = {
            f"#/{place}/{name}": each
            for place in ("$defs", "definitions")
            for name, each in root.get(place, {}).items()
        }
        self._told = 0

    def of(self, schema: Any, depth: int) -> Schema:
        """Return a schema in the subset's words."""
        self._told += 1
        if not isinstance(schema, Mapping) or depth > _DEEPEST or self._told > _MOST:
            return dict(_ANYTHING)
        if "$ref" in schema:
            return self.of(self._resolved(schema), depth + 1)
        for part in schema.get("allOf", ()):
            schema = _merged(schema, self._resolved(part))
        choices = [each for key in ("anyOf", "oneOf") for each in schema.get(key, ())]
        kinds = schema.get("type")
        if isinstance(kinds, list):
            choices, kinds = [{**schema, "type": kind} for kind in kinds], None
        if choices and kinds is None:
            return self._any_of(choices, schema, depth)
        return self._one(schema, kinds, depth)

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        """Return a schema with what it refers to; what stands beside the reference goes before that."""
        if not isinstance(schema, Mapping):
            return {}
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        found = self._definitions.get(str(schema.get("$ref")), {})
        return {**(found if isinstance(found, Mapping) else {}), **beside}

    def _any_of(self, choices: list[Any], schema: Mapping[str, Any], depth: int) -> Schema:
        """Return a choice; "or null" is a property of what else it may be."""
        real = [each for each in choices if not (isinstance(each, Mapping) and each.get("type") == "null")]
        told: Schema = {"nullable": True} if len(real) < len(choices) else {}
        if isinstance(description := schema.get("description"), str):
            told["description"] = description
        if len(real) == 1:
            return {**self.of(real[0], depth + 1), **told}
        return {**told, "anyOf": [self.of(each, depth + 1) for each in real]} if real else {**_ANYTHING, **told}

    def _one(self, schema: Mapping[str, Any], kind: object, depth: int) -> Schema:
        kind = kind if isinstance(kind, str) else _kind(schema)
        told: Schema = {"type": kind.upper() if kind != "null" else "STRING"}
        if kind == "null" or schema.get("nullable") is True:
            told["nullable"] = True
        told |= {key: schema[key] for key in _KEPT if key in schema}
        if (form := schema.get("format")) in _FORMATS.get(kind, ()):
            told["format"] = form
        told |= _bounds(schema, kind)
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if kind == "string" and values and all(isinstance(value, str) and value for value in values):
            told |= {"enum": list(values), "format": "enum"}
        elif values:
            told["description"] = f"{told.get('description', '')} One of: {', '.join(map(str, values))}.".strip()
        if kind == "array":
            told["items"] = self.of(schema.get("items", {"type": "string"}), depth + 1)
        else:
            told.pop("items", None)
        if kind == "object" and (properties := schema.get("properties")):
            told["properties"] = {name: self.of(each, depth + 1) for name, each in properties.items()}
            told["required"] = [name for name in schema.get("required", ()) if name in properties]
            if not told["required"]:
                del told["required"]
        return told


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema that names none."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    for kind, of in (("boolean", bool), ("string", str), ("integer", int), ("number", float)):
        if values and all(isinstance(value, of) for value in values):
            return kind
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _bounds(schema: Mapping[str, Any], kind: str) -> Schema:
    """Return bounds that are not themselves allowed: exact for whole numbers, a little looser for others."""
    step = 1 if kind == "integer" else 0
    told: Schema = {}
    for strict, bound, by in (("exclusiveMinimum", "minimum", step), ("exclusiveMaximum", "maximum", -step)):
        value = schema.get(strict)
        if isinstance(value, int | float) and not isinstance(value, bool):
            told[bound] = value + by
    return told


def _merged(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Schema:
    """Return a schema with one of those that must hold besides."""
    rest = {key: value for key, value in schema.items() if key != "allOf"}
    properties = {**part.get("properties", {}), **schema.get("properties", {})}
    required = [*schema.get("required", ()), *part.get("required", ())]
    more = {"properties": properties} if properties else {}
    return {**part, **rest, **more, **({"required": required} if required else {})}
