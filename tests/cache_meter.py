"""A meter of the prompt cache of a Messages API: what a request costs, by the marks that it has.

It counts as Anthropic's documents say that its servers do: what stands before a mark is kept for five minutes, and a
request finds what was kept if it ends at one of its marks, or at one of the 20 blocks before it. A token is four bytes
of JSON here, which changes no share.
Source: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

_LOOK_BACK: Final = 20
"""Blocks before a mark at whose end a kept prompt is looked for."""
_BYTES: Final = 4
"""Of JSON, that count as one token."""
_MARKS: Final = 4
"""Marks that a request may have."""


class CacheMeter:
    """Counts the requests of all clients of one key."""

    def __init__(self) -> None:
        self.kept: set[bytes] = set()
        """Digests of what stands before marks."""
        self.possible = 0
        """Tokens of requests that the request before of the same conversation had, too."""
        self.reused = 0
        """Tokens that came from the cache."""
        self._before: dict[bytes, list[bytes]] = {}

    def usage(self, body: Mapping[str, Any]) -> dict[str, int]:
        """Count one request; return the usage that its answer tells."""
        blocks = list(_blocks(body))
        marks = [number for number, block in enumerate(blocks) if "cache_control" in block]
        assert len(marks) <= _MARKS, "a request has at most four marks"
        texts = [json.dumps(_unmarked(block), sort_keys=True).encode() for block in blocks]
        sizes, digests = [len(text) // _BYTES for text in texts], list(_prefixes(texts))
        ends = [
            end
            for mark in marks
            for end in range(mark, max(-1, mark - _LOOK_BACK - 1), -1)
            if digests[end] in self.kept
        ]
        read = sum(sizes[: max(ends) + 1]) if ends else 0
        written = max(0, sum(sizes[: marks[-1] + 1]) - read) if marks else 0
        self.kept.update(digests[mark] for mark in marks)
        self._count(digests, sizes, read)
        whole = sum(sizes)
        return {
            "input_tokens": whole - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": 1,
        }

    def _count(self, digests: list[bytes], sizes: list[int], read: int) -> None:
        """Count what could have come from the cache: what this conversation's last request had as well."""
        conversation = next((block for block in digests if block in self._before), digests[-1])
        before = self._before.get(conversation, [])
        same = sum(1 for mine, theirs in zip(digests, before, strict=False) if mine == theirs)
        self.possible += sum(sizes[:same])
        self.reused += read
        for digest in digests:
            self._before[digest] = digests


def _blocks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all that the cache counts, in its order: tools, system, messages."""
    yield from body.get("tools", ())
    yield from body.get("system", ())
    for message in body["messages"]:
        for block in message["content"]:
            yield {"role": message["role"], **block}


def _unmarked(block: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def _prefixes(texts: list[bytes]) -> Iterator[bytes]:
    """Yield the digest of what ends with each text."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text)
        yield digest.digest()
