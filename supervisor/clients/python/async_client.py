"""A program's connection to its daemon: `strongroom.connect`, with asyncio, trio or neither.

Rule: everything is written once, as coroutines; `blocking` runs the same where the thread waits.
"""

import os
from pathlib import Path
from typing import Self

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.python.async_session import AsyncSession
from supervisor.clients.python.program_link import ProgramLink
from supervisor.clients.python.session_requests import SessionRequests
from supervisor.clients.python.typed_events import ApprovalCallback, PathText
from supervisor.clients.python.waits import Wait, current_wait
from supervisor.config.repositories import NO_NAMES, Names
from supervisor.config.settings import load_home
from supervisor.errors import DaemonRefused


class AsyncClient:
    """A connection to the daemon, which is started if none runs.

    Args:
        home: of the daemon; by default what the environment says.
        model: for the sessions that it opens; by default the configured one.
        approvals: decides what would be asked; without it that is denied.
        wait: how it waits; by default as the task does that it was made in.

    Raises:
        ConfigError: the configuration is wrong.
    """

    def __init__(
        self,
        home: PathText | None = None,
        model: str | None = None,
        approvals: ApprovalCallback | None = None,
        wait: Wait | None = None,
    ) -> None:
        self._program = ProgramLink(load_home(None if home is None else os.fspath(home)), wait or current_wait())
        self._model = model
        self._approvals = approvals
        self._opened: list[AsyncSession] = []
        self._resumed: list[AsyncSession] = []

    async def connect(self) -> Self:
        """Reach the daemon, or start it.

        Raises:
            StrongroomError: it cannot be reached or started.
        """
        await self._program.link()
        return self

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know, such as that the daemon is of another version."""
        return tuple(self._program.notices)

    async def pid(self) -> int:
        """Return the daemon's process id."""
        daemon = (await self._program.link()).daemon
        return daemon.pid if daemon is not None else 0

    async def open(
        self,
        *,
        root: PathText | None = None,
        profile: str | None = None,
        model: str | None = None,
        mode: extensions.ModeName | None = None,
        names: Names = NO_NAMES,
    ) -> AsyncSession:
        """Begin a conversation.

        Args:
            root: the directory that the agent works on; by default the profile's own, beneath the current directory.
            profile: what it may use; by default the configured one.
            model: by default the client's.
            mode: which changes are asked about.
            names: of a repository, for the profile "librarian".

        Raises:
            ConfigError: one of them cannot be used.
        """
        model = model or self._model
        options = extensions.SessionOptions(
            profile=profile,
            model=None if model is None else requests.absolute_model(model),
            root=requests.absolute(None if root is None else os.fspath(root)),
            mode=mode,
            origin="python",
            attended=self._approvals is not None,
            **names._asdict(),
        )
        params = schema.NewSessionParams(cwd=os.getcwd(), meta={extensions.OPTIONS: options})
        link = await self._program.link()
        result = await self._program.request("session/new", params, schema.NewSessionResult)
        facts = requests.session_facts(result.meta, result.session_id)
        session = AsyncSession(self._program, SessionRequests(self._program, facts, self._approvals, link))
        self._opened.append(session)
        return session

    async def sessions(self, directory: PathText | None = None) -> list[schema.SessionInfo]:
        """Return the sessions that there are, newest first; of one directory, or all."""
        cwd = requests.absolute(None if directory is None else os.fspath(directory))
        return await requests.listed_sessions(self._program.request, cwd)

    async def search(
        self, words: str, *, session: str = "", directory: PathText | None = None, most: int = 20
    ) -> list[extensions.FoundText]:
        """Return where sessions hold some words, the newest first; in one, in those of one directory, or in all.

        Args:
            words: as for `strongroom search`.
            session: its id, or the end of it; empty for all.
            directory: that they work on, or were opened in; None for all.
            most: what is found at most.

        Raises:
            DaemonRefused: no word says what is wanted, or there is no such session.
        """
        within = "" if directory is None else os.path.realpath(directory)
        params = extensions.SearchParams(words, session, within, most)
        return (await self._program.request(extensions.SEARCH_METHOD, params, extensions.SearchResult)).found

    async def resume(self, session: str | None = None) -> AsyncSession:
        """Take up a session again, also one that others have open; its conversation is in `history`.

        Args:
            session: its id, or the end of it; None for the newest of the current directory.

        Raises:
            DaemonRefused: there is none, or several end so.
        """
        if session is None:
            wanted = requests.newest(await self.sessions(Path.cwd()), NO_NAMES)
        else:
            info = requests.ending_in(session, await self.sessions())
            wanted = session if info is None else info.session_id
        if wanted is None:
            raise DaemonRefused("There is no session of this directory.", "not_found")
        facts = extensions.SessionFacts(session_id=wanted, profile="", model="", root="", tools=())
        requests_of = SessionRequests(self._program, facts, self._approvals)
        await requests_of.take_up()
        self._resumed.append(AsyncSession(self._program, requests_of))
        return self._resumed[-1]

    async def close(self) -> None:
        """Close the sessions that were opened here, leave those that were resumed, and the daemon, which runs on."""
        for resumed in self._resumed:
            resumed.leave()
        for session in self._opened:
            await session.close()
        self._program.drop()
