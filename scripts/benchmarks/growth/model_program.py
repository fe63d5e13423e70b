"""A model's server that takes its time with each answer, whoever else it answers: a tool call first, then an answer.

Rule: it does as little as it can, so that what is measured beside it is not its own work. Which answer a request gets
is seen in the request alone, so conversations may run in any order. It prints its port, and serves until its
input ends.
"""

import asyncio
import itertools
import sys
from contextlib import AbstractContextManager
from typing import Final

from scripts.benchmarks.pools import NOTE
from scripts.benchmarks.servers import serving
from tests.messages_server import reply

_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncontent-length: %d\r\n\r\n"
_LENGTH: Final = b"content-length:"
_AHEAD: Final = 2**22
"""Bytes of a request that are taken before anybody asks for them."""


def unhurried_model(delay_s: float) -> AbstractContextManager[str]:
    """Run the server, which takes so many seconds for each answer; it yields its URL."""
    return serving([sys.executable, "-m", "scripts.benchmarks.growth.model_program", str(delay_s), NOTE])


async def _serve(delay_s: float, path: str) -> None:
    numbers = itertools.count(1)
    answer = reply("I know it.").encode()

    def call() -> bytes:
        return reply("I will read it.", [("read_file", {"path": path})], ids=[f"toolu_{next(numbers):024}"]).encode()

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(_LENGTH)[2].split(b"\r\n", 1)[0])
                body = await reader.readexactly(length)
                await asyncio.sleep(delay_s)
                events = answer if b'"tool_result"' in body else call()
                writer.write(_HEAD % len(events) + events)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer_all, "127.0.0.1", 0, backlog=1024, limit=_AHEAD)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), sys.argv[2]))
