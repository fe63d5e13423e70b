"""A server that takes spans: OTLP over HTTP, in JSON.

Rule: what it does not take now is sent again, as long and as late as it says, within bounds; what it refuses for good
ends the export, and stays in the journal. Of the environment nothing counts but its address and headers.
Source: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import http.client
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from supervisor.agent.models.server import Server, below, configured, server_at, tls
from supervisor.config.settings import Settings
from supervisor.display.escape import one_line
from supervisor.errors import ConfigError, StrongroomError, reason
from supervisor.version import VERSION

STDOUT: Final = "-"
_PATH: Final = "v1/traces"
_TIMEOUT_S: Final = 10.0
_LONGEST_S: Final = 300.0
"""Seconds after which a server is asked again at the latest, whatever it says."""
_BACKOFF_S: Final = 30.0
"""The same where it says nothing."""
_ANSWER: Final = 2**16
"""Bytes of an answer that are read."""
_TAKEN: Final = range(200, 300)
_LATER: Final = frozenset({429, 502, 503, 504})


class OtlpTarget(NamedTuple):
    """Where spans are sent."""

    server: Server
    """With the whole address of what takes them."""
    headers: Mapping[str, str]


class _HttpAnswer(NamedTuple):
    status: int
    retry_after: str
    body: bytes


def target_of(settings: Settings, endpoint: str | None) -> OtlpTarget | None:
    """Return where spans are sent; None is standard output.

    Args:
        settings: know what the environment says, and which certificates the operator trusts.
        endpoint: as it was given; below it is `v1/traces`, unless it ends in that. None leaves it to the environment.

    Raises:
        ConfigError: it is no address.
    """
    exact = "" if endpoint else settings.variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    base = endpoint or settings.variable("OTEL_EXPORTER_OTLP_ENDPOINT")
    if endpoint == STDOUT or not (exact or base):
        return None
    url = exact or (base if urlsplit(base).path.endswith(f"/{_PATH}") else below(base, _PATH))
    _proxy, ca_file = configured(settings)
    server = server_at(url, ca_file=ca_file)
    given = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
    pairs = [each.partition("=") for name in given for each in settings.variable(name).split(",") if each.strip()]
    headers = {name.strip(): unquote(value.strip()) for name, _, value in pairs}
    if not all(
        name.isascii() and value.isascii() and f"{name}{value}".isprintable() for name, value in headers.items()
    ):
        raise ConfigError("OTEL_EXPORTER_OTLP_HEADERS must look like name=value,other=value.")
    return OtlpTarget(server, headers | ({"Authorization": server.authorization} if server.authorization else {}))


class OtlpServer:
    """Sends requests to one server.

    Args:
        target: where it is.
        patience_s: seconds for which one request is tried in all.
        tell: hears why it is waited for, and what was not taken.
        wait: waits so many seconds.
    """

    def __init__(
        self,
        target: OtlpTarget,
        patience_s: float,
        tell: Callable[[str], object],
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._target, self._patience_s, self._tell, self._wait = target, patience_s, tell, wait
        self._tls = tls(target.server)

    def send(self, body: bytes) -> None:
        """Return when a request was taken.

        Raises:
            StrongroomError: it was refused, or not taken for too long.
        """
        waited, backoff = 0.0, 1.0
        while True:
            why, delay = self._tried(body)
            if not why:
                return
            delay = min(backoff if delay is None else delay, _LONGEST_S)
            backoff = min(2 * backoff, _BACKOFF_S)
            if waited + delay > self._patience_s:
                raise StrongroomError(f"{why}. The journal keeps what it has not; the same command goes on there.")
            self._tell(f"{why}; it is asked again in {delay:.0f} s")
            self._wait(delay)
            waited += delay

    def _tried(self, body: bytes) -> tuple[str, float | None]:
        """Return why a request was not taken now, "" where it was, and after how many seconds it may be made again."""
        shown = self._target.server.shown
        try:
            answer = self._posted(body)
        except (OSError, http.client.HTTPException) as error:
            return f"{shown} cannot be reached: {one_line(reason(error) or type(error).__name__, 200)}", None
        said = one_line(answer.body.decode("utf-8", "replace"), 200)
        if answer.status in _TAKEN:
            self._tell_rejected(answer.body)
            return "", None
        if answer.status in _LATER:
            return f"{shown} takes no spans now ({answer.status})", _seconds(answer.retry_after)
        raise StrongroomError(f"{shown} refuses the spans ({answer.status}): {said}")

    def _posted(self, body: bytes) -> _HttpAnswer:
        parts = urlsplit(self._target.server.url)
        host = parts.hostname or ""
        connection = (
            http.client.HTTPSConnection(host, parts.port, timeout=_TIMEOUT_S, context=self._tls)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, parts.port, timeout=_TIMEOUT_S)
        )
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        head = {"Content-Type": "application/json", "User-Agent": f"strongroom/{VERSION}", **self._target.headers}
        with closing(connection):
            connection.request("POST", path, body, head)
            response = connection.getresponse()
            return _HttpAnswer(response.status, response.getheader("Retry-After") or "", response.read(_ANSWER))

    def _tell_rejected(self, body: bytes) -> None:
        try:
            told: Any = msgspec.json.decode(body)["partialSuccess"]
            rejected, why = int(told.get("rejectedSpans", 0)), str(told.get("errorMessage", ""))
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError):
            return
        if rejected or why:
            shown = self._target.server.shown
            self._tell(f"{shown} has not taken {rejected} spans of this request: {one_line(why, 200)}")


def _seconds(retry_after: str) -> float | None:
    """Return what a Retry-After says, in seconds from now on; None for nothing."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
