"""Calls that may change something: rehearsed, judged by what they would change, decided, kept for undo, committed.

Rule: nothing has changed before `CallDecided(committed=True)` is durable, and exactly what was decided about is
committed. A rehearsal that is lost is made again and decided about again, and so is what a person has edited.

    propose -> it changes nothing, or failed: the end
            -> effects -> decide (policy, rules, the person) -> COMMIT       keep -> CallDecided -> commit
                                                             -> DENY         CallDecided: the end
                                                             -> UNCONFINED   CallDecided -> run outside of the sandbox
                                                             -> EDITED, WITH_NETWORK: the next attempt
            -> it cannot be rehearsed -> ask -> the same; COMMIT runs it on the root itself
"""

import time
from typing import Final

import msgspec

from supervisor.errors import WorkerError
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, effective
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pools import PLAN, Pools
from supervisor.rules.judge_effects import Verdict
from supervisor.rules.modes import PLANNED
from supervisor.tools import call_policy, install_commit
from supervisor.tools.approval import ApprovalDecision, Approvals, Next
from supervisor.tools.availability import no_answer
from supervisor.tools.call_context import CallContext
from supervisor.tools.catalog import Offer
from supervisor.tools.change_attempt import ChangeAttempt, raw_arguments
from supervisor.tools.change_decisions import ChangeDecisions
from supervisor.tools.direct_run import run_on_root
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.installs import FAILED
from supervisor.tools.outcomes import (
    ANOTHER,
    COULD,
    UNMADE,
    denied,
    failed,
    planned,
    with_notes,
    with_output,
    with_persons_part,
    worker_answered,
)
from supervisor.tools.session_rules import SessionRules
from supervisor.tools.unconfined.run import run_unconfined
from workers.wire import frames, messages

_LOST_AT_MOST: Final = 2
"""Rehearsals of one call that may be lost with their worker."""

_UNSEEN: Final = SeenText()
_ELSEWHERE: Final = (
    "Nothing was run: {!r} no longer leads to the root directory of this session, which was moved or deleted, and a "
    "command outside of the sandbox would find something else there. Open a new session."
)


class Execution:
    """Runs the calls of one session that may change something.

    Args:
        pools: the workers on the profile's root.
        approvals: asks the person.
        rules: judge effects; those of the session that is served.
    """

    def __init__(self, pools: Pools, approvals: Approvals, rules: SessionRules) -> None:
        self._pools = pools
        self._approvals = approvals
        self._rules = rules
        self._profile = rules.profile
        self._services = rules.services
        self._decisions = ChangeDecisions(pools, approvals, rules)

    async def run(
        self,
        call: CallStarted,
        offer: Offer,
        context: CallContext,
        *,
        undoes: tuple[str, ...] = (),
        unconfined: ApprovalDecision | None = None,
        seen: SeenText = _UNSEEN,
        before: CallDecided | None = None,
    ) -> CallEnded:
        """Run one call that has been started; its end says how long it took without the time that people took.

        Cancelling ends its worker; a commit that has begun is given a little time to end.

        Args:
            call: as it was recorded.
            offer: its tool.
            context: its owner.
            undoes: the calls that this one takes back.
            unconfined: the answer of a person who lets it run unconfined, if one does.
            seen: what the model has been shown.
            before: what was decided of a commit that did not take place; then this rehearses it again.

        Raises:
            JournalError: what was to happen could not be recorded, and did not happen.
        """
        began = time.monotonic()
        if call.again and self._services.packs is not None:
            self._services.packs.forget(self._rules.session, call.call)
        attempt = ChangeAttempt(call, offer, context, seen, undoes, before=before, approval=unconfined)
        if unconfined is not None:
            attempt.verdict = Verdict("ask", call.reason)
            ended: ChangeAttempt | CallEnded = await self._run_unconfined(attempt)
        else:
            ended = await self._attempt(attempt)
        while isinstance(ended, ChangeAttempt):
            if ended.lost > _LOST_AT_MOST:
                message = f"The worker holding what {call.tool} would change crashed repeatedly. Nothing was changed."
                ended = failed(call, "worker_crashed", message)
                break
            attempt = ended
            await context.record(attempt.call)
            ended = await self._attempt(attempt)
        if attempt.lacked and not self._approvals.attended and self._approvals.escalates(attempt.call):
            ended = with_notes(ended, COULD)
        seconds = round(time.monotonic() - began - attempt.waited_s, 6)
        return msgspec.structs.replace(with_persons_part(attempt.call, ended), seconds=seconds)

    async def _attempt(self, attempt: ChangeAttempt) -> ChangeAttempt | CallEnded:
        """Rehearse a call, and do what is decided; return its end, or the next attempt."""
        return await self._begin_install(attempt) or await self._rehearse(attempt)

    async def _rehearse(self, attempt: ChangeAttempt) -> ChangeAttempt | CallEnded:
        call, offer = attempt.call, attempt.offer
        attempt.planned = self._decisions.plans
        arguments, category = raw_arguments(call), offer.category + PLAN * attempt.planned
        seconds = self._services.call_s(call.tool, arguments, installs=bool(attempt.places))
        try:
            proposal = await self._pools.pool(category).propose(
                offer.name,
                arguments,
                timeout=seconds,
                output=attempt.show,
                network=attempt.network,
                unlisted=self._decisions.lets_start(call),
                upload=attempt.upload,
                places=attempt.places,
            )
        except (WorkerError, frames.FrameTooLarge) as error:
            return no_answer(call, error, self._pools, category, seconds=seconds)
        if isinstance(proposal, messages.Unrehearsable):
            attempt.verdict = verdict = self._rules.judge_unrehearsed(call, network=attempt.network)
            if verdict.decision == "deny":
                return await self._proceed(attempt, Next.DENY, unrehearsed=proposal.why)
            attempt.verdict = Verdict("ask", f"it cannot be rehearsed: {proposal.why}")
            decided = await self._decisions.request_approval(attempt, "direct")
            with self._rules.changing():
                decided = self._decisions.unless_planned(attempt, decided)
                return await self._proceed(attempt, decided, unrehearsed=proposal.why)
        if not isinstance(proposal, PendingProposal):
            leave = self._decisions.leave
            if isinstance(proposal, messages.Done) and await leave(attempt, proposal.lacked) is Next.UNCONFINED:
                return await self._run_unconfined(attempt)
            return worker_answered(call, proposal)
        return await self._settle(attempt, proposal)

    async def _settle(self, attempt: ChangeAttempt, proposal: PendingProposal) -> ChangeAttempt | CallEnded:
        """Do what is decided about what a worker holds; return the call's end, or the next attempt."""
        try:
            whole = attempt.wanted is not None and not (attempt.wanted.install.builds or attempt.wanted.install.started)
            if whole and proposal.effects.exit_code:
                return await self._failed_install(attempt, proposal)
            decided = await self._decisions.decide(attempt, proposal.effects)
            nothing = not (proposal.effects.totals or proposal.effects.traffic)
            quiet = nothing and self._profile.registries and not self._profile.hosts and not attempt.own_words
            with self._rules.changing():
                decided = self._decisions.unless_planned(attempt, decided)
                if decided is Next.COMMIT and quiet:
                    return await self._end_discarded(attempt, proposal)
                if decided is Next.COMMIT:
                    return await install_commit.commit(attempt, proposal, self._pools, self._rules)
            printed = await proposal.discard()
        finally:
            proposal.abandon()  # nothing happens where it was decided
        return await self._proceed(attempt, decided, printed=printed)

    # --- installs -------------------------------------------------------------------------------------------------

    async def _begin_install(self, attempt: ChangeAttempt) -> ChangeAttempt | CallEnded | None:
        """Decide whether a known install may use the network, before its first run.

        Return the attempt that has it, or what a person wrote instead; None where it runs as it is.
        """
        if attempt.wanted or attempt.network or attempt.undoes or attempt.before or self._decisions.plans:
            return None
        attempt.wanted = wanted = await self._rules.wanted_network(attempt.call)
        if wanted is None:
            return None
        attempt.verdict = self._rules.judge_install(attempt.call, wanted)
        asks = attempt.verdict.decision == "ask" or attempt.foreign
        if attempt.verdict.decision == "deny" or (asks and not self._approvals.attended):
            return None
        if asks:
            attempt.verdict = Verdict("ask", wanted.reason(attempt.seen))
            attempt.rule = wanted.rule if wanted.install.alone else None
            decided = await self._decisions.request_approval(attempt, "network")
            if decided is Next.EDITED:
                return await self._edited(attempt)
            if decided is Next.DENY:
                attempt.approval = attempt.rule = None  # it runs without
                return None
        more, _problems = self._rules.make(attempt.call, attempt.approval, attempt.rule)
        await attempt.record(committed=False, network=True, **more)
        return attempt.again(network=True, upload=wanted.upload(attempt.seen))

    async def _failed_install(self, attempt: ChangeAttempt, proposal: PendingProposal) -> CallEnded:
        """Keep nothing of an install that failed, and return what it printed."""
        attempt.effects, attempt.verdict = proposal.effects, Verdict("allow", FAILED)
        await attempt.record(committed=False)
        return with_notes(await self._end_discarded(attempt, proposal), FAILED, *attempt.network_notes())

    async def _end_discarded(self, attempt: ChangeAttempt, proposal: PendingProposal) -> CallEnded:
        """Discard what a rehearsal has changed, and end the call with what it printed."""
        try:
            return worker_answered(attempt.call, await proposal.decide(commit=False))
        except WorkerError as error:
            return no_answer(attempt.call, error, self._pools, attempt.offer.category)

    # --- done as it was decided -----------------------------------------------------------------------------------

    async def _proceed(
        self, attempt: ChangeAttempt, decided: Next, unrehearsed: str = "", printed: str = ""
    ) -> ChangeAttempt | CallEnded:
        """Do what was decided where no rehearsal is committed.

        Args:
            attempt: that was decided about.
            decided: how.
            unrehearsed: why there was no rehearsal.
            printed: the result of the one there was, which a no leaves to the model, JSON.
        """
        match decided:
            case Next.EDITED:
                return await self._edited(attempt)
            case Next.UNCONFINED:
                return await self._run_unconfined(attempt)
            case Next.WITH_NETWORK:
                await attempt.record(committed=False, network=True)
                upload = attempt.wanted.upload(attempt.seen) if attempt.wanted else attempt.seen.uploads.limit
                return attempt.again(network=True, upload=upload)
            case Next.COMMIT:
                await attempt.record(committed=True, unrehearsed=unrehearsed)
                unlisted = self._decisions.lets_start(attempt.call)
                return await run_on_root(attempt, self._pools, self._services, unlisted=unlisted)
            case Next.DENY:
                await attempt.record(committed=False, unrehearsed=unrehearsed)
                verdict, approval = attempt.verdict, attempt.approval
                if verdict.reason == PLANNED and attempt.effects is not None:
                    ended = planned(attempt.call, printed, attempt.effects)
                elif verdict == ANOTHER and approval is None:
                    ended = failed(attempt.call, "worker_crashed", UNMADE)
                else:
                    remark, final = approval.remark if approval is not None else "", verdict.decision == "deny"
                    was = {"asked": approval is not None, "rehearsed": not unrehearsed}
                    ended = with_output(denied(attempt.call, verdict.reason, remark, final=final, **was), printed)
                return ended

    async def _edited(self, attempt: ChangeAttempt) -> ChangeAttempt | CallEnded:
        """Return the attempt with the arguments that a person wrote; they are judged and rehearsed like any."""
        approval = attempt.approval
        assert approval is not None
        assert approval.edited is not None
        await attempt.record(committed=False, edited=approval.edited)
        new = attempt.again()
        if new.wanted is not None:
            new.wanted, new.network = None, False
        new.call = msgspec.structs.replace(
            new.call, edited=approval.edited, remark=approval.remark, decided_by=approval.by
        )
        new.written_by_person = new.call.tool not in call_policy.COMMANDS
        judged = call_policy.judge(self._profile, new.call.tool, approval.edited, _UNSEEN)
        if judged.decision == "deny":
            return denied(new.call, judged.reason, "", final=True, asked=True)
        return new

    async def _run_unconfined(self, attempt: ChangeAttempt) -> CallEnded:
        """Run a command outside of the sandbox, once; not where the root's path leads to another directory.

        Such a command goes by names, and so did whoever wrote it.
        """
        root = self._profile.root
        if not self._pools.root.found_by_name:
            return failed(attempt.call, "not_found", _ELSEWHERE.format(root))
        with self._rules.changing():
            if (denial := self._rules.judge_unrehearsed(attempt.call, network=True)).decision == "deny":
                attempt.verdict = denial
                await attempt.record(committed=False)
                return denied(attempt.call, denial.reason, "", final=True, asked=True, rehearsed=False)
            await attempt.record(committed=True, unconfined=True)
            tool, services = attempt.call.tool, self._services
            answer = await run_unconfined(tool, effective(attempt.call), root, services, attempt.show)
            return worker_answered(attempt.call, answer)
