"""Three ways to wait for a future: the thread blocks, asyncio's loop goes on, or trio's.

Rule: one coroutine serves all three. Where the thread blocks it never suspends, so `run_now` has its result at once. A
wait that is given up leaves its future as it is. Of asyncio and trio, that is imported which runs.
"""

import sys
from collections.abc import Awaitable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

_T = TypeVar("_T")
_LOOK: Final = 1.0
"""Seconds after which a wait begins anew, so that Ctrl-C is seen."""


class Wait(Protocol):
    """Waits for a future where it is called."""

    async def result(self, future: "Future[_T]", *, to_end: bool = False) -> _T:
        """Return its result, or raise what it failed with; `to_end`: also where the caller is cancelled already."""


class BlockingWait:
    """The thread blocks."""

    async def result(self, future: "Future[_T]", *, to_end: bool = False) -> _T:  # noqa: ARG002 - nobody cancels
        while True:
            try:
                return future.result(_LOOK)
            except TimeoutError:
                if future.done():  # it is its own, or the result came at the last moment
                    return future.result()


class AsyncioWait:
    """The task waits; a cancellation comes once, so that what cleans up can wait."""

    async def result(self, future: "Future[_T]", *, to_end: bool = False) -> _T:  # noqa: ARG002
        import asyncio

        return await asyncio.shield(asyncio.wrap_future(future))


class TrioWait:
    """The task waits."""

    async def result(self, future: "Future[_T]", *, to_end: bool = False) -> _T:
        import trio

        done = trio.Event()
        token = trio.lowlevel.current_trio_token()

        def tell(_future: "Future[_T]") -> None:
            with suppress(trio.RunFinishedError):  # nobody waits any more
                token.run_sync_soon(done.set)

        future.add_done_callback(tell)
        with trio.CancelScope(shield=to_end):
            await done.wait()
        return future.result()


def current_wait() -> Wait:
    """Return how the task that asks waits."""
    trio = sys.modules.get("trio")
    return TrioWait() if trio is not None and trio.lowlevel.in_trio_task() else AsyncioWait()


def run_now(work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine whose waits block.

    Raises:
        TypeError: it waits for something else.
    """
    try:
        work.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    work.close()
    raise TypeError("An async function needs `async with strongroom.connect(...)`.")


async def awaited(value: Awaitable[_T] | _T) -> _T:
    """Return a value that may have to be awaited."""
    return await value if isinstance(value, Awaitable) else value
