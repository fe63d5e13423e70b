"""The model of a provider's row, as its server's format makes it of the name, the key and the way there.

Rule: a provider's own server is not asked without a key where it wants one; another server may do without. A format's
module is imported when a model is opened.
"""

from functools import partial
from importlib import import_module
from typing import Final

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.server import NO_KEY, configured, server_at
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

FORMATS: Final = {
    "messages": "messages_api",
    "chat": "chat_api",
    "responses": "responses_api",
    "gemini": "gemini_api",
    "ollama": "ollama_model",
}
"""The module of each format, which holds it as FORMAT; one whose models do more than speak it has `remote_model`."""


def provider_model(row: Provider, name: str, settings: Settings) -> Model:
    """Return the model called `name`, as the person chose it, of a provider that has a server.

    Raises:
        ConfigError: there is no key, or the key or the address cannot be one.
    """
    from supervisor.agent.models.remote_model import RemoteModel  # it needs trio

    base_url = row.address(settings)
    proxy, ca_file = configured(settings, row.ca_file)
    key = row.key_in(settings)
    if row.needs_key and not key and server_at(base_url).shown == server_at(row.base_url).shown:
        raise ConfigError(f"The model {name!r} needs a key: {row.key_advice}. --model offline needs none.")
    module = import_module(f"supervisor.agent.models.{FORMATS[row.format_at(base_url)]}")
    special = getattr(module, "remote_model", None)
    make = partial(RemoteModel, wire=module.FORMAT) if special is None else partial(special, settings)
    model: Model = make(
        name,
        key or NO_KEY,
        base_url,
        provider=row.prefix.removesuffix("/"),
        served_as=name.removeprefix(row.prefix),
        key_variable=row.key,
        headers=row.headers,
        proxy=proxy,
        ca_file=ca_file,
    )
    return model
