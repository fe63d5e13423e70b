"""Requests to models as a conversation makes them, with calls, their results, and who wrote a reply."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, TypeVar

import trio

from supervisor.agent.models.model import Message, ModelOptions, ModelRequest, Reply
from supervisor.journal.facts import ReplyOrigin
from tests.script_server import ScriptServer
from tests.supervisor.asked_model import AT_ONCE, Asked
from tests.supervisor.command import HANG_GUARD

QUICK: Final[dict[str, Any]] = {"retries": AT_ONCE, "chance": lambda: 0.0, "idle_timeout": HANG_GUARD}
"""Options of a model that waits for nothing."""
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


def user(*blocks: str | dict[str, Any]) -> Message:
    """Return what a person says: texts, and results of calls."""
    told = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks or ("hello",)]
    return {"role": "user", "content": told}


def assistant(*blocks: str | dict[str, Any]) -> Message:
    """Return what a model says: texts and calls."""
    return {**user(*blocks), "role": "assistant"}


def use(call: str, name: str = "read_file", **given: Any) -> dict[str, Any]:
    """Return the block of a call."""
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def result(call: str, content: Any = "done", *, ok: bool = True) -> dict[str, Any]:
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


AnyAsked = TypeVar("AnyAsked", bound=Asked)


@asynccontextmanager
async def asked_of(asked: AnyAsked, server: ScriptServer) -> AsyncIterator[AnyAsked]:
    """Yield a model that asks a server, and is closed afterwards."""
    asked.server = server
    async with aclosing(asked.model):
        with trio.fail_after(HANG_GUARD):
            yield asked
