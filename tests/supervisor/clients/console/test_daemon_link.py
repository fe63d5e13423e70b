"""Work in a thread for the console."""

import asyncio
import threading
from concurrent.futures import Future

from supervisor.clients.console.daemon_link import in_thread


def test_who_is_cancelled_while_they_wait_does_not_break_the_thread() -> None:
    may_end = threading.Event()

    async def cancelled() -> "Future[bool]":
        work = in_thread(lambda: may_end.wait(10))
        waiting = asyncio.ensure_future(asyncio.wrap_future(work))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
        assert waiting.cancelled()
        return work

    work = asyncio.run(cancelled())
    may_end.set()
    assert work.result(10)
