"""OpenAI as a provider: openai/..., or any model of a server that speaks Chat Completions.

Rule: Responses at the vendor, which keep its models' reasoning; Chat Completions anywhere else, where a key is sent if
there is one.
"""

from functools import partial
from typing import Final
from urllib.parse import urlsplit

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.provider_model import provider_model
from supervisor.config.settings import Settings

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"
_KEY: Final = "OPENAI_API_KEY"
_SERVER: Final = "OPENAI_BASE_URL"


def _at_vendor(settings: Settings) -> bool:
    """Say whether requests go to OpenAI itself, also where the environment says so."""
    url = settings.variable(_SERVER)
    try:
        return not url or urlsplit(url).hostname == urlsplit(DEFAULT_BASE_URL).hostname
    except ValueError:
        return False


def _open(name: str, settings: Settings) -> Model:
    from supervisor.agent.models.own_providers import wire_format
    from supervisor.agent.models.remote_model import RemoteModel

    make = partial(RemoteModel, wire=wire_format("responses" if _at_vendor(settings) else "chat"))
    return provider_model(PROVIDER, name, settings, settings.variable(_SERVER) or DEFAULT_BASE_URL, make)


PROVIDER: Final = Provider(
    prefix="openai/",
    rest="...",
    open=_open,
    key=_KEY,
    server=_SERVER,
    speaks="Chat Completions",
    format="responses",
    base_url=DEFAULT_BASE_URL,
    key_page="https://platform.openai.com/api-keys",
)
