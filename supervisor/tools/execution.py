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
from supervisor.tools.outcomes import answered, denied, died, failed, halfway, noted, said, told
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
        means: rules, and where old content is kept.
        made: the rules that a person has made in this session so far.
    """

    def __init__(
        self,
        session: str,
        profile: Profile,
        pools: Pools,
        approve: Approve | None,
        means: ChangeServices,
        made: Sequence[Rule] = (),
    ) -> None:
        self.deciding = Deciding(session, profile, approve, means, made)
        self._session = session
        self._profile = profile
        self._pools = pools
        self._means = means

    async def run(
        self,
        call: CallStarted,
        offer: Offer,
        course: CallContext,
        *,
        undoes: str = "",
        let_out: ApprovalDecision | None = None,
    ) -> CallEnded:
        """Run one call that has been started.

        Cancelling ends its worker; a commit that has begun is given a little time to end.

        Args:
            call: as it was recorded.
            offer: its tool.
            course: its owner.
            undoes: the call that this one takes back.
            let_out: the answer of a person who has let it run unconfined, if one has.

        Raises:
            JournalError: what was to happen could not be recorded, and did not happen.
        """
        if call.again and self._means.kept is not None:
            self._means.kept.forget(self._session, call.call)
        step: ChangeAttempt | CallEnded = (way := ChangeAttempt(call, offer, course, undoes))
        if let_out is not None:
            step = await self._unconfined(way, let_out, RuleVerdict("ask", call.reason, None), None)
        while isinstance(step, ChangeAttempt):
            if step.lost > _LOST_AT_MOST:
                message = f"The worker that held what {call.tool} would change ended time and again. {_NOTHING}"
                return failed(call, "worker_crashed", message)
            if step.call is not call:
                call = step.call
                course.record(call)
            step = await self._once(step)
        return told(call, step)

    async def _once(self, way: ChangeAttempt) -> ChangeAttempt | CallEnded:
        """Rehearse, and do what is decided; return the end, or what to begin with anew."""
        call = way.call
        try:
            pool = self._pools.pool(way.offer.category)
            held = await pool.propose(way.offer.name, way.raw, output=way.show, network=way.network)
        except frames.FrameTooLarge as error:
            message = f"The arguments have {error.size} bytes; at most {frames.FRAME_LIMIT} can be sent. Send less."
            return failed(call, "too_large", message, size=error.size)
        except WorkerUnavailable as error:
            return unavailable(call, error)
        except WorkerDied as death:
            return died(call, death, pool.spec.call_timeout, committing=False)
        if isinstance(held, messages.Unrehearsable):
            return await self._directly(way, held.why)
        if not isinstance(held, PendingProposal):
            return answered(call, held)
        try:
            return await self._decide(way, held)
        finally:
            held.give_up()  # nothing happens where it was decided

    # --- what was rehearsed ---------------------------------------------------------------------------------------

    async def _decide(self, way: ChangeAttempt, held: PendingProposal) -> ChangeAttempt | CallEnded:
        if self._wants_network(way, held.effects) and await self._lends_network(way, held):
            return replace(way, call=way.again(), network=True)
        if way.undoes:
            return await self._commit(way, held, RuleVerdict("allow", way.call.reason, None))
        verdict = self.deciding.verdict(way.call, held.effects)
        if verdict.decision == "allow" or (verdict.decision == "ask" and way.seen):
            return await self._commit(way, held, verdict)
        if verdict.decision == "deny":
            return await self._refuse(way, held, verdict, None)
        return await self._review(way, held, verdict)

    async def _review(
        self, way: ChangeAttempt, held: PendingProposal, verdict: RuleVerdict
    ) -> ChangeAttempt | CallEnded:
        """Ask about what was rehearsed, and do what the person says."""
        rule = self.deciding.rule(way.call, held.effects)
        review = await self.deciding.ask(way, "effects", verdict.reason, held.effects, rule)
        if review is None or not review.approved:
            return await self._refuse(way, held, verdict, review)
        if way.edits(review):
            await _discard(held)
            return self.deciding.edited(way, review, verdict, held.effects)
        if review.unconfined:
            await _discard(held)
            return await self._unconfined(way, review, verdict, held.effects)
        return await self._commit(way, held, verdict, review, rule)

    async def _refuse(
        self, way: ChangeAttempt, held: PendingProposal, verdict: RuleVerdict, review: ApprovalDecision | None
    ) -> CallEnded:
        await _discard(held)
        way.course.record(way.decided(verdict, review, held.effects, committed=False))
        return _denied(way.call, verdict, review, rehearsed=True)

    async def _commit(
        self,
        way: ChangeAttempt,
        held: PendingProposal,
        verdict: RuleVerdict,
        review: ApprovalDecision | None = None,
        rule: Rule | None = None,
    ) -> ChangeAttempt | CallEnded:
        call = way.call
        if self._pools.root.gone is not None:
            return _lost(way)  # which is told when it begins anew
        try:
            kept = await self._keep(held, call)
        except WorkerError:
            return _lost(way)
        except KeptError as error:
            await _discard(held)
            return failed(call, error.kind, f"{error} {_NOTHING}")
        if isinstance(kept, messages.Failed):
            await _discard(held)
            return answered(call, kept)
        pack, left_out = kept
        decided = way.decided(verdict, review, held.effects, committed=True)
        decided = msgspec.structs.replace(decided, kept=pack, not_kept=left_out)
        notes = [f"{left_out} files were too large to keep: undo cannot restore them"] if left_out else []
        if review is not None and review.remark.strip():
            notes.append(said(review.remark))
        if review is not None and review.scope != "once" and rule is not None:
            decided, problem = self.deciding.scoped(decided, review, rule)
            notes += [problem] if problem else []
        way.course.record(decided)
        if pack and self._means.kept is not None:
            self._means.kept.decided(pack)
        ended = await self._committed(way, held, pack)
        uncommitted = isinstance(ended, ChangeAttempt) or ended.kind == "conflict"
        if uncommitted and pack and self._means.kept is not None:
            self._means.kept.drop(pack)
        return noted(ended, *notes) if isinstance(ended, CallEnded) and ended.ok else ended

    async def _committed(self, way: ChangeAttempt, held: PendingProposal, kept: str) -> ChangeAttempt | CallEnded:
        try:
            return answered(way.call, await held.decide(commit=True))
        except WorkerUnavailable:  # it has seen nothing of the decision
            return _lost(way)
        except WorkerDied as death:
            ended = died(way.call, death, held.decide_timeout, committing=True)
            return noted(ended, *halfway(drafts_in(self._pools.root.place), kept))

    async def _keep(self, held: PendingProposal, call: CallStarted) -> tuple[str, int] | messages.Failed:
        """Store what a commit replaces; return the pack's name, and how many files are too large for it.

        Raises:
            KeptError: it cannot be stored.
            WorkerError: the worker has ended; nothing has changed.
        """
        store = self._means.kept
        if store is None or not store.keeps or not (held.effects.changes or held.effects.left_out):
            return "", 0
        with store.begin(self._session, call.call) as pack:
            answer = await held.keep(store.each, store.total, pack.add)
            if isinstance(answer, messages.Failed):
                return answer
            if answer.size <= _SYNCED_AT_ONCE:
                return pack.finish(), answer.left_out
            return await trio.to_thread.run_sync(pack.finish), answer.left_out

    # --- what cannot be rehearsed, or not like this ---------------------------------------------------------------

    async def _directly(self, way: ChangeAttempt, why: str) -> ChangeAttempt | CallEnded:
        """Ask about a call that cannot be rehearsed, as a text, and run it on the root itself after a yes."""
        call, verdict = way.call, RuleVerdict("ask", f"it cannot be rehearsed: {why}", None)
        review = await self.deciding.ask(way, "direct", verdict.reason)
        approved = review is not None and review.approved
        if approved and review is not None:
            if way.edits(review):
                return self.deciding.edited(way, review, verdict, None)
            if review.unconfined:
                return await self._unconfined(way, review, verdict, None)
        decided = way.decided(verdict, review, None, committed=approved)
        way.course.record(msgspec.structs.replace(decided, unrehearsed=why))
        if not approved:
            return _denied(call, verdict, review, rehearsed=False)
        try:
            pool = self._pools.pool(way.offer.category)
            answer = await pool.call(
                way.offer.name, way.raw, effect=True, output=way.show, direct=True, network=way.network
            )
        except WorkerUnavailable as error:
            return unavailable(call, error)
        except WorkerDied as death:
            return died(call, death, pool.spec.call_timeout, committing=True)
        return answered(call, answer)

    async def _unconfined(
        self, way: ChangeAttempt, review: ApprovalDecision, verdict: RuleVerdict, effects: Effects | None
    ) -> CallEnded:
        """Run what a person lets out of the sandbox, once; not where it would find something else in the root's place.

        Such a command goes by names, and so did whoever wrote it.
        """
        if not self._pools.root.found_by_name:
            return failed(way.call, "not_found", _ELSEWHERE.format(self._profile.root))
        decided = way.decided(verdict, review, effects, committed=True)
        way.course.record(msgspec.structs.replace(decided, unconfined=True))
        answer = await run_unconfined(
            way.call.tool,
            effective(way.call),
            self._profile.root,
            self._means.timeout_s,
            way.show,
            orphans=self._means.orphans,
            login=self._means.login,
        )
        return answered(way.call, answer)

    def _wants_network(self, way: ChangeAttempt, effects: Effects) -> bool:
        tried = any(each.kind == "network" for each in effects.refused)
        return tried and not way.network and bool(self._profile.network) and self.deciding.attended

    async def _lends_network(self, way: ChangeAttempt, held: PendingProposal) -> bool:
        """Ask whether a command may use the profile's network, which its rehearsal did not have."""
        reason = f"it tried the network; the profile {self._profile.name} names {', '.join(self._profile.network)}"
        review = await self.deciding.ask(way, "network", reason, held.effects)
        if review is None or not review.approved:
            return False
        await _discard(held)
        decided = way.decided(RuleVerdict("ask", reason, None), review, held.effects, committed=False)
        way.course.record(msgspec.structs.replace(decided, network=True))
        return True


def _lost(way: ChangeAttempt) -> ChangeAttempt:
    """Return a call whose rehearsal was lost with its worker, for a beginning anew: nothing was changed."""
    return replace(way, call=way.again(), lost=way.lost + 1)


async def _discard(held: PendingProposal) -> None:
    with suppress(WorkerError):
        await held.decide(commit=False)


def unavailable(call: CallStarted, error: WorkerUnavailable) -> CallEnded:
    """Return the end of a call that no worker could be had for."""
    if isinstance(error, RootGone):
        return failed(call, "not_found", f"{error} Nothing was done.")
    return failed(call, "worker_unavailable", f"{error} Nothing was done; try again later.")


def _denied(call: CallStarted, verdict: RuleVerdict, review: ApprovalDecision | None, *, rehearsed: bool) -> CallEnded:
    remark = review.remark.strip() if review is not None else ""
    final, asked = verdict.decision == "deny", review is not None
    return denied(call, verdict.reason, remark, final=final, asked=asked, rehearsed=rehearsed)
