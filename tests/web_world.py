"""A small internet for tests: names, addresses, and the servers that stand there, all on loopback.

Rule: everything but the answers of the name service and the way to an address is real: the pool, the confined worker,
the broker, TCP, TLS. `World.resolve` and `World.connect` are what the broker is given for the two; they record what
they are asked, and the servers record what reaches them. An address that belongs to none of the known hosts leads to
`stray`, which is there to see nothing.

The world lives in a thread of its own with an event loop, so that the rows of a module can share its workers.
"""

import os
import queue
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import msgspec
import trio

from supervisor.broker.broker import Broker
from supervisor.categories.web import WebConfig
from supervisor.errors import WorkerDied
from supervisor.pool.pool import Pool
from supervisor.pool.spec import ChildSpec, Restart
from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_template import WorkerTemplate
from tests.authority import Authority
from tests.web_bodies import OK, Page
from tests.web_server import Visit, WebServer
from workers.web.web_inputs import WebInputs
from workers.wire import messages

ADDRESSES: Final[Mapping[str, str]] = {
    "github.com": "140.82.112.3",
    "raw.githubusercontent.com": "185.199.108.133",
    "hexdocs.pm": "151.101.1.164",
    "elixirforum.com": "104.20.5.9",
}
"""Hosts, and where each of them is when nobody says otherwise."""

PATIENCE: Final = 60.0
"""Seconds after which a call that has not ended never will."""

_T = TypeVar("_T")
Answer = messages.Done | messages.Failed | WorkerDied


@dataclass
class World:
    """Hosts with a server each. What is asked and taken is counted from the last `begin` on."""

    authority: Authority
    servers: dict[str, WebServer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Names that were looked up."""
    taken: list[str] = field(default_factory=list)
    """Addresses that were connected to."""

    def __post_init__(self) -> None:
        self._stack = ExitStack()
        self._names: dict[str, Any] = {}
        self._roads: Mapping[str, str] = {}
        self._turns: dict[str, int] = {}
        self._owner: dict[str, str] = {}
        self._released = trio.Event()

    def __enter__(self) -> Self:
        for host in (*ADDRESSES, "stray"):
            self.servers[host] = self._stack.enter_context(WebServer(self.authority))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def begin(
        self,
        *,
        names: Mapping[str, Any] | None = None,
        roads: Mapping[str, str] | None = None,
        pages: Mapping[str, Page] | None = None,
        faults: Mapping[str, str] | None = None,
    ) -> None:
        """Make the world another one, in which nothing has happened yet.

        Args:
            names: host -> its addresses at each look-up, the last ones again and again; or "hang".
            roads: address (or "*") -> "refused" or "hang".
            pages: as of a `WebServer`.
            faults: host -> what is wrong with its TLS.
        """
        for host, server in self.servers.items():
            server.play(pages or {}, OK, (faults or {}).get(host, ""))
        self._names, self._roads, self._turns = dict(names or {}), roads or {}, {}
        self._owner = {address: host for host, address in ADDRESSES.items()}
        self._released = trio.Event()
        self.asked.clear()
        self.taken.clear()

    async def release(self) -> None:
        """Let the names that hang be found after all."""
        self._released.set()

    async def resolve(self, host: str, _port: int) -> list[str]:
        """Look a name up."""
        self.asked.append(host)
        await trio.lowlevel.checkpoint()
        answers = self._names.get(host)
        if answers == "hang":
            await self._released.wait()
            answers = None
        if answers is None:
            return [ADDRESSES[host]] if host in ADDRESSES else ["203.0.112.1"]
        turn = self._turns[host] = min(self._turns.get(host, -1) + 1, len(answers) - 1)
        return list(answers[turn])

    async def connect(self, address: str, _port: int) -> socket.socket:
        """Connect to the server that stands for an address."""
        self.taken.append(address)
        await trio.lowlevel.checkpoint()
        road = self._roads.get(address) or self._roads.get("*")
        if road == "hang":
            await trio.sleep_forever()
        if road == "refused":
            raise ConnectionRefusedError(111, "Connection refused")
        server = self.servers[self._owner.get(address, "stray")]
        return socket.create_connection((server.host, server.port))

    def visits(self) -> dict[str, list[Visit]]:
        """Return what has reached each server that something has reached."""
        return {host: seen for host, server in self.servers.items() if (seen := server.seen())}


class Workers:
    """Pools of real web workers in an event loop of their own; `fetch` may be called from any thread.

    Args:
        world: where they live.
        root: a directory that they are told of; they have none.
        command: what they are, if not workers as they should be.
    """

    def __init__(self, world: World, root: Path, command: tuple[str, ...] | None = None) -> None:
        self._world = world
        self._command = command or worker_command()
        self._template = WorkerTemplate(self._command, None)
        self._root = root
        self._ca_file = str(world.authority.write(root / "ca.pem"))
        self._pools: dict[str, Pool] = {}
        self._roots: list[int] = []
        self._started: queue.SimpleQueue[tuple[trio.lowlevel.TrioToken, trio.Nursery]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=trio.run, args=(self._live,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._token, self._nursery = self._started.get(timeout=PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._close)
        self._thread.join(PATIENCE)

    def run(self, function: Callable[..., Awaitable[_T]], *arguments: Any) -> _T:
        """Run something in the workers' event loop."""
        return trio.from_thread.run(function, *arguments, trio_token=self._token)

    def fetch(self, web: WebConfig, *calls: Any) -> list[Answer]:
        """Call fetch_url with each of these arguments, all at the same time; return how each call ended."""
        return self.run(self._call, web, "fetch_url", [msgspec.json.encode(call) for call in calls])

    def attack(self, web: WebConfig, code: str) -> Answer:
        """Run an attacker's Python in a worker whose command is that of tests/hostile_worker.py."""
        return self.run(self._call, web, "attack", [msgspec.json.encode({"code": code})])[0]

    def pids(self) -> list[int]:
        """Return the workers that run."""
        return [
            each.process.pid for pool in self._pools.values() for each in pool.workers.slots if each.process is not None
        ]

    def retire(self) -> None:
        """End all workers; the next call gets one that was started after this."""
        self.run(self._close_pools)

    async def _live(self) -> None:
        async with trio.open_nursery() as nursery:
            self._started.put((trio.lowlevel.current_trio_token(), nursery))
            await trio.sleep_forever()

    async def _call(self, web: WebConfig, tool: str, calls: Sequence[bytes]) -> list[Answer]:
        pool = await self._pool(web)
        answers: dict[int, Answer] = {}

        async def one(number: int, arguments: bytes) -> None:
            try:
                answers[number] = await pool.call(tool, arguments, effect=tool == "attack")
            except WorkerDied as death:
                answers[number] = death

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for number, arguments in enumerate(calls):
                    nursery.start_soon(one, number, arguments)
        return [answers[number] for number in range(len(calls))]

    async def abandon(self, web: WebConfig, call: Any) -> None:
        """Begin a fetch, and cancel it as soon as one more connection is being made."""
        before = len(self._world.taken)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._call, web, "fetch_url", [msgspec.json.encode(call)])
            with trio.fail_after(PATIENCE):
                while len(self._world.taken) == before:  # noqa: ASYNC110 - a worker's deed sets no event here
                    await trio.sleep(0.002)
            nursery.cancel_scope.cancel()

    async def _pool(self, web: WebConfig) -> Pool:
        if (name := repr(web)) not in self._pools:
            self._roots.append(os.open(self._root, os.O_PATH | os.O_DIRECTORY))
            self._pools[name] = Pool(self._spec(web), self._roots[-1])
            await self._nursery.start(self._pools[name].workers.run)
        return self._pools[name]

    def _spec(self, web: WebConfig) -> ChildSpec:
        return ChildSpec(
            "web",
            messages.Context(str(self._root)),
            writable=False,
            inputs=WebInputs(web.fetch_s, web.http, self._ca_file),
            broker=Broker(web, self._world.resolve, self._world.connect).serve,
            restart=Restart(pause=0.1, first_backoff=0.005, longest_backoff=0.02),
            command=self._command,
            template=self._template,
        )

    async def _close_pools(self) -> None:
        for pool in self._pools.values():
            await pool.workers.close()
            os.close(self._roots.pop(0))
        self._pools.clear()

    async def _close(self) -> None:
        await self._close_pools()
        self._template.close()
        self._nursery.cancel_scope.cancel()
