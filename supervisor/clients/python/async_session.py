"""A session as a program has it, and its turns, a loop each.

Rule: a turn begins with the first event that is waited for, and is cancelled where its loop is left before its end. One
that a lost daemon has cut off goes on first, in the next daemon, when something is asked again.
"""

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.attachments import blocks_of
from supervisor.clients.connection.link import decoded
from supervisor.clients.python.program_link import ProgramLink, SentRequest
from supervisor.clients.python.session_requests import SessionRequests
from supervisor.clients.python.typed_events import PathText, ToolFailed, TurnEvent, TurnFailed, TurnResult
from supervisor.errors import StrongroomError

_Request = tuple[str, Any]
"""A method and its parameters."""


class AsyncTurn:
    """A turn: iterate over its events; the last one is its `TurnResult`.

    It begins with the first event that is waited for. Leaving the loop before its end cancels it.
    """

    def __init__(self, requests: SessionRequests, request: _Request, *, structured: bool = False) -> None:
        self.began = False
        """Whether it was asked for yet."""
        self._requests = requests
        self._left: deque[_Request] = deque([request])
        """To be sent."""
        self._structured = structured
        self._ready: deque[TurnEvent] = deque()
        self._sent: SentRequest | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TurnEvent:
        while not self._ready:
            if self._sent is None and not self._left:
                raise StopAsyncIteration
            await self._hear()
        return self._ready.popleft()

    def __del__(self) -> None:
        if self._sent is not None:
            self._sent.abandon()

    def cancel(self) -> None:
        """Cancel it; its end comes as its last event."""
        if self._sent is not None:
            self._sent.cancel()

    async def _hear(self) -> None:
        if self._sent is None:
            if await self._requests.take_up():  # in another daemon: a turn may have been cut off
                go_on = schema.SessionParams(session_id=self._requests.facts.session_id)
                self._left.appendleft((extensions.CONTINUE_METHOD, go_on))
            self._sent = await self._requests.send(*self._left[0])
            self._left.popleft()
            self.began = True
        events = await self._requests.next_events(self._sent)
        if events is not None:
            self._ready.extend(events)
            return
        sent, self._sent = self._sent, None
        try:
            result = self._requests.result_of(sent, structured=self._structured and not self._left)
        except StrongroomError:
            self._left.clear()
            raise
        self._ready.extend([] if result is None else [result])


class AsyncSession:
    """A conversation with the agent. Use it in `async with`, or `close` it, or leave that to its client."""

    def __init__(self, program: ProgramLink, requests: SessionRequests) -> None:
        self._program = program
        self._requests = requests
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    @property
    def id(self) -> str:
        """Its id, as `strongroom history` takes it."""
        return self._requests.facts.session_id

    @property
    def facts(self) -> extensions.SessionFacts:
        """Its profile, model, root, tools and notices, as of when it was opened or taken up."""
        return self._requests.facts

    def ask(self, text: str, *, schema: dict[str, Any] | None = None, images: Sequence[PathText] = ()) -> AsyncTurn:
        """Ask the agent something; iterate over what it returns.

        Args:
            text: the prompt.
            schema: a JSON Schema that the final answer must be valid by; it comes as `TurnResult.data`.
            images: paths of images and documents that go along.

        Raises:
            ConfigError: an image cannot go along.
        """
        params = requests.prompt(self.id, text, schema, blocks_of(os.fspath(each) for each in images))
        return AsyncTurn(self._requests, ("session/prompt", params), structured=schema is not None)

    async def run(
        self, text: str, *, schema: dict[str, Any] | None = None, images: Sequence[PathText] = ()
    ) -> TurnResult:
        """Ask the agent something, and return how the turn ended; the arguments are those of `ask`.

        Raises:
            TurnFailed: it was not ended well, but cancelled, suspended or by an error.
            StrongroomError: as `call`.
        """
        result = TurnResult("cancelled")
        async for event in self.ask(text, schema=schema, images=images):
            if isinstance(event, TurnResult):
                result = event
        if result.status != "ok":
            raise TurnFailed(result)
        return result

    def go_on(self) -> AsyncTurn:
        """Follow the turn that runs in this session, or go on with the one that was cut off or suspended."""
        return AsyncTurn(
            self._requests, (extensions.CONTINUE_METHOD, extensions.ContinueParams(session_id=self.id, go=True))
        )

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Run one tool without the model, under the same policy; return what it answers.

        Raises:
            ToolFailed: it did not do it; `kind` says why.
            DaemonLost: the daemon has gone; the call may have had its effect or not.
            DaemonRefused: a turn runs.
        """
        await self._requests.take_up()
        text = msgspec.json.encode(arguments).decode()
        sent = await self._requests.send(
            extensions.CALL_METHOD, extensions.CallParams(session_id=self.id, tool=tool, arguments=text)
        )
        while await self._requests.next_events(sent) is not None:
            pass
        answer = msgspec.json.decode(decoded(sent.future.result(), extensions.CallResult).answer)
        if not answer["ok"]:
            error = answer["error"]
            raise ToolFailed(error.pop("kind"), error.pop("message"), error)
        return answer["content"]

    def history(self) -> list[dict[str, Any]]:
        """Return the conversation so far, in order, as far as it was held here or loaded.

        Each is {"role": "user" | "assistant", "content"} or {"role": "tool", "name", "input", "output" | "error"}.
        """
        return self._requests.history.messages()

    def cancel(self) -> None:
        """Cancel what runs in it, whoever asked for that."""
        if self._requests.link is not None:
            self._requests.link.cancel(self.id)

    def leave(self) -> None:
        """Cancel what was asked for here; what others have asked for goes on."""
        self._requests.leave()

    async def close(self) -> None:
        """Cancel what runs in it and close it; what was said stays in the journal."""
        if self._closed or self._requests.link is None:
            return
        self._closed = True
        closing = self._requests.link.submit("session/close", schema.SessionParams(session_id=self.id))
        with suppress(StrongroomError):  # it was closed already, or the daemon has gone
            await self._program.wait.result(closing, to_end=True)
