"""Answers held against their schema by msgspec, in a few microseconds and without a process.

Rule: pure, and sound before complete. What is decoded here is valid by the schema: each keyword means to msgspec what
it does in JSON Schema, or the schema has no type here. What is not decoded says nothing: the reference decides, and
finds the words (`answer_schema.py`). No pattern runs here, so nothing takes longer than reading the answer.
"""

from collections.abc import Mapping
from functools import lru_cache, reduce
from operator import or_
from typing import Annotated, Any, Final, Literal

import msgspec

from supervisor.agent.answer_schema import InvalidAnswer, document_in

_LONGEST: Final = 2**18
"""Characters of an answer that is read in the daemon's own thread."""
_NODES: Final = 500
"""Schemas within a schema, those that it refers to once for each time: their number doubles where they are nested."""
_DIALECTS: Final = frozenset(
    {
        *("", "https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema"),
        "http://json-schema.org/draft-07/schema",
    }
)
_NOTES: Final = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"),
        *("$comment", "$defs", "definitions"),
    }
)
"""Keywords that say nothing of an answer; the reference takes `format` for a note, too."""
_BOUNDS: Final = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}
_LENGTHS: Final = {"minLength": "min_length", "maxLength": "max_length"}
_COUNTS: Final = {"minItems": "min_length", "maxItems": "max_length"}
_KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    "null": frozenset(),
    "boolean": frozenset(),
    "integer": frozenset(_BOUNDS),
    "number": frozenset(_BOUNDS),
    "string": frozenset(_LENGTHS),
    "array": frozenset({*_COUNTS, "items"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
}
_PLAIN: Final[Mapping[str, tuple[Any, Mapping[str, str]]]] = {
    "null": (None, {}),
    "boolean": (bool, {}),
    "integer": (int, _BOUNDS),
    "string": (str, _LENGTHS),
}
_EXACT: Final = 2**53
"""Whole numbers below it are the same as integers and as floats."""


class _NoTypeError(Exception):
    """A schema says what msgspec cannot, or would say in another way."""


def typed_answer(schema: dict[str, Any], text: str) -> str | None:
    """Return the JSON document that an answer consists of, if it is seen here that it is valid; else None."""
    if len(text) > _LONGEST or (decoder := _decoder(msgspec.json.encode(schema))) is None:
        return None
    try:
        document = document_in(text)[0]
        decoder.decode(document)
    except (InvalidAnswer, msgspec.MsgspecError, RecursionError):
        return None
    return document


@lru_cache(maxsize=32)
def _decoder(schema: bytes) -> "msgspec.json.Decoder[Any] | None":
    """Return what decodes the answers of a schema; None where nothing here does."""
    whole = msgspec.json.decode(schema)
    dialect = whole.pop("$schema", "")
    if dialect.removesuffix("#") not in _DIALECTS:
        return None
    try:
        return msgspec.json.Decoder(_Types(whole).of(whole))
    except (_NoTypeError, LookupError, TypeError, ValueError, RecursionError):  # the last three are msgspec's
        return None


class _Types:
    """Makes the types of one schema's parts."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self._whole = whole
        self._left = _NODES

    def of(self, schema: Any) -> Any:
        """Return the type of one part."""
        self._left -= 1
        if self._left < 0 or not (schema is True or isinstance(schema, dict)):
            raise _NoTypeError
        said = {} if schema is True else {name: value for name, value in schema.items() if name not in _NOTES}
        kinds = said.pop("type", None)
        match said:
            case {} if not said and kinds is None:
                return Any
            case {"$ref": str(place)} if len(said) == 1 and kinds is None:
                return self.of(self._referred(place))
            case {"anyOf": [first, second]} if len(said) == 1 and kinds is None:
                return self._optional(first, second)
            case {"enum": [*values]} if len(said) == 1:
                return _one_of(values, kinds)
            case {"const": value} if len(said) == 1:
                return _one_of([value], kinds)
        names = [kinds] if isinstance(kinds, str) else kinds
        if not names or not said.keys() <= frozenset().union(*(_KEYWORDS[name] for name in names)):
            raise _NoTypeError
        return reduce(or_, (self._kind(name, said) for name in names))

    def _referred(self, place: str) -> Any:
        root, holder, name = (*place.split("/"), "", "")[:3]
        if root != "#" or place.count("/") != 2 or holder not in ("$defs", "definitions") or set(name) & set("~%"):  # noqa: PLR2004
            raise _NoTypeError
        return self._whole[holder][name] if name in self._whole.get(holder, {}) else False

    def _optional(self, first: Any, second: Any) -> Any:
        """Return the type of what may be null: of other alternatives it is not known that they exclude each other."""
        if {"type": "null"} not in (first, second):
            raise _NoTypeError
        other = self.of(second if first == {"type": "null"} else first)
        return other if other is Any else other | None

    def _kind(self, name: str, said: Mapping[str, Any]) -> Any:
        match name:
            case "object":
                return self._object(said)
            case "array":
                return _limited(list[self.of(said.get("items", True))], said, _COUNTS)  # type: ignore[misc]
            case "number":
                return _limited(int, said, _BOUNDS) | _limited(float, said, _BOUNDS)
        kind, limits = _PLAIN[name]
        return _limited(kind, said, limits)

    def _object(self, said: Mapping[str, Any]) -> Any:
        properties, more = said.get("properties", {}), said.get("additionalProperties", True)
        required = said.get("required", [])
        if not properties and not required and more is not False:
            return dict[str, self.of(more)]  # type: ignore[misc]
        if more not in (True, False, {}):
            raise _NoTypeError
        fields: list[Any] = []
        names: dict[str, str] = {}
        for number, name in enumerate({**properties, **dict.fromkeys(required)}):
            field = f"field_{number}"
            names[field] = name
            kind = self.of(properties.get(name, True))
            if name not in properties and more is False:
                raise _NoTypeError
            fields.append((field, kind) if name in required else (field, kind, None))
        return msgspec.defstruct("Answer", fields, kw_only=True, rename=names, forbid_unknown_fields=more is False)


def _one_of(values: list[Any], kinds: Any) -> Any:
    if kinds not in (None, "string") or not values or not all(isinstance(value, str) for value in values):
        raise _NoTypeError
    return Literal[tuple(values)]


def _limited(kind: Any, said: Mapping[str, Any], limits: Mapping[str, str]) -> Any:
    given = {limits[name]: value for name, value in said.items() if name in limits}
    if not given:
        return kind
    if not all(type(value) is int and abs(value) < _EXACT for value in given.values()):
        raise _NoTypeError
    return Annotated[kind, msgspec.Meta(**given)]
