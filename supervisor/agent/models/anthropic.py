"""Anthropic as a provider: claude-..., or any model of a server that speaks the Messages API."""

from typing import Final

from supervisor.agent.models.model import Model
from supervisor.agent.models.provider import Provider, ProviderCheck
from supervisor.agent.models.server import configured, server_at
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
    from http.client import HTTPException

    from supervisor.agent.models.server_listing import messages_headers
    from supervisor.agent.models.server_request import ask_server, failure_words

    key = settings.variable(_KEY)
    if not key:
        return ProviderCheck("missing", "there is no key to ask with", f"Set {_KEY}.")
    try:
        server = server_at(settings.variable(_SERVER) or DEFAULT_BASE_URL, *configured(settings))
    except ConfigError as error:
        return ProviderCheck("missing", str(error), f"See {_SERVER}.")
    base = server.shown
    try:
        status = ask_server(server, "/v1/models?limit=1", messages_headers(key), _CHECK_S).status
    except (OSError, ValueError, HTTPException) as error:
        why = failure_words(error, server, key)
        return ProviderCheck("missing", f"{base} cannot be reached: {why}", f"See network, [network], {_SERVER}.")
    if status in _REFUSED:
        return ProviderCheck("missing", f"{base} refuses the key ({status})", f"See {_KEY}.")
    if status not in (_OK, _NOT_FOUND):
        return ProviderCheck("degraded", f"{base} answers with {status}", "It may be busy: try again later.")
    return ProviderCheck("ok", f"{base} answers" + (" and takes the key" if status == _OK else ""))


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
