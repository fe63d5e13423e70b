"""Anthropic as a provider: claude-..., or any model of a server that speaks the Messages API."""

from typing import Final

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.provider_model import provider_model
from supervisor.config.settings import Settings

DEFAULT_BASE_URL: Final = "https://api.anthropic.com"
_KEY: Final = "ANTHROPIC_API_KEY"
_SERVER: Final = "ANTHROPIC_BASE_URL"


def _open(name: str, settings: Settings) -> Model:
    from supervisor.agent.models.messages_api import messages_model

    return provider_model(PROVIDER, name, settings, settings.variable(_SERVER) or DEFAULT_BASE_URL, messages_model)


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
    key_page="https://console.anthropic.com/settings/keys",
)
