"""The same clients, sessions and turns where the thread waits; and `connect`, which is either.

Rule: nothing is decided here: each method runs its coroutine.
"""

from collections.abc import Sequence
from typing import Any, Self

from supervisor.acp import extensions, schema
from supervisor.clients.python.async_client import AsyncClient
from supervisor.clients.python.async_session import AsyncSession, AsyncTurn
from supervisor.clients.python.typed_events import ApprovalCallback, PathText, TurnEvent, TurnResult
from supervisor.clients.python.waits import BlockingWait, run_now
from supervisor.config.repositories import NO_NAMES, Names


class BlockingTurn:
    """A turn: iterate over its events; the last one is its `TurnResult`.

    It begins with the first event that is waited for. Leaving the loop before its end cancels it, and so does Ctrl-C;
    who goes on to iterate after that comes to its end.
    """

    def __init__(self, turn: AsyncTurn) -> None:
        self._turn = turn

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> TurnEvent:
        try:
            return run_now(self._turn.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    @property
    def began(self) -> bool:
        """Whether it was asked for yet."""
        return self._turn.began

    def cancel(self) -> None:
        """Cancel it; its end comes as its last event."""
        self._turn.cancel()


class BlockingSession:
    """A conversation with the agent. Use it in `with`, or `close` it, or leave that to its client."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        """Its id, as `strongroom history` takes it."""
        return self._session.id

    @property
    def facts(self) -> extensions.SessionFacts:
        """Its profile, model, root and tools."""
        return self._session.facts

    def ask(self, text: str, *, schema: dict[str, Any] | None = None, images: Sequence[PathText] = ()) -> BlockingTurn:
        """As `AsyncSession.ask`."""
        return BlockingTurn(self._session.ask(text, schema=schema, images=images))

    def run(self, text: str, *, schema: dict[str, Any] | None = None, images: Sequence[PathText] = ()) -> TurnResult:
        """As `AsyncSession.run`."""
        return run_now(self._session.run(text, schema=schema, images=images))

    def go_on(self) -> BlockingTurn:
        """As `AsyncSession.go_on`."""
        return BlockingTurn(self._session.go_on())

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """As `AsyncSession.call`."""
        return run_now(self._session.call(tool, **arguments))

    def history(self) -> list[dict[str, Any]]:
        """As `AsyncSession.history`."""
        return self._session.history()

    def cancel(self) -> None:
        """Cancel what runs in it, whoever asked for that."""
        self._session.cancel()

    def close(self) -> None:
        """Cancel what runs in it and close it; what was said stays in the journal."""
        run_now(self._session.close())


class BlockingClient:
    """A connection to the daemon; the arguments are those of `connect`. Use it in `with`, or `close` it.

    Raises:
        StrongroomError: the daemon cannot be reached or started.
    """

    def __init__(
        self, home: PathText | None = None, model: str | None = None, approvals: ApprovalCallback | None = None
    ) -> None:
        self._client = AsyncClient(home, model, approvals, BlockingWait())
        run_now(self._client.connect())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know, such as that the daemon is of another version."""
        return self._client.notices

    def pid(self) -> int:
        """Return the daemon's process id."""
        return run_now(self._client.pid())

    def open(
        self,
        *,
        root: PathText | None = None,
        profile: str | None = None,
        model: str | None = None,
        mode: extensions.ModeName | None = None,
        names: Names = NO_NAMES,
    ) -> BlockingSession:
        """As `AsyncClient.open`."""
        opened = self._client.open(root=root, profile=profile, model=model, mode=mode, names=names)
        return BlockingSession(run_now(opened))

    def sessions(self, directory: PathText | None = None) -> list[schema.SessionInfo]:
        """As `AsyncClient.sessions`."""
        return run_now(self._client.sessions(directory))

    def search(
        self, words: str, *, session: str = "", directory: PathText | None = None, most: int = 20
    ) -> list[extensions.FoundText]:
        """As `AsyncClient.search`."""
        return run_now(self._client.search(words, session=session, directory=directory, most=most))

    def resume(self, session: str | None = None) -> BlockingSession:
        """As `AsyncClient.resume`."""
        return BlockingSession(run_now(self._client.resume(session)))

    def close(self) -> None:
        """Close the sessions that were opened here, leave those that were resumed, and the daemon, which runs on."""
        run_now(self._client.close())


class ClientContext:
    """What `connect` returns: a client in `with`, or in `async with`."""

    def __init__(self, home: PathText | None, model: str | None, approvals: ApprovalCallback | None) -> None:
        self._chosen = (home, model, approvals)
        self._blocking: BlockingClient | None = None
        self._async: AsyncClient | None = None

    def __enter__(self) -> BlockingClient:
        self._blocking = BlockingClient(*self._chosen)
        return self._blocking

    def __exit__(self, *_exception: object) -> None:
        if self._blocking is not None:
            self._blocking.close()

    async def __aenter__(self) -> AsyncClient:
        self._async = AsyncClient(*self._chosen)
        return await self._async.connect()

    async def __aexit__(self, *_exception: object) -> None:
        if self._async is not None:
            await self._async.close()


def connect(
    *, home: PathText | None = None, model: str | None = None, approvals: ApprovalCallback | None = None
) -> ClientContext:
    """Return a connection to the daemon, for `with` or `async with`; that starts the daemon if none runs.

    Args:
        home: of the daemon; by default what the environment says.
        model: for the sessions that are opened; by default the configured one, or offline without a key.
        approvals: decides what would be asked, as a function or a coroutine; without it that is denied.
    """
    return ClientContext(home, model, approvals)
