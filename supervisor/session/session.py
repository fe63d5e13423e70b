"""One session as its owner sees it: opened or reopened, prompted, listened to.

Rule: a session is its facts in the journal. The object here only holds them together with a model, a profile and
the workers of its root for as long as somebody talks to it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from supervisor.agent.conversation import Conversation
from supervisor.agent.fallbacks import Fallbacks
from supervisor.agent.ledger import Ledger, batch_run
from supervisor.agent.models.model import Model, ModelOptions
from supervisor.agent.models.model_facts import ModelFacts
from supervisor.agent.models.reply_options import checked_choice, request_options
from supervisor.agent.system_prompt import system_prompt
from supervisor.agent.turn import Event
from supervisor.config.profiles import Profile
from supervisor.errors import ConfigError
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    ModeChanged,
    OptionChosen,
    SessionChanged,
)
from supervisor.journal.journal_writer import JournalWriter
from supervisor.pool.pools import Pools
from supervisor.rules.rule import Mode
from supervisor.session.earlier_session import EarlierSession
from supervisor.session.single_call import SingleCallContext
from supervisor.session.taking_back import TakingBack
from supervisor.tools.approval import Approve
from supervisor.tools.catalog import unoffered
from supervisor.tools.outcomes import abandoned
from supervisor.tools.router import Router
from supervisor.tools.services import ChangeServices

_NO_SERVICES: Final = ChangeServices()

_BY_SCRIPT: Final = "call"
"""Whose answers are given beforehand, to what a rehearsal shows: not to which programs start."""
_STOPPED: Final = "This call was cut off while it ran; the worker that ran it was ended."


class Session:
    """An open session.

    Args:
        writer: of an open journal.
        pools: the workers on the profile's root.
        profile: resolved.
        model: answers; None for a session of single calls.
        earlier: what is recorded of it: its opening at least.
        show: is given every event; must not block.
        approve: asks a person; None where nobody is there.
        max_steps: model requests a turn may take, where the profile has no less.
        services: what approving and undoing changes needs.
        facts_of: what holds of a model, by its name; without it, replies are as a model has them by default.
        ledger: the budgets that sessions share; by default none are.
        fallbacks: the models that are asked where the session's own gives no reply; by default none.
        given: returns the outcome of a call that is not run, for it is known from a record; by default none is.
    """

    def __init__(
        self,
        writer: JournalWriter,
        pools: Pools,
        profile: Profile,
        model: Model | None,
        earlier: EarlierSession,
        *,
        show: Callable[[Event], None] = lambda _event: None,
        approve: Approve | None = None,
        max_steps: int = 50,
        services: ChangeServices = _NO_SERVICES,
        facts_of: Callable[[str], ModelFacts] | None = None,
        ledger: Ledger | None = None,
        fallbacks: Fallbacks | None = None,
        given: Callable[[str], CallEnded | None] = lambda _call: None,
    ) -> None:
        self.profile = profile
        self.model = model
        self.pools = pools
        """The workers that its calls run in."""
        self._writer = writer
        self._approve = approve
        self._services = services
        self._show = show
        self._facts_of = facts_of
        self._max_steps = max_steps
        self._calls = 0
        self.reply_options = earlier.reply_options
        """What was chosen of the model's replies, by the option's name."""
        self.id, self.opened, self._taken = earlier.id, earlier.opened, earlier.calls
        self._router = Router(profile, pools, approve, self.id, services)
        self._router.given = given
        self._router.rules.mode = earlier.mode
        self._router.asks_about_programs &= earlier.opened.origin != _BY_SCRIPT
        self._router.warm()
        shared = ledger or Ledger(), batch_run(earlier.opened.origin), fallbacks or Fallbacks()
        self._max_steps, self._shared = max_steps, shared
        self._conversation: Conversation | None = None
        self.read_again(earlier)

    def read_again(self, earlier: EarlierSession) -> None:
        """Go on with the conversation that its facts come to; none of its turns runs."""
        self.reply_options, self._taken = earlier.reply_options, earlier.calls
        if self.model is not None:
            asking, prompt = (self._request_options, self._sees, *self._shared), system_prompt(self.profile)
            told = self.model, self._router, prompt, self._show, self.profile.steps(self._max_steps), earlier.transcript
            self._conversation = Conversation(self.id, self._writer, *told, *asking, self._window, earlier.began_in)

    @property
    def conversation(self) -> Conversation:
        """The conversation with the model. A session of single calls, which has no `model`, has none."""
        assert self._conversation is not None, "a session of single calls has no model"
        return self._conversation

    @property
    def unavailable_tools(self) -> Mapping[str, str]:
        """The tools that cannot be called now, by name, and why; they come back by themselves."""
        return self._router.availability.unavailable_tools()

    @property
    def mode(self) -> Mode:
        """Which changes are asked about."""
        return self._router.rules.mode

    async def set_mode(self, mode: Mode, by: str) -> None:
        """Choose which changes are asked about from the next call on, also while a turn runs.

        Where that is none, what is being changed has ended when this returns.

        Raises:
            JournalError: it cannot be recorded; everything stays as it was.
        """
        if mode != self.mode:
            chosen = ModeChanged(mode, by)
            await self._writer.append(self.id, chosen)
            self._router.rules.mode = mode
            if self._conversation is not None:
                self._conversation.transcript.apply(chosen)
        await self._router.rules.wait_for_plan()

    @property
    def model_facts(self) -> ModelFacts | None:
        """What holds of its model; None where it has none, or that is not known."""
        return None if self.model is None or self._facts_of is None else self._facts_of(self.model.name)

    def _request_options(self, name: str) -> ModelOptions:
        """Return what a request to a model asks for; what was chosen counts for the session's own alone."""
        chosen = self.reply_options if self.model is not None and self.model.name == name else {}
        return ModelOptions() if self._facts_of is None else request_options(self._facts_of(name), chosen)

    def _sees(self, name: str) -> frozenset[str]:
        return frozenset() if self._facts_of is None else self._facts_of(name).sees

    def _window(self, name: str) -> int:
        facts = None if self._facts_of is None else self._facts_of(name)
        return facts.window if facts is not None and facts.known else 0

    async def choose(self, option: str, value: str, by: str) -> None:
        """Choose how the model replies from its next request on, also while a turn runs.

        Raises:
            ConfigError: the model has no such option, or not with this value.
            JournalError: it cannot be recorded; everything stays as it was.
        """
        facts = self.model_facts
        if facts is None:
            raise ConfigError(f"This session has no option {option[:80]!r}.")
        name, kept = checked_choice(facts, option, value)
        if kept == self.reply_options.get(name, ""):
            return
        await self._writer.append(self.id, OptionChosen(name, kept, by))
        self.reply_options = {each: chosen for each, chosen in {**self.reply_options, name: kept}.items() if chosen}

    def change(
        self, profile: Profile, pools: Pools, model: Model, services: ChangeServices | None = None
    ) -> SessionChanged:
        """Let the next turn use another profile, on the workers of its root, and another model; what was said stays.

        Rules that were made for this session end with its profile, and with its root. Return the fact.

        Raises:
            JournalError: it cannot be recorded; everything stays as it was.
            ConfigError: the rules of the session cannot be ended; everything stays as it was.
            ValueError: a turn runs.
            WorkerUnavailable: the workers of that root have been stopped, or it was deleted.
        """
        services = services or self._services
        router = Router(profile, pools, self._approve, self.id, services)
        router.rules.mode = self.mode
        router.warm()
        if (profile.name, profile.root) != (self.profile.name, self.profile.root):
            self._router.rules.end()
        changed = SessionChanged(profile.name, model.name, profile.context(), profile.tools)
        steps = profile.steps(self._max_steps)
        self.conversation.change_setup(changed, model, router, system_prompt(profile), steps)
        self.profile, self.model, self.pools, self._router, self._services = profile, model, pools, router, services
        return changed

    async def call(
        self, tool: str, arguments: str, tell: Callable[[CallEnded], None] = lambda _ended: None, *, typed_by: str = ""
    ) -> CallEnded:
        """Run one tool without a model: the same policy, journal, pool and confinement as a model's call.

        Args:
            tool: its name, known or not.
            arguments: JSON text.
            tell: is given the end once it is recorded, before anything else happens; also where it was cut off.
            typed_by: as in `CallStarted`; then it is shown, and the model is told of it with the next line.

        Raises:
            JournalError: it cannot be recorded; nothing was done.
        """
        router = self._router
        started = msgspec.structs.replace(router.judge(0, self._new_call(), tool, arguments), typed_by=typed_by)
        if started.decision == "ask":
            try:
                started = await router.request_approval(started)
            except BaseException:
                ended = abandoned(started, _STOPPED, "cancelled")
                await self._writer.append(self.id, started, ended, then=partial(tell, ended))
                self._recorded(started)
                self._recorded(ended)
                raise
        return (await self._run(started, lambda context: router.run(started, context), tell))[0]

    async def undo(self, taking: TakingBack, *, by: str) -> tuple[CallEnded, CallDecided | None]:
        """Take back what calls have changed, as a person asks who is named `by`.

        Return how that ended, and what was decided of its effects.

        Raises:
            JournalError: it cannot be recorded; nothing was done.
        """
        offer, undoes = unoffered(taking.tool), taking.undoes
        started, before = taking.facts(self._new_call(), by)
        execution = self._router.execution

        async def run(context: SingleCallContext) -> CallEnded:
            ended = await execution.run(started, offer, context, undoes=undoes)
            if ended.ok and context.decided is None:  # nothing had to be restored, and so it is taken back too
                none = CallDecided(0, started.call, "allow", taking.reason, committed=False, undoes=undoes[0])
                await context.record(msgspec.structs.replace(none, undoes_also=undoes[1:]))
            return ended

        return await self._run(started, run, before=before)

    async def _run(
        self,
        started: CallStarted,
        run: Callable[[SingleCallContext], Awaitable[CallEnded]],
        tell: Callable[[CallEnded], None] = lambda _ended: None,
        *,
        before: Sequence[Fact] = (),
    ) -> tuple[CallEnded, CallDecided | None]:
        """Record a call, with what is to be recorded at once with it; run it, and record its end."""
        await self._writer.append(self.id, *before, started)
        recorded = partial(self._recorded, typed=bool(started.typed_by))
        recorded(started)
        context = SingleCallContext(self._writer, self.id, started, self._show, recorded)
        context.partial_output.begin(started.call)
        try:
            ended = await run(context)
        except BaseException:
            ended = abandoned(context.started, _STOPPED, "cancelled", context.decided)
            raise
        finally:
            ended = context.partial_output.completed(ended)
            await self._writer.append(self.id, ended, then=partial(tell, ended))
            self._recorded(ended)
        return ended, context.decided

    def _recorded(self, fact: CallStarted | CallDecided | CallEnded, *, typed: bool = False) -> None:
        """Let the model be told of a single call with the next line, and clients see one that a person has typed.

        Its end they are told as soon as it is recorded.
        """
        if self._conversation is not None:
            self._conversation.transcript.apply(fact)
        if typed and not isinstance(fact, CallEnded):
            self._show(fact)

    def _new_call(self) -> str:
        """Return an id that no call of this session has had; the model's calls will not get it either."""
        taken = self._taken if self._conversation is None else self._conversation.transcript.ids
        self._calls += 1
        while (call := f"call_{self._calls}") in taken:
            self._calls += 1
        if self._conversation is not None:
            taken.add(call)
        return call
