"""The steps of a turn: a reply each, and its tool calls: judged, asked about and run.

Rule: the reply and the calls that it starts are one commit, made before any of them runs; each outcome is committed
before anybody sees it. Calls that change something run one after the other, the others beside them.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec
import trio

from supervisor.agent.answer_check import checked_answer
from supervisor.agent.answer_schema import TRIES, InvalidAnswer
from supervisor.agent.fallbacks import Failure, ModelChoice, least_bad
from supervisor.agent.models.model import Model, Reply, ToolUse
from supervisor.agent.others_changes import changed_by_others, root_changed
from supervisor.agent.requester import Requester
from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import Event, State, SuspendedTurn, Turn, TurnCallContext
from supervisor.agent.turn_check import TurnCheck
from supervisor.errors import JournalError, ModelError
from supervisor.journal.facts import CallEnded, CallStarted, Fact, Replied, TurnEnded, TurnQuestioned, TurnSuspended
from supervisor.system.off_loop import off_loop
from supervisor.tools.exfiltration.flow_ledger import ADDRESSES
from supervisor.tools.outcome_bounds import CALLS_AT_MOST, beyond_a_reply
from supervisor.tools.outcomes import allowed, awaits_answer, not_started
from supervisor.tools.partial_output import PartialOutput
from supervisor.tools.router import Router

_INCOMPLETE: Final = (
    "The reply was cut at its token limit, so this call may be incomplete and was not run. Send it again, shorter."
)

_REJECTIONS: Final = 3
"""Calls of a turn that a person rejects before they are asked whether it goes on."""
_STOPPED_BY_PERSON: Final = "The person stopped the turn, after they had rejected several of its calls."

_LOOP: Final = "The model goes round in circles: {}. No change of any file was seen in between. /go lets it go on."

_ENDINGS: Final = {
    "refusal": ("refusal", "The model declined to answer. Ask in another way; this exchange is not shown to it again."),
    "model_context_window_exceeded": (
        "context_full",
        "The conversation does not fit the model's context window, although all before it is kept in short. Send less.",
    ),
}
"""Stop reasons that end the turn as an error: kind and message."""


@dataclass(frozen=True)
class TurnSteps:
    """Runs the steps of one session's turns."""

    transcript: Transcript
    """Of the session's facts so far."""
    show: Callable[[Event], None]
    """Is given every event."""
    record: Callable[..., Coroutine[Any, Any, None]]
    """Makes facts durable, takes them into account and shows them."""
    partial_output: PartialOutput
    """What calls have printed that have no end yet."""

    requester: Requester
    """Asks the model."""
    choice: ModelChoice
    """Says which."""
    check: TurnCheck
    """Checks what the turns have changed."""
    max_steps: int
    """Model requests that a turn may take."""

    async def run(
        self, model: Model, router: Router, system: str, turn: Turn, state: State
    ) -> tuple[Sequence[Fact], TurnEnded]:
        """Return the turn's end, and the facts to record with it: a last reply is never without its end."""
        number = self.transcript.turn
        while self.transcript.replies < self.max_steps:
            if self.transcript.loops.found:
                raise SuspendedTurn(TurnSuspended(number, "loop", _LOOP.format(self.transcript.loops.found)))
            self.show(turn.enter(state))
            reply, replied = await self._next_reply(model, router, system, turn)
            if reply.stop_reason in _ENDINGS:
                kind, message = _ENDINGS[reply.stop_reason]
                calls = [not_started(number, call.id, call.name) for call in reply.calls]
                return [replied, *calls], TurnEnded(number, "error", reply.text, reply.stop_reason, kind, message)
            if not reply.calls and reply.stop_reason != "pause_turn":
                replied, end = await final_answer(self.transcript, replied, reply)
                replied, end = await self.check.checked(router, turn, replied, end)
                if end is not None:
                    return [replied], end
                await self.record(replied)
                state = State.FINALIZING if turn.state is State.EXECUTING else state
                continue
            if reply.stop_reason == "max_tokens":
                cut = [
                    CallEnded(number, call.id, call.name, False, _INCOMPLETE, kind="invalid_arguments")
                    for call in reply.calls
                ]
                await self.record(replied, *cut)
            else:
                await self.judge_and_run(router, turn, reply.calls, replied)
                await self.record(*await router.instructions.nested(number, self.transcript.instructions))
                if self.transcript.rejected >= _REJECTIONS and not await self._goes_on(router, turn):
                    return [], TurnEnded(number, "cancelled", "", kind="cancelled", message=_STOPPED_BY_PERSON)
            state = State.FINALIZING if reply.calls else state
        message = f"The turn took {self.max_steps} steps without an answer. Ask for less at once, or raise max_steps."
        return [], TurnEnded(number, "error", "", kind="too_many_steps", message=message)

    async def _next_reply(self, own: Model, router: Router, system: str, turn: Turn) -> tuple[Reply, Replied]:
        """Return the reply of the session's model, or of another where that gives none and another may be asked."""
        failures: dict[str, Failure] = {}
        while True:
            model = await self.choice.model(own)
            try:
                return await self.requester.reply(model, router, system)
            except (ModelError, SuspendedTurn) as failure:
                failures[model.name] = failure
                if not self.choice.rests(model, failure, own):
                    raise self.requester.last(least_bad(failures)) from None
                if router.approvals.attended and turn.state is not State.REVIEW_ACTION:
                    self.show(turn.enter(State.REVIEW_ACTION))
                if not await self.choice.switch(model, own, failures, router.approvals):
                    raise self.requester.last(least_bad(failures)) from None
                self.show(turn.enter(State.FINALIZING))

    async def _goes_on(self, router: Router, turn: Turn) -> bool:
        """Ask the person, once, whether a turn goes on of which they reject so much; say so where nobody is there."""
        if self.transcript.questioned or not router.approvals.attended:
            return True
        if turn.state is not State.REVIEW_ACTION:
            self.show(turn.enter(State.REVIEW_ACTION))
        rejected = self.transcript.rejected
        answer = await router.approvals.ask_to_go_on(self.transcript.turn, rejected)
        if answer is None:
            return True
        fact = TurnQuestioned(self.transcript.turn, rejected, answer.approved, answer.by, answer.remark)
        await self.record(fact)
        return answer.approved

    # --- the calls of one step ----------------------------------------------------------------------------------

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
            judged.append(self._judged(router, each, judged))
        started = [msgspec.structs.replace(call, again=call.call in before) for call in judged]
        await self.record(*with_them, *[call for call in started if not awaits_answer(call)], *beyond)
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

    def _judged(self, router: Router, call: ToolUse, before: Sequence[CallStarted]) -> CallStarted:
        known, seen = self.transcript, self.transcript.exposure
        unmade = known.open_calls.unmade.get(call.id)
        if unmade is not None:
            return router.judge_again(known.started[call.id], unmade, seen)
        return router.judge(known.turn, call.id, call.name, call.arguments, seen, before)

    async def _reviewed_call(self, router: Router, call: CallStarted) -> CallStarted:
        if awaits_answer(call):
            call = await router.request_approval(call)
            await self.record(call)
        return call

    async def _run_one_by_one(self, router: Router, calls: Sequence[CallStarted], context: TurnCallContext) -> None:
        """Run calls one after the other: one that changes something sees what those before it have changed."""
        for call in calls:
            self.partial_output.begin(call.call)
            ended = self.partial_output.completed(await router.run(call, context))
            await self.record(await self._looked_around(router, call, context.bounded(call, ended)))

    async def _looked_around(self, router: Router, call: CallStarted, ended: CallEnded) -> CallEnded:
        """Return a call's end; where it repeats itself, with whether others have changed anything meanwhile."""
        known, asked = self.transcript, self.requester
        first = known.loops.repeats(known.step, call, known.decided.get(call.call), ended)
        if not first:
            return ended
        look = partial(changed_by_others, asked.writer.journal.path, asked.session, first)
        with trio.CancelScope(shield=True):  # the call has ended, and its outcome is told
            committed, since = await trio.to_thread.run_sync(look)
        changed = committed or await root_changed(router.pools, since)
        return msgspec.structs.replace(ended, changed_by_others=changed)


_TRUNCATED: Final = "\n\n[truncated: the reply reached its token limit]"


async def final_answer(transcript: Transcript, replied: Replied, reply: Reply) -> tuple[Replied, TurnEnded | None]:
    """Return a reply without calls, and the turn's end with it; None where it has to be given again."""
    started = transcript.open_turn
    if started is None or started.answer_schema is None:
        cut_here = _TRUNCATED if reply.stop_reason == "max_tokens" else ""
        return replied, TurnEnded(replied.turn, "ok", reply.text + cut_here, reply.stop_reason)
    try:
        answer = await checked_answer(started.answer_schema, reply.text)
    except InvalidAnswer as error:
        if transcript.refused + 1 < TRIES:
            return msgspec.structs.replace(replied, refused=str(error)), None
        message = f"The answer is not valid by the schema, also when asked again: {error}."
        return replied, TurnEnded(replied.turn, "error", reply.text, reply.stop_reason, "invalid_answer", message)
    return replied, TurnEnded(replied.turn, "ok", answer, reply.stop_reason)
