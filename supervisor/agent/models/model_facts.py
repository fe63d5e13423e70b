"""A model's facts: what holds of it here, and where each figure comes from.

Rule: what the operator has configured wins over what its server says of itself, that over the catalogue, and that over
careful defaults, which are said aloud. However a name was typed, it is one model: "claude-x" is "anthropic/claude-x".
"""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final, get_args

import msgspec

from supervisor.agent.models.model_catalog import CatalogEntry, Thinking, entry_of, namesake_of
from supervisor.agent.models.providers import provider_of
from supervisor.agent.models.server_limits import NOTHING_LEARNED, ServerLimits
from supervisor.config.model_keys import Effort, ModelConfig, Price, ToolUseForm
from supervisor.config.settings import Settings

_WINDOW: Final = 32_768
_EFFORTS: Final[tuple[Effort, ...]] = tuple(each for each in get_args(Effort) if each)
"""Of a model that nothing is known of, but that one was configured for."""
_LONGEST: Final = 8_192
"""Of a model of which nothing is known: servers of one's own hold little, and more would be cut or refused."""
_UNLISTED: Final = CatalogEntry(begins="", window=_WINDOW, max_tokens=_LONGEST, checked=date.min, source="")
CONFIGURED: Final = "configuration"
LEARNED: Final = "server"
ASSUMED: Final = "assumed"


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What holds of a model. Sizes are in tokens."""

    name: str
    key: str
    """"PROVIDER/MODEL"."""
    window: int
    max_tokens: int
    """The longest reply that can be asked for."""
    reply_tokens: int | None
    """The longest reply that is asked for, as configured."""
    tools: ToolUseForm
    images: bool
    documents: bool
    thinking: Thinking
    thinks: bool
    efforts: tuple[Effort, ...]
    takes_temperature: bool
    steered: bool
    """Its replies can be chosen at all."""
    effort: Effort
    """As configured; "" leaves it to the provider."""
    temperature: float | None
    """As configured."""
    prices: Price | None
    sources: Mapping[str, str]
    """Where each figure comes from: "configuration", "server", "catalogue of DATE", or "assumed"."""
    known: bool
    """Its window is not assumed."""

    @property
    def sees(self) -> frozenset[str]:
        """Which blocks it is shown as they are: "image", "document"."""
        return frozenset(each for each, shown in (("image", self.images), ("document", self.documents)) if shown)


def key_of(name: str, settings: Settings | None = None) -> str:
    """Return "PROVIDER/MODEL" of a name, or the name of a model that is all of its provider's."""
    row = provider_of(name, settings)
    if row is None:
        return name
    return row.label if row.is_file or not row.rest else f"{row.label}/{name.removeprefix(row.prefix)}"


def model_facts(name: str, settings: Settings, learned: ServerLimits = NOTHING_LEARNED) -> ModelFacts:
    """Return what holds of a model, as far as it is known; `learned` is what its server says."""
    key = key_of(name, settings)
    entry = entry_of(key)
    usual = entry.prices if entry is not None else None
    told = f"catalogue of {entry.checked}" if entry is not None else ""
    if entry is None and (entry := namesake_of(key.partition("/")[2])) is not None:
        told = f"catalogue of {entry.checked}, as {entry.begins}"
        entry = msgspec.structs.replace(entry, prices=None)  # it is another server's
    own = _configured(key, settings)
    sources: dict[str, str] = {}

    def figure(what: str, configured: Any, server: Any, listed: Any, assumed: Any) -> Any:
        rows = ((configured, CONFIGURED), (server, LEARNED), (listed, told), (assumed, ASSUMED))
        value, sources[what] = next((value, source) for value, source in rows if value or source == ASSUMED)
        return value

    window = figure("window", own.window, learned.window, entry and entry.window, _WINDOW)
    longest = figure("max_tokens", own.max_tokens, learned.max_tokens, entry and entry.max_tokens, _LONGEST)
    longest = min(longest, window)
    configured = own.prices and own.prices.completed(usual)
    prices = figure("prices", configured, None, entry and entry.prices, None)
    if prices is None:
        del sources["prices"]
    known = entry or _UNLISTED
    return ModelFacts(
        name=name,
        key=key,
        window=window,
        max_tokens=longest,
        reply_tokens=own.max_tokens,
        tools=own.tools or ("native" if known.tools else "text"),
        images=known.images if own.images is None else own.images,
        documents=known.documents if own.documents is None else own.documents,
        thinking=known.thinking,
        thinks=known.thinks,
        efforts=known.efforts or (_EFFORTS if own.effort else ()),
        takes_temperature=known.temperature,
        steered=known.steered,
        effort=own.effort or "",
        temperature=own.temperature,
        prices=prices,
        sources=sources | {"abilities": told or ASSUMED},
        known=sources["window"] != ASSUMED,
    )


def _configured(key: str, settings: Settings) -> ModelConfig:
    """Return what the operator says of a model, its price included, by whichever of its names."""
    config = settings.config
    own = next((each for name, each in config.models.items() if key_of(name, settings) == key), ModelConfig())
    if own.prices is None:
        price = next((each for name, each in config.prices.items() if key_of(name, settings) == key), None)
        own = msgspec.structs.replace(own, prices=price)
    return own
