"""The most tokens that a request's input can have. Pure.

Rule: never too low. No token is shorter than a byte of what is sent. What the server itself has counted of the request
before is taken from its reply, and only what came since is counted by bytes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from supervisor.agent.amount import tokens_in
from supervisor.agent.models.model import Message, ModelRequest
from supervisor.journal.kept_content import KeptContent

_ADDED: Final = 1024
"""Tokens that a server adds: what it says of tools, and the frame of each message."""
_IMAGE: Final = 20_000
"""Tokens of one image, whatever its size."""
_PAGE: Final = 8_000
"""Tokens of one page of a document besides its bytes: servers look at its picture, too, and its text is compressed."""


class MeasuredInput(NamedTuple):
    """What a server has counted of an earlier request's input."""

    tokens: int
    messages: int
    """How many messages, from the first one on, that was."""


def measured_by(usage: Mapping[str, int], messages: Sequence[Message]) -> MeasuredInput | None:
    """Return what a reply to these messages says of them; None where its server counts nothing."""
    counted = tokens_in(usage) - usage.get("output_tokens", 0)
    goes_on = bool(messages) and messages[-1]["role"] == "assistant"  # with what the reply adds
    return MeasuredInput(counted, len(messages) - goes_on) if counted else None


def most_input(request: ModelRequest, measured: MeasuredInput | None, known: Mapping[str, KeptContent]) -> int:
    """Return the most tokens that a request's input can have; its images and documents are `known` by their digests."""
    first = 0 if measured is None else measured.messages
    messages = request.messages[first:]
    origins = [origin.items for index, origin in request.origins.items() if index >= first]
    size = len(msgspec.json.encode(messages)) + len(msgspec.json.encode(origins)) + _ADDED
    with_media = [index for index in request.with_media if index >= first]
    size += sum(_media(block, request, known) for index in with_media for block in _blocks(index, request))
    if measured is not None:
        return measured.tokens + size
    return size + len(msgspec.json.encode(request.system)) + len(msgspec.json.encode(request.tools))


def _blocks(index: int, request: ModelRequest) -> list[dict[str, Any]]:
    """Return the blocks of a message, and of the results in it."""
    found = list(request.messages[index]["content"])
    return found + [inner for block in found if isinstance(block.get("content"), list) for inner in block["content"]]


def _media(block: dict[str, Any], request: ModelRequest, known: Mapping[str, KeptContent]) -> int:
    if block["type"] == "image":
        return _IMAGE
    if block["type"] != "document":
        return 0
    digest = block["source"]["digest"]
    return len(request.media.get(digest, "")) + known[digest].pages * _PAGE
