"""Errors in the words of models' servers: their kind, and what they say.

Rule: pure. Servers agree on neither the shape nor the names: an error is read from an answer with an error status, and
from an event in the middle of a stream, as OpenAI, vLLM, llama.cpp, Ollama, Mistral, OpenRouter and FastAPI have it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from supervisor.agent.models.event_stream import EventDecoder
from supervisor.agent.models.retry import TYPE_KINDS, kind_of_status
from supervisor.errors import ModelError, ModelErrorKind

_SHARPER: Final[Mapping[str, ModelErrorKind]] = {
    "insufficient_quota": "permission",
    "context_length_exceeded": "context_full",
    "exceed_context_size_error": "context_full",
    "tool_use_failed": "api_error",
}
"""`error.code` or `error.type` to kind, where the status says less."""
_CODE_KINDS: Final[Mapping[str, ModelErrorKind]] = {
    **TYPE_KINDS,
    **_SHARPER,
    "rate_limit_exceeded": "rate_limited",
    "server_error": "api_error",
    "insufficient_system_resource": "overloaded",
    "model_not_found": "not_found",
    "invalid_api_key": "authentication",
    "content_filter": "refusal",
    "content_policy_violation": "refusal",
}
"""The same for errors that come after a status of 200 (https://platform.openai.com/docs/guides/error-codes)."""
_STATUSES: Final = range(400, 600)


def error_body(content: bytes) -> object:
    """Return what an answer with an error status says: its JSON, or that of its first event; None where it has none."""
    first = next(iter(EventDecoder().feed(content + b"\n\n")), None)
    try:
        return msgspec.json.decode(first.data if first else content)
    except (ValueError, RecursionError):
        return None


def words_of(body: object, depth: int = 4) -> str:
    """Return what an error says for people, up to so many levels deep; "" where it says nothing."""
    match body:
        case str():
            return body
        case {"error": found} | {"message": found} | {"detail": found} | {"msg": found} if found and depth:
            return words_of(found, depth - 1)
        case [*several] if depth:
            return "; ".join(filter(None, (words_of(each, depth - 1) for each in several)))
        case _:
            return ""


def kind_of_refusal(status: int, words: str, body: object) -> ModelErrorKind:
    """Name what an answer with an error status means; a code tells more than the status does."""
    sharper = next((_SHARPER[code] for code in _codes(body) if code in _SHARPER), None)
    return sharper or kind_of_status(status, words)


def reported_error(payload: dict[str, Any]) -> ModelError:
    """Return the error that an event tells of, or an answer whose status says that all is well."""
    words, codes = words_of(payload), list(_codes(payload))
    known = next((_CODE_KINDS[code] for code in codes if code in _CODE_KINDS), None)
    statuses = [int(code) for code in codes if code.isdecimal() and code.isascii() and len(code) == len("400")]
    by_status = next((kind_of_status(status, words) for status in statuses if status in _STATUSES), None)
    kind = "context_full" if kind_of_status(400, words) == "context_full" else known or by_status or "api_error"
    return ModelError(kind, words or "an error without a message")


def _codes(body: object) -> Iterator[str]:
    """Yield the codes and types of an error, and of one within it."""
    within = body.get("error") if isinstance(body, dict) else None
    for each in (body, within):
        if isinstance(each, dict):
            yield from (str(each[name]) for name in ("code", "type", "status") if isinstance(each.get(name), str | int))
