"""What `strongroom doctor` finds, and the one thing that it looks at outside of this machine: the model's server.

Rule: nothing is changed, and nothing is sent anywhere unless it was asked for; the key goes to the server that it is
for, without following a redirect.
"""

import http.client
import ssl
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from supervisor.config.settings import Settings

Verdict = Literal["ok", "degraded", "missing"]


class Finding(msgspec.Struct, frozen=True):
    """One line of the table: what was looked at, how it is, what it means and what to do."""

    subject: str
    verdict: Verdict
    detail: str
    advice: str = ""


_MODEL_S: Final = 15.0
_OK: Final = 200
_NOT_FOUND: Final = 404
_REFUSED: Final = (401, 403)


def model_server(settings: Settings) -> Finding:
    """Ask the Messages API's server for one model, which costs nothing: does it answer, and does it take the key?"""
    from supervisor.agent.models.messages_api import DEFAULT_BASE_URL  # it needs trio, and doctor is there without

    base = settings.base_url or DEFAULT_BASE_URL
    if not settings.api_key:
        return Finding("model", "missing", "there is no key to ask with", "Set ANTHROPIC_API_KEY.")
    url = urlsplit(base)
    try:
        status = _ask(url.scheme, url.hostname or "", url.port, url.path.rstrip("/"), settings.api_key)
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Finding(
            "model", "missing", f"{base} cannot be reached: {why}", "See network, proxy, ANTHROPIC_BASE_URL."
        )
    if status in _REFUSED:
        return Finding("model", "missing", f"{base} refuses the key ({status})", "See ANTHROPIC_API_KEY.")
    if status not in (_OK, _NOT_FOUND):
        return Finding("model", "degraded", f"{base} answers with {status}", "It may be busy: try again later.")
    return Finding("model", "ok", f"{base} answers" + (" and takes the key" if status == _OK else ""))


def _ask(scheme: str, host: str, port: int | None, path: str, key: str) -> int:
    """Return the status of an answer.

    Raises:
        OSError: no connection.
        ValueError: this is no address of a server.
        HTTPException: what answers speaks no HTTP.
    """
    connection: http.client.HTTPConnection
    if scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, port, timeout=_MODEL_S, context=context)
    elif scheme == "http":
        connection = http.client.HTTPConnection(host, port, timeout=_MODEL_S)
    else:
        raise ValueError("it begins with neither https:// nor http://")
    try:
        connection.request(
            "GET", f"{path}/v1/models?limit=1", headers={"x-api-key": key, "anthropic-version": "2023-06-01"}
        )
        return connection.getresponse().status
    finally:
        connection.close()
