"""What a failed request means, without a clock and without a server."""

from datetime import UTC, datetime
from typing import Final

import pytest

from supervisor.agent.models.retry import (
    HINTS,
    RETRIED,
    RequestFailure,
    RetryPolicy,
    delay_in,
    is_retried,
    kind_of_status,
    requested_delay,
    shortest_wait,
    without_key,
)
from supervisor.errors import ModelErrorKind

KEY = "local-key-12345"
NOW = 1_700_000_000.0


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def failure(*, retried: bool = True, retry_after: float | None = None) -> RequestFailure:
    return RequestFailure("overloaded", "busy", retried, retry_after)


def test_backoff_doubles_up_to_its_limit_and_then_gives_up() -> None:
    policy = RetryPolicy(retries=6)
    delays = [policy.delay(failure(), attempt, 0.0) for attempt in range(1, 8)]
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, None]


DELAYS: Final = {
    "chance only shortens it": (failure(), 2, 1.0, 0.75),
    "what the server asks for goes before the backoff": (failure(retry_after=3.0), 1, 0.5, 3.0),
    "but not where it asks for nothing": (failure(retry_after=0.0), 4, 0.0, 4.0),
    "as long as there is patience": (failure(retry_after=30.0), 1, 0.0, 30.0),
    "a wait beyond all patience is no retry": (failure(retry_after=30.5), 1, 0.0, None),
    "a failure that cannot pass is not retried": (failure(retried=False), 1, 0.0, None),
}


@pytest.mark.parametrize(("failed", "attempt", "chance", "delay"), DELAYS.values(), ids=DELAYS)
def test_a_failed_request_is_delayed(failed: RequestFailure, attempt: int, chance: float, delay: float | None) -> None:
    assert RetryPolicy(patience=30).delay(failed, attempt, chance) == delay


@pytest.mark.parametrize(("waited", "seconds"), [(0, 5), (100, 10), (86_400, 60)])
def test_a_limit_that_a_server_gives_no_time_for_is_waited_for_ever_longer(waited: float, seconds: float) -> None:
    assert shortest_wait(waited) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "20"}, 0.02),
        ({"retry-after-ms": "20", "retry-after": "9"}, 0.02),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:27 GMT"}, 7.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:27 -0000"}, 7.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:10 GMT"}, 0.0),
        ({"retry-after": "Tue, 99 Nov 2023 22:13:10 GMT"}, None),
    ],
)
def test_reads_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert requested_delay(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "message", "kind", "retried"),
    [
        (400, "messages: bad", "invalid_request", False),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "context_full", False),
        (400, "input length and `max_tokens` exceed context limit: 1 + 2 > 2", "context_full", False),
        (401, "", "authentication", False),
        (402, "", "permission", False),
        (403, "", "permission", False),
        (404, "", "not_found", False),
        (405, "", "invalid_request", False),
        (408, "", "timeout", True),
        (409, "", "api_error", True),
        (413, "", "request_too_large", False),
        (418, "", "invalid_request", False),
        (422, "", "invalid_request", False),
        (429, "", "rate_limited", True),
        (500, "", "api_error", True),
        (502, "", "api_error", True),
        (503, "", "overloaded", True),
        (504, "", "timeout", True),
        (529, "", "overloaded", True),
        (304, "", "bad_response", False),
    ],
)
def test_a_status_has_a_kind_and_the_kind_decides(
    status: int, message: str, kind: ModelErrorKind, retried: bool
) -> None:
    assert kind_of_status(status, message) == kind
    assert is_retried(kind, {}) is retried


RESETS: Final[list[tuple[dict[str, str], float | None]]] = [
    ({"x-ratelimit-reset-requests": "1s"}, 1.0),
    ({"x-ratelimit-reset-tokens": "6m0s"}, 360.0),
    ({"x-ratelimit-reset-tokens": "17ms"}, 0.017),
    ({"x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
    ({"x-ratelimit-reset-requests": "20ms", "x-ratelimit-reset-tokens": "9s"}, 0.02),
    (
        {
            "x-ratelimit-reset-requests": "20ms",
            "x-ratelimit-remaining-requests": "5",
            "x-ratelimit-reset-tokens": "9s",
            "x-ratelimit-remaining-tokens": "0",
        },
        9.0,
    ),
    ({"x-ratelimit-reset": "12"}, 12.0),
    ({"x-ratelimit-reset": str(int(NOW) + 30)}, 30.0),
    ({"x-ratelimit-reset": str((int(NOW) + 30) * 1000)}, 30.0),
    ({"ratelimit-reset": "7"}, 7.0),
    ({"anthropic-ratelimit-requests-reset": iso(NOW + 40)}, 40.0),
    (
        {
            "anthropic-ratelimit-requests-reset": iso(NOW + 40),
            "anthropic-ratelimit-requests-remaining": "7",
            "anthropic-ratelimit-input-tokens-reset": iso(NOW + 50),
            "anthropic-ratelimit-input-tokens-remaining": "0",
        },
        50.0,
    ),
    ({"anthropic-ratelimit-requests-reset": iso(NOW - 40)}, 0.0),
    ({"retry-after": "3", "x-ratelimit-reset-tokens": "9s"}, 3.0),
    ({"x-ratelimit-reset-tokens": "soon"}, None),
    ({"x-ratelimit-reset-tokens": "9s or so"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), RESETS, ids=[str(row[0])[:70] for row in RESETS])
def test_a_limit_is_waited_for_until_it_is_reset(headers: dict[str, str], seconds: float | None) -> None:
    assert requested_delay(headers, NOW, limited=True) == seconds
    if "retry-after" not in headers:
        assert requested_delay(headers, NOW) is None


INFO: Final = "type.googleapis.com/google.rpc.RetryInfo"
BODIES: Final[list[tuple[object, float | None]]] = [
    ({"error": {"details": [{"@type": "x"}, {"@type": INFO, "retryDelay": "34.07s"}]}}, 34.07),
    ({"error": {"details": [{"@type": INFO, "retryDelay": "0s"}]}}, 0.0),
    ({"error": {"details": [{"@type": INFO, "retryDelay": 3}]}}, None),
    ({"error": {"details": [{"@type": INFO}]}}, None),
    ({"error": {"details": {}}}, None),
    ({"error": "no"}, None),
    (None, None),
]


@pytest.mark.parametrize(("body", "seconds"), BODIES)
def test_a_delay_in_the_body_is_read(body: object, seconds: float | None) -> None:
    assert delay_in(body) == seconds


def test_the_server_has_the_last_word_on_retrying() -> None:
    assert is_retried("invalid_request", {"x-should-retry": "true"})
    assert not is_retried("overloaded", {"x-should-retry": "false"})
    assert is_retried("overloaded", {"x-should-retry": "perhaps"})


def test_every_kind_that_is_retried_says_what_to_do_in_the_end() -> None:
    assert set(HINTS) >= RETRIED


@pytest.mark.parametrize(
    ("secret", "text", "shown"),
    [
        (KEY, "plain words", "plain words"),
        (KEY, f"the key {KEY}x is bad", "the key [key removed]x is bad"),
        (KEY, "key sk-CANARY bad", "key [key removed] bad"),
        (KEY, '"sk-ant-api03-abc_DEF-9"', '"[key removed]"'),
        (KEY, "SK-CANARY", "[key removed]"),
        (KEY, "header Authorization: Bearer abc.def", "header Authorization: Bearer [key removed]"),
        (KEY, f"Bearer {KEY}.", "Bearer [key removed]."),
        (KEY, "a risk-based task-list", "a risk-based task-list"),
        ("x", "x marks the next axis", "[key removed] marks the next axis"),
        (KEY, "two\r\n lines\x1b[31m and \u202ecolour", "two lines [31m and colour"),
        (KEY, "w" * 601, "w" * 597 + "..."),
        (KEY, "", ""),
    ],
)
def test_shows_the_servers_words_without_keys_and_control_characters(secret: str, text: str, shown: str) -> None:
    assert without_key(text, secret) == shown
