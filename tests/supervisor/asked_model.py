"""A model behind HTTP that is asked in a test, and what it shows."""

import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

from supervisor.agent.models.model import ModelRequest, Progress, Reply, Retrying, TextDelta, ThoughtDelta
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.agent.models.retry import RetryPolicy
from supervisor.agent.models.wire_format import WireFormat
from supervisor.errors import ModelError
from tests.script_server import Response, ScriptServer
from tests.supervisor.command import HANG_GUARD

if TYPE_CHECKING:
    from supervisor.journal.facts import ReplyOrigin

KEY: Final = "sk-ant-secret-CANARY-1"
AT_ONCE: Final = RetryPolicy(first=0.0)
TOOL: Final = {"name": "read_file", "description": "Read.", "input_schema": {"type": "object", "properties": {}}}


def user(text: str = "hello") -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


ASK: Final = ModelRequest("You are a test.", [TOOL], [user()], 0)


class Asked:
    """A model, and all that it has shown."""

    server: ScriptServer

    def __init__(self, model: Any) -> None:
        self.model: RemoteModel = model  # or another that has its methods
        self.shown: list[Progress] = []

    async def reply(self, request: ModelRequest = ASK) -> Reply:
        return await self.model.reply(request, self.shown.append)

    async def error(self, request: ModelRequest = ASK) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.reply(request)
        assert "CANARY" not in "".join(traceback.format_exception(caught.value))
        return caught.value

    @property
    def text(self) -> list[str]:
        return [each.text for each in self.shown if isinstance(each, TextDelta)]

    @property
    def retries(self) -> list[Retrying]:
        return [each for each in self.shown if isinstance(each, Retrying)]

    @property
    def thoughts(self) -> list[str]:
        return [each.text for each in self.shown if isinstance(each, ThoughtDelta)]


@asynccontextmanager
async def asking_format(
    wire: WireFormat, server: ScriptServer, *responses: Response, provider: str = "openai", **options: Any
) -> AsyncIterator[Asked]:
    """Ask a server that answers so, in its format; it is `asked.server`."""
    options = {"retries": AT_ONCE, "chance": lambda: 0.0, "idle_timeout": HANG_GUARD, **options}
    server.add(*responses)
    with server:
        async with aclosing(RemoteModel("m", KEY, server.url, wire, provider=provider, **options)) as model:
            await model.warm()
            with trio.fail_after(HANG_GUARD):
                asked = Asked(model)
                asked.server = server
                yield asked


def talk(*turns: Reply | Iterable[dict[str, Any]]) -> ModelRequest:
    """Return a request after these turns, each a reply or the blocks of a user's message; the last is the user's."""
    messages = []
    origins: dict[int, ReplyOrigin] = {}
    for index, turn in enumerate(turns):
        if isinstance(turn, Reply):
            messages.append({"role": "assistant", "content": turn.content})
            origins |= {index: turn.origin} if turn.origin else {}
        else:
            messages.append({"role": "user", "content": list(turn)})
    return ModelRequest("You are a test.", [TOOL], messages, 1, origins=origins)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def result(call: str, content: Any = "found") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def any_of(judges: Sequence[Callable[[Any], str | None]]) -> Callable[[Any], str | None]:
    """Return a judge that finds what the first of these does."""
    return lambda body: next(filter(None, (judge(body) for judge in judges)), None)
