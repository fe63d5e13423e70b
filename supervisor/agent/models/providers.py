"""Model providers, one row each, and the way from a model's name to an open model.

To add one, write a module in this folder with a `Provider` called PROVIDER, and add its name to MODULES. Rule: that
module imports nothing slow, and not trio: clients and doctor read the rows. `open` imports what a model needs. Those
that the operator names, `[providers.NAME]`, are made from their configuration, for any format spoken here. A key
stands in the environment, never in the configuration, and is sent to that provider's server alone.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Final

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.provider_model import provider_model
from supervisor.config.config_keys import DEFAULT_MODEL, ProviderConfig
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

MODULES: Final = ("offline", "scripted", "anthropic", "openai", "gemini", "ollama")


def rows() -> tuple[Provider, ...]:
    """Return the providers; the first that answers to a name opens the model."""
    return tuple(import_module(f"supervisor.agent.models.{name}").PROVIDER for name in MODULES)


def provider_of(name: str, settings: Settings | None = None) -> Provider | None:
    """Return the row that a name belongs to: by its prefix, else the one whose server of one's own takes any name.

    One that begins as a provider's and is none of its names belongs to nobody: no other server is asked in its place.
    """
    known = rows() if settings is None else known_providers(settings)
    found = next((row for row in known if row.answers_to(name)), None)
    if found is not None or settings is None or not name:
        return found
    if any(name.startswith(row.prefix) for row in known if row.prefix.endswith("/")):
        return None
    return next((row for row in known if row.any_name and settings.variable(row.server)), None)


def known_providers(settings: Settings) -> Sequence[Provider]:
    """Return the providers that the operator names, then those that come along."""
    return [*own_providers(settings), *rows()]


def own_providers(settings: Settings) -> Sequence[Provider]:
    """Return the rows of `[providers.NAME]`."""
    return [_row_of(name, each) for name, each in settings.config.providers.items()]


def _row_of(name: str, config: ProviderConfig) -> Provider:
    return Provider(
        prefix=f"{name}/",
        rest="...",
        key=config.key_env,
        needs_key=bool(config.key_env),
        format=config.format,
        base_url=config.base_url,
        headers=config.headers,
        ca_file=config.ca_file,
    )


def model_names(last: str = " or ") -> str:
    """Return the kinds of names that there are, for a sentence."""
    *others, final = [row.names for row in rows()]
    return ", ".join(others) + last + final


def fixed_names() -> list[str]:
    """Return the names that need nothing after their prefix."""
    return [row.prefix for row in rows() if not row.rest]


def secrets(settings: Settings) -> list[str]:
    """Return what no log may hold: the API keys that are set, and passwords in the addresses of servers and proxies."""
    from supervisor.agent.models.server import secrets_in

    known = known_providers(settings)
    keys = [*settings.keys.values()]
    keys += [key for row in known for name in (row.key, row.other_key) if (key := settings.variable(name))]
    own = settings.config.providers.values()
    keys += [value for each in own for value in each.headers.values()]
    urls = [settings.config.network.proxy or "", *(settings.variable(row.server) for row in known if row.server)]
    urls += [each.base_url for each in own]
    return [*keys, *(form for url in urls for form in secrets_in(url))]


def open_model(name: str | None, settings: Settings) -> Model:
    """Return the model called `name`; by default the configured one, else the default of all.

    Raises:
        ConfigError: it cannot be used: no key, no such file, or a name that this version does not know.
    """
    name = name or settings.config.model or DEFAULT_MODEL
    row = provider_of(name, settings)
    if row is None:
        words = "any other name needs {}, a server that speaks {}"
        others = [words.format(row.server, row.speaks) for row in rows() if row.any_name]
        raise ConfigError(f"No model {name!r}. Use {'; '.join([model_names(), *others])}.")
    return row.open(name, settings) if row.open is not None else provider_model(row, name, settings)
