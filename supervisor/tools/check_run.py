"""The run of a turn's check: a command of the person's, rehearsed on the root as it is now, and never committed.

Rule: it runs where a command of the model would, under the same policy and in the same sandbox, by workers that can
commit nothing. It has no network. What it prints goes to the model, and so counts as shown.
"""

import shlex
import time
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from supervisor.config.profiles import Profile
from supervisor.errors import ConfigError, WorkerError
from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pools import PLAN, Pools
from supervisor.tools import call_policy
from supervisor.tools.availability import no_answer
from supervisor.tools.call_context import CallContext
from supervisor.tools.catalog import Offer
from supervisor.tools.change_attempt import raw_arguments
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.outcomes import failed, worker_answered
from supervisor.tools.services import ChangeServices
from workers.wire import frames, messages

_SCRIPT: Final = "run_cmd"
_PROGRAM: Final = "exec_shell"
_UNSEEN: Final = SeenText()


def check_arguments(tools: Container[str], command: str, seconds: float) -> tuple[str, str]:
    """Return the tool that runs a check, and its arguments, raw JSON; `seconds` are what it may take where it may say.

    Raises:
        ConfigError: no tool runs commands, or the command is not one program and its words where only that is run.
    """
    if _SCRIPT in tools:
        return _SCRIPT, _json({"command": command, "timeout_s": seconds})
    if _PROGRAM not in tools:
        raise ConfigError("The profile runs no commands, so nothing can be checked by one. Choose another profile.")
    try:
        program, *words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"The check {command!r} is not a program and its words: {error}.") from error
    return _PROGRAM, _json({"command": program, "args": words})


@dataclass(frozen=True)
class CheckRunner:
    """Runs the checks of one session's turns."""

    profile: Profile
    pools: Pools
    """The workers on the profile's root."""
    services: ChangeServices
    offers: Mapping[str, Offer]
    """The profile's tools."""
    refusal: Callable[[CallStarted], CallEnded | None]
    """Returns the end of a call that is not to run; None for one that is."""
    with_sources: Callable[[CallStarted, CallEnded], Awaitable[CallEnded]]
    """Returns the end of a call with who wrote what it says."""

    def call(self, turn: int, call: str, command: str) -> CallStarted:
        """Return a check as it is started. A person wrote it, so that what policy asks about its text is answered.

        Raises:
            ConfigError: the profile cannot run it.
        """
        tool, arguments = check_arguments(self.offers, command, self.services.max_timeout_s)
        verdict = call_policy.judge(self.profile, tool, arguments, _UNSEEN)
        decision: Literal["allow", "deny"] = "deny" if verdict.decision == "deny" else "allow"
        return CallStarted(turn, call, tool, arguments, True, decision, verdict.reason, rehearsed=True, check=True)

    async def run(self, call: CallStarted, context: CallContext) -> CallEnded:
        """Run a check that was started; return how it ended. What it would change is forgotten."""
        if (refused := self.refusal(call)) is not None:
            return refused
        began = time.monotonic()
        ended = await self.with_sources(call, await self._rehearse(call, context))
        return msgspec.structs.replace(ended, seconds=round(time.monotonic() - began, 6))

    async def _rehearse(self, call: CallStarted, context: CallContext) -> CallEnded:
        offer, arguments = self.offers[call.tool], raw_arguments(call)
        category, seconds = offer.category + PLAN, self.services.call_s(call.tool, arguments)
        try:
            answer = await self.pools.pool(category).propose(
                offer.name, arguments, timeout=seconds, output=lambda text: context.output(call.call, text)
            )
            if isinstance(answer, PendingProposal):
                answer = await answer.decide(commit=False)
        except (WorkerError, frames.FrameTooLarge) as error:
            return no_answer(call, error, self.pools, category, seconds=seconds)
        if isinstance(answer, messages.Unrehearsable):
            return failed(call, "denied", f"The check cannot be rehearsed: {answer.why}. It was not run.")
        return worker_answered(call, answer)


def _json(arguments: dict[str, Any]) -> str:
    return msgspec.json.encode(arguments).decode()
