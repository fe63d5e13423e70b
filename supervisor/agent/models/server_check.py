"""Check of a provider's server, for `doctor --model` and `login`: does it answer, and take the key?

Rule: it asks for the list of models, which costs nothing. A server that lists them to anybody has said nothing of the
key, and that is said.
"""

from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Final, Literal, NamedTuple

from supervisor.agent.models.provider import Provider
from supervisor.agent.models.server import configured, server_at
from supervisor.agent.models.server_listing import LIST_FORMS
from supervisor.agent.models.server_request import ask_server, failure_words
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

_PATIENCE_S: Final = 15.0
_OK: Final = 200
_NOT_FOUND: Final = 404
_REFUSED: Final = (401, 403)
_REFUSING_WORDS: Final = b"API_KEY_INVALID"
"""By which Google's API refuses a key, with the status 400."""


class ServerCheck(NamedTuple):
    """Answer to whether a provider can be used from here: what was found, and what to do about it."""

    verdict: Literal["ok", "degraded", "missing"]
    detail: str
    advice: str = ""
    key: Literal["taken", "refused", "unknown"] = "unknown"
    """What the server says of the key."""


def checked(row: Provider, settings: Settings) -> ServerCheck:
    """Ask the server of a provider that has one."""
    assert row.format is not None
    form, key = LIST_FORMS[row.format], row.key_in(settings)
    if not row.is_available(settings):
        return ServerCheck("missing", "there is no key to ask with", f"{row.key_advice}.")
    try:
        server = server_at(row.address(settings), *configured(settings, row.ca_file))
    except ConfigError as error:
        return ServerCheck("missing", str(error), f"See {row.server or 'the configuration'}.")

    def ask(headers: Mapping[str, str]) -> tuple[int, bool]:
        answer = ask_server(server, form.path, {**headers, **row.headers}, _PATIENCE_S)
        return answer.status, answer.status in _REFUSED or _REFUSING_WORDS in answer.content

    base = server.shown
    try:
        status, refused = ask(form.headers(key))
    except (OSError, ValueError, HTTPException) as error:
        why = failure_words(error, server, key)
        places = ", ".join(filter(None, ("network", "[network]", row.server)))
        return ServerCheck("missing", f"{base} cannot be reached: {why}", f"See {places}.")
    if refused:
        return ServerCheck("missing", f"{base} refuses the key ({status})", f"See {row.key}.", "refused")
    told = False
    with suppress(OSError, ValueError, HTTPException):
        told = status == _OK and bool(key) and ask(form.headers(""))[0] != _OK
    return _answered(base, status, bool(key), told=told)


def _answered(base: str, status: int, has_key: bool, *, told: bool) -> ServerCheck:
    """Say what an answer means, by which the key is not refused; `told` where without it there was another."""
    if status not in {_OK, _NOT_FOUND}:
        return ServerCheck("degraded", f"{base} answers with {status}", "It may be busy: try again later.")
    if told:
        return ServerCheck("ok", f"{base} answers and takes the key", key="taken")
    untold = ", and does not say whether the key is right" if has_key else ""
    return ServerCheck("ok", f"{base} answers{untold}")
