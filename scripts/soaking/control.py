"""The client of a soak that only uses the category without faults.

Rule: one call after the other with a little pause, so that there is something to compare whatever the others do.
"""

import threading
import time
from contextlib import suppress
from typing import Any, Final

import msgspec

from scripts.soaking.client import Orders
from scripts.soaking.daemon import Daemon
from scripts.soaking.ledger import Told
from scripts.soaking.world import PROFILE, World
from supervisor.acp import extensions, schema
from supervisor.clients.connection.link_events import decline
from supervisor.errors import StrongroomError

_TICK: Final = 0.1


class Control(threading.Thread):
    """Calls a tool of the category that has no faults, again and again.

    Args:
        tool: which.
        arguments: its arguments, as JSON.
        world, daemon, orders: as for `Client`.
    """

    def __init__(self, tool: str, arguments: str, world: World, daemon: Daemon, orders: Orders) -> None:
        super().__init__(name="control", daemon=True)
        self._tool = tool
        self._arguments = arguments
        self._world = world
        self._daemon = daemon
        self._orders = orders

    def run(self) -> None:
        while not self._orders.end.is_set():
            if self._orders.rest.is_set() or not self._daemon.wait_until_up(_TICK):
                self._orders.resting.add(-1)
                time.sleep(_TICK)
                continue
            self._orders.resting.discard(-1)
            with suppress(OSError, StrongroomError):
                self._serve()
        self._orders.resting.add(-1)

    def _serve(self) -> None:
        with self._daemon.connected(decline) as link:
            life = self._daemon.life_at(link).number
            root = str(self._world.roots[0])
            options = extensions.SessionOptions(profile=PROFILE, root=root, modelless=True, origin="call")
            params = schema.NewSessionParams(cwd=root, mcp_servers=[], meta={extensions.OPTIONS: options})
            session = link.request("session/new", params, schema.NewSessionResult).session_id
            while not (self._orders.rest.is_set() or self._orders.end.is_set()):
                asked = extensions.CallParams(session_id=session, tool=self._tool, arguments=self._arguments)
                self._orders.single += 1
                result = link.request(extensions.CALL_METHOD, asked, extensions.CallResult)
                ended = msgspec.json.decode(result.answer)["ok"]
                self._orders.told.append(Told(life, session, result.call, "ok" if ended else "failed"))
                time.sleep(_TICK / 2)
            link.request("session/close", schema.SessionParams(session_id=session), dict[str, Any])
