"""All sessions of the daemon: opened, reopened, changed, closed.

Rule: a session is its facts; what is open here can be closed at any time and reopened. Only one process has a
session open (a lease, which the kernel ends with the process).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import trio

from supervisor.acp import extensions, jsonrpc
from supervisor.agent.models.key_choice import NOTHING_TOLD
from supervisor.agent.models.model import Model
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.daemon.protocol.connection import Connection, RequestError
from supervisor.daemon.protocol.updates import Projection
from supervisor.daemon.sessions.closing import ClosingTasks
from supervisor.daemon.sessions.journal_reader import JournalReader
from supervisor.daemon.sessions.narrowing_question import ask_about_narrowing
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.opened_at import OpenedAt, from_journal, from_options, person_of
from supervisor.daemon.sessions.opening_notices import opening_notices
from supervisor.daemon.sessions.opening_right import OpeningRight
from supervisor.daemon.sessions.subscribers import Subscribers
from supervisor.errors import ConfigError
from supervisor.journal.facts import SessionDeleted, TurnStarted
from supervisor.session.earlier_session import EarlierSession, new_session, settle_earlier
from supervisor.session.leases import Leases
from supervisor.session.resources import SessionResources
from supervisor.session.session import Session


class SessionRegistry:
    """The open sessions.

    Args:
        resources: what they stand on.
        nursery: runs their turns, and their ends.
        leases: keeps other processes out of them.
        reader: of the journal, for what may be long.
    """

    def __init__(
        self, resources: SessionResources, nursery: trio.Nursery, leases: Leases, reader: JournalReader
    ) -> None:
        self.resources = resources
        self.reader = reader
        self.sessions: dict[str, OpenSession] = {}
        self.closing = False
        """The daemon stops: nothing new is started."""
        self._nursery = nursery
        self.opening_right = OpeningRight(leases, self.sessions.__contains__)
        """Who has it keeps a session from being opened, and deleted."""
        resources.ledger.runs_elsewhere = leases.held_elsewhere
        self.closing_tasks = ClosingTasks(nursery)
        """Close and delete, whoever waits for that."""

    @property
    def settings(self) -> Settings:
        """What holds for what is opened now."""
        return self.resources.settings

    @property
    def busy(self) -> bool:
        """Whether a turn or a call runs anywhere, or a session is being closed or deleted."""
        return bool(self.closing_tasks) or any(session.busy for session in self.sessions.values())

    async def wait_until_idle(self) -> None:
        while self.busy:
            for session in tuple(self.sessions.values()):
                await session.wait_until_idle()
            await self.closing_tasks.done()

    async def open(
        self, cwd: str, options: extensions.SessionOptions, keys: Mapping[str, str] = NOTHING_TOLD
    ) -> tuple[OpenSession, list[str]]:
        """Open a new session, with the `keys` that its client told; return it, and what the person should know.

        Raises:
            ConfigError: no such profile, root or model.
            JournalError: it cannot be recorded.
        """
        self.resources.ledger.use_batch_budget(options.origin, options.batch_budget)
        opened_at = from_options(cwd, options, keys)
        named = options.profile or opened_at.default_profile(self.settings, options.origin)
        profile = opened_at.profile(self.settings, named)
        model, why = None, ""
        if not options.modelless:
            must = options.model is not None or options.origin.startswith(("batch:", "prompt"))
            model, why = self.resources.models.open_or_offline(self.model_name(options.model), keys, must=must)
        profile = await self.resources.with_available_tools(profile, opened_at.person)
        self.resources.pools(profile)  # where the root cannot be opened, nothing is recorded
        degraded, cwd = self.settings.config.allow_degraded, opened_at.cwd
        attended, mode = options.attended, options.mode or "edits"
        begun = new_session(profile, model, options.origin, degraded=degraded, cwd=cwd, attended=attended, mode=mode)
        projection = Projection(self.resources.models.facts, self.resources.contents)
        projection.apply(begun.opened)
        async with self.opening_right.alone(begun.id):
            await self.opening_right.lease(begun.id)
            with self.opening_right.released_unless_open(begun.id):
                await self.resources.writer.append(begun.id, begun.opened)
                subscribers = Subscribers(self._nursery, begun.id, projection)
                session = self._start(subscribers, profile, model, opened_at, begun, attended=options.attended)
        return session, opening_notices(why, session.session)

    async def reopen(
        self,
        session_id: str,
        options: extensions.SessionOptions,
        keys: Mapping[str, str] = NOTHING_TOLD,
        *,
        recorded: bool = False,
    ) -> tuple[OpenSession, list[str]]:
        """Return a session, opened again if it is not open; and what the person should know.

        It has the programs and the keys of the client that opens it, and asks people where that client says so. One
        that is open stays as it is while somebody is there or something runs; the person is told of other programs, and
        of another key. With `recorded`, the daemon itself reopens it: whether people can be asked is as it was.

        Raises:
            RequestError: there is none of that id, or another process has it.
            ConfigError: its profile or root cannot be used any more.
            JournalError: the journal cannot be read.
        """
        self.resources.ledger.use_batch_budget(options.origin, options.batch_budget)
        async with self.opening_right.alone(session_id):
            keeps = await self._has_other_programs(session_id, person_of(options))
            if (session := self.sessions.get(session_id)) is not None:  # it may have been closed meanwhile
                same_key = recorded or self._has_the_keys(session, keys)
                same = same_key and not keeps and (recorded or session.attended == options.attended)
                if same or session.busy or session.subscribers.clients:
                    notices = opening_notices(session.substituted, session.session, keeps=keeps, keeps_key=not same_key)
                    return session, notices
                self.forget(session)
            await self.opening_right.lease(session_id)
            with self.opening_right.released_unless_open(session_id):
                earlier, projection = await self._earlier(session_id)
                if earlier.rewinds:  # what became of that says what there is to read
                    await self.settle_alone(session_id)
                    earlier, projection = await self._earlier(session_id)
                attended = earlier.opened.attended if recorded else options.attended
                opened_at = replace(from_journal(earlier, self.settings), person=person_of(options), keys=keys)
                return await self._reopen(earlier, projection, opened_at, options.modelless, attended=attended)

    async def _has_other_programs(self, session_id: str, person: tuple[tuple[str, str], ...]) -> bool:
        """Say whether an open session has other programs than those of a person."""
        session = self.sessions.get(session_id)
        if session is None or not person or person == session.opened_at.person:
            return False
        theirs = await self.resources.with_surroundings(session.profile, dict(person))
        return theirs.surroundings != session.profile.surroundings

    async def change(self, session: OpenSession, profile: str | None, model: str | None) -> None:
        """Give a session another profile or model.

        Raises:
            RequestError: something runs.
            ConfigError: no such profile, root or model.
        """
        if profile is not None or not session.waiting:
            session.refuse_if_busy()
        using = (
            await self.resources.with_available_tools(
                session.opened_at.other_profile(self.settings, profile), session.opened_at.person
            )
            if profile
            else session.profile
        )
        if profile is not None or not session.waiting:
            session.refuse_if_busy()  # something may have started meanwhile
        opened = self.resources.models.open(model or session.model_name, session.opened_at.keys)
        pools = self.resources.pools(using, session.session.pools)
        session.change(using, pools, opened, self.resources.services)
        session.go_on()
        self._nursery.start_soon(ask_about_narrowing, session, self.settings, self.change)

    def model_name(self, name: str | None) -> str:
        """Return the name of the model that `name` stands for, without opening it."""
        return name or self.settings.config.model or DEFAULT_MODEL

    def _has_the_keys(self, session: OpenSession, keys: Mapping[str, str]) -> bool:
        """Say whether an open session asks with the keys that count for a client."""
        return session.session.model is None or self.resources.models.same_keys(session.opened_at.keys, keys)

    async def _earlier(self, session_id: str) -> tuple[EarlierSession, Projection]:
        try:
            earlier, projection = await self.reader.earlier(session_id, self.resources.models.facts)
            projection.contents = self.resources.contents
        except ConfigError as error:
            raise _not_found(session_id) from error
        if any(isinstance(entry.fact, SessionDeleted) for entry in earlier.entries):
            raise _not_found(session_id)
        return earlier, projection

    async def _reopen(
        self, earlier: EarlierSession, projection: Projection, opened_at: OpenedAt, modelless: bool, *, attended: bool
    ) -> tuple[OpenSession, list[str]]:
        using = earlier.settings[-1]
        profile = opened_at.last_profile(self.settings, earlier)
        model, why = None, ""
        if using.model:
            must = earlier.opened.origin.startswith("batch:") and not modelless  # who only undoes something needs none
            model, why = self.resources.models.open_or_offline(using.model, opened_at.keys, must=must)
        profile = await self.resources.with_available_tools(profile, opened_at.person)
        lines = (entry.fact.text for entry in earlier.story if isinstance(entry.fact, TurnStarted))
        subscribers = Subscribers(self._nursery, earlier.id, projection, next(lines, ""))
        for entry in earlier.story:
            subscribers.cache.apply(entry.fact, entry.at)
        await settle_earlier(earlier, self.resources, profile, subscribers.show)
        session = self._start(subscribers, profile, model, opened_at, earlier, attended=attended, substituted=why)
        return session, opening_notices(why, session.session)

    async def settle(self, session_id: str) -> None:
        """Settle the commits of a session that no process saw end, unless it is open here; it is not opened.

        Raises:
            RequestError, ConfigError, JournalError: as `reopen`.
        """
        async with self.opening_right.alone(session_id):
            if session_id not in self.sessions:
                async with self.opening_right.leased(session_id):
                    await self.settle_alone(session_id)

    async def settle_alone(self, session_id: str) -> None:
        """Do so for the caller, who alone has the session; raises likewise."""
        earlier, _projection = await self._earlier(session_id)
        profile = from_journal(earlier, self.settings).last_profile(self.settings, earlier)
        await settle_earlier(earlier, self.resources, profile, lambda _event: None)

    def _start(
        self,
        subscribers: Subscribers,
        profile: Profile,
        model: Model | None,
        opened_at: OpenedAt,
        earlier: EarlierSession,
        *,
        attended: bool,
        substituted: str = "",
    ) -> OpenSession:
        session = Session(
            self.resources.writer,
            self.resources.pools(profile),
            profile,
            model,
            earlier,
            show=subscribers.show,
            approve=subscribers.request_approval if attended else None,
            max_steps=self.settings.config.max_steps,
            services=self.resources.services,
            facts_of=self.resources.models.facts,
            ledger=self.resources.ledger,
            fallbacks=self.resources.models.fallbacks(opened_at.keys),
        )
        started = OpenSession(
            self._nursery, session, subscribers, opened_at, attended=attended, substituted=substituted
        )
        self.sessions[session.id] = started
        self._nursery.start_soon(ask_about_narrowing, started, self.settings, self.change)
        return started

    async def close(self, session_id: str) -> None:
        """Cancel what runs in a session and close it; what it said stays in the journal.

        Cancelling the caller leaves it going on.
        """
        session = self.sessions.get(session_id)
        if session is not None:
            await self.closing_tasks.run("close", session_id, partial(self.close_alone, session))

    async def close_alone(self, session: OpenSession) -> None:
        """Do so; nobody else does meanwhile."""
        session.closing = True
        session.cut()
        await session.wait_until_idle()
        self.forget(session)

    def forget(self, session: OpenSession) -> None:
        """Close a session in which nothing runs."""
        if self.sessions.get(session.id) is session:  # two may close it at once
            session.subscribers.between_turns.cancel()
            del self.sessions[session.id]
            self.resources.ledger.leave(session.id)
            self.opening_right.release(session.id)

    def leave(self, client: Connection) -> None:
        for session in self.sessions.values():
            session.subscribers.leave(client)
            if self.closing and session.subscribers.unanswerable:
                session.leave_open()


def _not_found(session_id: str) -> RequestError:
    return RequestError(jsonrpc.NOT_FOUND, f"No session {session_id[:80]!r}.", "not_found")
