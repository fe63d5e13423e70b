"""The replay of one session: its turns run again in a copy of its root, and compared with the record one by one.

Rule: the replay has a journal, packs and rules of its own, which are thrown away with the copy. It stops at the first
divergence: what comes after one follows from it.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, CallDecided, CallEnded, Compacted, ContentsRefused,
FaultsAllowed, InstructionsRead, ModelRetried, ModelSwitched, OptionChosen, Replied, ReplyCut, RuleRevoked,
SessionDeleted, SessionOpened, ToolsChanged, TurnEnded, TurnQuestioned, TurnResumed, TurnStarted, TurnSuspended,
Unreadable.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from supervisor.agent.turn import SuspendedTurn
from supervisor.config.config_keys import Config
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    ModeChanged,
    Rewound,
    SessionChanged,
    TurnResumed,
    TurnStarted,
    Unreadable,
    effective,
)
from supervisor.journal.index import utc
from supervisor.journal.journal import open_journal
from supervisor.replay.divergence import Divergence, first_divergence
from supervisor.replay.recorded_session import recorded_profile, recorded_session
from supervisor.replay.replayed_answers import ReplayedModel, ReplayedPerson, given_outcomes, turns_of
from supervisor.replay.replayed_root import CommittedPack, commits_since, copy_root, undo_commits
from supervisor.replay.throwaway import throwaway_directory
from supervisor.rules.store import RuleStore, StoredRule
from supervisor.session.earlier_session import EarlierSession, new_session
from supervisor.session.resources import SessionResources, prepare_process
from supervisor.session.session import Session
from supervisor.session.taking_back import undoing
from supervisor.system.safe_files import secure_home
from supervisor.undo.undo_plan import REWIND, TOOL, UndoStep
from supervisor.version import VERSION

_UNCHANGED: Final = Config()


class ReplayReport(msgspec.Struct, frozen=True):
    """What a replay came to; equal where there is no `divergence`."""

    session: str
    turns: int
    calls: int
    divergence: Divergence | None
    given: tuple[str, ...]
    """Calls whose recorded outcome was given, for it came from outside or was cut off."""
    not_as_it_was: tuple[str, ...]
    """What of the root could not be had as it was, a clause each."""
    remarks: tuple[str, ...] = ()
    """What else is not as it was: another version, other tools."""


def replay(
    settings: Settings, wanted: str, root: str | None = None, told: Callable[[str], None] = lambda _text: None
) -> ReplayReport:
    """Replay a session.

    Args:
        settings: the configuration that counts, and where the journal is.
        wanted: as `recorded_session`.
        root: a directory that is as the session's root was when it was opened; else that root is taken back so far.
        told: hears what is being done.

    Raises:
        ConfigError: no such session, or its root cannot be had.
        JournalError: the journal cannot be read.
    """
    earlier, commits = recorded_session(settings, wanted), list[CommittedPack]()
    was = earlier.opened.context.working_directory
    if (root or was) == "/":
        raise ConfigError("A session on the root / cannot be replayed: it would need a copy of the whole machine.")
    if root is None:
        if not earlier.entries[0].seq:
            raise ConfigError("The record of a file says not where its root is by now. Name it: --root DIR.")
        with open_journal(settings.journal) as journal:
            commits = commits_since(journal, earlier.entries[0].seq, was)
    with throwaway_directory() as folder:
        return trio.run(partial(_replayed, settings, earlier, root or was, commits, folder, told))


async def _replayed(
    settings: Settings,
    earlier: EarlierSession,
    root: str,
    commits: Sequence[CommittedPack],
    folder: Path,
    told: Callable[[str], None],
) -> ReplayReport:
    copy, home = folder / "root", folder / "home"
    told("copying the root")
    await copy_root(root, copy)
    secure_home(home)
    config = msgspec.structs.replace(settings.config, budgets=_UNCHANGED.budgets, fallbacks=())
    there = replace(settings, config=config, home=home, socket=home / "daemon.sock", logs=home / "logs")
    with open_journal(there.journal) as journal:
        async with trio.open_nursery() as nursery:
            resources = SessionResources(there, journal, nursery, prepare_process(), spares=False)
            try:
                profile = await resources.with_available_tools(recorded_profile(there, earlier, str(copy)))
                left = await _taken_back(resources, profile, commits, settings, told)
                _make_rules(RuleStore(settings.rules_file).listing(), earlier, resources, profile)
                return await _Replay(resources, profile, earlier, left, told).run()
            finally:
                await resources.close()


async def _taken_back(
    resources: SessionResources,
    profile: Profile,
    commits: Sequence[CommittedPack],
    settings: Settings,
    told: Callable[[str], None],
) -> list[str]:
    if not commits:
        return []
    begun = new_session(profile, None, "replay", attended=False)
    await resources.writer.append(begun.id, begun.opened)
    session = Session(
        resources.writer, resources.pools(profile), profile, None, begun, services=resources.services, max_steps=1
    )
    return await undo_commits(session, commits, settings.packs, resources.settings.packs, told)


def _make_rules(
    known: Sequence[StoredRule], earlier: EarlierSession, resources: SessionResources, profile: Profile
) -> None:
    """Let the replay have the rules that people had made for always, for that root, when the session was opened."""
    opened, store = utc(earlier.entries[0].at), resources.services.rule_store
    mark = resources.pools(profile).root.mark
    for each in known:
        where = each.profile, each.root, each.scope
        before = each.session != earlier.id and each.made <= opened
        if store and before and where == (profile.name, earlier.opened.context.working_directory, "always"):
            made_by = partial(store.add, each.rule, session=each.session, call=each.call, by=each.by)
            made_by(profile=profile.name, root=profile.root, identity=mark)


@dataclass(eq=False)
class _Replay:
    """One replay, in its copy."""

    resources: SessionResources
    profile: Profile
    earlier: EarlierSession
    not_as_it_was: list[str]
    told: Callable[[str], None]

    def __post_init__(self) -> None:
        self._facts: list[Fact] = [entry.fact for entry in self.earlier.entries]
        self._root = self.earlier.opened.context.working_directory
        self._given = given_outcomes(self._facts)
        self._scope = trio.CancelScope()
        opened = self.earlier.opened
        self._model = ReplayedModel(opened.model, self._there, self._set_mode, self._cut)
        person = ReplayedPerson(self._facts, self._there)
        begun = new_session(
            self.profile, self._model, opened.origin, cwd="", attended=opened.attended, mode=opened.mode
        )
        self.resources.writer.journal.append(begun.id, begun.opened)
        self.session = Session(
            self.resources.writer,
            self.resources.pools(self.profile),
            self.profile,
            self._model,
            begun,
            approve=person.approve if opened.attended else None,
            max_steps=self.resources.settings.config.max_steps,
            services=self.resources.services,
            given=self._given.get,
        )

    def _cut(self) -> None:
        self._scope.cancel()

    def _there(self, text: str) -> str:
        """Return text of the record as it must be for the copy."""
        return text.replace(self._root, self.profile.root)

    def _here(self, text: str) -> str:
        return text.replace(self.profile.root, self._root)

    async def _set_mode(self, chosen: ModeChanged) -> None:
        await self.session.set_mode(chosen.mode, chosen.by)

    async def run(self) -> ReplayReport:
        """Run the turns up to the first divergence."""
        turns, calls, found = 0, 0, None
        groups = [*turns_of(self._facts)]
        for number, group in enumerate(groups, 1):
            self.told(f"replaying {number} of {len(groups)}")
            begun = self.resources.writer.journal.last()
            if any(isinstance(fact, TurnStarted) for fact in group):
                await self._run_turn(group)
                turns += 1
            else:
                await self._run_between(group)
            now = [entry.fact for entry in self.resources.writer.journal.of_session(self.session.id, begun)]
            calls += sum(isinstance(fact, CallEnded) for fact in now)
            found = first_divergence(group, now, self._given, self._here)
            if found is not None:
                break
        return ReplayReport(
            self.earlier.id, turns, calls, found, tuple(self._given), tuple(self.not_as_it_was), self._remarks()
        )

    def _remarks(self) -> tuple[str, ...]:
        opened, told = self.earlier.opened, list[str]()
        if opened.version != VERSION:
            told.append(f"it was recorded by version {opened.version}, and this is {VERSION}")
        if lost := sum(isinstance(fact, Unreadable) for fact in self._facts):
            told.append(f"{lost} facts of it cannot be read")
        if opened.tools != self.profile.tools:
            told.append(f"its tools were {', '.join(opened.tools)}, and are {', '.join(self.profile.tools)}")
        return tuple(told)

    async def _run_turn(self, group: Sequence[Fact]) -> None:
        start = next(fact for fact in group if isinstance(fact, TurnStarted))
        for fact in group[: group.index(start)]:
            await self._between(fact)
        self._model.begin(group)
        resumes = sum(isinstance(fact, TurnResumed) for fact in group)
        self._scope = trio.CancelScope()
        conversation = self.session.conversation
        run: Callable[[], Awaitable[object]]
        asked = self._there(start.text), start.sources, start.answer_schema
        run = partial(conversation.run_turn, *asked, check=start.check)
        with self._scope:
            while True:
                with suppress(SuspendedTurn):
                    await run()
                    break
                if not resumes:
                    break
                resumes -= 1
                run = partial(conversation.resume, "replay")

    async def _run_between(self, group: Sequence[Fact]) -> None:
        for fact in group:
            await self._between(fact)

    async def _between(self, fact: Fact) -> None:
        """Do what a person did between two turns."""
        match fact:
            case ModeChanged():
                await self._set_mode(fact)
            case CallStarted(tool=tool) if tool == TOOL:
                await self._undo(fact)
            case Rewound():
                self.not_as_it_was.append(f"it was rewound to the end of turn {fact.turn}, which is not done")
            case CallStarted(tool=tool) if tool == REWIND:
                pass
            case CallStarted():
                await self.session.call(fact.tool, self._there(effective(fact)), typed_by=fact.typed_by)
            case SessionChanged():
                self.not_as_it_was.append(
                    f"the session was changed to {fact.profile} and {fact.model}, which is not done"
                )

    async def _undo(self, undo: CallStarted) -> None:
        undone = {fact.call: fact.undoes for fact in self._facts if isinstance(fact, CallDecided)}.get(undo.call, "")
        facts = [entry.fact for entry in self.resources.writer.journal.of_session(self.session.id)]
        packs = {fact.call: fact.kept for fact in facts if isinstance(fact, CallDecided) and fact.committed}
        force = bool(msgspec.json.decode(undo.arguments).get("force"))
        if packs.get(undone):
            taking = undoing(UndoStep(undone, "", "", 0.0, packs[undone]), force=force)
            await self.session.undo(taking, by=undo.decided_by)
