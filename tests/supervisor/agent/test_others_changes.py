"""Whose commits count as changes of a session's root: those of others, on it, around it or beneath it, since then."""

from pathlib import Path
from typing import Final

import pytest
import trio

from supervisor.agent.others_changes import changed_by_others, root_changed
from supervisor.config.fault_plan import FaultEntry, FaultPlan, RunningFaultPlan
from supervisor.journal.facts import CallDecided, CallEnded, SessionChanged, SessionOpened
from supervisor.journal.journal import Journal
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from tests.raw_worker import forked
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.pool.harness import until
from workers.wire.messages import Context, Done

COMMITS: Final = CallDecided(1, "w", "allow", "", committed=True)
ROWS: Final = {
    "the same": ("/work/notes", COMMITS, True),
    "beneath it": ("/work/notes/old", COMMITS, True),
    "around it": ("/work", COMMITS, True),
    "beside it": ("/work/notes2", COMMITS, False),
    "a rejected change": ("/work/notes", CallDecided(1, "w", "ask", "", committed=False), False),
    "an undo": ("/work/notes", CallDecided(0, "u", "allow", "", committed=False, undoes="w"), True),
}


def opened(root: str) -> SessionOpened:
    return SessionOpened("vault", "m", Context(root), (), "test", "1")


@pytest.mark.parametrize(("place", "decided", "changed"), ROWS.values(), ids=ROWS)
def test_another_session_has_changed_it(journal: Journal, place: str, decided: CallDecided, changed: bool) -> None:
    ended = CallEnded(1, "first", "look", True, "same")
    journal.append("other", opened("/elsewhere"), COMMITS, SessionChanged("vault", "m", Context(place), ()))
    journal.append("own", opened("/work/notes"), ended)
    assert not changed_by_others(journal.path, "own", "first")[0]  # what came before is none of it
    journal.append("own", COMMITS)
    journal.append("other", decided)
    assert changed_by_others(journal.path, "own", "first")[0] is changed


async def test_a_turn_that_is_cancelled_during_the_look_at_its_root_goes_on_to_record_its_call(
    nursery: trio.Nursery, root: Path
) -> None:
    hangs = FaultPlan(Path("row"), "", 0, (FaultEntry("files", "hang", tool="changed_since"),))
    spec = forked(ChildSpec("files", Context(str(root)), faults=RunningFaultPlan(hangs)))
    pools = Pools(str(root), lambda _category: spec, nursery)
    looked: list[bool] = []

    async def look() -> None:
        looked.append(await root_changed(pools, 0.0))

    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as turn:
            turn.start_soon(look)
            await until(lambda: pools.pool("files").workers.checkout.busy)
            turn.cancel_scope.cancel()
        assert looked == [False]
        (root / "a.txt").write_text("a")
        assert isinstance(await pools.pool("files").call("read_file", b'{"path": "a.txt"}', effect=False), Done)
    await pools.close()
