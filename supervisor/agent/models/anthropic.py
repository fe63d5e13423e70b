"""Anthropic as a provider: claude-..., or any model of a server that speaks the Messages API."""

from typing import Final

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider, ProviderCheck
from supervisor.agent.models.provider_model import provider_model
from supervisor.agent.models.server_check import checked
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

DEFAULT_BASE_URL: Final = "https://api.anthropic.com"
_KEY: Final = "ANTHROPIC_API_KEY"
_SERVER: Final = "ANTHROPIC_BASE_URL"


def _open(name: str, settings: Settings) -> Model:
    key, server = settings.variable(_KEY), settings.variable(_SERVER)
    if not key and not server:
        raise ConfigError(
            f"The model {name!r} needs a key: set {_KEY} (or {_SERVER} for a server of your own), "
            "or use --model offline, which needs neither."
        )
    from supervisor.agent.models.messages_api import messages_model

    return provider_model(PROVIDER, name, settings, server or DEFAULT_BASE_URL, messages_model)


def _check(settings: Settings) -> ProviderCheck:
    return checked(PROVIDER, settings)


PROVIDER: Final = Provider(
    prefix="anthropic/",
    alias="claude-",
    rest="...",
    open=_open,
    key=_KEY,
    server=_SERVER,
    any_name=True,
    speaks="the Messages API",
    format="messages",
    base_url=DEFAULT_BASE_URL,
    check=_check,
)
