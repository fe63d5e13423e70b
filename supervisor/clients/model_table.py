"""`strongroom models`: what can be used now, what is known of it, and where each figure comes from.

Rule: only looking. `available_models` asks servers; everything else is pure. A provider that cannot be used is a line
that says what to set.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from supervisor.agent.models.key_choice import KeySource, source_of, with_keys
from supervisor.agent.models.model_catalog import entries
from supervisor.agent.models.model_facts import ModelFacts, model_facts
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.providers import known_providers
from supervisor.agent.models.server import server_at
from supervisor.agent.models.server_limits import NOTHING_LEARNED
from supervisor.agent.models.server_listing import ServerListing, server_listings
from supervisor.config.model_keys import Price, rate_of
from supervisor.config.settings import Settings
from supervisor.display.columns import table, wrapped
from supervisor.display.escape import visible
from supervisor.errors import ConfigError

_HEADINGS: Final = ("model", "window", "longest", "price in/out", "cached", "abilities, and where figures come from")
_FIGURES: Final = {"window": "window", "max_tokens": "longest", "prices": "prices", "abilities": "abilities"}
_INDENT: Final = "  "
_NO_ANSWER: Final = ServerListing({})


class AvailableModel(msgspec.Struct, frozen=True):
    """A model as its provider's row lists it."""

    facts: ModelFacts
    listed: bool
    """Its server names it."""


class ProviderModels(msgspec.Struct, frozen=True):
    """A provider, and what can be used of it now."""

    name: str
    available: bool
    missing: str
    """What to set, a sentence; empty where it can be used."""
    key: KeySource
    """Where its key comes from."""
    server: str
    """Where it is asked; empty for one without a server."""
    problem: str
    """Why its server lists nothing."""
    models: tuple[AvailableModel, ...]


def available_models(settings: Settings) -> list[ProviderModels]:
    """Return all providers, having asked the servers of those that can be used.

    Raises:
        ConfigError: the file of the kept keys cannot be used.
    """
    settings = with_keys(settings, settings.environment)
    known = known_providers(settings)
    listings = server_listings(known, settings)
    return [_provider(row, listings.get(row.label), settings) for row in known]


def _provider(row: Provider, listing: ServerListing | None, settings: Settings) -> ProviderModels:
    available = row.is_available(settings)
    try:
        shown = server_at(row.address(settings)).shown if row.format is not None else ""
    except ConfigError:  # its listing says why
        shown = ""
    return ProviderModels(
        name=row.label,
        available=available,
        missing="" if available else f"No key: {row.key_advice}.",
        key=source_of(row, settings),
        server=shown,
        problem=listing.problem if listing is not None else "",
        models=tuple(_models(row, listing or _NO_ANSWER, settings)) if available else (),
    )


def _models(row: Provider, listing: ServerListing, settings: Settings) -> Iterator[AvailableModel]:
    """Yield a provider's models: of the catalogue, of the configuration, and those that its server lists besides."""
    if not row.rest or row.is_file:
        yield AvailableModel(model_facts(row.names, settings), listed=False)
        return
    listed = listing.models
    named = [each.begins.partition("/")[2] for each in entries() if each.begins.startswith(row.prefix)]
    configured = [name.removeprefix(row.prefix) for name in settings.config.models if row.answers_to(name)]
    if listed:  # a beginning that the server has other names for would stand there twice
        named = [name for name in named if name in listed or not any(each.startswith(name) for each in listed)]
    for name in dict.fromkeys([*named, *configured, *sorted(listed)]):
        whole = name if row.alias and name.startswith(row.alias) else f"{row.prefix}{name}"
        facts = model_facts(whole, settings, listed.get(name, NOTHING_LEARNED))
        yield AvailableModel(facts, listed=name in listed)


def as_json(providers: Sequence[ProviderModels]) -> dict[str, Any]:
    """Return what scripts read."""
    return {
        "providers": [
            {
                **{name: getattr(each, name) for name in ("name", "available", "missing", "key", "server", "problem")},
                "models": [_model_json(model) for model in each.models],
            }
            for each in providers
        ]
    }


def _model_json(model: AvailableModel) -> dict[str, Any]:
    facts = model.facts
    return {
        "name": facts.name,
        "listed": model.listed,
        "known": facts.known,
        "window": facts.window,
        "max_tokens": facts.max_tokens,
        "tools": facts.tools,
        "abilities": abilities(facts),
        "efforts": list(facts.efforts),
        "prices": None if facts.prices is None else msgspec.to_builtins(facts.prices),
        "sources": dict(facts.sources),
    }


def abilities(facts: ModelFacts) -> list[str]:
    """Return what a model can do, in words."""
    can = {
        "tools": facts.tools == "native",
        "tools as text": facts.tools == "text",
        "images": facts.images,
        "documents": facts.documents,
        "thinking": bool(facts.thinking),
        "temperature": facts.takes_temperature and facts.steered,
    }
    return [name for name, has in can.items() if has]


def model_lines(providers: Sequence[ProviderModels], columns: int) -> list[str]:
    """Return the models for people, a table a provider; lines that begin with a letter are headings."""
    lines: list[str] = []
    for each in providers:
        if each.available:
            kept = " with the key that was kept" if each.key == "kept" else ""
            lines += ["", visible(" at ".join(filter(None, (each.name, each.server))) + kept)]
            if each.problem:
                lines += wrapped(f"its models are not listed: {visible(each.problem)}", columns, _INDENT)
            if each.models:
                shown = table([_HEADINGS, *(_row(model, each) for model in each.models)], columns - len(_INDENT))
                lines += [f"{_INDENT}{line}".rstrip() for line in shown.splitlines()]
    if missing := [each for each in providers if not each.available]:
        lines += ["", "Not usable yet"]
        lines += [line for each in missing for line in wrapped(f"{each.name}: {each.missing}", columns, _INDENT)]
    return lines[1:]


def _row(model: AvailableModel, provider: ProviderModels) -> tuple[str, ...]:
    facts = model.facts
    efforts = f" ({', '.join(facts.efforts)})" if facts.efforts else ""
    told = ", ".join(abilities(facts)).replace("thinking", f"thinking{efforts}")
    cost, cached = "-", "-"
    if (price := facts.prices) is not None:
        cost = f"{_money(price.input, price)}/{_money(price.output, price)}"
        cached = _money(rate_of(price, "cache_read"), price)
        if (dear := price.long_prompt) is not None:
            told += f"; prompts above {dear.tokens:,} tokens cost {dear.input:g}/{dear.output:g}"
    if not model.listed and any(each.listed for each in provider.models):
        told += "; its server does not list it"
    figures = (f"{facts.window:,}", f"{facts.max_tokens:,}", cost, cached)
    return (visible(facts.name), *figures, f"{told} [{_sources(facts)}]".strip())


def _money(amount: float, price: Price) -> str:
    return f"${amount:g}" if price.currency == "USD" else f"{amount:g} {visible(price.currency)}"


def _sources(facts: ModelFacts) -> str:
    """Return where the figures come from: once where it is the same for all."""
    by_source: dict[str, list[str]] = {}
    for what, source in facts.sources.items():
        by_source.setdefault(source, []).append(_FIGURES[what])
    if len(by_source) == 1:
        return next(iter(by_source))
    return "; ".join(f"{', '.join(figures)}: {source}" for source, figures in by_source.items())
