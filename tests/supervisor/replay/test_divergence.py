"""The first divergence of facts from a record: every kind of difference is one, and what is bound to differ is none."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pytest

from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Fact, TurnEnded, TurnStarted
from supervisor.replay.divergence import first_divergence
from workers.changes.effects import Change, Effects


def of(*changes: Change) -> Effects:
    return Effects(changes, {}, b"")


STARTED: Final = CallStarted(1, "c", "run_cmd", '{"command":"x"}', True, "ask", "", approved=True)
DECIDED: Final = CallDecided(1, "c", "ask", "", True, of(Change("a.txt", "modified", diff="+one")))
ENDED: Final = CallEnded(1, "c", "run_cmd", True, "done in 0.12s")
END: Final = TurnEnded(1, "ok", "fine")
TURN: Final = (TurnStarted(1, "go"), STARTED, DECIDED, ENDED, END)


def changed(fact: Fact, **fields: Any) -> list[Fact]:
    return [msgspec.structs.replace(fact, **fields) if each is fact else each for each in TURN]


OTHERS: Final[dict[str, tuple[Sequence[Fact], str]]] = {
    "other arguments": (changed(STARTED, arguments='{"command":"y"}'), "call"),
    "not asked about": (changed(STARTED, decision="allow", approved=None), "decision"),
    "another answer": (changed(STARTED, approved=False), "decision"),
    "not committed": (changed(DECIDED, committed=False), "effects"),
    "another change": (changed(DECIDED, effects=of(Change("b.txt", "added"))), "effects"),
    "another content": (changed(DECIDED, effects=of(Change("a.txt", "modified", diff="+1"))), "effects"),
    "another result": (changed(ENDED, content="done"), "outcome"),
    "a failure": (changed(ENDED, ok=False, kind="timeout"), "outcome"),
    "not made": ([each for each in TURN if each not in (STARTED, DECIDED, ENDED)], "call"),
    "one more": ([*TURN, msgspec.structs.replace(STARTED, call="d")], "call"),
    "another answer at the end": (changed(END, answer="bad"), "answer"),
    "no end": (TURN[:-1], "answer"),
}


@pytest.mark.parametrize(("now", "what"), OTHERS.values(), ids=OTHERS)
def test_a_difference_is_found(now: Sequence[Fact], what: str) -> None:
    found = first_divergence(TURN, now, (), str)
    assert found is not None
    assert found.what == what


SAME: Final[dict[str, Sequence[Fact]]] = {
    "nothing": TURN,
    "how long it took": changed(ENDED, content="done in 3 s", seconds=9.0),
    "which pack and commit": changed(DECIDED, kept="another", number=7),
}


@pytest.mark.parametrize("now", SAME.values(), ids=SAME)
def test_what_is_bound_to_differ_is_none(now: Sequence[Fact]) -> None:
    assert first_divergence(TURN, now, (), str) is None


def test_a_call_that_was_not_run_again_has_no_effects_and_the_same_outcome() -> None:
    assert first_divergence(TURN, [each for each in TURN if each is not DECIDED], ["c"], str) is None
