"""The catalogue of models: what their providers say of them, with its date and its source.

Rule: data, in `model_catalog.toml` beside this; read when something of a model is first asked for. A name belongs to
the entry with the longest beginning of it; one that is only like another, as "gpt-4.1x" is, belongs to none.
"""

from datetime import date
from functools import cache
from importlib.resources import files
from typing import Final, Literal

import msgspec

from supervisor.config.model_keys import Effort, Price

Thinking = Literal["", "budget", "adaptive", "between_tools", "always", "effort"]
"""How a request says whether and how much a model thinks; see `model_catalog.toml`."""

_FILE: Final = "model_catalog.toml"


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the provider says of one model, or of those whose names begin alike. Sizes are in tokens."""

    begins: str
    """"PROVIDER/MODEL", the beginning of the names."""
    window: int
    max_tokens: int
    """The longest reply that can be asked for."""
    tools: bool = True
    images: bool = False
    documents: bool = False
    thinking: Thinking = ""
    thinks: bool = False
    """It thinks where a request says nothing of it."""
    bound: bool = False
    """Its thinking may only come back after what it came after."""
    efforts: tuple[Effort, ...] = ()
    temperature: bool = True
    """It takes one, where it does not think."""
    steered: bool = True
    """Its replies can be chosen at all."""
    prices: Price | None = None
    checked: date
    source: str


class _CatalogFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: tuple[CatalogEntry, ...]


@cache
def entries() -> tuple[CatalogEntry, ...]:
    """Return the catalogue, sorted by the beginnings."""
    import tomllib

    text = files("supervisor.agent.models").joinpath(_FILE).read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _CatalogFile).models


@cache
def entry_of(key: str) -> CatalogEntry | None:
    """Return the entry of "PROVIDER/MODEL"; None where there is none."""
    fitting = [each for each in entries() if _begins(key, each.begins)]
    return max(fitting, key=lambda each: len(each.begins), default=None)


@cache
def namesake_of(model: str) -> CatalogEntry | None:
    """Return the entry of a model that another server than its provider's calls by the same name."""
    fitting = [each for each in entries() if _begins(model, each.begins.partition("/")[2])]
    return max(fitting, key=lambda each: len(each.begins), default=None)


def _begins(name: str, beginning: str) -> bool:
    """Say whether a name begins so, and what follows is no part of the same word."""
    rest = name.removeprefix(beginning)
    return bool(beginning) and name.startswith(beginning) and not rest[:1].isalnum()
