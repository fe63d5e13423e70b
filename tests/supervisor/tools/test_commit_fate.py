"""The settlement of a commit, as the supervisor has it made."""

from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from supervisor.errors import WorkerDied, WorkerError, WorkerUnavailable
from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.tools.commit_fate import CommitFate, settle, settled
from tests.each_row import each_row
from workers.changes.effects import Change, Effects
from workers.wire import messages

if TYPE_CHECKING:
    from supervisor.pool.pools import Pools


class RestoringPools:
    """Pools, and their only pool, whose workers end a call as they are told to, and then answer."""

    def __init__(self, *failures: WorkerError, unread: int = 0) -> None:
        self._failures = [*failures]
        self._unread = unread
        """So many packs cannot be read."""
        self.calls = 0

    def pool(self, _category: str) -> "RestoringPools":
        return self

    async def call(self, _tool: str, _arguments: bytes, *, effect: bool) -> messages.Answer:
        assert effect
        self.calls += 1
        if self._failures:
            raise self._failures.pop(0)
        if self._unread:
            self._unread -= 1
            return messages.Failed(1, "internal", "It is gone.")
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


async def test_without_a_pack_it_is_settled_by_the_changes_and_of_a_part_of_them_not_at_all() -> None:
    gone, asked = RestoringPools(unread=1), RestoringPools()
    whole = Effects((Change("a", "deleted"),), {"deleted": 1}, b"")
    assert await settle(cast("Pools", gone), 7, whole, "pack") == CommitFate("before")
    assert gone.calls == 2
    part = msgspec.structs.replace(whole, left_out={"added": 1})
    assert await settle(cast("Pools", asked), 0, part, "") is None
    assert asked.calls == 0


STARTED = CallStarted(1, "c", "run_cmd", "{}", True, "allow", "")
UNKNOWN = CallEnded(1, "c", "run_cmd", False, "Nobody knows.", kind="outcome_unknown")


@each_row(
    ("found", "ok", "kind", "words"),
    [
        (None, False, "outcome_unknown", "Nobody knows."),
        (CommitFate("before"), False, "worker_crashed", "Nothing was changed"),
        (CommitFate("after"), True, None, "All its changes were made"),
        (CommitFate("mixed", ("a",), ("b", "c")), False, "outcome_unknown", "b, c: as it was to be; a: neither, for"),
        (CommitFate("before", ("a.py",)), False, "worker_crashed", "changed since: a.py. Do it again."),
        (CommitFate("after", ("a.py",)), True, None, "Somebody else has changed since: a.py."),
    ],
)
def test_what_is_said_of_a_commit_is_what_is_there(
    found: CommitFate | None, ok: bool, kind: str | None, words: str
) -> None:
    ended = settled(STARTED, "It was cut off.", UNKNOWN, found)
    assert (ended.ok, ended.kind, words in ended.content) == (ok, kind, True)
