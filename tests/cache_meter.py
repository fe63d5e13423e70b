"""A meter of the prompt cache of a model's API: what of a request's beginning its server has seen, format by format.

It counts as the documents say that the servers do, for each model by itself:

- messages: what stands before a mark is kept, and found if a request has a mark there, or up to 20 blocks behind it;
- chat, responses: whole beginnings are kept, in steps of 128 tokens, for requests with the same `prompt_cache_key`;
- gemini: the same in smaller steps, and from 4,096 tokens on, where those begin with 1,024;
- ollama: the last prompt alone is kept, in the context that it was given, and the server tells nothing of it.

A token is four bytes of JSON here, which changes no share.
Sources: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching,
https://platform.openai.com/docs/guides/prompt-caching, https://ai.google.dev/gemini-api/docs/caching,
https://github.com/ollama/ollama/blob/main/runner/ollamarunner/cache.go
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

_LOOK_BACK: Final = 20
"""Blocks before a mark at whose end a kept prompt is looked for."""
_BYTES: Final = 4
"""Of JSON, that count as one token."""
_MARKS: Final = 4
"""Marks that a request may have."""

Body = Mapping[str, Any]
Block = Mapping[str, Any]


class CacheCount(NamedTuple):
    """Tokens of one request."""

    sent: int
    read: int
    """From the cache."""
    written: int = 0
    """That were kept, where the server tells it."""


class CacheMeter:
    """Counts the requests of all clients of one key to a server of a format."""

    def __init__(self, name: str) -> None:
        self._kind = _KINDS[name]
        self._kept: dict[tuple[str, Any], set[bytes]] = {}
        """Digests of beginnings, by the model and what else they are kept for."""
        self.counts: list[CacheCount] = []

    def usage(self, body: Body, model: str) -> dict[str, Any]:
        """Count one request to a model; return the usage that its answer tells."""
        kind, blocks = self._kind, list(self._kind.blocks(body))
        texts = [json.dumps(_unmarked(block), sort_keys=True).encode() for block in blocks]
        place = (model, kind.besides(body))
        kept = self._kept.pop(place, set())
        self._kept = {place: kept} if kind.last_alone else self._kept | {place: kept}
        if kind.step:
            count = _in_steps(b"".join(texts), kind.step, kind.least, kept)
        else:
            count = _by_marks([number for number, block in enumerate(blocks) if "cache_control" in block], texts, kept)
        self.counts.append(count)
        return kind.told(count)


def _by_marks(marks: Sequence[int], texts: Sequence[bytes], kept: set[bytes]) -> CacheCount:
    """Count a request with marks on some of its blocks."""
    assert len(marks) <= _MARKS, "a request has at most four marks"
    sizes, digests = [len(text) // _BYTES for text in texts], list(_beginnings(texts))
    ends = [end for mark in marks for end in range(mark, max(-1, mark - _LOOK_BACK - 1), -1) if digests[end] in kept]
    read = sum(sizes[: max(ends) + 1]) if ends else 0
    written = max(0, sum(sizes[: marks[-1] + 1]) - read) if marks else 0
    kept.update(digests[mark] for mark in marks)
    return CacheCount(sum(sizes), read, written)


def _in_steps(text: bytes, step: int, least: int, kept: set[bytes]) -> CacheCount:
    """Count a request of which each beginning of so many steps is kept; `kept` then has those of this one."""
    size = step * _BYTES
    digests = list(_beginnings([text[at : at + size] for at in range(0, len(text) - size + 1, size)]))
    same = next((number for number, digest in enumerate(digests) if digest not in kept), len(digests))
    kept.update(digests)
    return CacheCount(len(text) // _BYTES, same * step if same * step >= least else 0)


def _beginnings(texts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the digest of what ends with each text."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text)
        yield digest.digest()


def _unmarked(block: Block) -> Block:
    return {name: value for name, value in block.items() if name != "cache_control"}


# what the cache counts of a request, in its order ----------------------------------------------------------------


def _of_messages(body: Body) -> Iterator[Block]:
    yield from body.get("tools", ())
    yield from body.get("system", ())
    yield {"thinking": body.get("thinking"), "choice": body.get("tool_choice")}  # changed, they cost all messages
    for message in body["messages"]:
        for block in message["content"]:
            yield {"role": message["role"], **block}


def _of_chat(body: Body) -> Iterator[Block]:
    yield from body.get("tools", ())
    yield from body["messages"]


def _of_responses(body: Body) -> Iterator[Block]:
    yield from body.get("tools", ())
    yield {"instructions": body.get("instructions")}
    yield from body["input"]


def _of_gemini(body: Body) -> Iterator[Block]:
    yield {"system": body.get("systemInstruction"), "tools": body.get("tools")}
    for content in body["contents"]:
        for part in content["parts"]:
            yield {"role": content["role"], **part}


# what its answer tells -------------------------------------------------------------------------------------------


def _messages_usage(count: CacheCount) -> dict[str, Any]:
    return {
        "input_tokens": count.sent - count.read - count.written,
        "cache_read_input_tokens": count.read,
        "cache_creation_input_tokens": count.written,
        "output_tokens": 1,
    }


def _chat_usage(count: CacheCount) -> dict[str, Any]:
    told = {"prompt_tokens": count.sent, "completion_tokens": 1, "total_tokens": count.sent + 1}
    return {**told, "prompt_tokens_details": {"cached_tokens": count.read}}


def _responses_usage(count: CacheCount) -> dict[str, Any]:
    told = {"input_tokens": count.sent, "output_tokens": 1, "total_tokens": count.sent + 1}
    return {**told, "input_tokens_details": {"cached_tokens": count.read}}


def _gemini_usage(count: CacheCount) -> dict[str, Any]:
    told = {"promptTokenCount": count.sent, "candidatesTokenCount": 1, "totalTokenCount": count.sent + 1}
    return told | ({"cachedContentTokenCount": count.read} if count.read else {})


class _CacheKind(NamedTuple):
    blocks: Callable[[Body], Iterator[Block]]
    told: Callable[[CacheCount], dict[str, Any]]
    besides: Callable[[Body], Any] = lambda _body: None
    """What a beginning is kept for besides its model."""
    step: int = 0
    """Tokens of a step; 0 where marks say what is kept."""
    least: int = 0
    """Tokens of the shortest beginning that is found."""
    last_alone: bool = False


def _key(body: Body) -> Any:
    return body.get("prompt_cache_key")


def _context(body: Body) -> Any:
    return body["options"]["num_ctx"]


_KINDS: Final = {
    "messages": _CacheKind(_of_messages, _messages_usage),
    "chat": _CacheKind(_of_chat, _chat_usage, _key, 128, 1_024),
    "responses": _CacheKind(_of_responses, _responses_usage, _key, 128, 1_024),
    "gemini": _CacheKind(_of_gemini, _gemini_usage, step=16, least=4_096),
    "ollama": _CacheKind(_of_chat, lambda _count: {}, _context, 16, last_alone=True),
}
