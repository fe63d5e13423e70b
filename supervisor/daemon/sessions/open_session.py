"""A session that is open in the daemon: its clients, its turn, what it waits for.

Rule: a turn belongs to its session, not to the client that asked for it: clients come and go, the turn goes on. One
turn at a time; a second one is refused, never mixed in. Every client hears the same, in the same order.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import trio

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.agent.events import Event
from supervisor.agent.models.model import Model, Retrying
from supervisor.agent.states import State
from supervisor.config.profiles import Profile
from supervisor.config.repositories import NO_NAMES, Names
from supervisor.daemon.protocol.connection import Connection, RequestError
from supervisor.daemon.protocol.updates import Projection
from supervisor.daemon.sessions.subscribers import Subscribers
from supervisor.display.escape import one_line
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.facts import CallEnded, Replied, SessionChanged, TurnEnded, TurnStarted
from supervisor.pool.pools import Pools
from supervisor.session.session import Session
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from supervisor.tools.catalog import offers
from supervisor.tools.outcomes import failed
from supervisor.undo.plan import UndoStep, undo_outcome

_log: Final = logging.getLogger("strongroom.daemon")
_TITLE: Final = 100


@dataclass(frozen=True)
class OpenedAt:
    """Where a session was opened, so that another profile can find its root."""

    cwd: str
    root: str | None
    """The root, where it was named and not left to the profile."""
    names: Names = NO_NAMES
    """For a profile whose root is found by names."""

    def seen_by(self, profile: Profile) -> "OpenedAt":
        """Return what of it counts for a profile: one that goes by names looks for them in a root that was named."""
        if profile.by_name:
            return OpenedAt(self.root or self.cwd, None, self.names)
        return OpenedAt(self.cwd, self.root)


class _RunningTurn:
    """A turn under way; `end` or `failure` is set when `done` is."""

    def __init__(self, asker: Connection | None) -> None:
        self.asker = asker
        self.scope = trio.CancelScope()
        self.done = trio.Event()
        self.end: TurnEnded | None = None
        self.failure: StrongroomError | None = None


class OpenSession:
    """One open session.

    Args:
        nursery: runs turns; outlives every client.
        place: where it was opened.
    """

    def __init__(self, nursery: trio.Nursery, place: OpenedAt, origin: str, *, attended: bool) -> None:
        self.opened_at = place
        self.origin = origin
        self.subscribers = Subscribers(nursery)
        self.state = State.DONE
        self.since = trio.current_time()
        self.idle_since = trio.current_time()
        """When something last ran (trio's clock)."""
        self.title = ""
        self.attended = attended
        self.closing = False
        """It is being closed: nothing new is begun."""
        self.loading = 0
        """Clients that are being told its history."""
        self.substituted = ""
        """Why another model than the recorded one answers now, if so."""
        self._nursery = nursery
        self._turn: _RunningTurn | None = None
        self._rest = trio.Event()
        self._calls: list[trio.CancelScope] = []
        self._session: Session | None = None
        self._model: Model | None = None
        self._projection: Projection | None = None

    def begin(self, session: Session, model: Model | None, projection: Projection) -> None:
        """Take the session; it shows its events to `show` and asks `approve`, which is why it comes second."""
        self._session, self._model, self._projection = session, model, projection
        self.subscribers.session = session.id

    def change(self, profile: Profile, pools: Pools, model: Model) -> None:
        """Use another profile or model from the next turn on.

        Raises:
            JournalError: it cannot be recorded; everything stays as it was.
        """
        self.session.change(profile, pools, model)
        self._model, self.substituted = model, ""
        self.projection.note(SessionChanged(profile.name, model.name, profile.context(), profile.tools))

    @property
    def session(self) -> Session:
        """The session."""
        assert self._session is not None
        return self._session

    @property
    def projection(self) -> Projection:
        """How clients are told."""
        assert self._projection is not None
        return self._projection

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def profile(self) -> Profile:
        """The profile that holds."""
        return self.session.profile

    @property
    def context(self) -> dict[str, str]:
        """What the agent and every tool are told about where they are."""
        return msgspec.convert(msgspec.to_builtins(self.profile.context()), dict[str, str])

    @property
    def model_name(self) -> str:
        """The model's name; "" for a session of single calls."""
        return self._model.name if self._model else ""

    @property
    def turns(self) -> int:
        """How many turns have begun."""
        conversation = self.session.conversation
        return conversation.transcript.turn if conversation else 0

    @property
    def busy(self) -> bool:
        """Whether a turn or a call runs."""
        return self._turn is not None or bool(self._calls)

    @property
    def interrupted(self) -> bool:
        """Whether its last turn has no end, and none runs."""
        conversation = self.session.conversation
        return self._turn is None and conversation is not None and conversation.transcript.open_turn is not None

    @property
    def model(self) -> Model | None:
        """What answers."""
        return self._model

    def idle_for(self, now: float) -> float:
        """Return for how long nobody has used it (trio's clock); 0 while somebody does."""
        if self.subscribers.clients or self.busy or self.loading:
            return 0.0
        return now - max(self.subscribers.left_at, self.idle_since)

    def join(self, client: Connection) -> None:
        """Let a client hear what happens from here on, and be asked what waits for an answer."""
        if self.subscribers.join(client) and self._turn is not None:
            self.subscribers.tell_state(self.state, self.turns, only=client)

    # --- turns --------------------------------------------------------------------------------------------------

    async def ask(self, text: str, asker: Connection | None) -> TurnEnded:
        """Run a turn to its end. Cancelling the caller leaves the turn running.

        Raises:
            RequestError: another turn runs.
            StrongroomError: it could not be recorded.
        """
        self.refuse_if_busy()
        return await self._wait(self._start(text, asker))

    async def resume(self) -> TurnEnded | None:
        """Wait for the turn that runs, or take up the one that was interrupted; None when there is neither.

        Raises:
            ConfigError: it would be finished by another model than it was begun with.
            RequestError: a call runs, or the session is being closed.
        """
        if self._turn is None:
            if not self.interrupted:
                return None
            if self.substituted:
                raise ConfigError(f"The interrupted turn cannot be gone on with: {self.substituted}")
            self.refuse_if_busy()
        return await self._wait(self._turn or self._start(None, None))

    def resume_turn(self) -> None:
        """Go on with the interrupted turn, whoever listens."""
        self._start(None, None)

    def abandon_turn(self) -> None:
        """Close the interrupted turn.

        Raises:
            JournalError: it cannot be recorded.
        """
        assert self.session.conversation is not None
        self.session.conversation.interrupt()

    def refuse_if_busy(self) -> None:
        """Make sure that nothing runs.

        Raises:
            RequestError: something does.
        """
        if self.closing:
            raise RequestError(jsonrpc.fault(jsonrpc.NOT_FOUND, "The session is being closed.", "not_found"))
        if self.busy:
            message = "A turn of this session runs. Cancel it (session/cancel), or wait for its end."
            raise RequestError(jsonrpc.fault(jsonrpc.INVALID_REQUEST, message, "busy"))

    def summary(self, end: TurnEnded) -> extensions.TurnSummary:
        """Return how a turn ended, for our own clients."""
        conversation = self.session.conversation
        return extensions.TurnSummary(
            turn=end.turn,
            status=end.status,
            answer=end.answer,
            kind=end.kind,
            message=end.message,
            steps=conversation.transcript.replies if conversation else 0,
        )

    def cut(self) -> None:
        """Cancel the turn and the calls that run."""
        self.cancel()
        for scope in tuple(self._calls):
            scope.cancel()

    def suspend(self) -> None:
        """End the turn as if the process had been killed: nothing is recorded, and it can be taken up again."""
        if self.session.conversation is not None:
            self.session.conversation.leave_open()
        self.cut()

    def cancel(self) -> None:
        """Cancel the turn that runs; it is recorded as cancelled."""
        if self._turn is not None:
            self._turn.scope.cancel()

    async def wait_until_idle(self) -> None:
        """Return when nothing runs."""
        while self.busy:
            await self._rest.wait()

    async def call(self, tool: str, arguments: str) -> CallEnded:
        """Run one tool without a model. Cancelling kills its worker.

        Raises:
            RequestError: it was cut off because the daemon stops; it is recorded as such.
        """
        scope = trio.CancelScope()
        self._calls.append(scope)
        try:
            with scope:
                ended = await self.session.call(tool, arguments)
                if self.projection.knows(ended.call):  # clients were asked about it
                    self.subscribers.tell(self.projection.live(ended))
                return ended
        finally:
            self._calls.remove(scope)
            self._settle()
        raise RequestError(jsonrpc.fault(jsonrpc.CANCELLED, f"{tool[:80]} was cut off.", "cancelled"))

    async def undo(
        self, plan: Callable[[], Awaitable[Sequence[UndoStep]]], *, force: bool, by: str
    ) -> list[extensions.Undone]:
        """Take back calls one after the other, up to the first that fails, or all that can be, with `force`.

        Args:
            plan: finds out which; nothing else happens in the session meanwhile.
            force: also what has changed since.
            by: who asks for it.

        Raises:
            RequestError: something runs, or it was cut off because the daemon stops; what was done is recorded.
        """
        self.refuse_if_busy()
        scope = trio.CancelScope()
        self._calls.append(scope)
        done: list[extensions.Undone] = []
        try:
            with scope:
                for step in await plan():
                    end = (None, None) if step.problem else await self.session.undo(step, force=force, by=by)
                    done.append(undo_outcome(step, *end))
                    if not (done[-1].ok or force):
                        break
                return done
        finally:
            self._calls.remove(scope)
            self._settle()
        raise RequestError(jsonrpc.fault(jsonrpc.CANCELLED, "The undo was cut off.", "cancelled"))

    def _start(self, text: str | None, asker: Connection | None) -> _RunningTurn:
        turn = self._turn = _RunningTurn(asker)
        self._nursery.start_soon(self._run, turn, text)
        return turn

    async def _wait(self, turn: _RunningTurn) -> TurnEnded:
        await turn.done.wait()
        if turn.failure is not None:
            raise turn.failure
        assert turn.end is not None
        return turn.end

    async def _run(self, turn: _RunningTurn, text: str | None) -> None:
        try:
            with turn.scope:
                await (self.session.resume() if text is None else self.session.ask(text))
        except StrongroomError as error:
            _log.error("a turn could not go on: %s", error, extra={"session": self.id})
            turn.failure = error
        except Exception:  # noqa: BLE001 - the session boundary: a bug ends the turn, not the daemon
            _log.exception("internal error outside of a turn", extra={"session": self.id})
            turn.failure = StrongroomError("An internal error; the daemon's log has the details.")
        finally:
            if turn.end is None and turn.failure is None:
                turn.failure = StrongroomError("The daemon stops; the turn goes on with the next one.")
            self._turn = None
            turn.done.set()
            self._settle()

    def _settle(self) -> None:
        self.idle_since = trio.current_time()
        if not self.busy:
            self._rest.set()
            self._rest = trio.Event()

    # --- what the session shows and asks ----------------------------------------------------------------------------

    def show(self, event: Event) -> None:
        """Tell every client of an event."""
        match event:
            case State():
                self.state, self.since = event, trio.current_time()
                self.subscribers.tell_state(event, self.turns)
                return
            case Retrying(attempt=attempt, kind=kind, message=message, delay=delay):
                why = f"{kind}: {message} Asked again in {delay:.1f} s, attempt {attempt + 1}."
                self.subscribers.tell_state(self.state, self.turns, retry=why)
            case TurnStarted(text=text):
                self.projection.note(event)
                self.title = self.title or one_line(text, _TITLE)
                asker = self._turn.asker if self._turn else None
                said = schema.UserMessageChunk(content=schema.Text(text=text), message_id=f"turn-{event.turn}")
                self.subscribers.tell([said], but=asker)
                self.subscribers.tell([schema.SessionInfoUpdate(title=self.title)])
                return
            case TurnEnded():
                asker = None
                if self._turn is not None:
                    self._turn.end, asker = event, self._turn.asker
                self.subscribers.tell(self.projection.live(event), but=asker)  # who asked gets it as the answer
                self.projection.note(event)
                return
            case _:
                pass
        self.subscribers.tell(self.projection.live(event))
        if isinstance(event, Replied):
            self.projection.note(event)
            self.subscribers.tell(self.projection.spent())

    async def approve(self, ask: ApprovalQuestion) -> ApprovalDecision:
        """Ask the clients about a call."""
        call = ask.call
        shown = self.projection.asked(ask)
        try:
            offer = offers(self.profile.tools).get(call.tool)
            return await self.subscribers.ask(ask, shown, offer.input_schema if offer is not None else {})
        except trio.Cancelled:
            if call.turn == 0:  # a turn tells the ends of its calls itself
                never = failed(call, "cancelled", "The call was cancelled before it ran.")
                self.subscribers.tell(self.projection.live(never))
            raise
