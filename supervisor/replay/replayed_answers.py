"""Replies, answers and outcomes of a record: all that a recorded session was told from outside.

Rule: everything stands in the facts, and is given in the order in which it was recorded. Where the record has nothing
to give, the turn is cut: no reply and no answer is made up.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
import trio

from supervisor.agent.models.model import ModelRequest, Progress, Reply, ToolUse
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    ModeChanged,
    Replied,
    TurnEnded,
    TurnQuestioned,
    TurnStarted,
)
from supervisor.journal.passages import RECALL
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from supervisor.tools.catalog import offers
from workers.catalog import CATEGORIES, offered_tools

_CUT_OFF: Final = ("cancelled", "outcome_unknown", "timeout", "worker_crashed", "worker_unavailable")
"""Kinds of outcomes that came from what happened around a call."""


class ReplayedModel:
    """Gives the recorded replies.

    Args:
        name: of the model that the session had.
        translate: makes text of the record fit the copy of the root.
        changed: is told of a mode that the person chose before a reply.
        cut: ends the turn, for which no more replies are recorded.
    """

    def __init__(
        self,
        name: str,
        translate: Callable[[str], str],
        changed: Callable[[ModeChanged], Awaitable[None]],
        cut: Callable[[], None],
    ) -> None:
        self.name = name
        self._translate = translate
        self._changed = changed
        self._cut = cut
        self._left: deque[Replied | ModeChanged] = deque()
        self._arguments: dict[str, str] = {}

    def begin(self, turn: Sequence[Fact]) -> None:
        """Give the replies of this turn from here on."""
        self._left = deque(fact for fact in turn if isinstance(fact, Replied | ModeChanged))
        self._arguments = {fact.call: fact.arguments for fact in turn if isinstance(fact, CallStarted)}

    async def warm(self) -> None:
        """Do nothing: all is there."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Do nothing: nothing is open here."""
        await trio.lowlevel.checkpoint()

    async def reply(self, request: ModelRequest, show: Callable[[Progress], None]) -> Reply:  # noqa: ARG002 - a model's
        """Return the next recorded reply, whatever is asked."""
        while self._left:
            next_one = self._left.popleft()
            if isinstance(next_one, Replied):
                return self._reply(next_one)
            await self._changed(next_one)
        self._cut()
        await trio.sleep_forever()
        raise AssertionError("it was cut")

    def _reply(self, recorded: Replied) -> Reply:
        content = msgspec.json.decode(self._translate(msgspec.json.encode(recorded.content).decode()))
        calls = [
            ToolUse(each["id"], each["name"], self._raw(each["id"], msgspec.json.encode(each["input"]).decode()))
            for each in content
            if each["type"] == "tool_use"
        ]
        return Reply(content, recorded.stop_reason, recorded.usage, calls)

    def _raw(self, call: str, parsed: str) -> str:
        """Return a call's arguments as the model wrote them, where that is recorded."""
        return self._translate(self._arguments[call]) if call in self._arguments else parsed


class ReplayedPerson:
    """Gives the recorded answers of people; a question that nobody was asked is answered by no."""

    def __init__(self, facts: Iterable[Fact], translate: Callable[[str], str]) -> None:
        self._translate = translate
        self._answers: dict[tuple[str, bool], deque[ApprovalDecision]] = {}
        self._go_on: deque[ApprovalDecision] = deque()
        for fact in facts:
            if isinstance(fact, CallStarted | CallDecided) and fact.approved is not None:
                at_first = isinstance(fact, CallStarted)
                self._answers.setdefault((fact.call, at_first), deque()).append(self._decision(fact))
            elif isinstance(fact, TurnQuestioned):
                self._go_on.append(ApprovalDecision(fact.approved, remark=fact.remark, by=fact.decided_by))

    def _decision(self, fact: CallStarted | CallDecided) -> ApprovalDecision:
        edited = None if fact.edited is None else self._translate(fact.edited)
        return ApprovalDecision(
            bool(fact.approved), edited, fact.remark, fact.decided_by, fact.scope, fact.rule if fact.approved else None
        )

    async def approve(self, question: ApprovalQuestion) -> ApprovalDecision:
        await trio.lowlevel.checkpoint()
        of_turn = question.stage in {"turn", "switch"}
        left = self._go_on if of_turn else self._answers.get((question.call.call, question.stage == "call"), deque())
        return left.popleft() if left else ApprovalDecision(approved=False)


def given_outcomes(facts: Sequence[Fact]) -> dict[str, CallEnded]:
    """Return the outcomes that are not had again, by call.

    Those are what came from a network, from outside of the sandbox or from the journal, and what was cut off.
    """
    outside = {
        fact.call
        for fact in facts
        if isinstance(fact, CallDecided) and (fact.unconfined or fact.network or fact.unrehearsed)
    }
    return {
        fact.call: fact
        for fact in facts
        if isinstance(fact, CallEnded) and (fact.call in outside or fact.kind in _CUT_OFF or _is_elsewhere(fact.tool))
    }


def _is_elsewhere(tool: str) -> bool:
    """Say whether what a tool shows lies neither in the root nor in its worker."""
    category = offers((tool,))[tool].category if tool in offered_tools() else ""
    return tool == RECALL or (bool(category) and CATEGORIES[category].brokered)


def turns_of(facts: Iterable[Fact]) -> Iterator[list[Fact]]:
    """Yield the facts of each turn, and of what came between two of them, in order."""
    group: list[Fact] = []
    for fact in facts:
        if isinstance(fact, TurnStarted) and group:
            yield group
            group = []
        group.append(fact)
        if isinstance(fact, TurnEnded):
            yield group
            group = []
    if group:
        yield group
