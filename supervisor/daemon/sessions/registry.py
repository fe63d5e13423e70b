"""All sessions of the daemon: opened, taken up again, changed, closed.

Rule: a session is its facts; what is open here can be closed at any time and taken up again. Only one process has a
session open (a lease, which the kernel ends with the process).
"""

from contextlib import suppress
from functools import partial
from typing import Final

import trio

from supervisor.acp import extensions, jsonrpc
from supervisor.agent.models.model import Model
from supervisor.config.profiles import Profile, profiles, resolve
from supervisor.config.repositories import Names
from supervisor.config.settings import DEFAULT_MODEL, Settings
from supervisor.daemon.protocol.connection import Connection, RequestError
from supervisor.daemon.protocol.updates import Projection
from supervisor.daemon.sessions.closing import ClosingTasks
from supervisor.daemon.sessions.journal_reader import JournalReader, Read
from supervisor.daemon.sessions.open_session import OpenedAt, OpenSession
from supervisor.display.escape import one_line
from supervisor.errors import ConfigError
from supervisor.journal.facts import SessionChanged, SessionDeleted, SessionOpened, TurnStarted
from supervisor.journal.index import SessionIndex, Summary
from supervisor.session.leases import Leases
from supervisor.session.resources import SessionResources
from supervisor.session.session import EarlierSession, Session

_LEASE_PATIENCE: Final = 2.0
_STEP: Final = 0.02
_TITLE: Final = 100
_NO_MODEL: Final = (
    "NO LANGUAGE MODEL: {why} Until then the offline model answers: it turns plain commands such as "
    "'list **/*.md' or 'read notes/idea.md' into tool calls, and nothing else."
)
_NO_TOOL: Final = (
    "NO {tool} HERE: its workers {why}. Nothing runs bare, so it is not offered. `strongroom doctor` says what to do "
    "about it; a session that is opened afterwards has it."
)


class SessionRegistry:
    """The open sessions.

    Args:
        core: what they stand on.
        nursery: runs their turns, and their ends.
        leases: keeps other processes out of them.
        reading: of the journal, for what may be long.
    """

    def __init__(self, core: SessionResources, nursery: trio.Nursery, leases: Leases, reading: JournalReader) -> None:
        self.resources = core
        self.reader = reading
        self.sessions: dict[str, OpenSession] = {}
        self.closing = False
        """The daemon stops: nothing new is begun."""
        self._nursery = nursery
        self._leases = leases
        self._closing_tasks = ClosingTasks(nursery)
        self._opening: dict[str, trio.Lock] = {}

    @property
    def settings(self) -> Settings:
        """What holds for what is opened now."""
        return self.resources.settings

    @property
    def busy(self) -> bool:
        """Whether a turn or a call runs anywhere, or a session is being closed or deleted."""
        return bool(self._closing_tasks) or any(session.busy for session in self.sessions.values())

    async def wait_until_idle(self) -> None:
        """Return when nothing runs."""
        while self.busy:
            for session in tuple(self.sessions.values()):
                await session.wait_until_idle()
            await self._closing_tasks.done()

    # --- opening ------------------------------------------------------------------------------------------------

    async def open(self, cwd: str, options: extensions.SessionOptions) -> tuple[OpenSession, list[str]]:
        """Open a new session; return it, and what the person should know.

        Raises:
            ConfigError: no such profile, root or model.
            JournalError: it cannot be recorded.
        """
        place = OpenedAt(cwd, options.root, names_of(options))
        profile = self.profile(options.profile, place)
        model, why = None, ""
        if not options.modelless:
            must = options.model is not None or options.origin.startswith("batch:")
            model, why = self._model(self.model_name(options.model), must=must)
        profile = await self.resources.usable(profile)
        session = OpenSession(self._nursery, place, options.origin, attended=options.attended)
        self._begin(session, profile, model, None)
        return session, _notices(why, profile)

    async def reopen(
        self, session_id: str, options: extensions.SessionOptions, *, recorded: bool = False
    ) -> tuple[OpenSession, list[str]]:
        """Return a session, opened again if it is not open; and what the person should know.

        With `recorded`, nobody takes it up but the daemon itself: whether people can be asked is as it was.

        Raises:
            RequestError: there is none of that id, or another process has it.
            ConfigError: its profile or root cannot be used any more.
            JournalError: the journal cannot be read.
        """
        lock = self._opening.setdefault(session_id, trio.Lock())
        try:
            async with lock:
                if session_id in self.sessions:
                    session = self.sessions[session_id]
                    return session, _notices(session.substituted, session.profile)
                await self._lease(session_id)
                try:
                    read = await self._read(session_id)
                    attended = read.past.opened.attended if recorded else options.attended
                    return await self._again(session_id, read, attended=attended, modelless=options.modelless)
                except BaseException:
                    if session_id not in self.sessions:
                        self._leases.give(session_id)
                    raise
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._opening.pop(session_id, None)

    async def change(self, session: OpenSession, profile: str | None, model: str | None) -> None:
        """Let a session go on with another profile or model.

        Raises:
            RequestError: something runs.
            ConfigError: no such profile, root or model.
        """
        session.refuse_if_busy()
        using = await self.resources.usable(self._other(profile, session.opened_at)) if profile else session.profile
        session.refuse_if_busy()  # something may have begun meanwhile
        opened = self.resources.model(model or session.model_name)
        session.change(using, self.resources.pools(using, session.session.pools), opened)

    def profile(self, name: str | None, place: OpenedAt) -> Profile:
        """Return a profile on its root for a client that stands at `place`.

        Raises:
            ConfigError: no such profile or root.
        """
        return resolve(self.settings, name, place.root, place.cwd, place.names)

    def _other(self, name: str, place: OpenedAt) -> Profile:
        """Return a profile for a session that was opened with another: what was named for one is not for the other."""
        known = profiles(self.settings).get(name)
        return self.profile(name, place if known is None else place.seen_by(known))

    def model_name(self, name: str | None) -> str:
        """Return the name of the model that `name` stands for, without opening it."""
        return name or self.settings.config.model or DEFAULT_MODEL

    def _model(self, name: str, *, must: bool) -> tuple[Model, str]:
        """Return a model; where it need not be that one and cannot be had, the offline one, and why."""
        try:
            return self.resources.model(name), ""
        except ConfigError as error:
            if must:
                raise
            return self.resources.model("offline"), str(error)

    async def _read(self, session_id: str) -> Read:
        try:
            read = await self.reader.past(session_id, dict(self.settings.config.prices))
        except ConfigError as error:
            raise _not_found(session_id) from error
        if any(isinstance(entry.fact, SessionDeleted) for entry in read.past.entries):
            raise _not_found(session_id)
        return read

    async def _again(
        self, session_id: str, read: Read, *, attended: bool, modelless: bool
    ) -> tuple[OpenSession, list[str]]:
        opened = read.past.opened
        using = _uses(read.past)[-1]
        root = using.context.working_directory
        place = self._place(read.past)
        profile = self._other(using.profile, place)
        if profile.root != root:
            raise ConfigError(
                f"The root {root!r} of session {session_id} now leads to {profile.root!r}. Open a new session "
                "there, if that is what you want."
            )
        model, why = None, ""
        if using.model:
            must = opened.origin.startswith("batch:") and not modelless  # who only undoes something needs none
            model, why = self._model(using.model, must=must)
        profile = await self.resources.usable(profile)
        session = OpenSession(self._nursery, place, opened.origin, attended=attended)
        session.substituted = why
        session.title = next(
            (one_line(each.fact.text, _TITLE) for each in read.past.entries if isinstance(each.fact, TurnStarted)), ""
        )
        self._begin(session, profile, model, read)
        return session, _notices(why, profile)

    def _place(self, past: EarlierSession) -> OpenedAt:
        """Return where a session was opened: with a root of its own, where the profile would not have found it.

        What holds for profiles with names and for those without is each as it was last used.
        """
        cwd, root, names = past.opened.cwd or past.opened.context.working_directory, None, Names()
        for fact in {each.context.group is not None: each for each in _uses(past)}.values():
            at = fact.context
            if at.group is not None:
                names = Names(at.group, at.technology, at.environment or "")
                continue
            root = at.working_directory
            with suppress(ConfigError):
                root = None if self.profile(fact.profile, OpenedAt(cwd, None)).root == root else root
        return OpenedAt(cwd, root, names)

    def _begin(self, opened: OpenSession, profile: Profile, model: Model | None, read: Read | None) -> None:
        config = self.settings.config
        session = Session(
            self.resources.journal,
            self.resources.pools(profile),
            profile,
            model,
            origin=opened.origin,
            session=read.past.entries[0].session if read else None,
            show=opened.show,
            approve=opened.approve if opened.attended else None,
            max_steps=config.max_steps,
            degraded=config.allow_degraded,
            cwd=opened.opened_at.cwd,
            past=read.past if read else None,
            services=self.resources.services,
        )
        projection = read.projection if read else Projection(dict(config.prices))
        if read is None:
            projection.note(session.opened)
            self._leases.take(session.id)  # nobody else can know the id yet
        opened.begin(session, model, projection)
        self.sessions[session.id] = opened

    async def _lease(self, session_id: str) -> None:
        """Make the session this process's own.

        Raises:
            RequestError: another process has it.
        """
        deadline = trio.current_time() + _LEASE_PATIENCE
        while not self._leases.take(session_id):  # whoever had it may be on its way out
            if trio.current_time() > deadline:
                message = (
                    f"The session {session_id} is open in another process: a batch, or another daemon of this home."
                )
                raise RequestError(jsonrpc.fault(jsonrpc.INVALID_REQUEST, message, "busy"))
            await trio.sleep(_STEP)

    # --- closing ------------------------------------------------------------------------------------------------

    async def delete(self, session_id: str) -> None:
        """Hide a session from listings, after what runs in it was cancelled. The journal forgets nothing.

        One that is hidden already, or that never was, is no error ("Semantics" of session/delete). Cancelling the
        caller leaves it going on.

        Raises:
            JournalError: it cannot be recorded.
        """
        await self._closing_tasks.run("delete", session_id, partial(self._delete, session_id))

    async def _delete(self, session_id: str) -> None:
        def known(index: SessionIndex) -> list[Summary]:
            found = index.get(session_id)
            return [found] if found is not None and not found.deleted else []

        if await self.reader.index(known):
            if (session := self.sessions.get(session_id)) is not None:
                await self._close(session)  # and nobody opens it again before it is recorded
            self.resources.journal.append(session_id, SessionDeleted())

    async def close(self, session_id: str) -> None:
        """Cancel what runs in a session and close it; what it said stays in the journal.

        Cancelling the caller leaves it going on.
        """
        session = self.sessions.get(session_id)
        if session is not None:
            await self._closing_tasks.run("close", session_id, partial(self._close, session))

    async def _close(self, session: OpenSession) -> None:
        session.closing = True
        session.cut()
        await session.wait_until_idle()
        self.forget(session)

    def forget(self, session: OpenSession) -> None:
        """Close a session in which nothing runs."""
        if self.sessions.get(session.id) is session:  # two may close it at once
            del self.sessions[session.id]
            self._leases.give(session.id)

    def leave(self, client: Connection) -> None:
        """Forget a client everywhere."""
        for session in self.sessions.values():
            session.subscribers.leave(client)
            if self.closing and session.subscribers.unanswerable:
                session.suspend()


def _uses(past: EarlierSession) -> list[SessionOpened | SessionChanged]:
    """Return what the session was set to, one after the other."""
    return [entry.fact for entry in past.entries if isinstance(entry.fact, SessionOpened | SessionChanged)]


def names_of(options: extensions.SessionOptions) -> Names:
    """Return what a client names a repository by."""
    return Names(options.group, options.technology, options.environment)


def _notices(substituted: str, profile: Profile) -> list[str]:
    model = [_NO_MODEL.format(why=substituted)] if substituted else []
    return [*model, *(_NO_TOOL.format(tool=tool, why=why) for tool, why in profile.unavailable_tools)]


def _not_found(session_id: str) -> RequestError:
    return RequestError(jsonrpc.fault(jsonrpc.NOT_FOUND, f"No session {session_id[:80]!r}.", "not_found"))
