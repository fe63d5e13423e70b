"""A model that answers at once, from the request alone."""

from collections.abc import Callable

import trio

from supervisor.agent.models.model import ModelRequest, Progress, Reply


class ImmediateModel:
    """Calls a function for each reply.

    Args:
        name: what the person chose.
        answer: returns the reply, and shows what arrives.
    """

    def __init__(self, name: str, answer: Callable[[ModelRequest, Callable[[Progress], None]], Reply]) -> None:
        self.name = name
        self._answer = answer

    async def warm(self) -> None:
        """Do nothing: nothing is slow here."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Do nothing: nothing is open here."""
        await trio.lowlevel.checkpoint()

    async def reply(self, request: ModelRequest, show: Callable[[Progress], None]) -> Reply:
        await trio.lowlevel.checkpoint()
        return self._answer(request, show)
