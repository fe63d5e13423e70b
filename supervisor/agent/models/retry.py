"""Failed requests: their kind, whether and when to try again, and the words for people.

Rule: pure. No clock, no socket, no library of a provider: the time of day and the chance are arguments. The
kind alone decides whether a request is made again, unless the server says so itself (`x-should-retry`).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from supervisor.errors import ModelErrorKind

RETRIED: Final[frozenset[ModelErrorKind]] = frozenset(
    {"api_error", "connection", "overloaded", "rate_limited", "stream_truncated", "timeout"}
)
"""Kinds that may pass if the same request is made again."""

STATUS_KINDS: Final[Mapping[int, ModelErrorKind]] = {
    401: "authentication",
    402: "permission",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "api_error",
    413: "request_too_large",
    429: "rate_limited",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
"""HTTP status to kind; `kind_of_status` knows the rest."""

TYPE_KINDS: Final[Mapping[str, ModelErrorKind]] = {
    "invalid_request_error": "invalid_request",
    "authentication_error": "authentication",
    "billing_error": "permission",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "request_too_large": "request_too_large",
    "rate_limit_error": "rate_limited",
    "timeout_error": "timeout",
    "overloaded_error": "overloaded",
    "api_error": "api_error",
}
"""`error.type` to kind, for errors that come after a status of 200 (https://docs.anthropic.com/en/api/errors)."""

_CONTEXT_FULL: Final = re.compile(
    r"prompt is too long|exceeds? (the )?(available )?context|maximum context length|greater than the context length"
    r"|context_length_exceeded|exceed_context_size|longer than the context length|exceeds the maximum number of tokens",
    re.IGNORECASE,
)
"""How servers say that a conversation has outgrown the model; the API has no error type for it."""
_KEY_REFUSED: Final = re.compile(r"API key (not valid|not found|expired)", re.IGNORECASE)
"""How Google says so, with a status of 400."""

HINTS: Final[Mapping[ModelErrorKind, str]] = {
    "authentication": "Check the API key.",
    "permission": "Check what this key may use: its workspace, its models, its credit.",
    "not_found": "Check the model's name and the base URL.",
    "request_too_large": "It is too large for one request, also with all before it kept in short: send less.",
    "context_full": "It does not fit the model, also with all before it kept in short: send less.",
    "rate_limited": "Wait a little, then send the line again.",
    "overloaded": "Wait a little, then send the line again.",
    "connection": "Check the network and the base URL, then send the line again.",
    "timeout": "Check the network, then send the line again.",
    "stream_truncated": "Send the line again.",
    "api_error": "Send the line again; if it fails again, see the provider's status page.",
    "bad_response": "Check the base URL and what its server is said to speak, and that no proxy or login page answers.",
}
"""What a person can do about it."""

_RESET: Final = re.compile(
    r"(?P<before>anthropic-ratelimit|x-ratelimit|ratelimit)(?P<of>-[a-z-]+)??-reset(?P<after>-[a-z-]+)?"
)
"""Headers that say when a limit is reset, as providers write them."""
_REMAINING: Final = "{before}{of}-remaining{after}"
_DURATION_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SINCE_1970: Final = 1e9
"""From here on, a number is a time and no duration; and from the next one on, in milliseconds."""
_MS_SINCE_1970: Final = 1e12
_KEY_LIKE: Final = re.compile(r"(?<![A-Za-z0-9])sk-[\w-]+|(?<=Bearer )(?!\[key )\S+", re.IGNORECASE)
_HIDDEN: Final = "[key removed]"
_LONGEST_MESSAGE: Final = 600
"""Characters of a server's own words that are passed on."""
_LONGEST_READ: Final = 20_000
"""Characters of them that are looked at."""
_OWN_SHARE: Final = 0.1
_OWN_SHORTEST: Final = 5.0
_OWN_LONGEST: Final = 60.0
"""Of our own wait for a limit: its share of all that was waited before, and its bounds in seconds."""
WHOLE_SECRET: Final = 8
"""A key of this many characters is removed wherever it stands; a shorter one only as a whole word."""


@dataclass(frozen=True)
class RequestFailure:
    """One request that failed. `retry_after` is how long the server asked to wait, in seconds."""

    kind: ModelErrorKind
    message: str
    retried: bool
    retry_after: float | None = None
    billed: bool = True
    """Whether the server may bill what it did: it has refused the request, or was never reached, otherwise."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how late a request is made again. Times are in seconds."""

    retries: int = 4
    first: float = 0.5
    longest: float = 8.0
    jitter: float = 0.25
    """The share of a delay that chance may take off it, so that many clients do not come back at once."""
    patience: float = 30.0
    """Above this, what the server asks for is too long for a person who waits: the turn fails at once."""

    def delay(self, failure: RequestFailure, attempt: int, chance: float) -> float | None:
        """Return how long to wait after the failed `attempt` (from 1), or None to give up; `chance` < 1."""
        if not failure.retried or attempt > self.retries or self.exceeds_patience(failure):
            return None
        if failure.retry_after:
            return failure.retry_after
        backoff: float = min(self.first * 2.0 ** (attempt - 1), self.longest)
        return backoff * (1 - self.jitter * chance)

    def exceeds_patience(self, failure: RequestFailure) -> bool:
        """Say whether the server asked for a longer wait than anybody has."""
        return failure.retry_after is not None and failure.retry_after > self.patience


def shortest_wait(waited: float) -> float:
    """Return the seconds that a limit is waited for at least, after retries that did not help, and a wait so long.

    What a server asks for may be nothing, for ever.
    """
    return min(max(waited * _OWN_SHARE, _OWN_SHORTEST), _OWN_LONGEST)


def kind_of_status(status: int, message: str) -> ModelErrorKind:
    """Name what an HTTP status means; the message tells a full context from any other bad request."""
    bad_request: ModelErrorKind = "context_full" if _CONTEXT_FULL.search(message) else "invalid_request"
    bad_request = "authentication" if _KEY_REFUSED.search(message) else bad_request
    others: dict[int, ModelErrorKind] = {4: bad_request, 5: "api_error"}
    return STATUS_KINDS.get(status) or others.get(status // 100, "bad_response")


def is_retried(kind: ModelErrorKind, headers: Mapping[str, str]) -> bool:
    """Say whether to try again: by the server's word if it gave one, else by the kind."""
    word = headers.get("x-should-retry", "").strip().lower()
    return word == "true" or (word != "false" and kind in RETRIED)


def requested_delay(headers: Mapping[str, str], now: float, *, limited: bool = False) -> float | None:
    """Read how many seconds the server asks to wait; None if it does not say, or not in words we know.

    `retry-after` is seconds or an HTTP date (RFC 9110, 10.2.3), compared with `now` in seconds since 1970;
    `retry-after-ms` is finer and goes first. Where a request was beyond a limit, `limited`, and neither is there, it is
    the time until the limits that are used up hold something again.
    """
    if (milliseconds := _seconds(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    written = headers.get("retry-after", "")
    seconds = _seconds(written)
    seconds = _until(written, now) if seconds is None else seconds
    return _reset(headers, now) if seconds is None and limited else seconds


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until the limits that are used up are reset; where none is said to be, until the first is."""
    resets: dict[bool, list[float]] = {True: [], False: []}
    for name, value in headers.items():
        found = _RESET.fullmatch(name.lower())
        if found is None or (seconds := _moment(value, now)) is None:
            continue
        remaining = headers.get(_REMAINING.format(**found.groupdict("")), "")
        resets[remaining.strip() == "0"].append(seconds)
    return max(resets[True]) if resets[True] else min(resets[False], default=None)


def _moment(text: str, now: float) -> float | None:
    """Read when a limit is reset: a duration, seconds, seconds or milliseconds since 1970, or a date."""
    if (seconds := _seconds(text)) is not None:
        if seconds > _MS_SINCE_1970:
            seconds /= 1000
        return seconds if seconds < _SINCE_1970 else max(seconds - now, 0.0)
    if (seconds := _duration(text)) is not None:
        return seconds
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return _until(text, now)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(moment.timestamp() - now, 0.0)


def _duration(text: str) -> float | None:
    """Read "6m0s", "1.5s", "20ms" as seconds."""
    parts = _DURATION_PART.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def delay_in(body: object) -> float | None:
    """Read the seconds of a `google.rpc.RetryInfo` in an error (https://google.aip.dev/193); None without one."""
    match body[0] if isinstance(body, list) and body else body:
        case {"error": {"details": [*details]}}:
            for detail in details:
                match detail:
                    case {"@type": str(kind), "retryDelay": str(delay)} if kind.endswith("google.rpc.RetryInfo"):
                        return _duration(delay)
    return None


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(value, 0.0) if math.isfinite(value) else None


def _until(text: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(moment.timestamp() - now, 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def without_key(text: str, *secrets: str) -> str:
    """Return a server's words on one line, without control characters and without anything like a key."""
    safe = text[:_LONGEST_READ]
    for secret in filter(None, secrets):
        literal = re.escape(secret) if len(secret) >= WHOLE_SECRET else rf"(?<!\w){re.escape(secret)}(?!\w)"
        safe = re.sub(literal, _HIDDEN, safe)
    safe = _KEY_LIKE.sub(_HIDDEN, safe)
    line = " ".join("".join(c if c.isprintable() else " " for c in safe).split())
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."


def take_keys_out(error: BaseException, *secrets: str) -> None:
    """Take secrets out of all that a traceback of an exception prints: it, and what led to it."""
    link: BaseException | None = error
    while link is not None:
        link.args = tuple(without_key(word, *secrets) if isinstance(word, str) else word for word in link.args)
        link = link.__cause__ or link.__context__
