"""Fallbacks: the models that are asked where the one before them is down, or over its limit.

Rule: nothing is sent elsewhere unasked: a person says so once a session, or the configuration beforehand. Each turn
begins with the session's own model again, unless that rests: for as long as its limit, or a minute after it was down.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from supervisor.agent.models.model import Model
from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import SuspendedTurn
from supervisor.config.config_keys import WaitingConfig
from supervisor.errors import ConfigError, ModelError
from supervisor.journal.facts import CallStarted, ModelSwitched
from supervisor.tools.approval import Approvals, switch_id

_DOWN: Final = frozenset({"api_error", "connection", "overloaded", "rate_limited", "stream_truncated", "timeout"})
"""Kinds of failures that another model may not have."""
_RESTS_S: Final = 60.0


def _no_model(name: str) -> Model:
    raise ConfigError(f"No model {name!r}.")


@dataclass
class Fallbacks:
    """The list of models, and which of them rest; one a process."""

    names: tuple[str, ...] = ()
    """The configured model and those after it; empty where there are no others."""
    open: Callable[[str], Model] = _no_model
    """Returns an open model; raises ConfigError where it cannot be used."""
    config: WaitingConfig = field(default_factory=WaitingConfig)
    clock: Callable[[], float] = time.time
    resting: dict[str, float] = field(default_factory=dict)
    """Until when, in seconds since the epoch, by name."""

    def after(self, name: str) -> Model | None:
        """Return the next model after one that can be used and does not rest."""
        later = self.names[self.names.index(name) + 1 :] if name in self.names else ()
        for other in later:
            if self.resting.get(other, 0.0) <= self.clock():
                try:
                    return self.open(other)
                except ConfigError:
                    continue
        return None


@dataclass
class ModelChoice:
    """Which model the turns of one session ask."""

    fallbacks: Fallbacks
    transcript: Transcript
    record: Callable[..., Awaitable[None]]

    async def model(self, chosen: Model) -> Model:
        """Return the model that is to be asked now, of a session that has chosen one."""
        if self.transcript.detour.model:
            return self.fallbacks.open(self.transcript.detour.model)
        rests = self.fallbacks.resting.get(chosen.name, 0.0) > self.fallbacks.clock()
        allowed = self.fallbacks.config.fallback == "allow" or self.transcript.detour.allowed
        if rests and allowed and (other := self.fallbacks.after(chosen.name)) is not None:
            await self._switch(chosen, other, "it is down, or over its limit, still", None, "")
            return other
        return chosen

    def rests(self, model: Model, failure: ModelError | SuspendedTurn) -> bool:
        """Take note of a failure; say whether another model may do."""
        now = self.fallbacks.clock()
        until = now + _RESTS_S
        if isinstance(failure, SuspendedTurn):
            until = failure.fact.until or until
            if failure.fact.kind != "limit" or now < until <= now + self.fallbacks.config.patience_s:
                return False
        elif failure.kind not in _DOWN:
            return False
        self.fallbacks.resting[model.name] = until
        return True

    async def switch(self, model: Model, failure: ModelError | SuspendedTurn, approvals: Approvals) -> bool:
        """Let the turn go on with the next model, if there is one and it may; say whether it does."""
        other = self.fallbacks.after(model.name)
        if other is None or self.transcript.detour.allowed is False:
            return False
        why = str(failure.fact.why if isinstance(failure, SuspendedTurn) else failure)
        if self.fallbacks.config.fallback == "allow" or self.transcript.detour.allowed:
            await self._switch(model, other, why, None, "")
            return True
        turn, reason = self.transcript.turn, f"{model.name} gives no reply, so that {other.name} would be asked: {why}"
        call = CallStarted(turn, switch_id(turn), "switch_model", "{}", False, "ask", reason)
        answer = await approvals.request(call, "switch", reason)
        if answer is None:
            return False
        await self._switch(model, other, why, answer.approved, answer.by)
        return answer.approved

    async def _switch(self, model: Model, other: Model, why: str, approved: bool | None, by: str) -> None:
        await self.record(ModelSwitched(self.transcript.turn, model.name, other.name, why, approved, by))
