"""What a session stands on, in the process of the test: a journal, real workers, and ears for what is shown."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import trio
import trio.testing

from supervisor.agent.models.model import Model
from supervisor.agent.turn import Event, State
from supervisor.config.profiles import Profile
from supervisor.journal.facts import CallEnded, CallStarted, Fact
from supervisor.journal.journal import Journal
from supervisor.journal.journal_writer import JournalWriter
from supervisor.pool.pools import Pools
from supervisor.session.earlier_session import EarlierSession, new_session, read_earlier
from supervisor.session.session import Session
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion, Approve
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.pool.harness import until

TOOLS = ("read_file", "write_file", "edit_file", "list_files", "list_directory")


def vault(root: Path, ask: tuple[str, ...] = ()) -> Profile:
    return Profile("vault", str(root), TOOLS, ask)


def begun(
    journal: Journal, profile: Profile, model: Model | None, *, attended: bool = False, cwd: str = ""
) -> EarlierSession:
    """Return a new session whose opening is recorded."""
    new = new_session(profile, model, "test", cwd=cwd, attended=attended)
    journal.append(new.id, new.opened)
    return new


class Bench:
    """Makes sessions, and hears them all."""

    def __init__(self, root: Path, journal: Journal, pools: Pools) -> None:
        self.root = root
        self.journal = journal
        self.pools = pools
        self.events: list[Event] = []
        self.hooks: list[Callable[[Event], None]] = []
        self._stopped: list[int] = []

    def _show(self, event: Event) -> None:
        self.events.append(event)
        for hook in self.hooks:
            hook(event)

    def session(
        self,
        model: Model,
        *,
        ask: tuple[str, ...] = (),
        approve: Approve | None = None,
        journal: Journal | None = None,
        session: str | None = None,
        max_steps: int = 50,
    ) -> Session:
        journal, profile = journal or self.journal, vault(self.root, ask)
        if session:
            earlier = read_earlier(journal, session)
        else:
            earlier = begun(journal, profile, model, attended=approve is not None)
        return Session(
            JournalWriter(journal),
            self.pools,
            profile,
            model,
            earlier,
            show=self._show,
            approve=approve,
            max_steps=max_steps,
        )

    @property
    def states(self) -> list[str]:
        return [event.value for event in self.events if isinstance(event, State)]

    @property
    def errors(self) -> list[str | None]:
        """The kind of each call's outcome as shown, None for a good one, in the order of the calls' starts."""
        ends = {event.call: event.kind for event in self.events if isinstance(event, CallEnded)}
        starts = [event.call for event in self.events if isinstance(event, CallStarted)]
        return [ends.get(call) for call in dict.fromkeys([*starts, *ends])]

    def facts(self, session: Session) -> list[Fact]:
        return [entry.fact for entry in self.journal.of_session(session.id)]

    async def all_workers_ready(self) -> None:
        """Wait until no worker is on its way, which `stop_workers` would miss."""
        workers = self.pools.pool("files").workers
        await until(lambda: not workers._spare_due and set(workers.slots) == set(workers.checkout.ready))

    def stop_workers(self) -> None:
        """Let every worker that there is hang from now on."""
        slots = self.pools.pool("files").workers.slots
        self._stopped = [slot.process.pid for slot in slots if slot.process is not None]
        for pid in self._stopped:
            os.kill(pid, signal.SIGSTOP)

    def kill_stopped(self) -> None:
        """Kill the workers that hang in a call; another one may serve."""
        workers = self.pools.pool("files").workers
        for slot in workers.slots:
            if slot.process is not None and slot.process.pid in self._stopped:
                os.kill(slot.process.pid, signal.SIGKILL if slot in workers.checkout.busy else signal.SIGCONT)


class Person:
    """Is asked, and says what is to be said."""

    def __init__(self, *, approved: bool, look: Callable[[], object] = lambda: None) -> None:
        self.asked: list[ApprovalQuestion] = []
        self._approved = approved
        self._look = look

    async def approve(self, ask: ApprovalQuestion) -> ApprovalDecision:
        await trio.lowlevel.checkpoint()
        self.asked.append(ask)
        self._look()
        return ApprovalDecision(approved=self._approved)


async def cancelled_at(session: Session, reached: trio.Event) -> None:
    """Ask, and cancel once nothing moves after what was to be reached."""
    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.conversation.run_turn, "go")
            await reached.wait()
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()


def kinds(facts: list[Fact]) -> list[str]:
    return [type(fact).__name__ for fact in facts]
