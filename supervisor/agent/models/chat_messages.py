"""A conversation as Chat Completions' messages: system, user, assistant and tool.

Rule: pure, and the same for the same conversation. What a server said besides text and calls goes back to it alone.
Source: https://platform.openai.com/docs/api-reference/chat
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from supervisor.agent.models.chat_reader import FORMAT_NAME, RETURNED
from supervisor.agent.models.made_messages import MadeMessages
from supervisor.agent.models.model import NO_ANSWER, Block, Message, ModelRequest

NAME_LIMIT: Final = 64
"""Characters that the API takes of a tool's name; a longer one was invented by a model."""
GONE: Final = "(It was here, and is not kept any more.)"
"""Stands for an image or a document whose content is not there."""


def text_of(content: Sequence[Block]) -> str:
    """Return the text blocks of a message, as paragraphs."""
    return "\n\n".join(block["text"] for block in content if block["type"] == "text")


def chat_messages(request: ModelRequest, provider: str) -> Iterator[dict[str, Any]]:
    """Yield the messages; what a server sent goes back to the same provider alone."""
    if request.system:
        yield {"role": "system", "content": request.system}
    make = partial(_told, request.media)
    made = request.made or MadeMessages()
    yield from made.parts((FORMAT_NAME, provider), request.messages, request.origins, make)


def _told(media: Mapping[str, str], message: Message, sent: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what one message becomes; `sent` are the items of a reply that goes back to who sent it."""
    role, content = message["role"], message["content"]
    if isinstance(content, str):
        yield {"role": role, "content": content or NO_ANSWER}
    elif role == "assistant":
        yield _assistant(content, sent)
    else:
        yield from _user(content, media)


def _assistant(content: Sequence[Block], sent: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a reply; of what its server sent, what the blocks do not say."""
    item = sent[0] if sent else {}
    uses = [block for block in content if block["type"] == "tool_use"]
    said = text_of(content) if len(content) > len(uses) else ""
    message: dict[str, Any] = {"role": "assistant", "content": said or (None if uses else NO_ANSWER)}
    for name in RETURNED:
        if name in item:
            message[name] = item[name]
    if uses:  # of very many only the first are kept
        message["tool_calls"] = list(
            map(_call, uses, itertools.chain(item.get("tool_calls", ()), itertools.repeat({})))
        )
    return message


def _call(use: Block, was: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call, by its id and name in the conversation; the rest is as the server sent it, if it did."""
    name = use["name"][:NAME_LIMIT]
    arguments = was["function"]["arguments"] if was else msgspec.json.encode(use["input"]).decode()
    return {**was, "id": use["id"], "type": "function", "function": {"name": name, "arguments": arguments}}


def _user(content: Sequence[Block], media: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the results of tools, a message each, then all else; no result can hold an image, so they come after."""
    parts: list[dict[str, Any]] = []
    for block in content:
        if block["type"] == "tool_result":
            within = block["content"] if isinstance(block["content"], list) else []
            text = text_of(within) if within else block["content"]
            yield {
                "role": "tool",
                "tool_call_id": block["tool_use_id"],
                "content": text or ("(see below)" if within else "(empty)"),
            }
            if shown := [_part(one, media) for one in within if one["type"] != "text"]:
                parts += [{"type": "text", "text": f"(Of the result of {block['tool_use_id']}:)"}, *shown]
        else:
            parts.append(_part(block, media))
    if all(part["type"] == "text" for part in parts):
        if text := text_of(parts):
            yield {"role": "user", "content": text}
    else:
        yield {"role": "user", "content": parts}


def _part(block: Block, media: Mapping[str, str]) -> dict[str, Any]:
    match block:
        case {"type": "image" | "document" as kind, "source": {"digest": digest, "media_type": media_type}}:
            if digest not in media:
                return {"type": "text", "text": GONE}
            url = f"data:{media_type};base64,{media[digest]}"
            if kind == "image":
                return {"type": "image_url", "image_url": {"url": url}}
            return {"type": "file", "file": {"filename": f"{digest[:8]}.pdf", "file_data": url}}
        case {"type": "text", "text": text}:
            return {"type": "text", "text": text}
        case _:
            return {"type": "text", "text": GONE}
