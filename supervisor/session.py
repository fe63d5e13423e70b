"""One conversation as its owner sees it: opened or taken up again, asked, listened to.

Rule: a session is its facts in the journal. The object here only holds them together with a model, a profile and
the workers of its root for as long as somebody talks to it.
"""

import secrets
import time
from collections.abc import Callable
from importlib import metadata

from supervisor.agent.conversation import Conversation, Event
from supervisor.agent.model import Model
from supervisor.agent.prompt import system_prompt
from supervisor.errors import ConfigError
from supervisor.facts import CallEnded, SessionOpened, TurnEnded
from supervisor.journal import Journal
from supervisor.pool.pools import Pools
from supervisor.profiles import Profile
from supervisor.tools.router import Approve, Router, abandoned


def new_id() -> str:
    """Return a session's id: sorts by time, and is short enough to type the end of."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(6)


class Session:
    """An open session.

    Args:
        journal: already open.
        pools: the workers on the profile's root.
        profile: resolved.
        model: answers; None for a session of single calls.
        origin: for whom it is, as in `SessionOpened`.
        session: the id of an earlier session to take up again; None opens a new one.
        show: is given every event; must not block.
        approve: asks a person; None where nobody is there.
        max_steps: model requests a turn may take.
        degraded: protections that the operator does without.

    Raises:
        ConfigError: there is no session of that id.
        JournalError: the opening cannot be recorded.
    """

    def __init__(
        self,
        journal: Journal,
        pools: Pools,
        profile: Profile,
        model: Model | None,
        *,
        origin: str,
        session: str | None = None,
        show: Callable[[Event], None] = lambda _event: None,
        approve: Approve | None = None,
        max_steps: int = 50,
        degraded: tuple[str, ...] = (),
    ) -> None:
        self.id = session or new_id()
        self.profile = profile
        self._journal = journal
        self._router = Router(profile, pools, approve)
        self._calls = 0
        if session is None:
            opened = SessionOpened(
                profile.name,
                model.name if model else "",
                profile.context(),
                profile.tools,
                origin,
                metadata.version("strongroom"),
                degraded,
            )
            journal.append(self.id, opened)
        elif not journal.of_session(session):
            raise ConfigError(f"No session {session!r}. `strongroom sessions` lists them.")
        for category in {offer.category for offer in self._router.offers.values()}:
            pools.pool(category)  # its first worker starts while the person still types
        self.conversation = (
            None
            if model is None
            else Conversation(self.id, journal, model, self._router, system_prompt(profile), show, max_steps)
        )

    async def ask(self, text: str) -> TurnEnded:
        """Run one turn; see `Conversation.ask`."""
        assert self.conversation is not None, "a session of single calls has no model"
        return await self.conversation.ask(text)

    async def resume(self) -> TurnEnded | None:
        """Go on with an interrupted turn; see `Conversation.resume`."""
        assert self.conversation is not None, "a session of single calls has no model"
        return await self.conversation.resume()

    async def call(self, tool: str, arguments: str) -> CallEnded:
        """Run one tool without a model: the same policy, journal, pool and confinement as a model's call.

        Raises:
            JournalError: it cannot be recorded; nothing was done.
        """
        self._calls += 1
        started = self._router.judge(0, f"call_{self._calls}", tool, arguments)
        if started.decision == "ask":
            started = await self._router.review(started)
        self._journal.append(self.id, started)
        try:
            ended = await self._router.run(started)
        except BaseException:
            why = "Strongroom was stopped while this call ran; the worker that ran it was ended."
            self._journal.append(self.id, abandoned(started, why, "cancelled"))
            raise
        self._journal.append(self.id, ended)
        return ended
