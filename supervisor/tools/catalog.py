"""What a model is offered: names, descriptions and JSON Schemas, taken from the workers' code.

Rule: nothing that a worker process says can change what stands here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from workers.catalog import CATEGORIES


@dataclass(frozen=True)
class Offer:
    """One tool as the model sees it, with the category that runs it."""

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
    every = {
        tool.name: Offer(tool.name, tool.description, _schema(tool.args), category.name, tool.effect)
        for category in CATEGORIES.values()
        for tool in category.tools
    }
    return {name: every[name] for name in names}


def category_tools(category: str) -> tuple[str, ...]:
    """Return the names that a worker of `category` must greet with."""
    return tuple(tool.name for tool in CATEGORIES[category].tools)


def _schema(args: type[msgspec.Struct]) -> dict[str, Any]:
    # schema() would put a $ref on top; the Messages API wants "type": "object" there.
    (schema,), components = msgspec.json.schema_components([args], ref_template="#/$defs/{name}")
    schema = components.get(args.__name__, schema)
    return {key: schema[key] for key in ("type", "properties", "required", "additionalProperties") if key in schema}
