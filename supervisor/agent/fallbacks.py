"""Fallbacks: the models that are asked where the one before them is down, or over its limit.

Rule: nothing is sent elsewhere unasked: a person says so once a session, or the configuration beforehand. Each turn
begins with the session's own model again, and so does what was suspended, unless that model rests: for as long as its
limit, or a minute after it was down. Where no model replies, the turn comes to what leaves it most: the shortest wait,
else an error.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from supervisor.agent.models.model import Model
from supervisor.agent.models.retry import RETRIED
from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import SuspendedTurn
from supervisor.config.config_keys import WaitingConfig
from supervisor.errors import ConfigError, ModelError
from supervisor.journal.facts import CallStarted, ModelSwitched, TurnSuspended
from supervisor.tools.approval import Approvals, switch_id

_DOWN: Final = RETRIED | {"permission"}
"""Kinds of failures that another model may not have; one is that there is no credit left."""
_RESTS_S: Final = 60.0
_NOBODY: Final = "{} Nobody has said whether {} may be asked. /go asks again, /model asks another one."

Failure = ModelError | SuspendedTurn
"""Why a model gives no reply."""


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

    def rests(self, name: str) -> bool:
        """Say whether a model has lately given no reply."""
        return self.resting.get(name, 0.0) > self.clock()

    def after(self, name: str) -> Model | None:
        """Return the next model after one that can be used and does not rest."""
        later = self.names[self.names.index(name) + 1 :] if name in self.names else ()
        for other in later:
            if not self.rests(other):
                with suppress(ConfigError):
                    return self.open(other)
        return None


@dataclass
class ModelChoice:
    """Which model the turns of one session ask."""

    fallbacks: Fallbacks
    transcript: Transcript
    record: Callable[..., Awaitable[None]]

    @property
    def _is_allowed(self) -> bool:
        return self.fallbacks.config.fallback == "allow" or bool(self.transcript.detour.allowed)

    async def model(self, chosen: Model) -> Model:
        """Return the model that is to be asked now, of a session that has chosen one."""
        detour = self.transcript.detour.model
        if detour and detour != chosen.name:
            with suppress(ConfigError):  # it is configured no more
                return self.fallbacks.open(detour)
        rests = not detour and self._is_allowed and self.fallbacks.rests(chosen.name)
        if rests and (other := self.fallbacks.after(chosen.name)) is not None:
            await self._switch(chosen, other, "it is down, or over its limit, still", None, "")
            return other
        return chosen

    def rests(self, model: Model, failure: Failure, own: Model) -> bool:
        """Take note of a failure; say whether another model than this, or the session's `own`, may do."""
        until = self.fallbacks.clock() + _RESTS_S
        if isinstance(failure, SuspendedTurn):
            fact = failure.fact
            if fact.kind != "limit" or (fact.until and fact.until - fact.since <= self.fallbacks.config.patience_s):
                return False
            until = fact.until or until
        elif failure.kind not in _DOWN and model.name == own.name:
            return False
        self.fallbacks.resting[model.name] = until
        return True

    async def switch(self, model: Model, own: Model, failures: Mapping[str, Failure], approvals: Approvals) -> bool:
        """Let the turn go on with the next model, if there is one and it may; say whether it does.

        Args:
            model: gave no reply last.
            own: the session's, which needs no word.
            failures: of this reply, by the model's name.
            approvals: ask the person.

        Raises:
            SuspendedTurn: it is down, and those who were asked are gone, or cannot say.
        """
        failure, other = failures[model.name], self.fallbacks.after(model.name)
        why = str(failure.fact.why if isinstance(failure, SuspendedTurn) else failure)
        if other is None and not (own.name in failures or self.fallbacks.rests(own.name)):
            await self._switch(model, own, why, None, "")
            return True
        if other is None or self.transcript.detour.allowed is False:
            return False
        if self._is_allowed:
            await self._switch(model, other, why, None, "")
            return True
        turn, reason = self.transcript.turn, f"{model.name} gives no reply, so that {other.name} would be asked: {why}"
        call = CallStarted(turn, switch_id(turn), "switch_model", "{}", False, "ask", reason)
        answer = await approvals.request(call, "switch", reason)
        if answer is None:
            return False
        if answer.unanswered:
            if isinstance(failure, SuspendedTurn):
                return False
            raise SuspendedTurn(TurnSuspended(turn, "limit", _NOBODY.format(why, other.name)))
        await self._switch(model, other, why, answer.approved, answer.by)
        return answer.approved

    async def _switch(self, model: Model, other: Model, why: str, approved: bool | None, by: str) -> None:
        await self.record(ModelSwitched(self.transcript.turn, model.name, other.name, why, approved, by))


def least_bad(failures: Mapping[str, Failure]) -> Failure:
    """Return what a turn comes to after failures in their order: the shortest wait, else the first, with the others."""
    waits = [each for each in failures.values() if isinstance(each, SuspendedTurn)]
    if waits:
        return min(waits, key=lambda each: each.fact.until or float("inf"))
    first, *others = (each for each in failures.values() if isinstance(each, ModelError))
    return ModelError(first.kind, " ".join(map(str, (first, *others)))) if others else first
