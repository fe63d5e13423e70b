"""What a failed request comes to in a batch, by a clock of the test's."""

from typing import Any, Final

import pytest

from supervisor.agent.ledger import Ledger
from supervisor.agent.models.immediate import ImmediateModel
from supervisor.agent.models.model import Reply
from supervisor.agent.turn import SuspendedTurn
from supervisor.config.config_keys import WaitingConfig
from supervisor.errors import ModelError, ModelErrorKind
from supervisor.journal.journal_writer import JournalWriter
from supervisor.session.earlier_session import new_session
from supervisor.session.session import Session
from tests.supervisor.bench import Bench, vault

BEGINS: Final = 1_000_000.0
NIGHT: Final = 3600.0


class Waiting:
    """A session whose model always fails, and the waits that this comes to."""

    def __init__(self, bench: Bench, kind: ModelErrorKind, origin: str = "batch:run:1") -> None:
        def fail(*_: Any) -> Reply:
            raise ModelError(kind, "no")

        self.now = BEGINS
        model, profile = ImmediateModel("m", fail), vault(bench.root)
        new = new_session(profile, model, origin, attended=False)
        bench.journal.append(new.id, new.opened)
        ledger = Ledger(bench.journal, clock=lambda: self.now, waiting=WaitingConfig(batch_longest_s=NIGHT))
        self._conversation = Session(
            JournalWriter(bench.journal), bench.pools, profile, model, new, ledger=ledger
        ).conversation

    async def wait(self, by: str = "") -> float:
        """Ask the model; return for how many seconds it is waited then, 0 where a person's word is waited for."""
        conversation = self._conversation
        with pytest.raises(SuspendedTurn) as found:
            await (conversation.resume(by) if conversation.transcript.open_turn else conversation.run_turn("go"))
        until = found.value.fact.until
        waited, self.now = until - self.now, until or self.now
        return waited if until else 0.0

    async def fails(self) -> str:
        """Ask the model; return with what the turn has ended."""
        return (await self._conversation.run_turn("go")).kind


@pytest.mark.parametrize("kind", ["rate_limited", "overloaded"])
async def test_a_batch_waits_longer_each_time_until_it_has_no_patience_left(bench: Bench, kind: ModelErrorKind) -> None:
    waiting, waits = Waiting(bench, kind), list[float]()
    while (seconds := await waiting.wait()) > 0:
        waits.append(seconds)
    assert (waits[0], waits[-1], waits) == (5.0, 60.0, sorted(waits))
    assert NIGHT - 60 < sum(waits) <= NIGHT
    assert await waiting.wait("batch") == 5.0  # as patient again, once it is taken up


@pytest.mark.parametrize(
    ("kind", "origin"),
    [("rate_limited", "console"), ("authentication", "batch:run:1")],
    ids=["a person", "a wrong key"],
)
async def test_what_a_person_sees_or_no_wait_helps_ends_the_turn(
    bench: Bench, kind: ModelErrorKind, origin: str
) -> None:
    assert await Waiting(bench, kind, origin).fails() == kind
