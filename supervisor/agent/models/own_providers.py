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
from supervisor.agent.models.provider_model import provider_model
from supervisor.config.config_keys import ProviderConfig
from supervisor.config.settings import Settings

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

    special = getattr(_module(config.format), "remote_model", None)
    make = partial(RemoteModel, wire=wire_format(config.format)) if special is None else partial(special, settings)
    return provider_model(row_of(provider, config), name, settings, config.base_url, make)
