"""Check of a provider's server for `strongroom doctor --model`: does it answer, and take the key?

Rule: it asks for the list of models, which costs nothing.
"""

from http.client import HTTPException
from typing import Final

from supervisor.agent.models.provider import Provider, ProviderCheck
from supervisor.agent.models.server import configured, server_at
from supervisor.agent.models.server_listing import LIST_FORMS, address
from supervisor.agent.models.server_request import ask_server, failure_words
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

_PATIENCE_S: Final = 15.0
_OK: Final = 200
_NOT_FOUND: Final = 404
_REFUSED: Final = (401, 403)


def checked(row: Provider, settings: Settings) -> ProviderCheck:
    """Ask the server of a provider that has one."""
    assert row.format is not None
    form, key = LIST_FORMS[row.format], row.key_in(settings)
    if not row.is_available(settings):
        return ProviderCheck("missing", "there is no key to ask with", f"Set {row.key}.")
    try:
        server = server_at(address(row, settings), *configured(settings, row.ca_file))
    except ConfigError as error:
        return ProviderCheck("missing", str(error), f"See {row.server}.")
    base = server.shown
    try:
        status = ask_server(server, form.path, {**form.headers(key), **row.headers}, _PATIENCE_S).status
    except (OSError, ValueError, HTTPException) as error:
        why = failure_words(error, server, key)
        return ProviderCheck("missing", f"{base} cannot be reached: {why}", f"See network, [network], {row.server}.")
    if status in _REFUSED:
        return ProviderCheck("missing", f"{base} refuses the key ({status})", f"See {row.key}.")
    if status not in {_OK, _NOT_FOUND}:
        return ProviderCheck("degraded", f"{base} answers with {status}", "It may be busy: try again later.")
    return ProviderCheck("ok", f"{base} answers" + (" and takes the key" if status == _OK and key else ""))
