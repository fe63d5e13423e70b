"""The check of a turn: a command of the person's that must pass before a turn that has changed something ends well.

Rule: it runs after the last change, and is rehearsed only. The model is told of the first failure, and the turn goes
on; of another one the turn ends. The answer is recorded after its check, so that a turn which was killed meanwhile
answers, and is checked, again. A turn that has changed nothing is not checked.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import Event, State, Turn, TurnCallContext
from supervisor.display.escape import visible
from supervisor.errors import ConfigError
from supervisor.journal.facts import Replied, TurnEnded
from supervisor.tools.check_outcome import check_problem
from supervisor.tools.partial_output import PartialOutput
from supervisor.tools.router import Router

_GOES: Final = 2
"""Checks of a turn that may fail: after the last one it ends."""


@dataclass(frozen=True)
class TurnCheck:
    """Checks the turns of one session."""

    transcript: Transcript
    """Of the session's facts so far."""
    show: Callable[[Event], None]
    """Is given every event."""
    record: Callable[..., Coroutine[Any, Any, None]]
    """Makes facts durable, takes them into account and shows them."""
    partial_output: PartialOutput
    """What calls have printed that have no end yet."""

    async def checked(
        self, router: Router, turn: Turn, replied: Replied, end: TurnEnded | None
    ) -> tuple[Replied, TurnEnded | None]:
        """Return a reply that answers, and the turn's end with it; None where the model is told of a failure."""
        started, receipts = self.transcript.open_turn, self.transcript.receipts
        if end is None or end.status != "ok" or started is None or not started.check or not receipts.changed:
            return replied, end
        try:
            if receipts.own_check is None or receipts.changed_since_own_check:
                await self._run(router, turn, started.check)
        except ConfigError as error:  # the profile has lost what runs commands
            return replied, _failed(end, started.check, str(error))
        problem = "it was cut off" if receipts.own_check is None else check_problem(receipts.own_check)
        if not problem:
            return replied, end
        if receipts.told_checks < receipts.failed_checks < _GOES:
            return msgspec.structs.replace(replied, check_failed=problem), None
        return replied, _failed(end, started.check, problem)

    async def _run(self, router: Router, turn: Turn, command: str) -> None:
        known = self.transcript
        number = 1
        while (call := f"check_{number}") in known.ids:
            number += 1
        started = router.checks.call(known.turn, call, command)
        await self.record(started)
        if turn.state is not State.REVIEW_ACTION:
            self.show(turn.enter(State.REVIEW_ACTION))
        self.show(turn.enter(State.EXECUTING))
        self.partial_output.begin(call)
        context = TurnCallContext(self.record, self.show, self.partial_output, turn)
        await self.record(self.partial_output.completed(await router.checks.run(started, context)))


def _failed(end: TurnEnded, command: str, problem: str) -> TurnEnded:
    message = f"The check {visible(command)!r} failed after the last change: {problem}"
    return msgspec.structs.replace(end, status="error", kind="check_failed", message=message)
