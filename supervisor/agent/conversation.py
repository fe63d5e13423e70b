"""Turns and steps: the ReAct loop.

Rule: journal, then act, then show. A reply and the calls that it starts are one commit, made before any of them
runs; each outcome is committed before anybody sees it; every tool_use gets exactly one tool_result, whatever
happened. The loop holds no state of its own: everything stands in the facts, so a turn that a crash interrupted
is resumed from its last one.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import trio

from supervisor.agent.allowance import Allowance
from supervisor.agent.compactor import CompactionWish
from supervisor.agent.fact_recorder import FactRecorder
from supervisor.agent.fallbacks import Fallbacks, ModelChoice
from supervisor.agent.ledger import Ledger
from supervisor.agent.models.model import Model, ModelOptions, ToolUse
from supervisor.agent.requester import Requester
from supervisor.agent.resumption import Resumption
from supervisor.agent.transcript import STOPPED, Transcript
from supervisor.agent.turn import Event, State, SuspendedTurn, Turn
from supervisor.agent.turn_check import TurnCheck
from supervisor.agent.turn_steps import TurnSteps
from supervisor.errors import JournalError, ModelError
from supervisor.journal.facts import (
    BudgetChanged,
    Compacted,
    Fact,
    Replied,
    ReplyCut,
    SessionChanged,
    Source,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from supervisor.journal.journal_writer import JournalWriter
from supervisor.system.garbage import give_back
from supervisor.system.off_loop import off_loop
from supervisor.tools.content_intake import Attached, ContentRefused
from supervisor.tools.partial_output import PartialOutput
from supervisor.tools.router import Router
from supervisor.tools.run_notice import run_notice
from workers.wire.messages import ErrorKind

_log: Final = logging.getLogger("strongroom.agent")

_CANCELLED: Final = "The turn was cancelled, and the worker that ran this call was stopped."
_MUCH: Final = 2**20
"""Bytes of a turn's results after which memory is given back."""


@dataclass(eq=False)
class Conversation:
    """The agent of one session."""

    session: str
    """Its id in the journal."""
    writer: JournalWriter
    """Where facts go before anything else."""
    model: Model
    """Answers requests."""
    router: Router
    """Decides about tool calls and runs them."""
    system: str
    """The system prompt; stays the same until `change_setup`, so that it can be cached."""
    show: Callable[[Event], None]
    """Is given every event; must not block."""
    max_steps: int
    """Model requests that a turn may take."""
    transcript: Transcript
    """Of the session's facts so far."""
    options: Callable[[str], ModelOptions] = lambda _name: ModelOptions()
    """Gives what the next request to a model asks for of its reply."""
    sees: Callable[[str], frozenset[str]] = lambda _name: frozenset()
    """Says which blocks a model is shown as they are: "image", "document"."""
    ledger: Ledger = field(default_factory=Ledger)
    """The budgets that it shares."""
    batch: str = ""
    """The run of the batch that it is for."""
    fallbacks: Fallbacks = field(default_factory=Fallbacks)
    """The models that are asked where its own gives no reply."""
    window: Callable[[str], int] = lambda _name: 0
    """Says how many tokens a model holds; 0 where nobody knows."""
    began_in: str = ""
    """The session that it began in, where it was forked."""

    def __post_init__(self) -> None:
        self.running = self._leave_turn_open = False
        self.resumption = Resumption(self.transcript, lambda tokens: self._requester.fits(self.model, tokens))
        self._partial_output = PartialOutput()
        self.allowance = Allowance(self.ledger, self.transcript.spending, self.batch, self.session)
        self.ledger.run_here(self.session, self.batch)
        recorder = FactRecorder(self.session, self.writer, self._take, self.show)
        self._record, self._record_at_once = recorder.record, recorder.record_at_once
        told = self.show, self._record, self._record_at_once
        asking, began_in = (self.allowance, self.options, self.sees), self.began_in or self.session
        self._requester = Requester(self.session, self.writer, self.transcript, *told, *asking, self.window, began_in)
        choice = ModelChoice(self.fallbacks, self.transcript, self._record)
        known = self.transcript, self.show, self._record, self._partial_output
        check = TurnCheck(*known)
        self._steps = TurnSteps(*known, self._requester, choice, check, self.max_steps)

    async def run_turn(
        self,
        text: str,
        sources: tuple[Source, ...] = (),
        answer_schema: dict[str, Any] | None = None,
        attached: Sequence[Attached | str] = (),
        check: str = "",
    ) -> TurnEnded:
        """Run one turn; return how it ended. A turn that was still open is closed first.

        `sources` are those of the text's parts, where not all of it was typed; with an `answer_schema` (which is one)
        the final answer is a JSON document that is valid by it. `attached` are images and documents, or paths of some.
        `check` is a command that must pass where the turn changes something.

        Raises:
            SuspendedTurn: it goes no further for now, and stays open.
            JournalError: something could not be recorded; nothing was done beyond what is.
            ValueError: a turn runs already.
            trio.Cancelled: the caller was cancelled; the turn is recorded as cancelled.
        """
        with self._only_turn():
            self.interrupt()
            if sources:
                sources = await self.router.told_sources(text, sources)
            started = TurnStarted(self.transcript.turn + 1, text, sources, answer_schema, check=check)
            try:
                read = await self.router.instructions.at_turn(started.turn, self.transcript.instructions)
                contents = await self.router.intake.take_all(attached)
            except ContentRefused as refused:
                end = TurnEnded(started.turn, "error", "", kind=refused.kind, message=str(refused))
                return await self._refuse(started, end)
            except trio.Cancelled:
                if not self._leave_turn_open:
                    await self._refuse(started, TurnEnded(started.turn, "cancelled", "", kind="cancelled"))
                raise
            await self._record(*read, msgspec.structs.replace(started, contents=contents))
            return await self._run(State.THINKING)

    async def _refuse(self, started: TurnStarted, end: TurnEnded) -> TurnEnded:
        """End a turn of which something that came with it could not be taken; the model is not asked."""
        await self._record(msgspec.structs.replace(started, refused=True))
        return await self._end_turn(Turn(), [], end)

    async def resume(self, by: str = "") -> TurnEnded | None:
        """Resume a turn that was interrupted or suspended; None when none is open.

        One that is suspended goes on when its time has come, or at the word of `by`; else it stays so, and nothing is
        recorded.

        Calls that may have changed something then have an unknown outcome: they are reported so, and not repeated.
        Calls that had changed nothing yet, and of which nobody had decided that they may, are judged, rehearsed and
        asked about again. Who calls this for a turn that may be what ended the last process looks at
        `Transcript.resumed` first.

        Raises:
            As `run_turn`.
        """
        with self._only_turn():
            if self.transcript.open_turn is None:
                return None
            if self.transcript.suspended is not None and self.resumption.holds(by):
                raise SuspendedTurn(self.transcript.suspended)
            undecided = self.transcript.undecided()
            left = {call.id for call in undecided}
            ends = self.transcript.unfinished(STOPPED, "cancelled")
            by = by if self.transcript.suspended is not None else ""
            resumed = TurnResumed(self.transcript.turn, by)
            cut = self._requester.shown.cut()
            await self._record(*cut, resumed, *[end for end in ends if end.call not in left])
            return await self._run(State.FINALIZING if self.transcript.replies else State.THINKING, undecided)

    def change_setup(self, changed: SessionChanged, model: Model, router: Router, system: str, max_steps: int) -> None:
        """Let the next turn use another model, other tools and another prompt; the transcript stays.

        Raises:
            JournalError: it cannot be recorded; everything stays as it was.
            ValueError: a turn runs.
        """
        with self._only_turn():
            self._record_at_once(changed)
            self.model, self.router, self.system = model, router, system
            self.max_steps, self._steps = max_steps, replace(self._steps, max_steps=max_steps)

    async def compact(self, by: str, remark: str = "") -> Compacted | None:
        """Keep the conversation in short from here on; return the fact, or None where nothing can be left out.

        Raises:
            JournalError: it cannot be recorded; everything stays as it was.
            ValueError: a turn runs.
        """
        with self._only_turn():
            return await self._requester.compact(self.model, self.router, self.system, CompactionWish(by, remark))

    def compact_later(self, by: str, remark: str = "") -> None:
        """Do the same before the next request of the turn that runs."""
        self._requester.compactor.wish = CompactionWish(by, remark)

    def change_budget(self, changed: BudgetChanged) -> None:
        """Give the turn or the session another budget, also while a turn runs.

        Raises:
            JournalError: it cannot be recorded; everything stays as it was.
        """
        self._record_at_once(changed)

    def interrupt(self) -> None:
        """Close a turn that was left open, so that a new one can start."""
        self._record_at_once(*self._requester.shown.cut(), *self.transcript.closing_facts())

    def close_if_cancelled(self) -> None:
        """Close a turn whose wait was cancelled, unless it is to be left open."""
        if not self._leave_turn_open:
            self.interrupt()

    def leave_open(self) -> None:
        """Let a cancellation from now on leave the turn as it is, as if the process had been killed: to be resumed."""
        self._leave_turn_open = True

    @contextmanager
    def _only_turn(self) -> Iterator[None]:
        if self.running:
            raise ValueError(f"a turn of session {self.session} runs")
        self.running = True
        try:
            with self.router.intake.in_use():
                yield
        finally:
            self.running = False
            self._requester.shown.close()

    # --- one turn ---------------------------------------------------------------------------------------------

    async def _run(self, first: State, undecided: Sequence[ToolUse] = ()) -> TurnEnded:
        turn = Turn(self.transcript.results)
        self.show(turn.state)
        last: Sequence[Fact] = ()
        try:
            if undecided:
                self.show(turn.enter(State.REVIEW_ACTION))  # before it waits: a turn in Input looks like none
                await self._steps.judge_and_run(self.router, turn, undecided)
                first = State.FINALIZING
            last, end = await self._steps.run(self.model, self.router, self.system, turn, first)
        except SuspendedTurn as suspend:
            await self._record(suspend.fact)
            self.show(turn.enter(State.SUSPENDED))
            raise
        except ModelError as error:
            end = TurnEnded(self.transcript.turn, "error", "", kind=error.kind, message=str(error))
        except JournalError:
            raise  # nothing can be recorded, so nothing more may be done
        except Exception:  # noqa: BLE001 - the session boundary: a bug ends the turn, not the program
            _log.exception("internal error in a turn of session %s", self.session)
            last = self._unfinished("An internal error ended the turn.", "internal")
            message = "An internal error ended the turn; the log has the details."
            end = TurnEnded(self.transcript.turn, "error", "", kind="internal", message=message)
        except BaseException:  # cancelled, alone or in a group
            if self._leave_turn_open:
                await self._record(*self._requester.shown.cut())
                raise
            last = self._unfinished(_CANCELLED, "cancelled")
            await self._end_turn(turn, last, TurnEnded(self.transcript.turn, "cancelled", "", kind="cancelled"))
            raise
        return await self._end_turn(turn, last, end)

    def _unfinished(self, why: str, otherwise: ErrorKind) -> list[Fact]:
        """Return an end for a reply that is cut, and for every call that has none, with what it had printed."""
        calls = [self._partial_output.completed(end) for end in self.transcript.unfinished(why, otherwise)]
        return [*self._requester.shown.cut(), *calls]

    async def _end_turn(self, turn: Turn, last: Sequence[Fact], end: TurnEnded) -> TurnEnded:
        """Record the last facts of a turn; return its end, with what the person is to know."""
        note, receipt = run_notice(list(self.transcript.will_run)), self.transcript.receipts.of(end)
        end = msgspec.structs.replace(end, note=note, receipt=receipt)
        await self._record(*last, end)
        self._requester.made.forget()
        self.show(turn.enter(State.DONE))
        if turn.results > _MUCH:
            await off_loop(turn.results, give_back)
        return end

    def _take(self, fact: Fact) -> None:
        """Take a fact into account that is durable by now."""
        self.transcript.apply(fact)
        self.allowance.count(fact)
        if isinstance(fact, Replied | ReplyCut):
            self._requester.shown.forget()
