"""The transcript that the model is shown: a fold over a session's facts. Pure.

Rule: whatever happened, the messages are valid for the Messages API: roles alternate, every tool_use is followed
by exactly one tool_result in the next message, ids are unique, nothing is empty. The live conversation and one
that is opened again after a crash go through the same fold, so they cannot differ.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, FaultsAllowed, OptionChosen, Rewound, RuleRevoked,
SessionDeleted.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from supervisor.agent.answer_schema import schema_block
from supervisor.agent.blocks import (
    AFTER_A_REPLY,
    again_block,
    content_block,
    cut_block,
    ending_block,
    gone_block,
    result_block,
    told_after,
)
from supervisor.agent.compaction import CompactedHead, Compaction
from supervisor.agent.detour import Detour
from supervisor.agent.input_bound import MeasuredInput, measured_by
from supervisor.agent.loop_counter import LoopCounter
from supervisor.agent.meanwhile import Meanwhile
from supervisor.agent.models.model import NO_ANSWER, Block, ToolUse
from supervisor.agent.open_calls import OpenCalls
from supervisor.agent.receipts.receipt_fold import ReceiptFold
from supervisor.agent.said_messages import SaidMessages
from supervisor.agent.spending import Spending
from supervisor.agent.told_instructions import ToldInstructions, touched_by
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Compacted,
    ContentsRefused,
    Fact,
    InstructionsRead,
    ModeChanged,
    ModelRetried,
    ModelSwitched,
    Replied,
    ReplyCut,
    SessionChanged,
    SessionOpened,
    ToolsChanged,
    TurnEnded,
    TurnQuestioned,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    Unreadable,
)
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.outcome_bounds import size_of
from supervisor.tools.outcomes import abandoned, availability_notice, not_started
from supervisor.tools.run_notice import will_run
from workers.wire.messages import ErrorKind

STOPPED = "Strongroom was stopped while this call ran."
_LOST = "The outcome of this call cannot be read any more: its record is damaged. Look before you repeat it."
_NO_TEXT = "(an empty line)"
_PAST = 1.0


class Transcript(SaidMessages):
    """The conversation so far, and what is still open in it."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        super().__init__()
        self.refused_contents: dict[str, frozenset[str]] = {}
        """The digests of those that a model's server refuses, by the model."""
        self.turn = self.replies = 0
        """The last turn, and the replies in it."""
        self.results = 0
        """Bytes of the results of the last turn."""
        self.step = self.cuts = 0
        """Model requests that have ended, by a reply or by an error, and replies of which no more has come."""
        self.will_run: dict[str, None] = {}
        """What the open turn wrote, and the person will run."""
        self.usage: dict[str, int] = {}
        self.open_turn: TurnStarted | None = None
        self.rejected = self.refused = 0
        """Calls of the last turn that a person rejected, and answers of it that were not valid by its schema."""
        self.questioned = False
        """Whether they were asked then if it goes on."""
        self.resumed = 0
        """How often the open turn went on since it last got a reply, and with it any outcome of a call."""
        self.suspended: TurnSuspended | None = None
        """Why the open turn goes no further; None where it does."""
        self.detour, self.loops, self.spending, self.receipts = Detour(), LoopCounter(), Spending(), ReceiptFold()
        self.compaction = Compaction()
        self.measured: MeasuredInput | None = None  # what the next request begins with, as its server has counted it
        self.open_calls = OpenCalls()
        self.started, self.decided = self.open_calls.started, self.open_calls.decided
        self.wanted: dict[str, str] = {}
        """The tools that the last reply called, by the call's id."""
        self.instructions = ToldInstructions()
        self.exposure = SeenText()
        """What the model has been shown, for the policy."""
        self.unavailable: dict[str, tuple[str, ...]] = {}
        """Tools that the model was told it cannot have for now, by the category whose workers have failed."""
        self.ids: set[str] = set()
        """Every call's id, so that none is used twice."""
        self._awaited, self._results, self._inputs = list[str](), dict[str, Block](), dict[str, Any]()
        self._cut, self._meanwhile = "", Meanwhile()  # what people have read of a reply that never came to its end
        self._setup: tuple[object, ...] = ()
        for fact in facts:
            self.apply(fact)

    def apply(self, fact: Fact) -> None:
        self.exposure.apply(fact)
        self.spending.apply(fact)
        self.receipts.apply(fact)
        match fact:
            case TurnStarted():
                self._answer_lost_calls()
                self.turn, self.open_turn, self.replies, self.resumed, self.results = fact.turn, fact, 0, 0, 0
                self.rejected, self.questioned, self.refused, self._cut = 0, False, 0, ""
                self.suspended, self.loops, self.will_run = None, LoopCounter(), {}
                self._leave_detour(0.0)
                asked = [schema_block(fact.answer_schema)] if fact.answer_schema is not None else []
                self.say("user", [*self.instructions.take(), *self._meanwhile.take(), *self._said(fact), *asked])
            case TurnResumed() | TurnSuspended() | TurnQuestioned() | ModelSwitched() | ContentsRefused():
                self._turn_goes_on(fact)
            case Compacted() | ToolsChanged():
                self._told_anew(fact)
            case SessionChanged() | SessionOpened() | ModeChanged() | InstructionsRead():
                self._set_up(fact)
            case Replied() | ReplyCut() | ModelRetried():
                self._replied(fact)
            case CallStarted() | CallDecided() | CallEnded():
                self._call(fact)
            case TurnEnded():
                self._turn_ended(fact)
            case Unreadable():
                self.open_turn = self.suspended = None  # it may have been its end: nothing is asked or run twice
            case _:
                return
        self.compaction.apply(fact, len(self.messages) - 1)

    def _told_anew(self, fact: Compacted | ToolsChanged) -> None:
        self.measured = None
        if isinstance(fact, Compacted):
            said, head, first = self.compacted(fact)
            self.compaction.take(head, first)
            self.take(said)
            return
        self.unavailable = {each: tools for each, tools in self.unavailable.items() if each != fact.category}
        if fact.because:
            self.unavailable[fact.category] = fact.tools
        self.say("user", [{"type": "text", "text": f"({availability_notice(fact)})"}])

    def compacted(self, fact: Compacted) -> tuple[SaidMessages, CompactedHead, int]:
        """Return what the messages become by a compaction, what stands before them, and how many of them go."""
        first = self.compaction.border_of(fact.step, self.last_border())
        head = self.compaction.head(fact, first, self._holding_on())
        return self.shortened(first, head.blocks, fact.result), head, first

    def _holding_on(self) -> list[Block]:
        """Return what the model was told once and holds on, as project instructions do: it is told again."""
        told = [*self.instructions.pinned(), *self._meanwhile.told_before, *map(gone_block, self.unavailable.values())]
        schema = None if self.open_turn is None else self.open_turn.answer_schema
        return told if schema is None else [*told, schema_block(schema)]

    def _said(self, fact: TurnStarted) -> list[Block]:
        """Return a person's line, images and documents first: models read them better so."""
        self.name(fact.contents)
        said = [content_block(each) for each in fact.contents]
        if fact.text.strip() or not said:
            said.append({"type": "text", "text": fact.text if fact.text.strip() else _NO_TEXT})
        return said

    def _set_up(self, fact: SessionChanged | SessionOpened | ModeChanged | InstructionsRead) -> None:
        if isinstance(fact, InstructionsRead):
            self.instructions.apply(fact)
            self._say_instructions()
        elif isinstance(fact, SessionChanged):
            same = self._setup == (fact.profile, fact.model, fact.context, fact.tools) and not self.detour.model
            self.unavailable, self.measured, self.detour.model = {}, self.measured if same else None, ""
            if self.suspended is not None and self.suspended.kind == "limit":  # it was that of another model
                self.suspended = msgspec.structs.replace(self.suspended, until=_PAST)
        else:
            self._meanwhile.mode = fact.mode
        if isinstance(fact, SessionChanged | SessionOpened):
            self._setup = fact.profile, fact.model, fact.context, fact.tools

    def _turn_goes_on(
        self, fact: TurnResumed | TurnSuspended | TurnQuestioned | ModelSwitched | ContentsRefused
    ) -> None:
        match fact:
            case ContentsRefused(model=model, contents=contents):
                before = self.refused_contents.get(model, frozenset())
                self.refused_contents[model] = before.union(each.digest for each in contents)
                self.measured = None
            case TurnSuspended():
                self.suspended, self.resumed = fact, 0  # the process that recorded it was well
                self._leave_detour(fact.since)
            case TurnResumed(by=by):
                self.suspended, self.resumed = None, self.resumed + 1
                self._tell_cut()
                if by:  # a person: what repeats, and how long is waited, is counted anew
                    self.loops, self.detour.since = LoopCounter(), 0.0
            case TurnQuestioned():
                self.questioned = True
            case ModelSwitched(model=model, approved=approved):
                self.detour.allowed = self.detour.allowed if approved is None else approved
                self.detour.model, self.measured = "" if approved is False else model, None

    def _leave_detour(self, since: float) -> None:
        """Return to the session's own model, which counts tokens otherwise than another."""
        self.detour.since = since
        if self.detour.model:
            self.detour.model, self.measured = "", None

    def _answer_lost_calls(self) -> None:
        """Close calls whose outcome was recorded in a row that cannot be read; in a whole journal there are none."""
        for call in self.unanswered:
            self._results[call] = {"type": "tool_result", "tool_use_id": call, "content": _LOST, "is_error": True}
        self._append_results()

    def _call(self, fact: CallStarted | CallDecided | CallEnded) -> None:
        started, decided = self.open_calls.apply(fact)
        match fact:
            case CallStarted():
                self.ids.add(fact.call)
                self.rejected += fact.approved is False and bool(fact.decided_by)
            case CallDecided():
                self.rejected += fact.approved is False
            case CallEnded():
                self.ids.add(fact.call)
                if started is not None and started.typed_by:
                    self._meanwhile.typed(started, fact)
                    return
                notice = self.loops.count(self.step, started, decided, fact)
                if not fact.ok or decided is None or decided.effects is None:
                    pass
                elif decided.undoes:
                    self._meanwhile.undone(decided)
                elif decided.committed:
                    self.will_run |= dict.fromkeys(will_run(decided.effects))
                self.instructions.touched += touched_by(started, decided)
                self.results += size_of(fact)
                self.name(fact.contents)
                self._results[fact.call] = result_block(fact, notice)
                self._append_results()

    @property
    def unanswered(self) -> Sequence[str]:
        """Ids of the tool calls of the last reply that have no outcome yet, in order."""
        return [call for call in self._awaited if call not in self._results]

    def awaits(self, call: str) -> bool:
        """Say whether the open turn awaits a call whose commit did not take place, for the first time."""
        return self.open_turn is not None and call in self.unanswered and call not in self.open_calls.unmade

    def unfinished(self, why: str, otherwise: ErrorKind) -> list[CallEnded]:
        """Return an end for every call of the last reply that has none, in order.

        Args:
            why: says what happened to those that ran; a call that was never started says so by itself.
            otherwise: the kind for those that ran and have no effect; the others' outcome is unknown.
        """
        return [
            abandoned(self.started[call], why, otherwise, self.decided.get(call))
            if call in self.started
            else not_started(self.turn, call, self.wanted[call])
            for call in (*self.unanswered, *(call for call, made in self.started.items() if made.check))
        ]

    def undecided(self) -> list[ToolUse]:
        """Return the calls of the last reply that nobody has decided about yet, in order: none has changed anything."""
        return [
            ToolUse(call, self.wanted[call], msgspec.json.encode(self._inputs[call]).decode())
            for call in self.unanswered
            if self.open_calls.is_undecided(call)
        ]

    def closing_facts(self) -> list[Fact]:
        """Return the facts that end an open turn that nobody resumes; none when no turn is open."""
        if self.open_turn is None:
            return []
        end = TurnEnded(self.turn, "error", "", kind="interrupted", message="Strongroom was stopped during this turn.")
        if self.suspended is not None:
            end = TurnEnded(self.turn, "cancelled", "", kind="cancelled", message="The turn was ended while suspended.")
        return [*self.unfinished(STOPPED, "cancelled"), msgspec.structs.replace(end, receipt=self.receipts.of(end))]

    def _replied(self, fact: Replied | ReplyCut | ModelRetried) -> None:
        if not isinstance(fact, Replied):
            self.cuts += 1
            self._cut = fact.text if fact.text.strip() else self._cut
            return
        self._answer_lost_calls()
        self._cut = ""
        self.step += 1
        self.replies += 1
        self.resumed, self.detour.since = 0, 0.0
        for name, count in fact.usage.items():
            self.usage[name] = self.usage.get(name, 0) + count
        if fact.stop_reason == "refusal":
            return  # the API asks to leave a refused exchange out; the turn's end says what happened
        before = len(self.messages)
        self.measured = measured_by(fact.usage, self.messages)
        self.say("assistant", fact.content or [{"type": "text", "text": NO_ANSWER}])
        if fact.origin is not None and len(self.messages) > before:
            self.origins[len(self.messages) - 1] = fact.origin
        self.wanted = {block["id"]: block["name"] for block in fact.content if block["type"] == "tool_use"}
        self._inputs = {block["id"]: block["input"] for block in fact.content if block["type"] == "tool_use"}
        self._awaited = list(self.wanted)
        self.ids.update(self._awaited)
        self._results = {}
        self.refused += bool(fact.refused)
        if told := told_after(fact):
            self.say("user", told)

    def _tell_cut(self) -> None:
        """Tell what people have read of a reply that is asked for again: it comes as another message."""
        if self._cut:
            self.say("assistant", [cut_block(self._cut, "interrupted")])
            self.say("user", [again_block()])
            self._cut = ""

    def _append_results(self) -> None:
        if self._awaited and not self.unanswered:
            self.say("user", [self._results[call] for call in self._awaited])
            self._awaited = []
            self._say_instructions()

    def _say_instructions(self) -> None:
        """Tell what was read within a turn, once no result is awaited: results come first in their message."""
        after_results = self.open_turn is not None and self.messages[-1]["role"] == "user"
        if self.instructions.untold and after_results:
            self.say("user", self.instructions.take())

    def _turn_ended(self, fact: TurnEnded) -> None:
        asked = self.open_turn is None or not self.open_turn.refused
        self.open_turn = self.suspended = None
        self.resumed = 0
        self.open_calls.clear()
        if fact.status == "error" and fact.kind not in AFTER_A_REPLY and asked:
            self.step += 1
        if self._cut or (self.messages and self.messages[-1]["role"] == "user"):
            self.say("assistant", [ending_block(fact, self._cut)])
            self._cut = ""
