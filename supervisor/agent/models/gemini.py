"""Google as a provider: gemini-..., by the API that the key of an AI Studio account opens."""

from functools import partial
from typing import Final

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.provider_model import provider_model
from supervisor.config.settings import Settings

DEFAULT_BASE_URL: Final = "https://generativelanguage.googleapis.com"
_KEY: Final = "GEMINI_API_KEY"
_OTHER_KEY: Final = "GOOGLE_API_KEY"
_SERVER: Final = "GEMINI_BASE_URL"


def _open(name: str, settings: Settings) -> Model:
    from supervisor.agent.models.gemini_api import FORMAT
    from supervisor.agent.models.remote_model import RemoteModel

    make = partial(RemoteModel, wire=FORMAT)
    return provider_model(PROVIDER, name, settings, settings.variable(_SERVER) or DEFAULT_BASE_URL, make)


PROVIDER: Final = Provider(
    prefix="gemini/",
    alias="gemini-",
    rest="...",
    open=_open,
    key=_KEY,
    other_key=_OTHER_KEY,
    server=_SERVER,
    format="gemini",
    base_url=DEFAULT_BASE_URL,
    key_page="https://aistudio.google.com/apikey",
)
