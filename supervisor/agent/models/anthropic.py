"""Anthropic as a provider: claude-..., or any model of a server that speaks the Messages API."""

from typing import Final
from urllib.parse import urlsplit

from supervisor.agent.models.model import Model
from supervisor.agent.models.providers import Provider, ProviderCheck
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

DEFAULT_BASE_URL: Final = "https://api.anthropic.com"
_KEY: Final = "ANTHROPIC_API_KEY"
_SERVER: Final = "ANTHROPIC_BASE_URL"
_CHECK_S: Final = 15.0
_OK: Final = 200
_NOT_FOUND: Final = 404
_REFUSED: Final = (401, 403)


def _open(name: str, settings: Settings) -> Model:
    key, server = settings.variable(_KEY), settings.variable(_SERVER)
    if not key and not server:
        raise ConfigError(
            f"The model {name!r} needs a key: set {_KEY} (or {_SERVER} for a server of your own), "
            "or use --model offline, which needs neither."
        )
    from supervisor.agent.models.messages_api import AnthropicModel

    return AnthropicModel(name, key or "no-key-given", server or DEFAULT_BASE_URL)


def _check(settings: Settings) -> ProviderCheck:
    """Ask the server for one model, which costs nothing. The key goes to that server, and no redirect is followed."""
    base, key = settings.variable(_SERVER) or DEFAULT_BASE_URL, settings.variable(_KEY)
    import http.client

    if not key:
        return ProviderCheck("missing", "there is no key to ask with", f"Set {_KEY}.")
    try:
        status = _status(base, key)
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ProviderCheck("missing", f"{base} cannot be reached: {why}", f"See network, proxy, {_SERVER}.")
    if status in _REFUSED:
        return ProviderCheck("missing", f"{base} refuses the key ({status})", f"See {_KEY}.")
    if status not in (_OK, _NOT_FOUND):
        return ProviderCheck("degraded", f"{base} answers with {status}", "It may be busy: try again later.")
    return ProviderCheck("ok", f"{base} answers" + (" and takes the key" if status == _OK else ""))


def _status(base: str, key: str) -> int:
    """Return the status of an answer.

    Raises:
        OSError: no connection.
        ValueError: this is no address of a server.
        HTTPException: what answers speaks no HTTP.
    """
    import http.client

    url = urlsplit(base)
    kinds = {"https": http.client.HTTPSConnection, "http": http.client.HTTPConnection}
    if url.scheme not in kinds:
        raise ValueError("it begins with neither https:// nor http://")
    connection = kinds[url.scheme](url.hostname or "", url.port, timeout=_CHECK_S)
    try:
        path = f"{url.path.rstrip('/')}/v1/models?limit=1"
        connection.request("GET", path, headers={"x-api-key": key, "anthropic-version": "2023-06-01"})
        status: int = connection.getresponse().status
        return status
    finally:
        connection.close()


PROVIDER: Final = Provider(
    prefix="claude-",
    rest="...",
    open=_open,
    key=_KEY,
    server=_SERVER,
    speaks="the Messages API",
    window=200_000,  # https://docs.anthropic.com/en/docs/about-claude/models/overview
    check=_check,
)
