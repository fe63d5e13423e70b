"""What is decided about the calls of one session: by rules, or by the person who is asked.

Rule: rules that a person made count only for what would else be asked, and one that is to hold for always is stored
before anything happens under it. Nobody there is no yes.
"""

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from supervisor.config.profiles import Profile
from supervisor.errors import StrongroomError
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Scope, effective
from supervisor.rules.match import RuleVerdict
from supervisor.rules.rule import Rule
from supervisor.rules.started_programs import programs_of
from supervisor.rules.suggest import suggested_rule
from supervisor.tools import policy
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion, Approve, Stage
from supervisor.tools.call_context import ChangeAttempt
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.outcomes import denied
from supervisor.tools.services import ChangeServices
from workers.changes.effects import Effects


class Deciding:
    """As `Execution`, whose arguments these are."""

    def __init__(
        self, session: str, profile: Profile, approve: Approve | None, services: ChangeServices, made: Sequence[Rule]
    ) -> None:
        self.attended = approve is not None
        """Whether somebody is there to be asked."""
        self.made = list(made)
        """The rules that a person has made in this session."""
        self.waited = 0.0
        """Seconds that people have taken for their answers."""
        self._session = session
        self._profile = profile
        self._approve = approve
        self._services = services

    def verdict(self, call: CallStarted, effects: Effects) -> RuleVerdict:
        """Return what the policy says about what a call would change."""
        today = _today()
        standing = self._services.rule_store
        always = standing.active(self._profile.name, self._profile.root, today) if standing is not None else []
        rules = self._services.rules, [*self.made, *always]
        return policy.judge_changes(self._profile, call.tool, effective(call), effects, rules, today)

    def rule(self, call: CallStarted, effects: Effects) -> Rule | None:
        """Return the rule that a person may make by saying yes to these effects; None where there is none."""
        if call.tool not in policy.COMMANDS:
            return None
        return suggested_rule(programs_of(call.tool, effective(call)), effects, _today())

    def may_escalate(self, call: CallStarted) -> bool:
        """Say whether a person who is asked about a call may let it run unconfined."""
        return self._services.escalation and call.tool in policy.COMMANDS

    async def request_approval(
        self,
        attempt: ChangeAttempt,
        stage: Stage,
        reason: str,
        effects: Effects | None = None,
        rule: Rule | None = None,
    ) -> ApprovalDecision | None:
        """Ask the person; None where nobody is there. What was not offered is not in the answer."""
        if self._approve is None:
            return None
        if attempt.lost:
            reason = f"{reason} (what was shown before was lost with its worker, and was rehearsed anew)"
        escalation = self.may_escalate(attempt.call) and stage != "network"
        attempt.context.awaiting_approval(begins=True)
        began = time.monotonic()
        try:
            decision = await self._approve(ApprovalQuestion(attempt.call, stage, reason, effects, rule, escalation))
        finally:
            self.waited += time.monotonic() - began
        attempt.context.awaiting_approval(begins=False)
        return replace(
            decision,
            scope=decision.scope if rule is not None else "once",
            unconfined=decision.unconfined and escalation and not attempt.edits(decision),
        )

    def edited(
        self, attempt: ChangeAttempt, decision: ApprovalDecision, verdict: RuleVerdict, effects: Effects | None
    ) -> ChangeAttempt | CallEnded:
        """Return how a call goes on with the arguments that a person wrote: judged, and rehearsed, anew."""
        assert decision.edited is not None, "they were edited"
        decided = attempt.decided(verdict, decision, effects, committed=False)
        attempt.context.record(msgspec.structs.replace(decided, edited=decision.edited))
        anew = policy.judge(self._profile, attempt.call.tool, decision.edited, SeenText())
        changed = msgspec.structs.replace(
            attempt.again(), edited=decision.edited, remark=decision.remark.strip(), decided_by=decision.by
        )
        if anew.decision == "deny":
            return denied(changed, anew.reason, "", final=True, asked=True)
        return replace(attempt, call=changed, seen=attempt.call.tool not in policy.COMMANDS)

    def scoped(self, decided: CallDecided, decision: ApprovalDecision, rule: Rule) -> tuple[CallDecided, str]:
        """Keep the rule that a person makes with a yes.

        Return the fact with it, and a remark where it does not hold for as long as they said.
        """
        scope, problem = decision.scope, ""
        if scope == "always":
            scope, problem = self._stored(decided, decision, rule)
        if scope == "session":
            self.made.append(rule)
        return msgspec.structs.replace(decided, scope=scope, rule=rule), problem

    def _stored(self, decided: CallDecided, decision: ApprovalDecision, rule: Rule) -> tuple[Scope, str]:
        if self._services.rule_store is None:
            return "session", "the rule holds for this session only: none can be stored here"
        try:
            self._services.rule_store.add(
                rule,
                session=self._session,
                call=decided.call,
                by=decision.by,
                profile=self._profile.name,
                root=self._profile.root,
            )
        except StrongroomError as error:
            return "session", f"the rule holds for this session only: {error}"
        return "always", ""


def _today() -> dt.date:
    return dt.datetime.now().astimezone().date()
