"""The rules that count in one session: the operator's, and those that people made, for it or for always.

Rule: they decide whether what a call would change becomes so. Those that ask or deny speak of every effect, whatever
tool makes it; those that a person made count only for what no rule of the operator's speaks of, while the root is where
it was, and each is stored before anything happens under it.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import trio

from supervisor.categories.registries import Registry
from supervisor.config.profiles import Profile
from supervisor.config.source_tree import tree_top
from supervisor.display.escape import one_line
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.facts import CallStarted, effective
from supervisor.pool.open_root import OpenRoot
from supervisor.pool.pools import Pools
from supervisor.rules.installers import install_of
from supervisor.rules.judge_effects import (
    Verdict,
    judge_effects,
    judge_unrehearsed,
    network_denied,
    protected_changes,
    without,
)
from supervisor.rules.modes import PLANNED, InTree, judge_by_mode
from supervisor.rules.rule import Mode, Rule
from supervisor.rules.rule_sentence import sentence
from supervisor.rules.shipped import or_shipped
from supervisor.rules.started_installs import started_install, starts_others
from supervisor.rules.started_programs import making_programs, started_by
from supervisor.rules.suggest import suggested_rule
from supervisor.system.off_loop import off_loop
from supervisor.system.package_caches import PackageCaches
from supervisor.tools.approval import ApprovalDecision
from supervisor.tools.call_policy import COMMANDS
from supervisor.tools.installs import WantedNetwork, allowing, may_install, wanted_network
from supervisor.tools.services import ChangeServices
from supervisor.undo.promise import promise, replaces
from workers.catalog import find_tool
from workers.changes.effects import Effects
from workers.shell.command_line import is_program
from workers.tree.obeyed_names import UNKNOWN

_LONGEST: Final = 300
"""Characters of why no worker restores here."""


class SessionRules:
    """Judges effects, and makes rules.

    Args:
        session: its id.
        profile: for which, and for whose root, rules are stored.
        services: the operator's rules, and the store.
        root: the open root; without one no rule that a person made counts.
    """

    def __init__(self, session: str, profile: Profile, services: ChangeServices, root: OpenRoot | None = None) -> None:
        self.session = session
        self.profile = profile
        self.services = services
        self._root = root
        self.mode: Mode = "edits"
        """Which changes are asked about; it counts from the next call on."""
        self._changes = 0
        self._unchanging = trio.Event()
        self._index_unseen = profile.source_tree and tree_top(profile.root) not in (None, profile.root)

    @property
    def _rules(self) -> Sequence[Rule]:
        """Those of the root's own file, which deny, those that people kept, which do as well, and the operator's."""
        narrowing, kept = self.profile.narrowing, self._kept()
        return (*(narrowing.rules if narrowing is not None else ()), *kept, *self.services.rules)

    def _kept(self) -> list[Rule]:
        """Return what people have denied for always; where that cannot be read, everything is asked about."""
        store, profile = self.services.rule_store, self.profile
        if store is None or self._root is None:
            return []
        try:
            made = store.listing()
        except ConfigError as error:
            return [Rule("ask", writes=("**",), deletes=("**",), reason=str(error))]
        if not made:
            return []
        here, today = (profile.name, profile.root, self._root.mark), _today()
        found = (each for each in made if (each.profile, each.root, each.identity) == here)
        return [each.rule for each in found if each.rule.decision == "deny" and each.rule.counts(today)]

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Count as what may change something, from the last look at the mode to the end."""
        self._changes += 1
        try:
            yield
        finally:
            self._changes -= 1
            if not self._changes:
                self._unchanging.set()
                self._unchanging = trio.Event()

    async def wait_for_plan(self) -> None:
        """Return when nothing changes any more, if the mode is `plan`."""
        while self.mode == "plan" and self._changes:
            await self._unchanging.wait()

    async def judge(self, call: CallStarted, effects: Effects, *, network: bool = False) -> Verdict:
        """Decide whether what a call would change becomes so; with `network`, it had one."""
        verdict = await self._by_rules(call, effects, network=network)
        tree = None
        if self.profile.source_tree and call.tool in COMMANDS:
            tree = InTree(making_programs(call.tool, effective(call)), self._index_unseen)
        return await off_loop(len(effects.changes), judge_by_mode, self.mode, verdict, effects, tree)

    async def _by_rules(self, call: CallStarted, effects: Effects, *, network: bool) -> Verdict:
        profile, tool = self.profile, call.tool
        started, today = started_by(tool, effective(call), network=network), _today()
        size = len(effects.changes)
        verdict = await off_loop(size, judge_effects, self._rules, started, effects, today)
        if tool not in COMMANDS:
            if verdict.rule is not None and verdict.decision != "allow":
                return verdict
            if tool in profile.ask:
                return Verdict("ask", f"profile {profile.name} asks before each {tool}")
            if guarded := protected_changes(without(effects, UNKNOWN) if profile.source_tree else effects):
                return Verdict("ask", f"other programs obey it: {guarded}")
            return Verdict("allow", f"profile {profile.name} allows {tool}")
        if verdict.decision == "ask" and verdict.rule is None and (by_people := self._by_people(today)):
            by_person = await off_loop(size, judge_effects, by_people, started, effects, today)
            verdict = by_person if by_person.decision == "allow" else verdict
        if self.mode == "ask":
            return verdict
        return await off_loop(size, or_shipped, verdict, started, effects, today)

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

    def judge_unrehearsed(self, call: CallStarted, *, network: bool) -> Verdict:
        """Deny a call whose effects nobody knows beforehand, in plan mode or if a rule may deny them; else ask."""
        if self.mode == "plan":
            return Verdict("deny", PLANNED)
        started = started_by(call.tool, effective(call), network=network)
        return judge_unrehearsed(self._rules, started, _today())

    def judge_install(self, call: CallStarted, wanted: WantedNetwork) -> Verdict:
        """Decide whether a known install may use the network that it wants: a rule allows or denies it, or a person."""
        started, today = started_by(call.tool, effective(call), network=True), _today()
        if denial := network_denied(self._rules, started, today):
            return Verdict("deny", f"a rule denies it: {sentence(denial)}", denial)
        found = allowing([*self._rules, *self._by_people(today)], wanted, today)
        return found or Verdict("ask", "")

    async def wanted_network(self, call: CallStarted, *, lacks: bool = False) -> WantedNetwork | None:
        """Return what a call wants of the network, if it is a known install and not all of it is here.

        With `lacks` it has shown that something is not.
        """
        profile, tool, arguments = self.profile, call.tool, effective(call)
        install = install_of(tool, arguments) if may_install(profile) else None
        if install is None and may_install(profile) and tool in COMMANDS:
            look = partial(started_install, tool, arguments, self._packages_here[0], lacks=lacks)
            install = await trio.to_thread.run_sync(look) if starts_others(tool, arguments) else None
        wanted = wanted_network(profile, install, _today())
        if wanted is None or lacks:
            return wanted
        return await trio.to_thread.run_sync(wanted.needed, *self._packages_here)

    async def remember(self, wanted: WantedNetwork) -> None:
        """Remember what an install that has gone well had no need of.

        Raises:
            OSError: it cannot be written.
        """
        if wanted.install.locked:
            await trio.to_thread.run_sync(wanted.remember, *self._packages_here)

    @property
    def _packages_here(self) -> tuple[str, PackageCaches | None, tuple[Registry, ...]]:
        root = self.profile.root if self._root is None else self._root.place
        return root, self.services.caches, self.profile.registries

    def unlisted(self, call: CallStarted) -> str:
        """Return the program that a call starts, where [shell] does not list it and no rule lets it start."""
        listed, row = self.services.programs, find_tool(call.tool)
        if listed is None or row is None or row.runs != "program":
            return ""
        program, *_ = started_by(call.tool, effective(call)).programs or ("",)
        return "" if program in listed or not is_program(program) or self.lets_start(call) else program

    def lets_start(self, call: CallStarted) -> bool:
        """Say whether a rule lets the program start, whatever [shell] lists."""
        today, started = _today(), started_by(call.tool, effective(call)).programs or ()
        rules = [rule for rule in (*self._rules, *self._by_people(today)) if rule.starts and rule.counts(today)]
        return any(set(started) <= {*(rule.programs or ())} for rule in rules) and bool(started)

    async def suggest(self, call: CallStarted, effects: Effects, *, network: bool = False) -> Rule | None:
        """Return the rule that a person may make by saying yes to these effects; None where there is none."""
        if call.tool not in COMMANDS:
            return None
        started = started_by(call.tool, effective(call), network=network)
        return await off_loop(len(effects.changes), suggested_rule, started, effects, _today())

    def make(
        self, call: CallStarted, approval: ApprovalDecision | None, rule: Rule | None
    ) -> tuple[dict[str, Any], list[str]]:
        """Store the rule that a person makes with a yes, if they make one.

        Return what the fact says of it, and a note where it cannot be.
        """
        if approval is None or approval.scope == "once" or rule is None:
            return {}, []
        rule = approval.rule or rule
        try:
            self._store(rule, call, approval)
        except StrongroomError as error:
            return {}, [f"no rule was made: {error}"]
        return {"scope": approval.scope, "rule": rule}, []

    def end(self) -> None:
        """Drop the rules that were made for this session.

        Raises:
            ConfigError: they cannot be.
        """
        if self.services.rule_store is not None:
            self.services.rule_store.end(self.session)

    def _by_people(self, today: dt.date) -> list[Rule]:
        store, profile, root = self.services.rule_store, self.profile, self._root
        if store is None or root is None or not root.found_by_name:
            return []
        return store.active(profile.name, profile.root, today, identity=root.mark, session=self.session)

    def _store(self, rule: Rule, call: CallStarted, approval: ApprovalDecision) -> None:
        store, profile, root = self.services.rule_store, self.profile, self._root
        if store is None or root is None or not root.found_by_name or approval.scope == "once":
            raise ConfigError("none can be stored here")
        origin = {"session": self.session, "call": call.call, "by": approval.by}
        here = {"profile": profile.name, "root": profile.root, "identity": root.mark}
        store.add(rule, **origin, **here, scope=approval.scope)


def _today() -> dt.date:
    return dt.datetime.now().astimezone().date()
