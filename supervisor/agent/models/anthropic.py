"""Anthropic as a provider: claude-..., or any model of a server that speaks the Messages API."""

from typing import Final
from urllib.parse import urlsplit

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider, ProviderCheck
from supervisor.agent.models.retry import without_key
from supervisor.agent.models.server import Server, basic, configured, server_at, tls
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
    from supervisor.agent.models.messages_api import messages_model

    proxy, ca_file = configured(settings)
    at = server or DEFAULT_BASE_URL
    served_as = name.removeprefix(PROVIDER.prefix)
    more = {"served_as": served_as, "key_variable": _KEY, "proxy": proxy, "ca_file": ca_file}
    return messages_model(name, key or "no-key-given", at, **more)


def _check(settings: Settings) -> ProviderCheck:
    """Ask the server for one model, which costs nothing. The key goes to that server, and no redirect is followed."""
    import http.client

    key = settings.variable(_KEY)
    if not key:
        return ProviderCheck("missing", "there is no key to ask with", f"Set {_KEY}.")
    try:
        server = server_at(settings.variable(_SERVER) or DEFAULT_BASE_URL, *configured(settings))
    except ConfigError as error:
        return ProviderCheck("missing", str(error), f"See {_SERVER}.")
    base = server.shown
    try:
        status = _status(server, key)
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = without_key(getattr(error, "strerror", None) or str(error) or type(error).__name__, key, *server.secrets)
        return ProviderCheck("missing", f"{base} cannot be reached: {why}", f"See network, [network], {_SERVER}.")
    if status in _REFUSED:
        return ProviderCheck("missing", f"{base} refuses the key ({status})", f"See {_KEY}.")
    if status not in (_OK, _NOT_FOUND):
        return ProviderCheck("degraded", f"{base} answers with {status}", "It may be busy: try again later.")
    return ProviderCheck("ok", f"{base} answers" + (" and takes the key" if status == _OK else ""))


def _status(server: Server, key: str) -> int:
    """Return the status of an answer.

    Raises:
        OSError: no connection.
        ValueError: this is no address of a server.
        HTTPException: what answers speaks no HTTP.
    """
    import http.client

    url, by = urlsplit(server.url), urlsplit(server.proxy)
    host, port = (by.hostname or "", by.port or 80) if server.proxy else (url.hostname or "", url.port)
    path = f"{url.path.rstrip('/')}/v1/models?limit=1"
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01", "authorization": server.authorization}
    to_proxy = {"proxy-authorization": basic(server.proxy)} if basic(server.proxy) else {}
    connection: http.client.HTTPConnection
    if url.scheme == "https":
        connection = http.client.HTTPSConnection(host, port, timeout=_CHECK_S, context=tls(server.ca_file))
        if server.proxy:
            connection.set_tunnel(url.hostname or "", url.port, to_proxy)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_CHECK_S)
        if server.proxy:
            path, headers = f"http://{url.netloc}{path}", headers | to_proxy
    try:
        connection.request("GET", path, headers={name: value for name, value in headers.items() if value})
        status: int = connection.getresponse().status
        return status
    finally:
        connection.close()


PROVIDER: Final = Provider(
    prefix="anthropic/",
    alias="claude-",
    rest="...",
    open=_open,
    key=_KEY,
    server=_SERVER,
    any_name=True,
    speaks="the Messages API",
    check=_check,
)
