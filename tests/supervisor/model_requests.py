"""Requests to models as a conversation makes them, with calls, their results, and who wrote a reply."""

from collections.abc import Iterable
from typing import Any, Final

from supervisor.agent.models.model import Message, ModelOptions, ModelRequest, Reply
from supervisor.journal.facts import ReplyOrigin

TOOL: Final = {
    "name": "read_file",
    "description": "Read.",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        "required": ["path"],
        "additionalProperties": False,
    },
}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def medium(kind: str, digest: str, media_type: str) -> dict[str, Any]:
    """Return the block of an image or a document."""
    return {"type": kind, "source": {"type": "content", "digest": digest, "media_type": media_type}}


def user(*blocks: str | dict[str, Any]) -> Message:
    """Return what a person says: texts, and results of calls."""
    told = [text(each) if isinstance(each, str) else each for each in blocks or ("hello",)]
    return {"role": "user", "content": told}


def assistant(*blocks: str | dict[str, Any]) -> Message:
    """Return what a model says: texts and calls."""
    return {**user(*blocks), "role": "assistant"}


def use(call: str, name: str = "read_file", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def result(call: str, content: Any = "found", *, ok: bool = True) -> dict[str, Any]:
    """Return the block of a call's outcome."""
    told = {"type": "tool_result", "tool_use_id": call, "content": content}
    return told if ok else told | {"is_error": True}


def request(
    *messages: Message, origins: dict[int, ReplyOrigin] | None = None, system: str = "You are a test.", **more: Any
) -> ModelRequest:
    """Return a request with one tool."""
    options = ModelOptions(**more.pop("options", {}))
    tools = more.pop("tools", [TOOL])
    return ModelRequest(system, tools, messages or [user()], 0, options, origins or {}, **more)


def kept(reply: Reply, *calls: str) -> tuple[Message, ReplyOrigin]:
    """Return a reply as the next request has it, with `calls` as the ids of its calls, and who wrote it."""
    assert reply.origin is not None
    names = iter(calls)
    content = [{**block, "id": next(names)} if block["type"] == "tool_use" else block for block in reply.content]
    return {"role": "assistant", "content": content}, reply.origin


def talk(*turns: Reply | Iterable[dict[str, Any]]) -> ModelRequest:
    """Return a request after these turns, each a reply or the blocks of a user's message; the last is the user's."""
    messages: list[Message] = []
    origins: dict[int, ReplyOrigin] = {}
    for index, turn in enumerate(turns):
        if isinstance(turn, Reply):
            messages.append({"role": "assistant", "content": turn.content})
            origins |= {index: turn.origin} if turn.origin else {}
        else:
            messages.append(user(*turn))
    return request(*messages, origins=origins)


ASK: Final = request()
