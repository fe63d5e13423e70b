"""The rules that count in one session: the operator's, those stored for always, and those made in it.

Rule: they decide whether what a call would change becomes so. Rules that a person made count only for what would else
be asked, and one that is to hold for always is stored before anything happens under it.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from supervisor.config.profiles import Profile
from supervisor.display.escape import one_line
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.facts import CallStarted, Scope, effective
from supervisor.pool.pools import Pools
from supervisor.rules.judge_effects import Verdict, judge_effects, protected_changes
from supervisor.rules.rule import Rule
from supervisor.rules.started_programs import programs_of
from supervisor.rules.suggest import suggested_rule
from supervisor.system.off_loop import off_loop
from supervisor.tools.approval import ApprovalDecision
from supervisor.tools.call_policy import COMMANDS
from supervisor.tools.services import ChangeServices
from supervisor.undo.promise import promise, replaces
from workers.changes.effects import Effects

_LONGEST: Final = 300
"""Characters of why no worker restores here."""


class SessionRules:
    """Judges effects, and makes rules.

    Args:
        session: its id.
        profile: for which, and for whose root, rules are stored.
        services: the operator's rules, and the store.
        made: those that a person has made in this session so far.
    """

    def __init__(self, session: str, profile: Profile, services: ChangeServices, made: Sequence[Rule] = ()) -> None:
        self.made = list(made)
        self.session = session
        self.profile = profile
        self.services = services

    async def judge(self, call: CallStarted, effects: Effects) -> Verdict:
        """Decide whether what a call would change becomes so."""
        profile, tool = self.profile, call.tool
        if tool not in COMMANDS:
            if tool in profile.ask:
                return Verdict("ask", f"profile {profile.name} asks before each {tool}")
            if guarded := protected_changes(effects):
                return Verdict("ask", f"other programs obey it: {guarded}")
            return Verdict("allow", f"profile {profile.name} allows {tool}")
        programs, today, store = programs_of(tool, effective(call)), _today(), self.services.rule_store
        size = len(effects.changes)
        verdict = await off_loop(size, judge_effects, self.services.rules, programs, effects, today)
        if verdict.decision == "ask":
            always = store.active(profile.name, profile.root, today) if store is not None else []
            if by_people := [*self.made, *always]:
                by_person = await off_loop(size, judge_effects, by_people, programs, effects, today)
                return by_person if by_person.decision == "allow" else verdict
        return verdict

    async def cannot_undo(self, effects: Effects, pools: Pools) -> str:
        """Return why the commit of these effects could not be undone, or not all of it; empty where it can be."""
        store = self.services.packs
        if store is None or not replaces(effects):
            return ""
        refusal = ""
        if not store.restorable:  # no worker of this process has shown yet that it can restore
            refusal = one_line(await pools.refusal("restore"), _LONGEST)
            store.restorable = not refusal
        budget = store.budget if store.keeps else None
        return await off_loop(len(effects.changes), promise, effects, budget, refusal)

    async def suggest(self, call: CallStarted, effects: Effects) -> Rule | None:
        """Return the rule that a person may make by saying yes to these effects; None where there is none."""
        if call.tool not in COMMANDS:
            return None
        programs = programs_of(call.tool, effective(call))
        return await off_loop(len(effects.changes), suggested_rule, programs, effects, _today())

    def make(
        self, call: CallStarted, approval: ApprovalDecision | None, rule: Rule | None
    ) -> tuple[dict[str, Any], list[str]]:
        """Add the rule that a person makes with a yes, if they make one.

        Return what the fact says of it, and a note where it does not hold for as long as they said.
        """
        if approval is None or approval.scope == "once" or rule is None:
            return {}, []
        scope: Scope = approval.scope
        notes = []
        if scope == "always":
            try:
                self._store(rule, call, approval)
            except StrongroomError as error:
                scope, notes = "session", [f"the rule holds for this session only: {error}"]
        if scope == "session":
            self.made.append(rule)
        return {"scope": scope, "rule": rule}, notes

    def _store(self, rule: Rule, call: CallStarted, approval: ApprovalDecision) -> None:
        store, profile = self.services.rule_store, self.profile
        if store is None:
            raise ConfigError("none can be stored here")
        store.add(rule, session=self.session, call=call.call, by=approval.by, profile=profile.name, root=profile.root)


def _today() -> dt.date:
    return dt.datetime.now().astimezone().date()
