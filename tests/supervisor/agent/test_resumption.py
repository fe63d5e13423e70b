"""How long a suspended turn waits, whatever becomes of the clock."""

from typing import Final

import pytest
import trio
import trio.testing

from supervisor.agent.resumption import Resumption
from supervisor.agent.transcript import Transcript
from supervisor.journal.facts import TurnStarted, TurnSuspended

NOON: Final = 1_800_000_000.0


@pytest.mark.parametrize(
    ("jump", "waited"),
    [(0.0, 3600.0), (-36_000.0, 3600.0), (600.0, 3000.0), (36_000.0, 100.0)],
    ids=["a clock that goes on", "put back", "put a little forward", "put far forward"],
)
async def test_a_wait_is_no_longer_than_it_was_said_to_be(
    autojump_clock: trio.testing.MockClock, jump: float, waited: float
) -> None:
    began = trio.current_time()

    def uptime() -> float:
        return trio.current_time() - began

    fact = TurnSuspended(1, "limit", "slow down", NOON + 3600)
    resumption = Resumption(
        Transcript([TurnStarted(1, "go"), fact]),
        lambda _tokens: False,
        lambda: NOON + uptime() + (jump if uptime() >= 100 else 0.0),
        uptime,
    )
    assert resumption.holds()
    await resumption.wait()
    assert uptime() == pytest.approx(waited, abs=30)
    assert not resumption.holds()
    assert autojump_clock.autojump_threshold == 0
