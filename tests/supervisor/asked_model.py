"""A model behind HTTP that is asked in a test, and what it shows."""

import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, TypeVar

import pytest
import trio

from supervisor.agent.models.model import ModelRequest, Progress, Reply, Retrying, TextDelta, ThoughtDelta
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.agent.models.retry import RetryPolicy
from supervisor.agent.models.wire_format import WireFormat
from supervisor.errors import ModelError
from tests.script_server import Response, ScriptServer
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.model_requests import ASK

KEY: Final = "sk-ant-secret-CANARY-1"
AT_ONCE: Final = RetryPolicy(first=0.0)
QUICK: Final[dict[str, Any]] = {"retries": AT_ONCE, "chance": lambda: 0.0, "idle_timeout": HANG_GUARD}
"""Options of a model that waits for nothing."""


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


AnyAsked = TypeVar("AnyAsked", bound=Asked)


@asynccontextmanager
async def asked_of(asked: AnyAsked, server: ScriptServer) -> AsyncIterator[AnyAsked]:
    """Yield a model that asks a server, and is closed afterwards."""
    asked.server = server
    async with aclosing(asked.model):
        with trio.fail_after(HANG_GUARD):
            yield asked


@asynccontextmanager
async def asking_format(
    wire: WireFormat, server: ScriptServer, *responses: Response, provider: str = "openai", **options: Any
) -> AsyncIterator[Asked]:
    """Ask a server that answers so, in its format; it is `asked.server`."""
    server.add(*responses)
    with server:
        model = RemoteModel("m", KEY, server.url, wire, provider=provider, **{**QUICK, **options})
        async with asked_of(Asked(model), server) as asked:
            await model.warm()
            yield asked


def any_of(judges: Sequence[Callable[[Any], str | None]]) -> Callable[[Any], str | None]:
    """Return a judge that finds what the first of these does."""
    return lambda body: next(filter(None, (judge(body) for judge in judges)), None)
