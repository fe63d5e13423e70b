"""A conversation as Ollama's messages: system, user, assistant and tool, each with a text.

Rule: pure, and the same for the same conversation. Calls have their arguments as objects; a call's result follows as a
message with the tool's name. What a model thought goes back to it as long as the turn goes on in which it thought it.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from supervisor.agent.models.model import NO_ANSWER, Block, ModelRequest
from supervisor.agent.models.ollama_context import Counted

WireMessage = dict[str, Any]

FORMAT_NAME: Final = "ollama"
"""Of the one item of a reply: its message whole, what the server counted, and the context that was asked for."""
CONTEXT: Final = "num_ctx"


class Told(NamedTuple):
    """A conversation on the wire, and the last count of it that the server has made."""

    messages: list[WireMessage]
    counted: Counted | None


def messages(request: ModelRequest, provider: str, *, sees: bool) -> Told:
    """Return the messages of a request.

    Args:
        request: with its messages, their origins and the media that they name.
        provider: whose own thinking goes back.
        sees: whether the model takes images.
    """
    told: list[WireMessage] = [{"role": "system", "content": request.system}] if request.system else []
    counted: Counted | None = None
    names: dict[str, str] = {}
    turn = _start_of_turn(request)
    for index, message in enumerate(request.messages):
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if message["role"] == "assistant":
            item = _item(request, index, provider)
            if type(read := item.get("prompt_eval_count")) is int and read > 0:
                counted = Counted(read, len(told), item.get(CONTEXT, 0))
            names |= {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
            told.append(_assistant(blocks, item.get("message", {}).get("thinking", "") if index > turn else ""))
        else:
            told += _user(blocks, names, request.media if sees else {})
    return Told(told, counted)


def _start_of_turn(request: ModelRequest) -> int:
    """Return the index of the last message that is no result of a call: replies after it are of one loop."""
    for index in range(len(request.messages) - 1, -1, -1):
        message = request.messages[index]
        if message["role"] == "user" and not any(block["type"] == "tool_result" for block in _blocks(message)):
            return index
    return -1


def _blocks(message: Mapping[str, Any]) -> Sequence[Block]:
    return [] if isinstance(message["content"], str) else message["content"]


def _item(request: ModelRequest, index: int, provider: str) -> Mapping[str, Any]:
    """Return what the provider itself has sent of a reply; empty where it was another's."""
    origin = request.origins.get(index)
    if origin is None or origin.format != FORMAT_NAME or origin.provider != provider or not origin.items:
        return {}
    return origin.items[0]


def _assistant(blocks: Iterable[Block], thinking: str) -> WireMessage:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in blocks:
        match block["type"]:
            case "text":
                texts.append(block["text"])
            case "tool_use":
                calls.append({"id": block["id"], "function": {"name": block["name"], "arguments": block["input"]}})
            case "thinking" | "redacted_thinking":
                pass
            case other:
                texts.append(f"({other})")
    told: WireMessage = {"role": "assistant", "content": "\n".join(texts) or ("" if calls else NO_ANSWER)}
    if thinking:
        told["thinking"] = thinking
    return told | {"tool_calls": calls} if calls else told


def _user(blocks: Iterable[Block], names: Mapping[str, str], media: Mapping[str, str]) -> list[WireMessage]:
    """Return what a user says: first the results of calls, then the rest in one message."""
    told: list[WireMessage] = []
    texts: list[str] = []
    images: list[str] = []
    for block in blocks:
        match block["type"]:
            case "tool_result":
                content = block["content"]
                parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
                said = [part["text"] if part["type"] == "text" else _medium(part, media, images) for part in parts]
                call = block["tool_use_id"]
                result = {"role": "tool", "content": "\n".join(said), "tool_name": names.get(call, "")}
                told.append(result | {"tool_call_id": call})
            case "text":
                texts.append(block["text"])
            case _:
                texts.append(_medium(block, media, images))
    if texts or images:
        words = texts or ["(The images that these results name.)"]
        said_too: WireMessage = {"role": "user", "content": "\n".join(words)}
        told.append(said_too | {"images": images} if images else said_too)
    return told


def _medium(block: Block, media: Mapping[str, str], images: list[str]) -> str:
    """Append an image to those of the message; return the words for it, or for what the model cannot have."""
    match block:
        case {"type": "image", "source": {"digest": str(digest), "media_type": str(media_type)}} if digest in media:
            images.append(media[digest])
            return f"(image {len(images)}: {media_type})"
        case {"type": str(kind), "source": {"media_type": str(media_type)}}:
            return f"({kind}: {media_type}, which this model cannot be shown)"
        case _:
            return f"({block['type']})"
