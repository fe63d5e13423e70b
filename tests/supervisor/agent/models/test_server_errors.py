"""What servers say of an error, in every shape that is known of them."""

from typing import Any, Final

import pytest

from supervisor.agent.models.server_errors import error_body, kind_of_refusal, reported_error, words_of

SHAPES: Final[dict[str, tuple[Any, str]]] = {
    "OpenAI": ({"error": {"message": "no", "type": "x", "param": None, "code": None}}, "no"),
    "Ollama": ({"error": "no"}, "no"),
    "vLLM of old": ({"object": "error", "message": "no", "type": "BadRequestError", "code": 400}, "no"),
    "FastAPI": ({"detail": "no"}, "no"),
    "FastAPI's list": ({"detail": [{"loc": ["body", "x"], "msg": "no"}, {"msg": "nor"}]}, "no; nor"),
    "Mistral": ({"object": "error", "message": {"detail": [{"msg": "no"}]}}, "no"),
    "a string": ("no", "no"),
    "nothing": ({"error": {"code": 5}}, ""),
    "null": (None, ""),
    "numbers": ({"error": {"message": 7}}, ""),
    "deeper than anything": ({"error": {"error": {"error": {"error": {"error": "no"}}}}}, ""),
}


@pytest.mark.parametrize(("body", "words"), SHAPES.values(), ids=SHAPES)
def test_an_error_is_read_in_the_words_of_its_server(body: Any, words: str) -> None:
    assert words_of(body) == words


@pytest.mark.parametrize(
    ("content", "body"),
    [
        (b'{"error": "no"}', {"error": "no"}),
        (b'data: {"error": "no"}\n\ndata: [DONE]\n\n', {"error": "no"}),
        (b'event: error\r\ndata: {"error": "no"}', {"error": "no"}),
        (b'["no"]', ["no"]),
        (b"<html>no</html>", None),
        (b"data: no", None),
        (b"", None),
        (b"[" * 100_000, None),
    ],
)
def test_an_answer_with_an_error_status_is_read_as_json_or_as_an_event(content: bytes, body: object) -> None:
    assert error_body(content) == body


REPORTED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "a type": ({"error": {"message": "m", "type": "overloaded_error"}}, "overloaded"),
    "a code": ({"error": {"message": "m", "code": "rate_limit_exceeded"}}, "rate_limited"),
    "a status as a number": ({"error": {"message": "m", "code": 502}}, "api_error"),
    "a status as text": ({"error": {"message": "m", "code": "429"}}, "rate_limited"),
    "a status of old": ({"object": "error", "message": "m", "type": "BadRequestError", "code": 400}, "invalid_request"),
    "no status": ({"error": {"message": "m", "code": 7}}, "api_error"),
    "other digits": ({"error": {"message": "m", "code": "\u0664\u0662\u0669"}}, "api_error"),
    "no credit": ({"error": {"message": "m", "type": "insufficient_quota"}}, "permission"),
    "a full context by its words": ({"error": {"message": "exceeds the available context size"}}, "context_full"),
    "a full context by its code": ({"error": {"message": "m", "code": "context_length_exceeded"}}, "context_full"),
    "a filter": ({"error": {"message": "m", "code": "content_filter"}}, "refusal"),
    "nothing": ({"error": {}}, "api_error"),
    "a list": ({"error": [1]}, "api_error"),
}


@pytest.mark.parametrize(("payload", "kind"), REPORTED.values(), ids=REPORTED)
def test_an_error_in_an_answer_has_a_kind(payload: dict[str, Any], kind: str) -> None:
    assert reported_error(payload).kind == kind


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"error": {"message": "m", "code": "insufficient_quota"}}, "permission"),
        (429, {"error": {"message": "m", "type": "requests", "code": "rate_limit_exceeded"}}, "rate_limited"),
        (429, {"error": {"message": "m", "type": "invalid_request_error"}}, "rate_limited"),
        (400, {"error": {"message": "m", "type": "exceed_context_size_error"}}, "context_full"),
        (400, {"error": {"message": "m", "code": "tool_use_failed"}}, "api_error"),
        (500, None, "api_error"),
    ],
)
def test_the_status_of_a_refusal_counts_unless_a_code_says_more(status: int, body: Any, kind: str) -> None:
    assert kind_of_refusal(status, words_of(body), body) == kind
