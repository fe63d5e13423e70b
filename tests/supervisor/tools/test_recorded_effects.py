"""Effects as the journal keeps them: as much of the differences as there is room for."""

from supervisor.tools.recorded_effects import DIFFS, recorded_effects
from tests.supervisor.changes import change, effects


def test_a_long_difference_is_kept_up_to_where_there_is_room_and_says_so() -> None:
    lines = [f"+line {number}\n" for number in range(10_000)]
    kept = recorded_effects(effects(change("+ a", diff="".join(lines)), change("+ b", diff="+x\n" * 100))).changes
    (first, second) = kept
    shown = first.diff.splitlines(keepends=True)
    assert shown == lines[: len(shown)]
    assert DIFFS - 20 < len(first.diff) + len(second.diff) <= DIFFS
    assert first.diff_left_out == f"{10_000 - len(shown)} more lines not recorded"
    assert second.diff_left_out
    assert sum(len(each.diff) for each in kept) <= DIFFS
