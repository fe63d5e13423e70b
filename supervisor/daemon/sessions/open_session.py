"""A session that is open in the daemon: its subscribers, its turn, its calls.

Rule: a turn belongs to its session, not to the client that asked for it: clients come and go, the turn goes on. One
turn at a time; a second one is refused, never mixed in.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import trio

from supervisor.acp import extensions, jsonrpc
from supervisor.agent.allowance import told
from supervisor.agent.models.model import Model
from supervisor.agent.turn import State, SuspendedTurn
from supervisor.config.profiles import Profile
from supervisor.daemon.protocol.connection import Connection, RequestError
from supervisor.daemon.sessions.call_scopes import CallScopes
from supervisor.daemon.sessions.opened_at import OpenedAt
from supervisor.daemon.sessions.running_turn import RunningTurn
from supervisor.daemon.sessions.subscribers import Subscribers
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.facts import CallEnded, Source, TurnEnded, TurnSuspended
from supervisor.pool.pools import Pools
from supervisor.session.session import Session
from supervisor.session.taking_back import undoing
from supervisor.tools.content_intake import Attached
from supervisor.tools.services import ChangeServices
from supervisor.undo.undo_plan import UndoStep, undo_outcome


class OpenSession:
    """One open session.

    Args:
        nursery: runs turns; outlives every client.
        session: shows its events to the subscribers, and asks them.
        subscribers: the session's.
        opened_at: where it was opened.
        attended: whether people can be asked in it.
        substituted: why another model than the recorded one answers now; "" where none does.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        session: Session,
        subscribers: Subscribers,
        opened_at: OpenedAt,
        *,
        attended: bool,
        substituted: str = "",
    ) -> None:
        self.id = session.id
        self.session = session
        self.subscribers = subscribers
        self.opened_at = opened_at
        self.attended = attended
        self.substituted = substituted
        self.idle_since = trio.current_time()
        """When something last ran (trio's clock)."""
        self.closing = False
        """It is being closed: nothing new is started."""
        self.loading = 0
        """Clients that are being told its history."""
        subscribers.projection.usage.budgets = self.budgets
        self._nursery = nursery
        self._turn: RunningTurn | None = None
        self._idle = trio.Event()
        self.calls = CallScopes(self._rest)

    def change(self, profile: Profile, pools: Pools, model: Model, services: ChangeServices) -> None:
        """Use another profile or model, and the settings of now, from the next turn on.

        Raises:
            JournalError: it cannot be recorded; everything stays as it was.
        """
        self.subscribers.take(self.session.change(profile, pools, model, services))
        self.substituted = ""

    @property
    def profile(self) -> Profile:
        return self.session.profile

    @property
    def context(self) -> dict[str, str]:
        """What the agent and every tool are told about where they are."""
        return msgspec.convert(msgspec.to_builtins(self.profile.context()), dict[str, str])

    @property
    def model_name(self) -> str:
        """The model's name; "" for a session of single calls."""
        return self.session.model.name if self.session.model else ""

    @property
    def turns(self) -> int:
        return self.subscribers.projection.turn

    @property
    def busy(self) -> bool:
        return self._turn is not None or bool(self.calls)

    @property
    def interrupted(self) -> bool:
        """Whether its last turn has no end, and none runs; it may be suspended."""
        if self._turn is not None or self.session.model is None:
            return False
        return self.session.conversation.transcript.open_turn is not None

    @property
    def suspended(self) -> TurnSuspended | None:
        """Why its turn goes no further for now; None where it does, or there is none."""
        return None if self.session.model is None else self.session.conversation.transcript.suspended

    def budgets(self) -> list[extensions.BudgetUse]:
        """Return what was used of the budgets that count for it."""
        if self.session.model is None:
            return []
        allowance = self.session.conversation.allowance
        currency = allowance.ledger.config.currency
        return [extensions.BudgetUse(of=each.of, used=told(each, currency)) for each in allowance.scopes()]

    @property
    def state(self) -> str:
        """Where its turn is, for people."""
        if self.busy:
            return self.subscribers.state.value
        return State.INPUT.value if self.suspended is None else State.SUSPENDED.value

    @property
    def waiting(self) -> bool:
        """Whether its turn is suspended until a moment."""
        return self._turn is not None and self._turn.waits

    def idle_for(self, now: float) -> float:
        """Return for how long nobody has used it (trio's clock); 0 while somebody does."""
        if self.subscribers.clients or self.busy or self.loading:
            return 0.0
        return now - max(self.subscribers.left_at, self.idle_since)

    def start_turn(
        self,
        text: str | None,
        prompter: Connection | None = None,
        sources: tuple[Source, ...] = (),
        answer_schema: dict[str, Any] | None = None,
        attached: Sequence[Attached | str] = (),
        check: str = "",
        *,
        by: str = "",
    ) -> RunningTurn:
        """Start a turn: a new one, as `Conversation.run_turn`; without a text the interrupted one, by the word of `by`.

        Raises:
            RequestError: something runs, or the session is being closed.
        """
        self.refuse_if_busy()
        self._turn = turn = RunningTurn(self.session.conversation)
        self.subscribers.prompter, self.subscribers.last_end = prompter, None
        conversation = self.session.conversation
        run = partial(conversation.run_turn, text or "", sources, answer_schema, attached, check)
        self._nursery.start_soon(self._run, turn, partial(conversation.resume, by) if text is None else run)
        return turn

    async def resume(self, by: str = "") -> TurnEnded | None:
        """Wait for the turn that runs, or resume an interrupted one, by the word of `by`; None when there is neither.

        Raises:
            SuspendedTurn: it is suspended, still or again.
            ConfigError: it would be finished by another model than it was started with.
            RequestError: a call runs, or the session is being closed.
        """
        if self._turn is None:
            if not self.interrupted:
                return None
            if self.substituted:
                raise ConfigError(f"The interrupted turn cannot be resumed: {self.substituted}")
        elif by and self._turn.waits:
            self._turn.wake(by)
        return await (self._turn or self.start_turn(None, by=by)).wait()

    def refuse_if_busy(self) -> None:
        """Make sure that nothing runs.

        Raises:
            RequestError: something does.
        """
        if self.closing:
            raise RequestError(jsonrpc.NOT_FOUND, "The session is being closed.", "not_found")
        if self.busy:
            message = "A turn of this session runs. Cancel it (session/cancel), or wait for its end."
            raise RequestError(jsonrpc.INVALID_REQUEST, message, "busy")

    def cut(self) -> None:
        """Cancel the turn and the calls that run."""
        if self._turn is not None:
            self._turn.scope.cancel()
        self.calls.cut()

    def leave_open(self) -> None:
        """End the turn as if the process had been killed: nothing is recorded, and it can be resumed."""
        if self.session.model is not None:
            self.session.conversation.leave_open()
        self.cut()

    def cancel(self) -> None:
        """Cancel the turn that runs, or is suspended; it is recorded as cancelled."""
        if self._turn is not None:
            self._turn.scope.cancel()
        elif self.suspended is not None and not self.closing:
            self.session.conversation.interrupt()

    def go_on(self) -> None:
        """Let a suspended turn look whether it can go on by now."""
        if self._turn is not None and self._turn.waits:
            self._turn.wake()
        elif self.suspended is not None and not (
            self.busy or self.closing or self.session.conversation.resumption.holds()
        ):
            self.start_turn(None)

    async def wait_until_idle(self) -> None:
        while self.busy:
            await self._idle.wait()

    async def call(self, tool: str, arguments: str, *, typed_by: str = "") -> CallEnded:
        """Run one tool without a model; `typed_by` as in `CallStarted`. Cancelling kills its worker.

        Raises:
            RequestError: it was cut off because the daemon stops; it is recorded as such.
        """
        with self.calls.running(f"{tool[:80]} was cut off."):
            return await self.session.call(tool, arguments, self._tell_end, typed_by=typed_by)

    def _tell_end(self, ended: CallEnded) -> None:
        projection = self.subscribers.projection
        if projection.knows(ended.call):  # clients were asked about it
            self.subscribers.tell(projection.of_event(ended))

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
        done: list[extensions.Undone] = []
        with self.calls.running("The undo was cut off."):
            for step in await plan():
                end = (None, None) if step.problem else await self.session.undo(undoing(step, force=force), by=by)
                done.append(undo_outcome(step, *end))
                if not (done[-1].ok or force):
                    break
        return done

    async def _run(self, turn: RunningTurn, run: Callable[[], Awaitable[TurnEnded | None]]) -> None:
        conversation = self.session.conversation
        try:
            with turn.scope:
                while True:
                    try:
                        await run()
                        break
                    except SuspendedTurn as suspended:
                        if not conversation.resumption.ends_by_itself:
                            raise
                        self.subscribers.wait(suspended.fact)
                    run = partial(conversation.resume, await turn.until_it_goes_on())
        except Exception as error:  # noqa: BLE001 - the session boundary: a bug ends the turn, not the daemon
            turn.fail(error, self.id)
        finally:
            turn.end = self.subscribers.last_end
            if turn.end is None and turn.failure is None:
                turn.failure = StrongroomError("The daemon is stopping; its successor resumes the turn.")
            self._turn = self.subscribers.prompter = None
            self.subscribers.state = State.DONE
            turn.done.set()
            self._rest()

    def _rest(self) -> None:
        self.idle_since = trio.current_time()
        if not self.busy:
            self._idle.set()
            self._idle = trio.Event()
