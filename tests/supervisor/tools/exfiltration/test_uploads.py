from typing import Any, Final

from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Fact
from supervisor.tools.exfiltration.uploads import Uploads
from tests.each_row import each_row
from workers.changes.effects import UPLOAD, Effects, Traffic


def granted(call: str = "c") -> CallDecided:
    return CallDecided(1, call, "ask", "it tried the network", committed=False, approved=True, network=True)


def ran(*told: Traffic, committed: bool = True) -> CallDecided:
    effects = Effects((), {}, b"", traffic=told)
    return CallDecided(1, "c", "allow", "it changes nothing", committed=committed, effects=effects, network=True)


def ended(**more: Any) -> CallEnded:
    return CallEnded(1, "c", "exec_shell", not more, "", **more)


ONE: Final = Traffic("pypi.org:443", 3200, 1_100_000)
ROWS: Final[dict[str, tuple[list[Fact], int, int]]] = {
    "nothing": ([CallStarted(1, "c", "exec_shell", "{}", True, "allow", ""), ended()], 0, 0),
    "a run that sent nothing": ([granted(), ended()], 0, 0),
    "a run": ([granted(), ran(ONE), ended()], 3200, 1),
    "a run whose changes were declined": ([granted(), ran(ONE, committed=False), ended(kind="denied")], 3200, 1),
    "two runs of one call": ([granted(), ran(ONE), ran(ONE), ended()], 6400, 1 + 1),
    "a run that was ended": ([granted(), ended(kind="timeout", details={"uploaded": 77})], 77, 1),
    "a run whose worker died": ([granted(), ended(kind="worker_crashed")], UPLOAD, 1),
    "a run that was begun anew": ([granted(), granted(), ran(ONE), ended()], UPLOAD + 3200, 2),
    "a run without a yes": ([CallDecided(1, "c", "ask", "", False, approved=False, network=True), ended()], 0, 0),
}


@each_row(("facts", "up", "commands"), ROWS.values(), ids=ROWS)
def test_what_was_sent_is_a_fold(facts: list[Fact], up: int, commands: int) -> None:
    uploads = Uploads()
    for fact in facts:
        uploads.apply(fact)
    assert (uploads.up, uploads.commands, uploads.limit) == (up, commands, UPLOAD)
    assert bool(uploads.told()) is bool(up)


def test_what_was_sent_is_told_for_each_host() -> None:
    uploads = Uploads()
    for told in ((ONE,), (ONE, Traffic("a.example:80", 10, 0))):
        uploads.apply(ran(*told))
    assert uploads.told() == (
        "6.4 kB have been sent by 2 commands of this session (to pypi.org:443 6.4 kB up, 2.2 MB down, "
        "to a.example:80 10 B up, 0 B down)"
    )


def test_after_a_cut_the_next_command_may_send_more_and_no_end_of_it_is_unbounded() -> None:
    uploads = Uploads()
    limits = []
    for _ in range(9):
        uploads.apply(ran(Traffic("a.example:80", uploads.limit, 0, cut=True)))
        limits.append(uploads.limit)
    assert limits[0] == 64 * UPLOAD
    assert limits[-1] == 2**40
