"""A conversation as the items of OpenAI's Responses: messages, calls, their outputs, and reasoning.

Rule: pure, and the same for the same conversation. What a server sent goes back to the same provider alone, item by
item as it came. Source: https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from supervisor.agent.models.adjustment import without
from supervisor.agent.models.chat_messages import GONE, NAME_LIMIT
from supervisor.agent.models.made_messages import MadeMessages
from supervisor.agent.models.model import NO_ANSWER, Block, Message, ModelRequest
from supervisor.agent.models.responses_reader import FORMAT_NAME


def response_items(request: ModelRequest, provider: str) -> Iterator[dict[str, Any]]:
    """Yield the items; what a server sent goes back to the same provider alone, and no id twice, which is refused."""
    make = partial(_told, request.media)
    made = request.made or MadeMessages()
    known: set[str] = set()
    for item in made.parts((FORMAT_NAME, provider), request.messages, request.origins, make):
        name = item.get("id")
        yield without("id", item) if name in known else item
        known |= {name} if name else set()


def _told(media: Mapping[str, str], message: Message, sent: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what one message becomes; `sent` are the items of a reply that goes back to who sent it."""
    role, content = message["role"], message["content"]
    if isinstance(content, str):
        yield {"type": "message", "role": role, "content": content or NO_ANSWER}
    elif role == "user":
        yield from _user(content, media)
    else:
        yield from _sent(sent, content) or _assistant(content)


def _sent(items: Sequence[Mapping[str, Any]], content: Sequence[Block]) -> list[dict[str, Any]]:
    """Return a reply as its server sent it, with the calls that were kept, by their ids.

    Reasoning is refused without the item that it led to, and without its encrypted content, or a text, as nothing of it
    is kept there; an item whose reasoning is gone may not have its id.
    """
    calls = (block for block in content if block["type"] == "tool_use")
    kept: list[dict[str, Any]] = []
    lost = False
    for item in items:
        if item["type"] == "function_call":
            if (block := next(calls, None)) is not None:
                kept.append({**item, "call_id": block["id"], "name": block["name"][:NAME_LIMIT]})
        elif item["type"] == "reasoning" and not (item.get("encrypted_content") or item.get("content")):
            lost = True
        else:
            kept.append({**item})
    while kept and kept[-1]["type"] == "reasoning":
        kept.pop()
    if lost:
        for each in kept:
            each.pop("id", None)
    return kept


def _assistant(content: Sequence[Block]) -> Iterator[dict[str, Any]]:
    """Yield a reply's texts and calls."""
    begun = False
    for block in content:
        if block["type"] == "text":
            begun = True
            yield {"type": "message", "role": "assistant", "content": block["text"]}
        elif block["type"] == "tool_use":
            begun = True
            arguments = msgspec.json.encode(block["input"]).decode()
            name = block["name"][:NAME_LIMIT]
            yield {"type": "function_call", "call_id": block["id"], "name": name, "arguments": arguments}
    if not begun:
        yield {"type": "message", "role": "assistant", "content": NO_ANSWER}


def _user(content: Sequence[Block], media: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the results of tools, an item each, then all else."""
    parts: list[dict[str, Any]] = []
    for block in content:
        if block["type"] == "tool_result":
            within = block["content"]
            told = [_part(one, media) for one in within] if isinstance(within, list) else within
            plain = told if isinstance(told, str) else _plain(told)
            yield {"type": "function_call_output", "call_id": block["tool_use_id"], "output": plain or "(empty)"}
        else:
            parts.append(_part(block, media))
    if parts:
        yield {"type": "message", "role": "user", "content": _plain(parts)}


def _plain(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return parts as they are, or as one text where they are nothing else."""
    if any(part["type"] != "input_text" for part in parts):
        return parts
    return "\n\n".join(part["text"] for part in parts)


def _part(block: Block, media: Mapping[str, str]) -> dict[str, Any]:
    match block:
        case {"type": "image" | "document" as kind, "source": {"digest": digest, "media_type": media_type}} if (
            digest in media
        ):
            url = f"data:{media_type};base64,{media[digest]}"
            if kind == "image":
                return {"type": "input_image", "image_url": url, "detail": "auto"}
            return {"type": "input_file", "filename": f"{digest[:8]}.pdf", "file_data": url}
        case {"type": "text", "text": text}:
            return {"type": "input_text", "text": text}
        case _:
            return {"type": "input_text", "text": GONE}
