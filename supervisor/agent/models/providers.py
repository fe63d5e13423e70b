"""Model providers, one row each, and the way from a model's name to an open model.

To add one, write a module in this folder with a `Provider` called PROVIDER, and add its name to MODULES. Rule: that
module imports nothing slow, and not trio: clients and doctor read the rows. `open` imports what a model needs.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Final, Literal, NamedTuple

import msgspec

from supervisor.agent.models.model import Model
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

MODULES: Final = ("offline", "scripted", "anthropic")


class ProviderCheck(NamedTuple):
    """Answer to whether a provider can be used from here: what was found, and what to do about it."""

    verdict: Literal["ok", "degraded", "missing"]
    detail: str
    advice: str = ""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """The names of one provider's models, what they need, and how they are opened and checked."""

    prefix: str
    """The beginning of its models' names."""
    rest: str = ""
    """What follows the prefix, as people are told it: "FILE", "..."; empty where the prefix is the whole name."""
    open: Callable[[str, Settings], Model]
    """Raises ConfigError where the model cannot be used, and says what to set."""
    key: str = ""
    """The environment variable that holds the API key; the key is kept out of logs."""
    server: str = ""
    """The environment variable that names a server of one's own, which may call its models anything."""
    speaks: str = ""
    """The protocol of such a server."""
    window: int = 200_000
    """Tokens that a model's context holds."""
    check: Callable[[Settings], ProviderCheck] | None = None
    """Asks the provider's server whether it answers and takes the key, for `strongroom doctor --model`."""
    is_file: bool = False
    """What follows the prefix, and its colon, is the path of a file; the model is opened again when that changes."""

    def answers_to(self, name: str) -> bool:
        """Say whether a model of this name is one of this provider's, whatever the environment says."""
        rest = name.removeprefix(self.prefix)
        return name.startswith(self.prefix) and bool(rest) == bool(self.rest) and "\n" not in rest


def rows() -> tuple[Provider, ...]:
    """Return the providers; the first that answers to a name opens the model."""
    return tuple(import_module(f"supervisor.agent.models.{name}").PROVIDER for name in MODULES)


def provider_of(name: str, settings: Settings | None = None) -> Provider | None:
    """Return the row that a name belongs to: by its prefix, else the one whose server of one's own is set."""
    known = rows()
    by_prefix = [row for row in known if row.answers_to(name)]
    own_server = [row for row in known if settings is not None and name and settings.variable(row.server)]
    return next(iter([*by_prefix, *own_server]), None)


def model_names(last: str = " or ") -> str:
    """Return the kinds of names that there are, for a sentence."""
    *others, final = [row.prefix + row.rest for row in rows()]
    return ", ".join(others) + last + final


def fixed_names() -> list[str]:
    """Return the names that need nothing after their prefix."""
    return [row.prefix for row in rows() if not row.rest]


def secrets(settings: Settings) -> list[str]:
    """Return what no log may hold: the API keys that are set, and passwords in the addresses of servers and proxies."""
    from supervisor.agent.models.server import secrets_in

    keys = [key for row in rows() if (key := settings.variable(row.key))]
    urls = [settings.config.network.proxy or "", *(settings.variable(row.server) for row in rows() if row.server)]
    return [*keys, *(form for url in urls for form in secrets_in(url))]


def window(name: str) -> int:
    """Return how many tokens the context of a model holds, as far as its name says."""
    row = provider_of(name) or provider_of(DEFAULT_MODEL)
    assert row is not None
    return row.window


def open_model(name: str | None, settings: Settings) -> Model:
    """Return the model called `name`; by default the configured one, else the default of all.

    Raises:
        ConfigError: it cannot be used: no key, no such file, or a name that this version does not know.
    """
    name = name or settings.config.model or DEFAULT_MODEL
    row = provider_of(name, settings)
    if row is None:
        words = "any other name needs {}, a server that speaks {}"
        others = [words.format(row.server, row.speaks) for row in rows() if row.server]
        raise ConfigError(f"No model {name!r}. Use {'; '.join([model_names(), *others])}.")
    return row.open(name, settings)
