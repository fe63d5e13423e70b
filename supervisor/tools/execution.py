"""Calls that may change something: rehearsed, judged by what they would change, decided, kept for undo, committed.

Rule: nothing has changed before `CallDecided(committed=True)` is durable, and exactly what was decided about is
committed. A rehearsal that is lost is made anew and decided about anew, and so is what a person has edited.

    rehearse -> it changes nothing, or did not end well
             -> effects -> judge -> [ask] -> keep -> CallDecided -> commit
             -> it cannot be rehearsed -> ask -> CallDecided -> run
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import msgspec
import trio

from supervisor.config.profiles import Profile
from supervisor.errors import KeptError, WorkerDied, WorkerError, WorkerUnavailable
from supervisor.journal.facts import CallEnded, CallStarted, effective
from supervisor.pool.open_root import RootGone
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pools import Pools
from supervisor.rules.match import RuleVerdict
from supervisor.rules.rule import Rule
from supervisor.tools.approval import ApprovalDecision, Approve
from supervisor.tools.approvals import Deciding
from supervisor.tools.call_context import CallContext, ChangeAttempt
from supervisor.tools.catalog import Offer
from supervisor.tools.outcomes import (
    denied,
    failed,
    interrupted_commit,
    remark_sentence,
    with_notes,
    with_persons_part,
    worker_answered,
    worker_died,
)
from supervisor.tools.services import ChangeServices
from supervisor.tools.unconfined.run import run_unconfined
from workers.changes.effects import Effects
from workers.tree.drafts import drafts_in
from workers.wire import frames, messages

_LOST_AT_MOST: Final = 2
"""Rehearsals of one call that may be lost with their worker."""

_SYNCED_AT_ONCE: Final = 2**20
"""Bytes of old content that are synced in the event loop's thread."""

_NOTHING: Final = "Nothing was changed."

_ELSEWHERE: Final = (
    "Nothing was run: {!r} no longer leads to the root directory of this session, which was moved or deleted, and a "
    "command outside of the sandbox would find something else there. Open a new session."
)


class Execution:
    """Runs the calls of one session that may change something.

    Args:
        session: its id.
        profile: decides what is asked about.
        pools: the workers on the profile's root.
        approve: asks a person; None where nobody is there, and then what would be asked is denied.
        services: rules, and where old content is kept.
        made: the rules that a person has made in this session so far.
    """

    def __init__(
        self,
        session: str,
        profile: Profile,
        pools: Pools,
        approve: Approve | None,
        services: ChangeServices,
        made: Sequence[Rule] = (),
    ) -> None:
        self.deciding = Deciding(session, profile, approve, services, made)
        self._session = session
        self._profile = profile
        self._pools = pools
        self._services = services

    async def run(
        self,
        call: CallStarted,
        offer: Offer,
        context: CallContext,
        *,
        undoes: str = "",
        unconfined: ApprovalDecision | None = None,
    ) -> CallEnded:
        """Run one call that has been started.

        Cancelling ends its worker; a commit that has begun is given a little time to end.

        Args:
            call: as it was recorded.
            offer: its tool.
            context: its owner.
            undoes: the call that this one takes back.
            unconfined: the answer of a person who has let it run unconfined, if one has.

        Raises:
            JournalError: what was to happen could not be recorded, and did not happen.
        """
        if call.again and self._services.packs is not None:
            self._services.packs.forget(self._session, call.call)
        step: ChangeAttempt | CallEnded = (attempt := ChangeAttempt(call, offer, context, undoes))
        if unconfined is not None:
            step = await self._unconfined(attempt, unconfined, RuleVerdict("ask", call.reason, None), None)
        while isinstance(step, ChangeAttempt):
            if step.lost > _LOST_AT_MOST:
                message = f"The worker that held what {call.tool} would change ended time and again. {_NOTHING}"
                return failed(call, "worker_crashed", message)
            if step.call is not call:
                call = step.call
                context.record(call)
            step = await self._once(step)
        return with_persons_part(call, step)

    async def _once(self, attempt: ChangeAttempt) -> ChangeAttempt | CallEnded:
        """Rehearse, and do what is decided; return the end, or what to begin with anew."""
        call = attempt.call
        try:
            pool = self._pools.pool(attempt.offer.category)
            proposal = await pool.propose(attempt.offer.name, attempt.raw, output=attempt.show, network=attempt.network)
        except frames.FrameTooLarge as error:
            message = f"The arguments have {error.size} bytes; at most {frames.FRAME_LIMIT} can be sent. Send less."
            return failed(call, "too_large", message, size=error.size)
        except WorkerUnavailable as error:
            return unavailable(call, error)
        except WorkerDied as death:
            return worker_died(call, death, pool.spec.call_timeout, committing=False)
        if isinstance(proposal, messages.Unrehearsable):
            return await self._directly(attempt, proposal.why)
        if not isinstance(proposal, PendingProposal):
            return worker_answered(call, proposal)
        try:
            return await self._decide(attempt, proposal)
        finally:
            proposal.abandon()  # nothing happens where it was decided

    # --- what was rehearsed ---------------------------------------------------------------------------------------

    async def _decide(self, attempt: ChangeAttempt, proposal: PendingProposal) -> ChangeAttempt | CallEnded:
        if self._wants_network(attempt, proposal.effects) and await self._lends_network(attempt, proposal):
            return replace(attempt, call=attempt.again(), network=True)
        if attempt.undoes:
            return await self._commit(attempt, proposal, RuleVerdict("allow", attempt.call.reason, None))
        verdict = self.deciding.verdict(attempt.call, proposal.effects)
        if verdict.decision == "allow" or (verdict.decision == "ask" and attempt.seen):
            return await self._commit(attempt, proposal, verdict)
        if verdict.decision == "deny":
            return await self._refuse(attempt, proposal, verdict, None)
        return await self._request_approval(attempt, proposal, verdict)

    async def _request_approval(
        self, attempt: ChangeAttempt, proposal: PendingProposal, verdict: RuleVerdict
    ) -> ChangeAttempt | CallEnded:
        """Ask about what was rehearsed, and do what the person says."""
        rule = self.deciding.rule(attempt.call, proposal.effects)
        decision = await self.deciding.request_approval(attempt, "effects", verdict.reason, proposal.effects, rule)
        if decision is None or not decision.approved:
            return await self._refuse(attempt, proposal, verdict, decision)
        if attempt.edits(decision):
            await _discard(proposal)
            return self.deciding.edited(attempt, decision, verdict, proposal.effects)
        if decision.unconfined:
            await _discard(proposal)
            return await self._unconfined(attempt, decision, verdict, proposal.effects)
        return await self._commit(attempt, proposal, verdict, decision, rule)

    async def _refuse(
        self, attempt: ChangeAttempt, proposal: PendingProposal, verdict: RuleVerdict, decision: ApprovalDecision | None
    ) -> CallEnded:
        await _discard(proposal)
        attempt.context.record(attempt.decided(verdict, decision, proposal.effects, committed=False))
        return _denied(attempt.call, verdict, decision, rehearsed=True)

    async def _commit(
        self,
        attempt: ChangeAttempt,
        proposal: PendingProposal,
        verdict: RuleVerdict,
        decision: ApprovalDecision | None = None,
        rule: Rule | None = None,
    ) -> ChangeAttempt | CallEnded:
        call = attempt.call
        if self._pools.root.gone is not None:
            return _lost(attempt)  # which is told when it begins anew
        try:
            kept = await self._keep(proposal, call)
        except WorkerError:
            return _lost(attempt)
        except KeptError as error:
            await _discard(proposal)
            return failed(call, error.kind, f"{error} {_NOTHING}")
        if isinstance(kept, messages.Failed):
            await _discard(proposal)
            return worker_answered(call, kept)
        pack, left_out = kept
        decided = attempt.decided(verdict, decision, proposal.effects, committed=True)
        decided = msgspec.structs.replace(decided, kept=pack, not_kept=left_out)
        notes = [f"{left_out} files were too large to keep: undo cannot restore them"] if left_out else []
        if decision is not None and decision.remark.strip():
            notes.append(remark_sentence(decision.remark))
        if decision is not None and decision.scope != "once" and rule is not None:
            decided, problem = self.deciding.scoped(decided, decision, rule)
            notes += [problem] if problem else []
        attempt.context.record(decided)
        if pack and self._services.packs is not None:
            self._services.packs.decided(pack)
        ended = await self._committed(attempt, proposal, pack)
        uncommitted = isinstance(ended, ChangeAttempt) or ended.kind == "conflict"
        if uncommitted and pack and self._services.packs is not None:
            self._services.packs.drop(pack)
        return with_notes(ended, *notes) if isinstance(ended, CallEnded) and ended.ok else ended

    async def _committed(
        self, attempt: ChangeAttempt, proposal: PendingProposal, kept: str
    ) -> ChangeAttempt | CallEnded:
        try:
            return worker_answered(attempt.call, await proposal.decide(commit=True))
        except WorkerUnavailable:  # it has seen nothing of the decision
            return _lost(attempt)
        except WorkerDied as death:
            ended = worker_died(attempt.call, death, proposal.decide_timeout, committing=True)
            return with_notes(ended, *interrupted_commit(drafts_in(self._pools.root.place), kept))

    async def _keep(self, proposal: PendingProposal, call: CallStarted) -> tuple[str, int] | messages.Failed:
        """Store what a commit replaces; return the pack's name, and how many files are too large for it.

        Raises:
            KeptError: it cannot be stored.
            WorkerError: the worker has ended; nothing has changed.
        """
        store = self._services.packs
        if store is None or not store.keeps or not (proposal.effects.changes or proposal.effects.left_out):
            return "", 0
        with store.begin(self._session, call.call) as pack:
            answer = await proposal.keep(store.each, store.total, pack.add)
            if isinstance(answer, messages.Failed):
                return answer
            if answer.size <= _SYNCED_AT_ONCE:
                return pack.finish(), answer.left_out
            return await trio.to_thread.run_sync(pack.finish), answer.left_out

    # --- what cannot be rehearsed, or not like this ---------------------------------------------------------------

    async def _directly(self, attempt: ChangeAttempt, why: str) -> ChangeAttempt | CallEnded:
        """Ask about a call that cannot be rehearsed, as a text, and run it on the root itself after a yes."""
        call, verdict = attempt.call, RuleVerdict("ask", f"it cannot be rehearsed: {why}", None)
        decision = await self.deciding.request_approval(attempt, "direct", verdict.reason)
        approved = decision is not None and decision.approved
        if approved and decision is not None:
            if attempt.edits(decision):
                return self.deciding.edited(attempt, decision, verdict, None)
            if decision.unconfined:
                return await self._unconfined(attempt, decision, verdict, None)
        decided = attempt.decided(verdict, decision, None, committed=approved)
        attempt.context.record(msgspec.structs.replace(decided, unrehearsed=why))
        if not approved:
            return _denied(call, verdict, decision, rehearsed=False)
        try:
            pool = self._pools.pool(attempt.offer.category)
            answer = await pool.call(
                attempt.offer.name, attempt.raw, effect=True, output=attempt.show, network=attempt.network
            )
        except WorkerUnavailable as error:
            return unavailable(call, error)
        except WorkerDied as death:
            return worker_died(call, death, pool.spec.call_timeout, committing=True)
        return worker_answered(call, answer)

    async def _unconfined(
        self, attempt: ChangeAttempt, decision: ApprovalDecision, verdict: RuleVerdict, effects: Effects | None
    ) -> CallEnded:
        """Run what a person lets out of the sandbox, once; not where it would find something else in the root's place.

        Such a command goes by names, and so did whoever wrote it.
        """
        if not self._pools.root.found_by_name:
            return failed(attempt.call, "not_found", _ELSEWHERE.format(self._profile.root))
        decided = attempt.decided(verdict, decision, effects, committed=True)
        attempt.context.record(msgspec.structs.replace(decided, unconfined=True))
        answer = await run_unconfined(
            attempt.call.tool,
            effective(attempt.call),
            self._profile.root,
            self._services.timeout_s,
            attempt.show,
            orphans=self._services.orphans,
            login=self._services.login,
        )
        return worker_answered(attempt.call, answer)

    def _wants_network(self, attempt: ChangeAttempt, effects: Effects) -> bool:
        tried = any(each.kind == "network" for each in effects.refused)
        return tried and not attempt.network and bool(self._profile.network) and self.deciding.attended

    async def _lends_network(self, attempt: ChangeAttempt, proposal: PendingProposal) -> bool:
        """Ask whether a command may use the profile's network, which its rehearsal did not have."""
        reason = f"it tried the network; the profile {self._profile.name} names {', '.join(self._profile.network)}"
        decision = await self.deciding.request_approval(attempt, "network", reason, proposal.effects)
        if decision is None or not decision.approved:
            return False
        await _discard(proposal)
        decided = attempt.decided(RuleVerdict("ask", reason, None), decision, proposal.effects, committed=False)
        attempt.context.record(msgspec.structs.replace(decided, network=True))
        return True


def _lost(attempt: ChangeAttempt) -> ChangeAttempt:
    """Return a call whose rehearsal was lost with its worker, for a beginning anew: nothing was changed."""
    return replace(attempt, call=attempt.again(), lost=attempt.lost + 1)


async def _discard(proposal: PendingProposal) -> None:
    with suppress(WorkerError):
        await proposal.decide(commit=False)


def unavailable(call: CallStarted, error: WorkerUnavailable) -> CallEnded:
    """Return the end of a call that no worker could be had for."""
    if isinstance(error, RootGone):
        return failed(call, "not_found", f"{error} Nothing was done.")
    return failed(call, "worker_unavailable", f"{error} Nothing was done; try again later.")


def _denied(
    call: CallStarted, verdict: RuleVerdict, decision: ApprovalDecision | None, *, rehearsed: bool
) -> CallEnded:
    remark = decision.remark.strip() if decision is not None else ""
    final, asked = verdict.decision == "deny", decision is not None
    return denied(call, verdict.reason, remark, final=final, asked=asked, rehearsed=rehearsed)
