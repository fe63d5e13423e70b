"""Providers that the operator names, `[providers.NAME]`: a row made from a section, for any format that is spoken here.

Rule: imports light; a format's module is imported when a model is opened. A key stands in the environment, never in the
configuration, and is sent to that provider's server alone.
"""

from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.server import NO_KEY, configured
from supervisor.config.config_keys import ProviderConfig
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

if TYPE_CHECKING:
    from supervisor.agent.models.wire_format import WireFormat  # it needs trio

FORMATS: Final = {
    "messages": "messages_api",
    "chat": "chat_api",
    "responses": "responses_api",
    "gemini": "gemini_api",
    "ollama": "ollama_model",
}
"""The module of each format, which holds it as FORMAT; one whose models do more than speak it has `remote_model`."""


def row_of(name: str, config: ProviderConfig) -> Provider:
    """Return the row of the provider that the operator calls `name`."""
    return Provider(
        prefix=f"{name}/",
        rest="...",
        open=partial(_open, name, config),
        key=config.key_env,
        needs_key=bool(config.key_env),
        format=config.format,
        base_url=config.base_url,
        headers=config.headers,
        ca_file=config.ca_file,
    )


def wire_format(name: str) -> "WireFormat":
    """Return the format of a name that stands in `[providers.NAME]` as `format`."""
    return cast("WireFormat", _module(name).FORMAT)


def _module(form: str) -> ModuleType:
    return import_module(f"supervisor.agent.models.{FORMATS[form]}")


def _open(provider: str, config: ProviderConfig, name: str, settings: Settings) -> Model:
    from supervisor.agent.models.remote_model import RemoteModel

    key = settings.variable(config.key_env)
    if config.key_env and not key:
        raise ConfigError(f"The model {name!r} needs a key: set {config.key_env}, as [providers.{provider}] names it.")
    proxy, ca_file = configured(settings, config.ca_file)
    special = getattr(_module(config.format), "remote_model", None)
    make = partial(RemoteModel, wire=wire_format(config.format)) if special is None else partial(special, settings)
    model: Model = make(
        name,
        key or NO_KEY,
        config.base_url,
        provider=provider,
        served_as=name.removeprefix(f"{provider}/"),
        key_variable=config.key_env,
        headers=config.headers,
        proxy=proxy,
        ca_file=ca_file,
    )
    return model
