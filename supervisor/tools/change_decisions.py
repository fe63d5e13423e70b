"""Decisions about what a call would change: by the rules, and by the person where those leave it to them.

Rule: `decide` is where effects need a yes. What it finds out stands in the attempt; nothing is recorded or done here.
"""

import time
from typing import Literal

import msgspec

from supervisor.display.proposed_effects import size
from supervisor.journal.facts import CallStarted, effective
from supervisor.pool.pools import Pools
from supervisor.rules.judge_effects import Verdict
from supervisor.rules.modes import PLANNED
from supervisor.tools.approval import Approvals, Next
from supervisor.tools.change_attempt import ChangeAttempt
from supervisor.tools.exfiltration.origins import explained, obeyed, words_of
from supervisor.tools.installs import INSTALLED, settles, strange_places
from supervisor.tools.outcomes import refused
from supervisor.tools.session_rules import SessionRules
from workers.changes.effects import NETWORK, Effects


class ChangeDecisions:
    """Decides about the changes of one session's calls; the arguments are as those of `Execution`."""

    def __init__(self, pools: Pools, approvals: Approvals, rules: SessionRules) -> None:
        self._pools = pools
        self._approvals = approvals
        self._rules = rules
        self._profile = rules.profile

    @property
    def plans(self) -> bool:
        """Whether nothing may change, as changes are only planned."""
        return self._rules.mode == "plan"

    def lets_start(self, call: CallStarted) -> bool:
        """Say whether a program that is not listed may start: a person was asked about it as it is, or by a rule."""
        return (call.approved is True and call.edited is None) or self._rules.lets_start(call)

    def unless_planned(self, attempt: ChangeAttempt, decided: Next) -> Next:
        """Return what was decided, unless nothing may change by now, whatever a person has answered meanwhile."""
        if not self.plans and not attempt.planned:
            return decided
        attempt.verdict, attempt.approval = Verdict("deny", PLANNED), None
        return Next.DENY

    async def decide(self, attempt: ChangeAttempt, effects: Effects) -> Next:
        """Decide about the effects of a rehearsal: whether they need a yes, and whether they get it."""
        attempt.effects = effects
        if self.plans or attempt.planned:
            return Next.DENY
        verdict = await self._rules.judge(attempt.call, effects, network=attempt.network)
        if attempt.before is None or verdict.decision == "deny":
            return await self._judged(attempt, effects, verdict)
        if attempt.decide_as_before(await self._rules.cannot_undo(effects, self._pools)):
            return Next.COMMIT
        return await self.request_approval(attempt, "effects")

    async def _judged(self, attempt: ChangeAttempt, effects: Effects, verdict: Verdict) -> Next:
        """Decide as the rules have judged, and the person where that needs one."""
        if verdict.decision != "deny" and await self._network_approved(attempt, effects):
            return Next.WITH_NETWORK
        installs = attempt.places and attempt.wanted and settles(verdict, attempt.wanted, effects)
        if attempt.wanted and verdict.decision == "ask" and (strange := strange_places(attempt.wanted, effects)):
            verdict = verdict._replace(reason=f"{strange}; {verdict.reason}")
        verdict = INSTALLED if installs else verdict
        by_rule = verdict.rule is not None
        attempt.verdict = verdict if by_rule or not attempt.undoes else Verdict("allow", attempt.call.reason)
        if attempt.verdict.decision == "deny":
            return Next.DENY
        freely = attempt.verdict.decision == "allow" and not installs
        if freely and attempt.foreign and (names := obeyed(effects)):
            attempt.verdict = attempt.verdict._replace(decision="ask", reason=f"{attempt.verdict.reason}; {names}")
        attempt.cannot_undo = lost = await self._rules.cannot_undo(effects, self._pools)
        if lost and not attempt.undoes:
            why = f"{attempt.verdict.reason}; {lost}" if attempt.verdict.decision == "ask" else lost
            attempt.verdict = attempt.verdict._replace(decision="ask", reason=why)
        elif attempt.verdict.decision == "allow" or (attempt.written_by_person and not by_rule):
            return await self.leave(attempt, effects.lacked)
        if not by_rule:  # another one would change nothing
            attempt.rule = await self._rules.suggest(attempt.call, effects, network=attempt.network)
        return await self.request_approval(attempt, "effects")

    async def _network_approved(self, attempt: ChangeAttempt, effects: Effects) -> bool:
        """Ask whether a command may use the profile's network, if it tried any and its rehearsal had none."""
        profile = self._profile
        tried = any(each.kind == "network" for each in effects.refused)
        if not tried or attempt.network or not profile.network or not self._approvals.attended or profile.copies:
            return False
        if attempt.wanted is not None:
            return False  # it was asked about before
        wanted = await self._rules.wanted_network(attempt.call, lacks=True)
        if not profile.hosts and not effects.exit_code and not (wanted and wanted.install.piped):
            return False  # it did what it was to do without packages
        named = f"it tried the network; the profile {profile.name} names {', '.join(profile.network)}"
        may = f"it may send {size(attempt.seen.uploads.limit)}"
        attempt.verdict = Verdict("ask", "; ".join(filter(None, (named, attempt.seen.uploads.told(), may))))
        if wanted:
            attempt.verdict = Verdict("ask", f"it tried the network; {wanted.reason(attempt.seen)}")
        attempt.wanted = wanted
        if await self.request_approval(attempt, "network") is not Next.DENY:
            return True
        attempt.approval = None  # it is asked about without a network
        attempt.wanted = None
        return False

    async def leave(self, attempt: ChangeAttempt, lacked: tuple[str, ...]) -> Next:
        """Leave a command that nobody needs to be asked about as it is, unless it was refused something.

        Then a person is offered to run it on the real system; whatever else they say, it stays as it is.
        """
        attempt.lacked = tuple(each for each in lacked if each != NETWORK or not self._profile.network)
        offered = attempt.lacked and not attempt.undoes and self._approvals.attended
        if not offered or not self._approvals.escalates(attempt.call):
            return Next.COMMIT
        if self._rules.judge_unrehearsed(attempt.call, network=True).decision == "deny":
            return Next.COMMIT
        verdict, attempt.verdict = attempt.verdict, Verdict("ask", refused(attempt.lacked))
        if await self.request_approval(attempt, "refused") is Next.UNCONFINED:
            return Next.UNCONFINED
        if attempt.approval is not None and attempt.approval.remark:
            said = "\n".join(filter(None, (attempt.call.remark, attempt.approval.remark)))
            attempt.call = msgspec.structs.replace(attempt.call, remark=said)
        attempt.verdict, attempt.approval = verdict, None
        return Next.COMMIT

    async def request_approval(
        self, attempt: ChangeAttempt, stage: Literal["effects", "direct", "network", "refused"]
    ) -> Next:
        """Ask the person, if there is one, about what the verdict leaves to them."""
        reason = attempt.verdict.reason
        if attempt.lost:
            reason = f"{reason} (what was shown before was lost with its worker, and was rehearsed again)"
        if attempt.foreign:
            reason = explained(reason, attempt.seen, words_of(effective(attempt.call), attempt.effects))
            reason += "; a yes for longer would let what it may stem from change this again" if attempt.rule else ""
            attempt.verdict = attempt.verdict._replace(reason=reason)
        began = time.monotonic()
        try:
            attempt.approval = approval = await self._approvals.request(
                attempt.call, stage, reason, attempt.effects, attempt.rule, attempt.context, attempt.cannot_undo
            )
        finally:
            attempt.waited_s += time.monotonic() - began
        if approval is None or not approval.approved:
            return Next.DENY
        if approval.edited is not None:
            return Next.EDITED
        return Next.UNCONFINED if approval.unconfined else Next.COMMIT
