"""Structured answers: a JSON Schema that the final answer of a turn is held against.

Rule: pure. The schema is the person's and the answer the model's: nothing that either refers to is fetched. Importing
the library takes a tenth of a second, so it waits for the first schema. How long it takes is nobody's promise: the
daemon has it done by another process (`answer_check.py`), unless msgspec can say it (`answer_types.py`).
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from supervisor.agent.models.event_stream import nests_too_deep
from supervisor.display.unique_names import unique_names

_FENCED: Final = re.compile(r"\s*```(?:json)?[ \t]*\r?\n(.*?)\n?```\s*", re.DOTALL | re.IGNORECASE)
_LONGEST: Final = 300
"""Characters of a problem that the model is told."""
_PROBLEMS: Final = 5
"""Problems that it is told at once."""
LARGEST: Final = 2**16
"""Bytes of a schema: it stands in the conversation."""

TRIES: Final = 3
"""Answers that a turn may give before it fails."""


class InvalidAnswer(ValueError):
    """The answer is not what the schema asks for; the text says what is wrong, for the model."""


def problem_in_schema(schema: object, *, tried: bool = False) -> str:
    """Return why something cannot be the schema of an answer, as a clause; "" where it can.

    With `tried`, a value is held against it as well, which takes for ever where its parts double.
    """
    from jsonschema import exceptions, validators

    if not isinstance(schema, dict):
        return "it is no JSON object"
    if len(msgspec.json.encode(schema)) > LARGEST or nests_too_deep(schema):
        return f"it is larger than {LARGEST} bytes, or nested too deep"
    if not isinstance(schema.get("$schema", ""), str):
        return "its $schema is no address"
    kind = validators.validator_for(schema, default=validators.validator_for({}))
    try:
        kind.check_schema(schema)
        _check_references(schema, kind)
        if tried:
            _validator(schema).is_valid(None)
    except exceptions.SchemaError as error:
        return f"{_place(error.absolute_path)}{error.message[:_LONGEST]}"
    except Exception as error:  # noqa: BLE001 - of what a schema refers to, and of its patterns
        return str(error)[:_LONGEST]
    return ""


def answer_in(schema: dict[str, Any], text: str) -> str:
    """Return the JSON document that an answer consists of, alone or in a fence.

    Raises:
        InvalidAnswer: it is none, or not valid by the schema.
    """
    document, value = document_in(text)
    try:
        errors = [(_place(each.absolute_path), each.message) for each in _validator(schema).iter_errors(value)]
    except Exception as error:  # a reference that leads nowhere, found only now
        raise InvalidAnswer(f"the schema cannot be used ({str(error)[:_LONGEST]})") from error
    if errors:
        told = [f"{place}{message[:_LONGEST]}" for place, message in sorted(errors)[:_PROBLEMS]]
        more = f"; and {len(errors) - _PROBLEMS} more" if len(errors) > _PROBLEMS else ""
        raise InvalidAnswer("; ".join(told) + more)
    return document


def document_in(text: str) -> tuple[str, Any]:
    """Return the JSON document that an answer consists of, alone or in a fence, and its value.

    Raises:
        InvalidAnswer: it is none.
    """
    fenced = _FENCED.fullmatch(text)
    document = (fenced[1] if fenced else text).strip()
    return document, _parsed(document)


def _parsed(document: str) -> Any:
    try:
        value = json.loads(document, object_pairs_hook=unique_names, parse_constant=_refused)
        msgspec.json.decode(document)  # as whoever is given it reads it
    except RecursionError as error:
        raise InvalidAnswer("it is nested too deep") from error
    except msgspec.DecodeError as error:
        raise InvalidAnswer("a text of it has half a character, or a number of it is too large") from error
    except ValueError as error:
        raise InvalidAnswer(f"it is not one JSON document: {error}") from error
    if nests_too_deep(value):
        raise InvalidAnswer("it is nested too deep")
    return value


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def schema_block(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what the model is told with the line that is to be answered so."""
    text = msgspec.json.encode(schema).decode()
    asked = "The final answer to this must be one JSON document and nothing else, valid by this JSON Schema"
    return {"type": "text", "text": f"({asked}: {text})"}


def refusal_block(problem: str) -> dict[str, Any]:
    """Return what the model is told of an answer that is not valid."""
    text = f"This answer is not valid by the JSON Schema: {problem}. Answer again, with one JSON document alone."
    return {"type": "text", "text": f"({text})"}


def _validator(schema: dict[str, Any]) -> Any:
    from jsonschema import validators
    from referencing import Registry

    kind = validators.validator_for(schema, default=validators.validator_for({}))
    return kind(schema, registry=Registry())  # which fetches nothing


def _check_references(schema: dict[str, Any], kind: Any) -> None:
    """Find all that a schema refers to.

    Raises:
        Exception: something of it cannot be found, is no schema, or needs itself to be decided.
    """
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, specification_with

    form = specification_with(kind.META_SCHEMA.get("$id", ""), default=DRAFT202012)
    root = form.create_resource(schema)
    waiting = [(root, Registry().resolver_with_root(root))]
    within: dict[int, list[Any]] = {}
    """By the identity of each part, those that decide with it about the same value."""
    while waiting:
        part, resolver = waiting.pop()
        said = part.contents
        if not isinstance(said, dict) or id(said) in within:
            continue
        within[id(said)] = [*_parts_for_itself(said)]
        for reference in (said[name] for name in ("$ref", "$dynamicRef") if isinstance(said.get(name), str)):
            try:
                found = resolver.lookup(reference)
            except Unresolvable:
                raise ValueError(f"{reference} leads to nothing that stands in it") from None
            if not isinstance(found.contents, dict | bool):
                raise TypeError(f"{reference} is no schema")
            if found.contents is not schema:
                kind.check_schema(found.contents)
            within[id(said)].append(found.contents)
            waiting.append((form.create_resource(found.contents), found.resolver))
        waiting += [(each, resolver.in_subresource(each)) for each in part.subresources()]
    _check_ends(within)


def _parts_for_itself(said: dict[str, Any]) -> Iterator[Any]:
    """Yield the parts of a schema that decide about the value that it is for itself."""
    for name in ("allOf", "anyOf", "oneOf"):
        yield from said.get(name, ())
    yield from (said[name] for name in ("not", "if", "then", "else") if name in said)


def _check_ends(within: dict[int, list[Any]]) -> None:
    """Look whether each part of a schema can be decided.

    Raises:
        ValueError: one needs itself first.
    """
    ended: set[int] = set()
    for start, first in within.items():
        path = [(start, iter(first))]
        open_parts = {start}
        while path:
            part, rest = path[-1]
            following = next((id(each) for each in rest if id(each) in within and id(each) not in ended), None)
            if following is None:
                path.pop()
                open_parts.discard(part)
                ended.add(part)
            elif following in open_parts:
                raise ValueError("it refers to itself before anything is decided")
            else:
                open_parts.add(following)
                path.append((following, iter(within[following])))


def _place(path: Any) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"at ${place}: " if place else ""
