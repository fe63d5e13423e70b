"""The settlement of a commit, as the supervisor has it made."""

from typing import TYPE_CHECKING, cast

import pytest

from supervisor.errors import WorkerDied, WorkerError, WorkerUnavailable
from supervisor.tools.commit_fate import CommitFate, settle
from workers.changes.effects import Effects
from workers.wire import messages

if TYPE_CHECKING:
    from supervisor.pool.pools import Pools


class RestoringPools:
    """Pools, and their only pool, whose workers end a call as they are told to, and then answer."""

    def __init__(self, *failures: WorkerError) -> None:
        self._failures = [*failures]
        self.calls = 0

    def pool(self, _category: str) -> "RestoringPools":
        return self

    async def call(self, _tool: str, _arguments: bytes, *, effect: bool) -> messages.Answer:
        assert effect
        self.calls += 1
        if self._failures:
            raise self._failures.pop(0)
        return messages.Done(1, '{"fate": "before"}')


@pytest.mark.parametrize(
    ("failures", "found", "calls"),
    [
        ([], CommitFate("before"), 1),
        ([WorkerDied("killed")] * 2, CommitFate("before"), 3),
        ([WorkerDied("killed")] * 3, None, 3),
        ([WorkerUnavailable("none")], None, 1),
    ],
    ids=["no worker dies", "two die", "three die", "there is none"],
)
async def test_a_commit_is_settled_though_workers_that_settle_it_die(
    failures: list[WorkerError], found: CommitFate | None, calls: int
) -> None:
    pools = RestoringPools(*failures)
    assert await settle(cast("Pools", pools), 7, Effects((), {"added": 1}, b""), "pack") == found
    assert pools.calls == calls
