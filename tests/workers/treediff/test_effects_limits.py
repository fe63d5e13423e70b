"""The limits of effects, tested without a command."""

from collections.abc import Mapping
from typing import Final

from workers.changes.effects import CHANGES, NodeState
from workers.treediff.comparison import Difference
from workers.treediff.effects_of import build_effects
from workers.treediff.snapshot import Node
from workers.wire import frames, messages

MADE: Final = Node(NodeState("dir", 0o755), device=1, inode=1, changed_ns=0, links=1)
NOTHING: Final[Mapping[int, tuple[str, Node]]] = {}


def test_no_more_changes_are_told_one_by_one_than_a_message_may_hold() -> None:
    names = [*(str(number) for number in range(CHANGES)), "x", ".envrc"]
    found = [Difference(name, None, MADE) for name in names]
    effects = build_effects(found, NOTHING, (lambda *_: None, lambda *_: None), 0, lambda _: False)
    assert (len(effects.changes), effects.left_out, effects.totals) == (CHANGES, {"added": 2}, {"added": CHANGES + 2})
    assert ".envrc" in {each.path for each in effects.changes}
    proposed = messages.Proposed(1, effects)
    assert frames.decode_up(frames.frame(proposed)[frames.LENGTH.size :]) == proposed
