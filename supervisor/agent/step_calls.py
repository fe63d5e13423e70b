"""The tool calls of one step: judged, asked about and run.

Rule: the reply and the calls that it starts are one commit, made before any of them runs; each outcome is committed
before anybody sees it. Calls that change something run one after the other, the others beside them.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import trio

from supervisor.agent.models.model import ToolUse
from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import Event, State, Turn, TurnCallContext
from supervisor.errors import JournalError
from supervisor.journal.facts import CallStarted, Fact
from supervisor.system.off_loop import off_loop
from supervisor.tools.exfiltration.flow_ledger import ADDRESSES
from supervisor.tools.outcomes import CALLS_AT_MOST, allowed, beyond_a_reply
from supervisor.tools.partial_output import PartialOutput
from supervisor.tools.router import Router


@dataclass(frozen=True)
class StepCalls:
    """Runs the tool calls of one session."""

    transcript: Transcript
    """Of the session's facts so far."""
    show: Callable[[Event], None]
    """Is given every event."""
    record: Callable[..., Coroutine[Any, Any, None]]
    """Makes facts durable, takes them into account and shows them."""
    partial_output: PartialOutput
    """What calls have printed that have no end yet."""

    async def judge_and_run(self, router: Router, turn: Turn, calls: Sequence[ToolUse], *with_them: Fact) -> None:
        """Judge calls, in one commit with the reply that wants them, ask about them, and run those that may.

        There are none when the model only paused.
        """
        turn_number, seen, before = self.transcript.turn, self.transcript.exposure, self.transcript.started
        if any(call.name in ADDRESSES for call in calls):
            await off_loop(seen.flow.waiting, seen.flow.catch_up)
        judged: list[CallStarted] = []
        beyond = [beyond_a_reply(turn_number, call.id, call.name) for call in calls[CALLS_AT_MOST:]]
        for each in calls[:CALLS_AT_MOST]:  # they may run at once: each is judged as one that comes after those before
            judged.append(router.judge(turn_number, each.id, each.name, each.arguments, seen, judged))
        started = [msgspec.structs.replace(call, again=call.call in before) for call in judged]
        await self.record(*with_them, *[call for call in started if call.decision != "ask"], *beyond)
        if calls and turn.state is not State.REVIEW_ACTION:
            self.show(turn.enter(State.REVIEW_ACTION))
        reviewed = [await self._reviewed_call(router, call) for call in started]
        if any(allowed(call) for call in reviewed):
            self.show(turn.enter(State.EXECUTING))
        context = TurnCallContext(self.record, self.show, self.partial_output, turn)
        changing = [call for call in reviewed if call.effect]
        if len(changing) == len(reviewed) or len(reviewed) == 1:
            await self._run_one_by_one(router, reviewed, context)
            return
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._run_one_by_one, router, changing, context)
                for call in reviewed:
                    if not call.effect:
                        nursery.start_soon(self._run_one_by_one, router, [call], context)
        except ExceptionGroup as group:
            failures, _ = group.split(JournalError)
            if failures is None:
                raise
            raise failures.exceptions[0] from group  # out of the nursery; they all fail of one cause

    async def _reviewed_call(self, router: Router, call: CallStarted) -> CallStarted:
        if call.decision == "ask":
            call = await router.request_approval(call)
            await self.record(call)
        return call

    async def _run_one_by_one(self, router: Router, calls: Sequence[CallStarted], context: TurnCallContext) -> None:
        """Run calls one after the other: one that changes something sees what those before it have changed."""
        for call in calls:
            self.partial_output.begin(call.call)
            ended = self.partial_output.completed(await router.run(call, context))
            await self.record(context.bounded(call, ended))
