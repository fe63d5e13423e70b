"""The model of a provider's row: the key, the name and the way to the server, which each of them needs alike."""

from collections.abc import Callable

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.server import NO_KEY, configured
from supervisor.config.settings import Settings


def provider_model(row: Provider, name: str, settings: Settings, base_url: str, make: Callable[..., Model]) -> Model:
    """Return the model called `name` of a provider.

    Args:
        row: the provider's.
        name: as the person chose it.
        settings: hold the key, the proxy and the certificates.
        base_url: the server.
        make: makes it, of the arguments of `RemoteModel` but for its format.

    Raises:
        ConfigError: the key or the address cannot be one.
    """
    proxy, ca_file = configured(settings)
    return make(
        name,
        row.key_in(settings) or NO_KEY,
        base_url,
        provider=row.prefix.removesuffix("/"),
        served_as=name.removeprefix(row.prefix),
        key_variable=row.key,
        proxy=proxy,
        ca_file=ca_file,
    )
