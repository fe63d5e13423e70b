"""Google as a provider: gemini-..., by the API that the key of an AI Studio account opens."""

from functools import partial
from typing import Final

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider, ProviderCheck
from supervisor.agent.models.provider_model import provider_model
from supervisor.agent.models.server_check import checked
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

DEFAULT_BASE_URL: Final = "https://generativelanguage.googleapis.com"
_KEY: Final = "GEMINI_API_KEY"
_OTHER_KEY: Final = "GOOGLE_API_KEY"
_SERVER: Final = "GEMINI_BASE_URL"


def _open(name: str, settings: Settings) -> Model:
    key, server = PROVIDER.key_in(settings), settings.variable(_SERVER)
    if not key and not server:
        raise ConfigError(f"The model {name!r} needs a key: set {_KEY}, or {_SERVER} for a server of your own.")
    from supervisor.agent.models.gemini_api import FORMAT
    from supervisor.agent.models.remote_model import RemoteModel

    make = partial(RemoteModel, wire=FORMAT)
    return provider_model(PROVIDER, name, settings, server or DEFAULT_BASE_URL, make)


def _check(settings: Settings) -> ProviderCheck:
    return checked(PROVIDER, settings)


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
    check=_check,
)
