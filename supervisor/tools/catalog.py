"""The catalog that a model is offered: names, descriptions and JSON Schemas, taken from the workers' code.

Rule: nothing that a worker process says can change what stands here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec

from workers.catalog import CATEGORIES, supervised_tools

SANDBOXED: Final = frozenset(name for name, category in CATEGORIES.items() if any(tool.runs for tool in category.tools))
"""Categories that need more of the system than confinement: whether they can work here shows when a worker starts."""


@dataclass(frozen=True)
class Offer:
    """One tool as the model sees it, with the category that runs it; that is "" where the supervisor does."""

    name: str
    description: str
    input_schema: dict[str, Any]
    category: str
    effect: bool

    def as_api(self) -> dict[str, Any]:
        """Return the tool's definition for the Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}


def offers(names: Sequence[str]) -> Mapping[str, Offer]:
    """Return the offers for tools called `names`, in that order."""
    every = _every(offered=True)
    return {name: every[name] for name in names}


def unoffered(name: str) -> Offer:
    """Return a tool that no profile can name; it is called where a person asks for what it does."""
    return _every(offered=False)[name]


@cache
def _every(*, offered: bool) -> Mapping[str, Offer]:
    """Return the offers that stand in the code; their schemas take 2 ms to make."""
    rows = [(tool, category.name) for category in CATEGORIES.values() for tool in category.tools]
    rows += [(tool, "") for tool in supervised_tools().values()]
    return {
        tool.name: Offer(tool.name, tool.description, _schema(tool.args), category, tool.effect)
        for tool, category in rows
        if tool.offered == offered
    }


def category_tools(category: str) -> tuple[str, ...]:
    """Return the names that a worker of `category` must greet with."""
    return tuple(tool.name for tool in CATEGORIES[category].tools)


def _schema(args: type[msgspec.Struct]) -> dict[str, Any]:
    # schema() would put a $ref on top; the Messages API wants "type": "object" there.
    (schema,), components = msgspec.json.schema_components([args], ref_template="#/$defs/{name}")
    schema = components.get(args.__name__, schema)
    wanted = ("type", "properties", "required", "additionalProperties")
    return {key: _without_references(schema[key], components) for key in wanted if key in schema}


def _without_references(part: Any, components: Mapping[str, Any]) -> Any:
    """Return a part of a schema with what it refers to in its place: not every provider follows references."""
    if isinstance(part, list):
        return [_without_references(each, components) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _without_references(components[part["$ref"].rpartition("/")[2]], components)
    return {key: _without_references(value, components) for key, value in part.items()}
