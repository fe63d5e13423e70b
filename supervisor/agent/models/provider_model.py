"""The model of a provider's row: the key, the name and the way to the server, which each of them needs alike.

Rule: a provider's own server is not asked without a key where it wants one; another server may do without.
"""

from collections.abc import Callable

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.server import NO_KEY, configured, server_at
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError


def provider_model(row: Provider, name: str, settings: Settings, base_url: str, make: Callable[..., Model]) -> Model:
    """Return the model called `name` of a provider.

    Args:
        row: the provider's.
        name: as the person chose it.
        settings: hold the key, the proxy and the certificates.
        base_url: the server.
        make: makes it, of the arguments of `RemoteModel` but for its format.

    Raises:
        ConfigError: there is no key, or the key or the address cannot be one.
    """
    proxy, ca_file = configured(settings, row.ca_file)
    key = row.key_in(settings)
    if row.needs_key and not key and server_at(base_url).shown == server_at(row.base_url).shown:
        raise ConfigError(f"The model {name!r} needs a key: {row.key_advice}. --model offline needs none.")
    return make(
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
