"""Updates that clients receive: a session's events and facts in the protocol's shapes. Pure.

Rule: a history that is loaded looks as it did when it happened. Both go through here: `of_event` for events as they
come, `of_fact` for facts from the journal; the same messages have the same ids.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, FaultsAllowed, ModeChanged, OptionChosen, Rewound,
RuleRevoked, SessionDeleted, TurnResumed, Unreadable.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.agent.blocks import content_block
from supervisor.agent.models.answering_model import answered_by
from supervisor.agent.models.model import Retrying, TextDelta, ThoughtDelta
from supervisor.agent.models.model_facts import ModelFacts
from supervisor.agent.turn import CallOutput, Event
from supervisor.daemon.protocol import tool_calls
from supervisor.daemon.protocol.content_shown import content_shown
from supervisor.daemon.protocol.fact_notices import fact_notice
from supervisor.daemon.protocol.session_usage import SessionUsage
from supervisor.daemon.protocol.turn_messages import cut_chunks, end_notices, reply_chunks, suspension, suspension_text
from supervisor.journal.contents import ContentStore
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Compacted,
    ContentsRefused,
    Fact,
    InstructionsRead,
    ModelRetried,
    ModelSwitched,
    Replied,
    ReplyCut,
    SessionChanged,
    SessionOpened,
    ToolsChanged,
    TurnEnded,
    TurnQuestioned,
    TurnStarted,
    TurnSuspended,
    effective,
)
from supervisor.tools.approval import go_on_id, switch_id
from supervisor.tools.content_words import described
from supervisor.tools.outcomes import allowed
from workers.catalog import offered_tools

_OUTPUT_LIMIT: Final = 16 * 1024
"""Characters of a running tool's output that are shown: its end."""
_PLAN: Final = "plan"


class Projection:
    """One session's view of itself, for its clients.

    Args:
        facts_of: what holds of a model, by its name.
        contents: has images at hand, and says where they are kept; no file is touched here.
    """

    def __init__(self, facts_of: Callable[[str], ModelFacts], contents: ContentStore | None = None) -> None:
        self.root = ""
        self.contents = contents
        self._pieces: list[str] = []
        """Of the reply that is just coming in: joined only for somebody who asks, for there may be very many."""
        self._thought = False
        """Thinking of that reply has been told."""
        self.usage = SessionUsage(facts_of)
        self.facts_of = facts_of
        self._model = self._chosen = ""
        self._kinds: set[str] = set()
        """Of the images and documents that the session has."""
        self._answering = ""
        """The model that clients were told answers instead of the one that is asked."""
        self.turn = 0
        """The number of the last turn."""
        self._step = 0
        self._attempt = 0
        self._output: dict[str, str] = {}
        self._known: set[str] = set()
        self._decided: dict[str, CallDecided] = {}
        """What was decided about the effects of calls that have not ended."""
        self._started: dict[str, CallStarted] = {}
        """Calls that have not ended."""

    def output_so_far(self, call: str) -> str:
        """Return what a call that has not ended has printed, the end of it."""
        return self._output.get(call, "")

    @property
    def partial(self) -> str:
        """The text of the reply that is just coming in."""
        return "".join(self._pieces)

    @property
    def message_id(self) -> str:
        """The id of the message that is being written; another try of it is another message."""
        again = f"-{self._attempt + 1}" if self._attempt else ""
        return f"turn-{self.turn}-step-{self._step}{again}"

    @property
    def other_model(self) -> str:
        """The model that the turn asks in place of the session's own; "" where it asks that."""
        return "" if self._model == self._chosen else self._model

    def of_event(self, event: Event) -> list[schema.Update]:
        """Return what clients that have been here from the start are told of an event."""
        match event:
            case TextDelta(text=text):
                self._pieces.append(text)
                return [schema.AgentMessageChunk.of(text, self.message_id)]
            case ThoughtDelta(text=text):
                self._thought = True
                return [schema.AgentThoughtChunk.of(text, self.message_id)]
            case Retrying() | ReplyCut():  # what was said cannot be taken back: what comes now is another message
                self._next_attempt()
                return []
            case CallOutput():
                return self._output_of(event.call, event.text)
            case Replied():
                streamed = {schema.AgentMessageChunk: bool(self._pieces), schema.AgentThoughtChunk: self._thought}
                self._clear_reply()
                said = [each for each in reply_chunks(event, self.message_id) if not streamed[type(each)]]
                return [*said, *self._by_another(event)]
            case _:
                return list(self._of_call(event))

    def apply(self, fact: Fact) -> None:
        """Take a fact into account, whoever is told of it."""
        match fact:
            case SessionOpened() | SessionChanged():
                self.root, self._model, self._chosen = fact.context.working_directory, fact.model, fact.model
            case ModelSwitched(model=model, approved=approved) if approved is not False:
                self._model = model
            case TurnStarted(turn=turn):
                self.turn, self._step, self._attempt, self._model = turn, 0, 0, self._chosen
                self.usage.begin_turn()
                self._forget()
            case Replied(usage=usage, origin=origin):
                self._step, self._attempt = self._step + 1, 0
                self._answering = "" if origin is None else origin.answering
                self.usage.count(self._model, usage)
            case Compacted(usage=usage, after=after):
                self.usage.count(self._model, usage)
                self.usage.context = after
            case TurnSuspended():
                self._model = self._chosen
            case TurnEnded():
                self._model = self._chosen
                self._forget()
            case _:
                pass

    def of_fact(self, fact: Fact) -> list[schema.Update]:
        """Return what a client is told of a fact that was not here when it happened."""
        match fact:
            case TurnStarted():
                updates: list[schema.Update] = self.of_prompt(fact)
            case Replied():
                updates = [*reply_chunks(fact, self.message_id), *self._by_another(fact)]
            case ModelRetried() | ReplyCut():
                updates = list(cut_chunks(fact, self.message_id))
                self._next_attempt()
            case _:
                updates = list(self._of_call(fact))
        self.apply(fact)
        return updates

    def of_prompt(self, fact: TurnStarted) -> list[schema.Update]:
        """Return a person's line, with the images and documents that came with it in words, a line each."""
        lines = [f"[{described(each)}]" for each in fact.contents]
        text = "\n".join([*lines, *([fact.text] if fact.text or not lines else [])])
        return [schema.UserMessageChunk.of(text, f"turn-{fact.turn}"), *self.unseen(fact)]

    def unseen(self, fact: TurnStarted | CallEnded) -> list[schema.Update]:
        """Return what people are told where their model is not shown an image or a document."""
        kinds = {content_block(each)["type"] for each in fact.contents}
        self._kinds |= kinds
        return list(self._blind(fact.turn, self._model, kinds))

    def _blind(self, turn: int, model: str, kinds: set[str]) -> Iterator[schema.Update]:
        """Yield what people are told where a model is not shown contents of some of these kinds."""
        if kinds and (unseen := sorted(kinds - self.facts_of(model).sees)):
            what = " and ".join(f"{each}s" for each in unseen)
            said = f"\n\n(The model {model} is not shown {what}: it reads what they are, and the text of documents.)\n"
            yield schema.AgentThoughtChunk.of(said, f"turn-{turn}-unseen-{self._step}")

    def of_usage(self) -> list[schema.Update]:
        """Return the tokens in the context and the cost so far; nothing where no reply has counted any."""
        return self.usage.updates(self._model)

    def _forget(self) -> None:
        """Forget what is half said and half done: a turn that begins or ends has neither."""
        self._clear_reply()
        self._output.clear()
        self._known.clear()
        self._decided.clear()
        self._started.clear()

    def _next_attempt(self) -> None:
        self._attempt += 1
        self._clear_reply()

    def _clear_reply(self) -> None:
        self._pieces.clear()
        self._thought = False

    def knows(self, call: str) -> bool:
        """Say whether clients have been told of a call that has not ended."""
        return call in self._known

    def of_question(self, shown: schema.ToolCall) -> schema.ToolCall | schema.ToolCallUpdate:
        """Return a call that a person is about to decide as it is told; an update where clients know it."""
        known = shown.tool_call_id in self._known
        self._known.add(shown.tool_call_id)
        return tool_calls.reshaped(shown, schema.ToolCallUpdate) if known else shown

    def _output_of(self, call: str, text: str) -> list[schema.Update]:
        if call not in self._known:  # a single call, of which nobody was told
            return []
        tail = self._output[call] = (self._output.get(call, "") + text)[-_OUTPUT_LIMIT:]
        return [schema.ToolCallUpdate(tool_call_id=call, status="in_progress", content=tool_calls.text(tail))]

    def _of_call(self, fact: Event) -> Iterator[schema.Update]:
        match fact:
            case CallStarted():
                self._started[fact.call] = fact
                status: schema.ToolStatus = "in_progress" if allowed(fact) else "pending"
                self._output.pop(fact.call, None)  # what it printed with other arguments
                if fact.call in self._known:
                    yield tool_calls.decided(fact)
                else:
                    self._known.add(fact.call)
                    yield tool_calls.started(fact, self.root, status)
            case CallDecided():
                self._decided[fact.call] = fact
                yield tool_calls.decided_effects(fact)
            case CallEnded():
                if fact.call not in self._known:  # it never was a call that ran: cut, or not wanted any more
                    yield tool_calls.unannounced(fact)
                self._known.discard(fact.call)
                self._output.pop(fact.call, None)
                shown = [content_shown(each, self.contents) for each in fact.contents]
                yield tool_calls.ended(fact, self.root, self._decided.pop(fact.call, None), shown)
                yield from self.unseen(fact)
                yield from self._planned(fact)
            case TurnQuestioned(approved=approved) if (call := go_on_id(fact.turn)) in self._known:
                self._known.discard(call)
                yield schema.ToolCallUpdate(tool_call_id=call, status="completed" if approved else "failed")
            case ModelSwitched() | SessionChanged():
                yield from self._switched(fact)
            case ContentsRefused() | InstructionsRead() | ToolsChanged() | Compacted():
                yield fact_notice(fact, self._step if fact.turn == self.turn else 0)
            case TurnSuspended() | TurnEnded():
                yield from self._turn_stopped(fact)
            case _:
                return

    def _by_another(self, fact: Replied) -> Iterator[schema.Update]:
        """Tell once of another model than the one that was asked."""
        if fact.origin is not None and fact.origin.answering != self._answering and (said := answered_by(fact.origin)):
            yield schema.AgentThoughtChunk.of(f"\n\n({said})\n", f"turn-{fact.turn}-answering-{self._step}")

    def _switched(self, fact: ModelSwitched | SessionChanged) -> Iterator[schema.Update]:
        if isinstance(fact, SessionChanged):
            yield from self._blind(self.turn, fact.model, self._kinds if fact.model != self._chosen else set())
            return
        if (call := switch_id(fact.turn)) in self._known:
            self._known.discard(call)
            yield schema.ToolCallUpdate(tool_call_id=call, status="failed" if fact.approved is False else "completed")
        if fact.approved is not False:
            text = f"\n\n({fact.before} gives no reply, {fact.model} is asked: {fact.because})\n"
            yield schema.AgentThoughtChunk.of(text, f"turn-{fact.turn}-suspended-{self._step}-switch")
            yield from self._blind(fact.turn, fact.model, self._kinds)

    def _turn_stopped(self, fact: TurnSuspended | TurnEnded) -> Iterator[schema.Update]:
        match fact:
            case TurnSuspended():
                if (call := switch_id(fact.turn)) in self._known:  # nobody has answered
                    self._known.discard(call)
                    yield schema.ToolCallUpdate(tool_call_id=call, status="failed")
                told = f"\n\n({suspension_text(fact)})\n"
                said = schema.AgentThoughtChunk.of(told, f"turn-{fact.turn}-suspended-{self._step}-{fact.kind}")
                yield msgspec.structs.replace(said, meta={extensions.SUSPENDED: suspension(fact)})
            case TurnEnded():
                yield from end_notices(fact)

    def _planned(self, fact: CallEnded) -> Iterator[schema.Update]:
        """Yield the plan that a call was about; it was checked, if the call is a success."""
        started = self._started.pop(fact.call, None)
        if fact.ok and started is not None and started.tool == _PLAN:
            entries = offered_tools()[_PLAN].decode(effective(started).encode()).entries
            yield schema.Plan(entries=[schema.PlanEntry(**msgspec.structs.asdict(each)) for each in entries])
