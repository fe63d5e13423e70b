"""Resources that all sessions of a process share: the journal, the workers of each root, and models.

Rule: things are opened as they are needed and closed in the reverse order. The nursery is its owner's, who waits there;
nothing hides one around a yield. Whoever owns them owns the process: what workers leave behind is killed.
"""

import logging
import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import trio

from supervisor.agent.ledger import Ledger
from supervisor.broker.broker import Broker
from supervisor.categories.media import MediaConfig
from supervisor.categories.restore import UndoConfig
from supervisor.categories.shell import ShellConfig, package_caches
from supervisor.categories.web import WebConfig
from supervisor.config.fault_plan import FaultPlan, RunningFaultPlan
from supervisor.config.narrowing import narrowed
from supervisor.config.narrowing_choices import NarrowingChoices
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.journal.agent_files import AgentFiles
from supervisor.journal.contents import ContentStore
from supervisor.journal.facts import FaultsAllowed
from supervisor.journal.journal import Journal
from supervisor.journal.journal_writer import JournalWriter
from supervisor.pool.cgroup import WorkerCgroups
from supervisor.pool.open_root import Identity, OpenRoot
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from supervisor.pool.template_process import TemplateProcess, worker_command
from supervisor.pool.worker_cap import WorkerCap
from supervisor.pool.worker_template import WorkerTemplate
from supervisor.rules.store import RuleStore
from supervisor.session.child_specs import child_spec
from supervisor.session.shared_models import SharedModels
from supervisor.session.surveys import Surveys
from supervisor.system.descendants import Orphans
from supervisor.tools.catalog import SANDBOXED, category_tools, offers
from supervisor.tools.install_commit import cache_places
from supervisor.tools.services import ChangeServices
from supervisor.tools.skills import shown_to_commands
from supervisor.undo.packs import PackStore
from workers import kernel

_log: Final = logging.getLogger("strongroom.daemon")

_SET_DUMPABLE: Final = 4


def prepare_process() -> Orphans:
    """Make this process fit to be a supervisor; return what kills its workers' orphans.

    No worker, and nobody else's debugger, reads its memory; large replies do not cost page faults.
    """
    kernel.prctl("PR_SET_DUMPABLE", _SET_DUMPABLE, 0)
    kernel.keep_heap()
    return Orphans()


def announce_faults(plan: FaultPlan, journal: Journal) -> None:
    """Record and log that there will be faults, before any worker is started: who reads later why they failed finds it.

    Raises:
        JournalError: it cannot be recorded.
    """
    path = os.fsencode(plan.file).decode("utf-8", "backslashreplace")  # the journal holds nothing but Unicode
    journal.append(f"faults-{secrets.token_hex(8)}", FaultsAllowed(path, plan.digest, plan.seed))
    _log.warning("FAULT INJECTION IS ON: workers fail as %s says", plan)


class OpenPools(NamedTuple):
    """The workers on one directory that was found under the root of a profile."""

    profile: Profile
    pools: Pools


class SessionResources:
    """The open journal, the pools and the models, shared by the sessions of one process.

    Args:
        settings: as they were read; `use_settings` brings others.
        journal: open, and closed by its owner after `close`.
        nursery: runs the workers; its owner calls `close` before it ends.
        orphans: as for `ChildSpec`.
        faults: those that the command line asked for.
        groups: where the workers' cgroups are made; its owner closes them after `close`.
        spares: whether one more worker than needed is kept ready.
        template: which forks the workers, if it runs already.
    """

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        nursery: trio.Nursery,
        orphans: Orphans,
        faults: RunningFaultPlan | None = None,
        groups: WorkerCgroups | None = None,
        *,
        spares: bool = True,
        template: TemplateProcess | None = None,
    ) -> None:
        self.writer = JournalWriter(journal)
        self.groups = groups
        self.faults = faults
        self.opened: list[OpenPools] = []
        """All pools that are open, in the order of their opening."""
        self._nursery = nursery
        self._orphans = orphans
        self._current: dict[tuple[Profile, Identity], Pools] = {}
        """What is open for sessions from now on, by what is found under the root's path, not by the path alone."""
        self._cap = WorkerCap(spares=spares)
        self._template = WorkerTemplate(worker_command(), orphans, started=template)
        self.models = SharedModels(settings, nursery)
        self._agent_files = AgentFiles(journal.path)
        self.ledger = Ledger(journal, price_of=lambda name: self.models.facts(name).prices)
        """The budgets that sessions share."""
        self._surveys = Surveys()
        self.contents = ContentStore(settings.contents, settings.config.section(MediaConfig))
        """Images and documents that models were shown."""
        self.use_settings(settings)

    def use_settings(self, settings: Settings) -> None:
        """Use other settings for what is opened from here on."""
        self.settings = settings
        self._surveys.forget()
        self.ledger.config = settings.config.budgets
        self.ledger.waiting = settings.config.waiting
        self._cap.most = settings.config.daemon.workers
        self._broker = Broker(settings.config.section(WebConfig))
        self.packs = PackStore(settings.packs, settings.config.section(UndoConfig))
        """What commits have replaced."""
        self.contents.limits = settings.config.section(MediaConfig)
        shell = settings.config.section(ShellConfig)
        self.services = ChangeServices(
            settings.config.rules,
            RuleStore(settings.rules_file),
            self.packs,
            shell.escalation,
            shell.timeout_s,
            max(shell.timeout_s, shell.max_timeout_s),
            dict(settings.login),
            self._orphans,
            settings.config.section(WebConfig),
            shell.programs,
            package_caches(settings.config, settings.home),
            self._agent_files,
            self.contents,
            settings.config_file.parent,
            settings.journal,
        )
        """What decisions about changes, and undo, stand on."""
        self._current.clear()
        self.models.use_settings(settings)

    def pools(self, profile: Profile, since: Pools | None = None) -> Pools:
        """Return the workers on the directory that the profile's root is now; the same for every session there.

        Where another directory has the path by now, those of the sessions on the old one are no longer what is found.
        Those of a category that is opened later are still what the settings of now say.

        Args:
            profile: whose root it is.
            since: the workers that a session has had so far: it stays in their directory if the path is the same.

        Raises:
            ConfigError: the root cannot be opened.
        """
        profile = profile.complete or profile
        root = OpenRoot(profile.root) if since is None or since.root.path != profile.root else since.root.reopened()
        key = profile, root.identity
        if key in self._current:
            root.close()
        else:
            settings, broker = self.settings, self._broker
            if self.services.caches is not None:
                self.services.caches.prepare(cache_places(self.services.caches, profile))

            def spec(category: str) -> ChildSpec:
                ours = child_spec(settings, profile, category, broker)
                ours = replace(ours, faults=self.faults, groups=self.groups, orphans=self._orphans)
                return replace(ours, cap=self._cap, template=self._template)

            pools = self._current[key] = Pools(root, spec, self._nursery)
            self.opened.append(OpenPools(profile, pools))
        return self._current[key]

    async def with_available_tools(self, profile: Profile, person: Sequence[tuple[str, str]] = ()) -> Profile:
        """Return the profile as the root's own file narrows it, without the tools whose sandbox cannot be made here.

        Its `unavailable_tools` says why. Where commands can be rehearsed in copies at least, it is the profile that
        does so.

        Costs a start of a worker where the profile has such tools and none runs on its root yet. A failure is not
        remembered: the next call tries anew. What commands have of a `person` is looked for in a thread.

        Raises:
            ConfigError: a variable of `[shell]` may not be given in this root, or the root's own file has a mistake.
        """
        sites = self.settings.config.section(WebConfig).allow
        profile = narrowed(profile, NarrowingChoices(self.settings.narrowings_file).uses, sites)
        profile = await self.with_surroundings(profile, dict(person) or self.settings.person)
        unavailable: dict[str, str] = {}
        for category in dict.fromkeys(offer.category for offer in offers(profile.tools).values()):
            if category not in SANDBOXED or not (why := await self.pools(profile).refusal(category)):
                continue
            copies = replace(
                profile, copies=self.settings.config.section(ShellConfig).copy_mb > 0 and profile.root != "/"
            )
            if not copies.copies or (more := await self.pools(copies).refusal(category)):
                why += f"; nor in copies of the root: {more}" if copies.copies else ""
                unavailable |= {tool: why for tool in category_tools(category) if tool in profile.tools}
            else:
                profile = copies
        return profile.without(unavailable)

    async def with_surroundings(self, profile: Profile, person: dict[str, str]) -> Profile:
        """Return the profile with what commands have of a `person`, if it has commands; looked for in a thread.

        Raises:
            ConfigError: a variable of `[shell]` may not be given in this root.
        """
        if not any(offer.category in SANDBOXED for offer in offers(profile.tools).values()):
            return profile
        found = await self._surveys.look(self.settings, profile.root, person)
        if skills := shown_to_commands(self.settings.config_file.parent, profile.tools):
            found = found._replace(shown=(*found.shown, *skills))
        return profile.with_surroundings(found)

    def withdraw_pools(self, each: OpenPools) -> None:
        """Let nobody get these workers any more; the caller closes them."""
        self.opened.remove(each)
        key = each.profile, each.pools.root.identity
        if self._current.get(key) is each.pools:
            del self._current[key]

    async def close(self) -> None:
        """Close the models, then stop the workers of all roots at once, within the pools' bound."""
        await self.models.close()
        async with trio.open_nursery() as nursery:
            for each in reversed(self.opened):
                nursery.start_soon(each.pools.close)
        self.opened.clear()
        self._current.clear()
        self._template.close()
        self._agent_files.close()
