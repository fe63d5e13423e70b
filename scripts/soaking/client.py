"""The clients of a soak: each has one session after the other, in a thread of its own.

Rule: what a client does comes from the seed; when it comes to it, from what the daemon answers. A client that loses its
connection connects again and takes its session up again. Everything that it was told is remembered, with the life of
the daemon that has told it.
"""

import threading
import time
from collections import Counter
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from scripts.soaking.call_counter import StartedCalls
from scripts.soaking.chance import chance_of
from scripts.soaking.daemon import Daemon
from scripts.soaking.ledger import Told
from scripts.soaking.work import ASKED, Turn, Work, folder, work
from scripts.soaking.world import PROFILE, World
from supervisor.acp import extensions, schema
from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.connection.link_events import LinkEvent, PermissionPrompt
from supervisor.errors import DaemonLost, DaemonRefused, StrongroomError

_TICK: Final = 0.1
_HURRY: Final = 8.0
"""Seconds that a turn has when clients shall rest, before it is cancelled."""
_FOR_EVER: Final = 400.0
"""Seconds after which a request that is not answered never will be: longer than a worker has for anything."""
_EXPECTED: Final = frozenset({"busy", "stopping", "not_found", "cancelled"})
"""Refusals that belong to what clients do here: two at once, one that was never recorded, a daemon that stops."""
_ANSWERS: Final = ("allow", "reject", "edit")
_ANSWER_WEIGHTS: Final = (6, 2, 2)


class Orders:
    """What all clients are told to do, and what they have seen."""

    def __init__(self) -> None:
        self.rest = threading.Event()
        """Set: finish, leave, and wait until it is cleared."""
        self.end = threading.Event()
        self.told: list[Told] = []
        self.started_calls = StartedCalls()
        self.single = 0
        """Calls without a model."""
        self.sessions: set[str] = set()
        self.refusals: Counter[str] = Counter()
        """Of a kind that nobody expects."""
        self.unanswered: list[str] = []
        self.actions: Counter[str] = Counter()
        self.resting: set[int] = set()


class Client(threading.Thread):
    """One client.

    Args:
        number: which.
        seed: the soak's.
        world: where.
        daemon: to talk to.
        orders: for all clients.
    """

    def __init__(self, number: int, seed: int, world: World, daemon: Daemon, orders: Orders) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.number = number
        self.seed = seed
        self.world = world
        self.process = daemon
        self.orders = orders
        self.life = 0
        """Of the daemon that it is connected to."""
        self.sessions = 0
        self.acted = threading.Event()
        """A call of the turn has been seen."""

    def run(self) -> None:
        while not self.orders.end.is_set():
            if self.orders.rest.is_set():
                self.orders.resting.add(self.number)
                time.sleep(_TICK)
                continue
            self.orders.resting.discard(self.number)
            self.sessions += 1
            _Attendance(self, work(self.seed, self.number, self.sessions)).run()
        self.orders.resting.add(self.number)

    @property
    def leaving(self) -> bool:
        """Whether nothing new is to be begun."""
        return self.orders.end.is_set() or self.orders.rest.is_set()

    # --- what it is told, in the link's thread --------------------------------------------------------------------

    def hear(self, event: LinkEvent) -> None:
        """Take an event."""
        match event:
            case schema.SessionUpdate():
                self._remember_call(event)
            case extensions.TurnState() if event.state not in ("Input", "Done"):
                self.tell(event.session_id, f"turn {event.turn}")
            case PermissionPrompt():
                answer(event, self.seed, folder(self.number))
            case _:
                return

    def _remember_call(self, update: schema.SessionUpdate) -> None:
        """Remember calls that have begun, and those that have ended."""
        change = update.update
        if isinstance(change, schema.ToolCall | schema.ToolCallUpdate):
            self.acted.set()
            self.orders.started_calls.add(update.session_id, change.tool_call_id)
            if change.status in ("completed", "failed"):
                end = "ok" if change.status == "completed" else "failed"
                self.tell(update.session_id, change.tool_call_id, end)

    def tell(self, session: str, about: str, end: str = "") -> None:
        """Remember what the daemon has said."""
        self.orders.told.append(Told(self.life, session, about, end))


class _Attendance:
    """One session of a client, from its first turn to its last."""

    def __init__(self, client: Client, planned: Work) -> None:
        self._client = client
        self._orders = client.orders
        self._work = planned
        self._link: Link | None = None
        self._session = ""
        number = f"{client.number}-{client.sessions}"
        self._file = client.world.scripts / f"{number}.jsonl"
        self._file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in planned.lines))

    def run(self) -> None:
        turns = list(self._work.turns)
        self._attempt(self._open)
        while turns and self._session and not self._client.leaving:
            turn = turns.pop(0)
            self._attempt(partial(self._turn, turn))
            time.sleep(turn.pause)
        if self._session and not self._orders.end.is_set():
            self._attempt(self._close)
        self._leave()

    def _attempt(self, step: Any) -> None:
        """Take a step; where the daemon goes away meanwhile, come back and take up what has become of it."""
        while not self._orders.end.is_set():
            try:
                if self._link is None and not self._enter():
                    continue
                step()
            except (DaemonLost, OSError):
                self._leave()
                step = self._take_up if self._session else self._open
            except DaemonRefused as error:
                self._refused(error)
                return
            except StrongroomError as error:
                self._orders.refusals[type(error).__name__ + f": {error}"] += 1
                self._session = ""
                return
            else:
                return

    def _refused(self, error: DaemonRefused) -> None:
        if error.kind == "not_found":
            self._session = ""  # it was never recorded
        elif error.kind == "busy":
            with suppress(StrongroomError, OSError):
                self._go_on()
        elif error.kind not in _EXPECTED:
            self._orders.refusals[f"{error.kind}: {error}"] += 1
            self._session = ""

    # --- the connection -------------------------------------------------------------------------------------------

    def _enter(self) -> bool:
        daemon = self._client.process
        if not daemon.wait_until_up(_TICK):
            return False
        self._link = daemon.connect(self._client.hear)
        self._client.life = daemon.life_at(self._link).number
        return True

    def _leave(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    @property
    def link(self) -> Link:
        assert self._link is not None
        return self._link

    def _request(self, method: str, params: Any, result: Any) -> Any:
        return decoded(self._wait(self.link.submit(method, params), method), result)

    def _wait(self, future: "Future[bytes]", method: str) -> bytes:
        """Wait for an answer; in a hurry, cancel what it is about."""
        began = time.monotonic()
        hurried = False
        while True:
            try:
                return future.result(_TICK)
            except TimeoutError:
                waited = time.monotonic() - began
                if self._client.leaving and not hurried and waited > _HURRY:
                    hurried = True
                    self.link.cancel(self._session)
                if waited > _FOR_EVER:
                    self._orders.unanswered.append(f"{method} of session {self._session}: no answer")
                    raise DaemonLost("It never answered.") from None

    # --- the session ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        root = str(self._client.world.root(self._client.number))
        options = extensions.SessionOptions(profile=PROFILE, model=f"scripted:{self._file}", root=root)
        params = schema.NewSessionParams(cwd=root, mcp_servers=[], meta={extensions.OPTIONS: options})
        self._session = self._request("session/new", params, schema.NewSessionResult).session_id
        self._orders.sessions.add(self._session)
        self._client.tell(self._session, "session")

    def _take_up(self) -> None:
        self._orders.actions["taken up again"] += 1
        root = str(self._client.world.root(self._client.number))
        params = schema.ReopenParams(session_id=self._session, cwd=root, mcp_servers=[])
        self._request("session/load", params, schema.SessionResult)
        self._go_on()

    def _go_on(self) -> None:
        params = schema.SessionParams(session_id=self._session)
        self._summed_up(self._request(extensions.CONTINUE_METHOD, params, schema.PromptResult | None))

    def _turn(self, turn: Turn) -> None:
        self._client.acted.clear()
        params = schema.PromptParams(session_id=self._session, prompt=[{"type": "text", "text": turn.prompt}])
        future = self.link.submit("session/prompt", params)
        self._orders.actions[turn.action] += 1
        if turn.action in ("cancel", "vanish"):
            self._client.acted.wait(5)
            time.sleep(turn.pause)
        if turn.action == "cancel":
            self.link.cancel(self._session)
        elif turn.action == "vanish":
            self._leave()
            raise DaemonLost("The client has left in the middle of a turn.")
        self._summed_up(decoded(self._wait(future, "session/prompt"), schema.PromptResult))
        if turn.action == "undo":
            self._request(
                extensions.UNDO_METHOD, extensions.UndoParams(session_id=self._session), extensions.UndoResult
            )

    def _close(self) -> None:
        self._request("session/close", schema.SessionParams(session_id=self._session), dict[str, Any])

    def _summed_up(self, result: schema.PromptResult | None) -> None:
        if result is not None:
            summary = msgspec.convert((result.meta or {})[extensions.TURN], extensions.TurnSummary)
            self._client.tell(self._session, f"turn {summary.turn}", summary.status)


def answer(question: PermissionPrompt, seed: int, own: str) -> None:
    """Answer a question as the seed says: the same about the same arguments."""
    arguments = question.request.arguments
    chance = chance_of(seed, arguments)
    match chance.choices(_ANSWERS, _ANSWER_WEIGHTS)[0]:
        case "reject":
            question.reject("Not now.")
        case "edit":
            question.allow(arguments.replace(f"{ASKED}/", f"{own}/"))
        case _:
            question.allow()
