"""Calls that may change something: rehearsed, judged by what they would change, decided, kept for undo, committed.

Rule: nothing has changed before `CallDecided(committed=True)` is durable, and exactly what was decided about is
committed. A rehearsal that is lost is made anew and decided about anew, and so is what a person has edited.

    rehearse -> it changes nothing, or did not end well
             -> effects -> judge -> [ask] -> keep -> CallDecided -> commit
             -> it cannot be rehearsed -> ask -> CallDecided -> run
"""

import datetime as dt
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Protocol

import msgspec
import trio

from supervisor.errors import KeptError, StrongroomError, WorkerDied, WorkerError, WorkerUnavailable
from supervisor.facts import CallDecided, CallEnded, CallStarted, Fact, effective
from supervisor.pool.held import Held
from supervisor.pool.pools import Pools
from supervisor.profiles import Profile
from supervisor.rules import Rule, sentence
from supervisor.tools import policy
from supervisor.tools.catalog import Offer
from supervisor.tools.commands import programs_of
from supervisor.tools.means import Means
from supervisor.tools.outcomes import answered, denied, died, failed, noted, said, told
from supervisor.tools.proposals import proposal
from supervisor.tools.recorded import recorded
from supervisor.tools.review import Approve, Ask, Review, Stage
from supervisor.tools.rules import Verdict
from supervisor.tools.seen import Seen
from supervisor.tools.unconfined import run_unconfined
from workers import wire
from workers.effects import Effects

_LOST_AT_MOST: Final = 2
"""Rehearsals of one call that may be lost with their worker."""

_SYNCED_AT_ONCE: Final = 2**20
"""Bytes of old content that are synced in the event loop's thread."""

_NOTHING: Final = "Nothing was changed."


class Course(Protocol):
    """What a call's owner does with what happens on its way."""

    def record(self, *facts: Fact) -> None:
        """Make facts durable.

        Raises:
            JournalError: they cannot be; what they would have allowed does not happen.
        """

    def output(self, call: str, text: str) -> None:
        """Show what a tool prints."""

    def asking(self, *, begins: bool) -> None:
        """A person is being asked from here on, or has answered."""


@dataclass(frozen=True)
class _Way:
    """One call on its way, from one rehearsal to the next."""

    call: CallStarted
    offer: Offer
    course: Course
    undoes: str = ""
    network: bool = False
    """A person lets it use the profile's network."""
    seen: bool = False
    """A person has written exactly these arguments, and what they come to says no more."""
    lost: int = 0


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
        means: Means,
        made: Sequence[Rule] = (),
    ) -> None:
        self._session = session
        self._profile = profile
        self._pools = pools
        self._approve = approve
        self._means = means
        self.made = list(made)

    async def run(self, call: CallStarted, offer: Offer, course: Course, *, undoes: str = "") -> CallEnded:
        """Run one call that has been started.

        Cancelling ends its worker; a commit that has begun is finished.

        Args:
            call: as it was recorded.
            offer: its tool.
            course: its owner.
            undoes: the call that this one takes back.

        Raises:
            JournalError: what was to happen could not be recorded, and did not happen.
        """
        step: _Way | CallEnded = _Way(call, offer, course, undoes)
        while isinstance(step, _Way):
            if step.lost > _LOST_AT_MOST:
                message = f"The worker that held what {call.tool} would change ended time and again. {_NOTHING}"
                return failed(call, "worker_crashed", message)
            if step.call is not call:
                call = step.call
                course.record(call)
            step = await self._once(step)
        return told(call, step)

    async def _once(self, way: _Way) -> _Way | CallEnded:
        """Rehearse, and do what is decided; return the end, or what to begin with anew."""
        call = way.call
        raw = (effective(call) or "{}").encode("utf-8", "surrogatepass")
        try:
            pool = self._pools.pool(way.offer.category)
            held = await pool.propose(
                way.offer.name, raw, output=lambda text: way.course.output(call.call, text), network=way.network
            )
        except wire.FrameTooLarge as error:
            message = f"The arguments have {error.size} bytes; at most {wire.FRAME_LIMIT} can be sent. Send less."
            return failed(call, "too_large", message, size=error.size)
        except WorkerUnavailable as error:
            return failed(call, "worker_unavailable", f"{error} Nothing was done; try again later.")
        except WorkerDied as death:
            return died(call, death, pool.spec.call_timeout, committing=False)
        if isinstance(held, wire.Unrehearsable):
            return await self._directly(way, held.why)
        if not isinstance(held, Held):
            return answered(call, held)
        try:
            return await self._decide(way, held)
        finally:
            held.give_up()  # nothing happens where it was decided

    # --- what was rehearsed ---------------------------------------------------------------------------------------

    async def _decide(self, way: _Way, held: Held) -> _Way | CallEnded:
        if self._wants_network(way, held.effects) and await self._lends_network(way, held):
            return replace(way, call=_again(way.call), network=True)
        if way.undoes:
            return await self._commit(way, held, Verdict("allow", way.call.reason, None), None, None)
        verdict = self._verdict(way.call, held.effects)
        if verdict.decision == "allow" or (verdict.decision == "ask" and way.seen):
            return await self._commit(way, held, verdict, None, None)
        if verdict.decision == "deny" or self._approve is None:
            return await self._refuse(way, held, verdict, None)
        return await self._review(way, held, verdict)

    async def _review(self, way: _Way, held: Held, verdict: Verdict) -> _Way | CallEnded:
        """Ask a person about effects, and do what they say."""
        call, effects = way.call, held.effects
        programs = programs_of(call.tool, effective(call)) if call.tool in policy.COMMANDS else None
        rule = proposal(programs, effects, _today()) if programs else None
        ask = self._asked(way, "effects", verdict.reason, effects, rule)
        review = await self._ask(way, ask)
        if not review.approved:
            return await self._refuse(way, held, verdict, review)
        edited = review.edited is not None and review.edited != effective(call)
        if not (edited or (review.unconfined and ask.escalation)):
            return await self._commit(way, held, verdict, review, rule)
        await self._discard(held)
        if edited:
            return self._edited(way, review, verdict, effects)
        return await self._unconfined(way, review, verdict.reason, effects)

    def _verdict(self, call: CallStarted, effects: Effects) -> Verdict:
        today = _today()
        standing = self._means.standing
        always = standing.active(self._profile.name, self._profile.root, today) if standing is not None else []
        made = [*self.made, *always]
        return policy.judge_changes(
            self._profile, call.tool, effective(call), effects, (self._means.rules, made), today
        )

    async def _refuse(self, way: _Way, held: Held, verdict: Verdict, review: Review | None) -> CallEnded:
        await self._discard(held)
        way.course.record(self._decided(way, verdict, review, held.effects, committed=False))
        return _denied(way.call, verdict.decision, verdict.reason, review, rehearsed=True)

    async def _commit(
        self, way: _Way, held: Held, verdict: Verdict, review: Review | None, rule: Rule | None
    ) -> _Way | CallEnded:
        call = way.call
        try:
            kept = await self._keep(held, call)
        except WorkerError:
            return replace(way, call=_again(call), lost=way.lost + 1)
        except KeptError as error:
            await self._discard(held)
            return failed(call, error.kind, f"{error} {_NOTHING}")
        if isinstance(kept, wire.Failed):
            await self._discard(held)
            return answered(call, kept)
        pack, left_out = kept
        decided = self._decided(way, verdict, review, held.effects, committed=True)
        decided = msgspec.structs.replace(decided, kept=pack, not_kept=left_out)
        notes = [f"{left_out} files were too large to keep: undo cannot restore them"] if left_out else []
        if review is not None and review.remark.strip():
            notes.append(said(review.remark))
        if review is not None and review.scope != "once" and rule is not None:
            decided, problem = self._made(decided, review, rule, call)
            notes += [problem] if problem else []
        way.course.record(decided)
        try:
            ended = answered(call, await held.decide(commit=True))
        except WorkerUnavailable:
            ended = failed(call, "worker_crashed", f"The worker that held it had ended. {_NOTHING} Try again.")
        except WorkerDied as death:
            return died(call, death, self._pools.pool(way.offer.category).spec.decide_timeout, committing=True)
        if ended.kind in ("conflict", "worker_crashed") and pack and self._means.kept is not None:
            self._means.kept.drop(pack)
        return noted(ended, *notes) if ended.ok else ended

    async def _keep(self, held: Held, call: CallStarted) -> tuple[str, int] | wire.Failed:
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
            if isinstance(answer, wire.Failed):
                return answer
            if answer.size <= _SYNCED_AT_ONCE:
                return pack.finish(), answer.left_out
            return await trio.to_thread.run_sync(pack.finish), answer.left_out

    def _made(self, decided: CallDecided, review: Review, rule: Rule, call: CallStarted) -> tuple[CallDecided, str]:
        """Keep a rule that a person has just made; return the fact with it, and why it does not hold for always."""
        scope, problem = review.scope, ""
        standing = self._means.standing
        if scope == "always" and standing is not None:
            try:
                standing.add(
                    rule,
                    session=self._session,
                    call=call.call,
                    by=review.by,
                    profile=self._profile.name,
                    root=self._profile.root,
                )
            except StrongroomError as error:
                scope, problem = "session", f"the rule holds for this session only: {error}"
        elif scope == "always":
            scope = "session"
        if scope == "session":
            self.made.append(rule)
        return msgspec.structs.replace(decided, scope=scope, rule=rule), problem

    async def _discard(self, held: Held) -> None:
        with suppress(WorkerError):
            await held.decide(commit=False)

    # --- what cannot be rehearsed, or not like this ---------------------------------------------------------------

    async def _directly(self, way: _Way, why: str) -> _Way | CallEnded:
        call = way.call
        reason = f"it cannot be rehearsed: {why}"
        verdict = Verdict("ask", reason, None)
        ask = self._asked(way, "direct", reason)
        review = await self._ask(way, ask) if self._approve is not None else None
        decided = self._decided(way, verdict, review, None, committed=review is not None and review.approved)
        decided = msgspec.structs.replace(decided, unrehearsed=why)
        if review is None or not review.approved:
            way.course.record(decided)
            return _denied(call, "ask", reason, review, rehearsed=False)
        if review.edited is not None and review.edited != effective(call):
            return self._edited(way, review, verdict, None)
        if review.unconfined and ask.escalation:
            return await self._unconfined(way, review, reason, None)
        way.course.record(decided)
        pool = self._pools.pool(way.offer.category)
        raw = (effective(call) or "{}").encode("utf-8", "surrogatepass")
        try:
            answer = await pool.call(
                way.offer.name,
                raw,
                effect=True,
                output=lambda text: way.course.output(call.call, text),
                direct=True,
                network=way.network,
            )
        except WorkerUnavailable as error:
            return failed(call, "worker_unavailable", f"{error} Nothing was done; try again later.")
        except WorkerDied as death:
            return died(call, death, pool.spec.call_timeout, committing=True)
        return answered(call, answer)

    async def _unconfined(self, way: _Way, review: Review, reason: str, effects: Effects | None) -> CallEnded:
        """Run what a person lets out of the sandbox, once."""
        call = way.call
        decided = self._decided(way, Verdict("ask", reason, None), review, effects, committed=True)
        way.course.record(msgspec.structs.replace(decided, unconfined=True, scope="once"))
        answer = await run_unconfined(
            call.tool,
            effective(call),
            self._profile.root,
            self._means.timeout_s,
            lambda text: way.course.output(call.call, text),
            orphans=self._means.orphans,
            login=self._means.login,
        )
        return answered(call, answer)

    def _wants_network(self, way: _Way, effects: Effects) -> bool:
        tried = any(each.kind == "network" for each in effects.refused)
        return tried and not way.network and bool(self._profile.network) and self._approve is not None

    async def _lends_network(self, way: _Way, held: Held) -> bool:
        """Ask whether a command may use the profile's network, which its rehearsal did not have."""
        reason = f"it tried the network; the profile {self._profile.name} names {', '.join(self._profile.network)}"
        review = await self._ask(way, self._asked(way, "network", reason, held.effects))
        if not review.approved:
            return False
        await self._discard(held)
        decided = self._decided(way, Verdict("ask", reason, None), review, held.effects, committed=False)
        way.course.record(msgspec.structs.replace(decided, network=True))
        return True

    # --- asking ---------------------------------------------------------------------------------------------------

    def _asked(
        self, way: _Way, stage: Stage, reason: str, effects: Effects | None = None, rule: Rule | None = None
    ) -> Ask:
        if way.lost:
            reason = f"{reason} (what was shown before was lost with its worker, and was rehearsed anew)"
        escalation = self._means.escalation and way.call.tool in policy.COMMANDS and stage != "network"
        return Ask(way.call, stage, reason, effects, rule, escalation)

    async def _ask(self, way: _Way, ask: Ask) -> Review:
        assert self._approve is not None, "somebody is there"
        way.course.asking(begins=True)
        review = await self._approve(ask)
        way.course.asking(begins=False)
        return review

    def _edited(self, way: _Way, review: Review, verdict: Verdict, effects: Effects | None) -> _Way | CallEnded:
        """Return how a call goes on with the arguments that a person wrote: judged, and rehearsed, anew."""
        assert review.edited is not None, "they were edited"
        call = way.call
        decided = self._decided(way, verdict, review, effects, committed=False)
        way.course.record(msgspec.structs.replace(decided, edited=review.edited))
        anew = policy.judge(self._profile, call.tool, review.edited, Seen())
        changed = msgspec.structs.replace(
            _again(call), edited=review.edited, remark=review.remark.strip(), decided_by=review.by
        )
        if anew.decision == "deny":
            return _denied(changed, "deny", anew.reason, None, rehearsed=False)
        return replace(way, call=changed, seen=call.tool not in policy.COMMANDS)

    def _decided(
        self, way: _Way, verdict: Verdict, review: Review | None, effects: Effects | None, *, committed: bool
    ) -> CallDecided:
        return CallDecided(
            way.call.turn,
            way.call.call,
            verdict.decision,
            verdict.reason,
            committed,
            recorded(effects) if effects is not None else None,
            review.approved if review is not None else None,
            review.remark.strip() if review is not None else "",
            review.by if review is not None else "",
            covered_by=sentence(verdict.rule) if verdict.rule is not None else "",
            network=way.network,
            undoes=way.undoes,
        )


def _today() -> dt.date:
    return dt.datetime.now().astimezone().date()


def _again(call: CallStarted) -> CallStarted:
    return msgspec.structs.replace(call, again=True)


def _denied(call: CallStarted, decision: str, reason: str, review: Review | None, *, rehearsed: bool) -> CallEnded:
    return denied(
        call,
        reason,
        review.remark.strip() if review is not None else "",
        final=decision == "deny",
        asked=review is not None,
        rehearsed=rehearsed,
    )
