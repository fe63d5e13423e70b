"""A tool call's way: judged by the policy, reviewed by a person where it says so, run by a worker, one outcome.

Rule: a tool that fails is an outcome with a kind, never an exception. What `judge` and `review` return is journaled by
their caller before `run`, and what `run` returns before anybody sees it; what is decided on the way of a call that
changes something is recorded through its `CallContext`.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from supervisor.config.profiles import Profile
from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.journal.facts import CallEnded, CallStarted, effective
from supervisor.pool.pools import Pools
from supervisor.rules.rule import Rule
from supervisor.tools import outcomes, policy
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion, Approve
from supervisor.tools.availability import ToolAvailability
from supervisor.tools.call_context import CallContext
from supervisor.tools.catalog import Offer, offers
from supervisor.tools.execution import Execution, unavailable
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.outcomes import allowed, denied, failed, with_persons_part
from supervisor.tools.services import ChangeServices
from workers.wire import frames

_UNSEEN: Final = SeenText()
"""What a person, or a script, was shown: policy does not ask whether they may know what they write."""

_NO_SERVICES: Final = ChangeServices()

_UNAVAILABLE: Final = (
    "{tool} is not here: its workers {why}. Nothing was done. Do without it, and tell the person, who can do something "
    "about it."
)


class Router:
    """Runs the calls of one session.

    Args:
        profile: decides what exists and what may run.
        pools: the workers on the profile's root.
        approve: asks a person; None where nobody is there, and then what would be asked is denied.
        session: its id.
        services: rules, and where old content is kept.
        made: the rules that a person has made in this session so far.
    """

    def __init__(
        self,
        profile: Profile,
        pools: Pools,
        approve: Approve | None,
        session: str = "",
        services: ChangeServices = _NO_SERVICES,
        made: Sequence[Rule] = (),
    ) -> None:
        self.offers: Mapping[str, Offer] = offers(profile.tools)
        self.availability = ToolAvailability(self.offers, pools)
        self.execution = Execution(session, profile, pools, approve, services, made)
        self._profile = profile
        self._pools = pools
        self._approve = approve
        self._unconfined: dict[str, ApprovalDecision] = {}
        """Calls that a person lets run unconfined, until they are started."""
        self._unrunnable: dict[str, WorkerUnavailable] = {}
        """Calls that nobody was asked about, because no worker could run them, and why."""

    def judge(self, turn: int, call: str, tool: str, arguments: str, seen: SeenText = _UNSEEN) -> CallStarted:
        """Return the call with the policy's decision.

        Args:
            turn: the turn's number.
            call: the call's id.
            tool: what the model wrote.
            arguments: raw JSON; the worker will decode it.
            seen: what the model has been shown.
        """
        decision = policy.judge(self._profile, tool, arguments, seen)
        effect = tool in self.offers and self.offers[tool].effect
        return CallStarted(turn, call, tool, arguments, effect, decision.decision, decision.reason, rehearsed=effect)

    async def review(self, call: CallStarted) -> CallStarted:
        """Return a call that policy asks about, as a text, with the person's answer.

        Arguments that the person changed are judged anew, and a denial holds. Where policy would ask about them, it
        is answered: this person has seen exactly this text. Nobody is asked about a call that no worker could run.
        """
        if (why := self._no_worker(call.tool)) is not None:
            self._unrunnable[call.call] = why
            return call
        if self._approve is None:
            return msgspec.structs.replace(call, approved=False)
        escalation = self.execution.deciding.may_escalate(call)
        review = await self._approve(ApprovalQuestion(call, "call", call.reason, escalation=escalation))
        reviewed = msgspec.structs.replace(
            call, approved=review.approved, remark=review.remark.strip(), decided_by=review.by
        )
        if not review.approved or review.edited is None or review.edited == call.arguments:
            if review.approved and review.unconfined and escalation:
                self._unconfined[call.call] = review
            return reviewed
        anew = policy.judge(self._profile, call.tool, review.edited, _UNSEEN)
        if anew.decision == "deny":
            reviewed = msgspec.structs.replace(reviewed, decision="deny", reason=anew.reason)
        return msgspec.structs.replace(reviewed, edited=review.edited)

    async def run(self, call: CallStarted, context: CallContext) -> CallEnded:
        """Run one call as it was decided. Cancelling kills the worker that runs it."""
        offer = self.offers.get(call.tool)
        if offer is None and (why := dict(self._profile.unavailable_tools).get(call.tool)):
            return failed(call, "worker_unavailable", _UNAVAILABLE.format(tool=call.tool, why=why))
        if offer is None:
            message = f"There is no tool {call.tool[:80]!r} here. Use: {', '.join(self.offers)}."
            return failed(call, "unknown_tool", message)
        if (unrunnable := self._unrunnable.pop(call.call, None)) is not None:
            return unavailable(call, unrunnable)
        if not allowed(call):
            asked = self._approve is not None
            return denied(call, call.reason, call.remark, final=call.decision == "deny", asked=asked)
        began, waited = time.monotonic(), self.execution.deciding.waited
        if offer.effect:
            ended = await self.execution.run(call, offer, context, unconfined=self._unconfined.pop(call.call, None))
        else:
            ended = with_persons_part(call, await self._look(call, offer, context))
        waited = self.execution.deciding.waited - waited if offer.effect else 0.0  # for a person: that is not its own
        return msgspec.structs.replace(ended, seconds=round(time.monotonic() - began - waited, 6))

    def _no_worker(self, tool: str) -> WorkerUnavailable | None:
        """Return why no worker could run a tool now; None where one could."""
        if (gone := self._pools.root.gone) is not None:
            return gone
        why = self.availability.why(tool)
        return WorkerUnavailable(why) if why else None

    async def _look(self, call: CallStarted, offer: Offer, context: CallContext) -> CallEnded:
        """Run a call that changes nothing."""
        raw = (effective(call) or "{}").encode("utf-8", "surrogatepass")
        try:
            pool = self._pools.pool(offer.category)
            answer = await pool.call(offer.name, raw, effect=False, output=lambda text: context.output(call.call, text))
        except frames.FrameTooLarge as error:
            message = f"The arguments have {error.size} bytes; at most {frames.FRAME_LIMIT} can be sent. Send less."
            return failed(call, "too_large", message, size=error.size)
        except WorkerUnavailable as error:
            return unavailable(call, error)
        except WorkerDied as death:
            return outcomes.worker_died(call, death, pool.spec.call_timeout, committing=False)
        return outcomes.worker_answered(call, answer)
