"""All sessions of the daemon: opened, taken up again, listed, closed.

Rule: a session is its facts; what is open here can be closed at any time and taken up again. Only one process has a
session open (a lease, which the kernel ends with the process). What nobody uses is closed after a while: sessions
without clients, workers without sessions.
"""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import trio

from supervisor.acp import ours, rpc
from supervisor.agent.model import Model
from supervisor.config import DEFAULT_MODEL, Settings
from supervisor.core import Core, OpenPools
from supervisor.daemon.connection import Connection, RequestError
from supervisor.daemon.talk import Place, Talk
from supervisor.daemon.updates import Projection
from supervisor.errors import ConfigError, StrongroomError
from supervisor.facts import SessionChanged, SessionDeleted, SessionOpened, TurnStarted
from supervisor.index import SessionIndex, Summary
from supervisor.journal import Entry
from supervisor.leases import Leases
from supervisor.profiles import Profile, profiles, resolve
from supervisor.render import one_line
from supervisor.session import Session

_log: Final = logging.getLogger("strongroom.daemon")

_TALK_IDLE: Final = 30.0
"""Seconds after which a session without clients and without a turn is closed."""
_POOLS_IDLE: Final = 60.0
"""Seconds after which workers that no open session uses are stopped."""
_SPARE_POOLS: Final = 4
"""Roots whose workers may wait so long; beyond that the oldest are stopped at once."""
_RESUMED_AT_MOST: Final = 3
"""Times that an interrupted turn is taken up without getting on, before it is given up."""
_LEASE_PATIENCE: Final = 2.0
_STEP: Final = 0.02
_NO_MODEL: Final = (
    "NO LANGUAGE MODEL: {why} Until then the offline model answers: it turns plain commands such as "
    "'list **/*.md' or 'read notes/idea.md' into tool calls, and nothing else."
)


class Hub:
    """The open sessions.

    Args:
        core: what they stand on.
        nursery: runs their turns.
        leases: keeps other processes out of them.
        index: of the journal, on a connection of its own.
    """

    def __init__(self, core: Core, nursery: trio.Nursery, leases: Leases, index: SessionIndex) -> None:
        self.core = core
        self.talks: dict[str, Talk] = {}
        self._nursery = nursery
        self._leases = leases
        self._index = index
        self._reading = trio.Lock()
        self._taking = trio.Lock()
        self._unused: dict[int, float] = {}

    @property
    def settings(self) -> Settings:
        """What holds for what is opened now."""
        return self.core.settings

    @property
    def busy(self) -> bool:
        """Whether a turn or a call runs anywhere."""
        return any(talk.busy for talk in self.talks.values())

    async def quiet(self) -> None:
        """Return when nothing runs."""
        while self.busy:
            for talk in tuple(self.talks.values()):
                await talk.ended()

    # --- opening ------------------------------------------------------------------------------------------------

    def open(self, cwd: str, options: ours.SessionOptions) -> tuple[Talk, list[str]]:
        """Open a new session; return it, and what the person should know.

        Raises:
            ConfigError: no such profile, root or model.
            JournalError: it cannot be recorded.
        """
        place = Place(cwd, options.root)
        profile = self.profile(options.profile, place)
        notices: list[str] = []
        model = None
        if not options.modelless:
            model = self._model(options.model, notices, strict=options.origin.startswith("batch:"))
        return self._begin(place, profile, model, options, None), notices

    async def take_up(self, session: str, options: ours.SessionOptions) -> tuple[Talk, list[str]]:
        """Return a session, opened again if it is not open; and what the person should know.

        Raises:
            RequestError: there is none of that id, or another process has it.
            ConfigError: its profile or root cannot be used any more.
        """
        async with self._taking:
            if session in self.talks:
                return self.talks[session], []
            entries = self.core.journal.of_session(session)
            opened = entries[0].fact if entries else None
            if not isinstance(opened, SessionOpened) or any(isinstance(each.fact, SessionDeleted) for each in entries):
                raise RequestError(rpc.fault(rpc.NOT_FOUND, f"No session {session[:80]!r}.", "not_found"))
            using = _using(opened, entries)
            root = using.context.working_directory
            place = Place(opened.cwd or root, None)
            profile = self.profile(using.profile, place)
            if profile.root != root:
                place = replace(place, root=root)
                profile = self.profile(using.profile, place)
            notices: list[str] = []
            model = None
            if using.model:
                model = self._model(using.model, notices, strict=opened.origin.startswith("batch:"), recorded=True)
            await self._lease(session)
            try:
                talk = self._begin(place, profile, model, _as_before(options, opened.origin), session)
            except BaseException:
                self._leases.give(session)
                raise
            talk.title = _title(entries)
            for _ in talk.projection.replay(entry.fact for entry in entries):
                pass  # so that ids, cost and context go on where they were
            return talk, notices

    def change(self, talk: Talk, profile: str | None, model: str | None) -> None:
        """Let a session go on with another profile or model.

        Raises:
            RequestError: a turn runs.
            ConfigError: no such profile, root or model.
        """
        talk.refuse_if_busy()
        using = self.profile(profile, talk.place) if profile else talk.profile
        opened = self.core.model(model or talk.model_name)
        talk.session.change(using, self.core.pools(using), opened)
        talk.changed(opened, self.settings.config.prices.get(opened.name))

    def profile(self, name: str | None, place: Place) -> Profile:
        """Return a profile on its root for a client that stands at `place`.

        A root that the profile leaves relative is beneath the client's directory where that exists, else that
        directory itself.

        Raises:
            ConfigError: no such profile or root.
        """
        name = name or self.settings.config.profile
        known = profiles(self.settings).get(name)
        if place.root is not None or known is None:
            return resolve(self.settings, name, place.root)
        own = Path(known.root).expanduser()
        if own.is_absolute():
            return resolve(self.settings, name, None)
        beneath = Path(place.cwd) / own
        return resolve(self.settings, name, str(beneath if os.path.isdir(beneath) else place.cwd))

    def model_name(self, name: str | None) -> str:
        """Return the name of the model that `name` stands for, without opening it."""
        return name or self.settings.config.model or DEFAULT_MODEL

    def _model(self, name: str | None, notices: list[str], *, strict: bool, recorded: bool = False) -> Model:
        try:
            return self.core.model(self.model_name(name))
        except ConfigError as error:
            if strict or (name is not None and not recorded):
                raise
            notices.append(_NO_MODEL.format(why=error))
            return self.core.model("offline")

    def _begin(
        self, place: Place, profile: Profile, model: Model | None, options: ours.SessionOptions, session: str | None
    ) -> Talk:
        config = self.settings.config
        talk = Talk(self._nursery, place, options.origin, attended=options.attended)
        pools = self.core.pools(profile)
        opened = Session(
            self.core.journal,
            pools,
            profile,
            model,
            origin=options.origin,
            session=session,
            show=talk.show,
            approve=talk.approve if options.attended else None,
            max_steps=config.max_steps,
            degraded=config.allow_degraded,
            cwd=place.cwd,
        )
        price = config.prices.get(model.name) if model else None
        talk.begin(opened, model, Projection(profile.root, price))
        if session is None:
            self._leases.take(opened.id)  # nobody else can know the id yet
        self.talks[talk.id] = talk
        return talk

    async def _lease(self, session: str) -> None:
        """Make the session this process's own.

        Raises:
            RequestError: another process has it.
        """
        deadline = trio.current_time() + _LEASE_PATIENCE
        while not self._leases.take(session):  # whoever had it may be on its way out
            if trio.current_time() > deadline:
                message = f"The session {session} is open in another process: a batch, or another daemon of this home."
                raise RequestError(rpc.fault(rpc.INVALID_REQUEST, message, "busy"))
            await trio.sleep(_STEP)

    # --- listing, deleting --------------------------------------------------------------------------------------

    async def summaries(self, read: Callable[[SessionIndex], list[Summary]]) -> list[Summary]:
        """Return what `read` finds in the index of all sessions, brought up to date in a thread."""
        async with self._reading:
            await trio.to_thread.run_sync(self._index.refresh)
            return read(self._index)

    async def delete(self, session: str) -> None:
        """Hide a session from listings, after its turn was cancelled. The journal forgets nothing.

        One that is hidden already, or that never was, is no error ("Semantics" of session/delete).
        """
        entries = self.core.journal.of_session(session)
        if not entries or not isinstance(entries[0].fact, SessionOpened):
            return
        if session in self.talks:
            await self.close(session)
        if not any(isinstance(entry.fact, SessionDeleted) for entry in entries):
            self.core.journal.append(session, SessionDeleted())

    # --- closing ------------------------------------------------------------------------------------------------

    async def close(self, session: str) -> None:
        """Cancel a session's turn and close it; what it said stays in the journal."""
        talk = self.talks.get(session)
        if talk is not None:
            talk.cancel()
            await talk.ended()
            self._forget(talk)

    def leave(self, client: Connection) -> None:
        """Forget a client everywhere."""
        for talk in self.talks.values():
            talk.leave(client)

    async def tidy(self) -> None:
        """Close what nobody uses any more, now and then, until cancelled."""
        while True:
            now = trio.current_time()
            for talk in tuple(self.talks.values()):
                if not talk.clients and not talk.busy and not talk.questions and now - talk.left_at > _TALK_IDLE:
                    self._forget(talk)
            for each in self._surplus(now):
                _log.info("stopped the workers on %s: nobody uses them", each.profile.root)
                await self.core.release(each)
            await trio.sleep(_TALK_IDLE / 4)

    async def tidy_now(self) -> None:
        """Stop workers beyond the few that may wait: for batches over many roots."""
        for each in self._surplus(trio.current_time()):
            await self.core.release(each)

    def _surplus(self, now: float) -> list[OpenPools]:
        used = {id(talk.session.pools) for talk in self.talks.values()}
        idle = [each for each in self.core.opened if id(each.pools) not in used]
        self._unused = {id(each.pools): self._unused.get(id(each.pools), now) for each in idle}
        idle.sort(key=lambda each: self._unused[id(each.pools)])
        beyond = max(0, len(idle) - _SPARE_POOLS)
        return [
            each
            for number, each in enumerate(idle)
            if number < beyond or now - self._unused[id(each.pools)] > _POOLS_IDLE
        ]

    def _forget(self, talk: Talk) -> None:
        if self.talks.get(talk.id) is talk:  # two may close it at once
            del self.talks[talk.id]
            self._leases.give(talk.id)

    # --- after a crash ------------------------------------------------------------------------------------------

    async def resume_interrupted(self) -> None:
        """Take up every turn that the last daemon could not finish.

        One that was taken up time and again without getting on is given up; old ones, and those of batches (`--resume`
        goes on with them), stay as they are.
        """
        since = time.time() - self.settings.config.daemon.resume_within_h * 3600
        found = await self.summaries(
            lambda index: [
                each
                for each in index.listing()
                if each.open_turn and each.updated_at >= since and not each.origin.startswith("batch:")
            ]
        )
        for summary in found:
            try:
                talk, _ = await self.take_up(summary.session, ours.SessionOptions(origin=summary.origin))
            except StrongroomError as error:
                _log.warning("cannot go on with session %s: %s", summary.session, error)
                continue
            if not talk.interrupted:
                continue
            if summary.resumed >= _RESUMED_AT_MOST:
                _log.error("gave up a turn of session %s: it never gets on", summary.session)
                assert talk.session.conversation is not None
                talk.session.conversation.interrupt()
                continue
            _log.info("going on with session %s", summary.session)
            talk.take_up()


def _as_before(options: ours.SessionOptions, origin: str) -> ours.SessionOptions:
    """Return the options for a session that is taken up: it keeps the origin that it was opened with."""
    return ours.SessionOptions(origin=origin, attended=options.attended)


def _using(opened: SessionOpened, entries: list[Entry]) -> SessionOpened | SessionChanged:
    """Return what the session was last set to."""
    changes = [entry.fact for entry in entries if isinstance(entry.fact, SessionChanged)]
    return changes[-1] if changes else opened


def _title(entries: list[Entry]) -> str:
    return next((one_line(entry.fact.text, 100) for entry in entries if isinstance(entry.fact, TurnStarted)), "")
