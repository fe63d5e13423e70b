"""The plan of an undo: the calls that can be undone, their order, and reasons against it."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import pytest

from supervisor.acp.extensions import Restored
from supervisor.errors import ConfigError, KeptError
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    SessionChanged,
    SessionOpened,
    Unreadable,
)
from supervisor.journal.journal import JournalEntry
from supervisor.undo.undo_lines import change_lines
from supervisor.undo.undo_plan import SessionChanges, UndoStep, undo_plan
from tests.each_row import each_row
from workers.changes.effects import Change, Effects, NodeState
from workers.wire.messages import Context

FILE: Final = NodeState("file", 0o644, 3)
EFFECTS: Final = Effects(
    (Change("a", "added", after=FILE), Change("b", "deleted", FILE)), {"added": 1, "deleted": 1}, b""
)
OPENED: Final = SessionOpened("project", "m", Context("/root"), (), "acp", "1")


def did(call: str, turn: int = 1, ended: CallEnded | None = None, **decided: Any) -> list[Fact]:
    """A call that was committed, and ended well unless it is said how."""
    facts: dict[str, Any] = {"committed": True, "effects": EFFECTS, "kept": f"pack-{call}"} | decided
    undo = "undoes" in decided
    return [
        CallStarted(turn, call, "undo" if undo else "write_file", '{"path": "a"}', True, "allow", "", rehearsed=True),
        CallDecided(turn, call, "allow", "", **facts),
        ended or CallEnded(turn, call, "write_file", True, ""),
    ]


def undid(call: str, by: str, **more: Any) -> list[Fact]:
    return did(by, 0, undoes=call, **more)


def failed(call: str, kind: Any) -> CallEnded:
    return CallEnded(1, call, "write_file", False, "", kind=kind)


def entries(*facts: Fact | Sequence[Fact]) -> list[JournalEntry]:
    flat = [OPENED, *(fact for each in facts for fact in (each if isinstance(each, list) else [each]))]
    return [JournalEntry(number, "s", float(number), fact) for number, fact in enumerate(flat, 1)]  # type: ignore[arg-type]


def planned(
    *facts: Fact | Sequence[Fact],
    calls: Sequence[str] = (),
    extent: Any = "last",
    holds: Callable[[str], bool] = lambda _pack: True,
) -> list[UndoStep]:
    return undo_plan(entries(*facts), calls, extent, holds)


A, B, C = did("a"), did("b", 2), did("c", 2)
LOST: Final = [*did("b")[:2], msgspec.structs.replace(did("b")[0], again=True)]

STANDING: Final[list[tuple[str, list[Any], list[str]]]] = [
    ("the last comes first", [A, B, C], ["c", "b", "a"]),
    ("nothing was changed", [], []),
    ("what is undone is passed over, and so is the undo", [A, B, C, undid("c", "u")], ["b", "a"]),
    ("twice takes back two", [A, B, undid("b", "u"), undid("a", "v")], []),
    ("the undo of an undo brings back", [A, B, undid("b", "u"), undid("u", "v")], ["b", "a"]),
    ("what was brought back last is the last change", [A, B, undid("a", "u"), undid("u", "v")], ["a", "b"]),
    ("and it can be undone again", [A, undid("a", "u"), undid("u", "v"), undid("a", "w")], []),
    ("an undo that failed took nothing back", [A, undid("a", "u", ended=failed("u", "conflict"))], ["a"]),
    ("nor is one known whose end nobody saw", [A, undid("a", "u", ended=failed("u", "outcome_unknown"))], ["a"]),
    ("one that had nothing to restore counts", [A, undid("a", "u", committed=False, effects=None, kept="")], []),
    ("a conflict has changed nothing", [A, did("b", ended=failed("b", "conflict"))], ["a"]),
    ("nor has a commit without its worker", [A, did("b", ended=failed("b", "worker_crashed"))], ["a"]),
    ("what could not be written was taken back", [A, did("b", ended=failed("b", "disk_full"))], ["a"]),
    ("an unknown outcome may have", [A, did("b", ended=failed("b", "outcome_unknown"))], ["b", "a"]),
    ("what was refused has changed nothing", [A, did("b", committed=False)], ["a"]),
    ("what was edited counts once", [A, [*did("b", committed=False)[:2], *did("b")[1:]]], ["b", "a"]),
    ("a commit that was lost with its worker is none", [A, [*LOST, *did("b", committed=False)[1:]]], ["a"]),
    ("nor if nobody decided again", [A, [*LOST, failed("b", "denied")]], ["a"]),
    ("and the one after it counts", [A, [*LOST, *did("b")[1:]]], ["b", "a"]),
    ("what ran without a rehearsal changed something", [A, did("b", effects=None, kept="")], ["b", "a"]),
]


@each_row(("facts", "undoable"), [row[1:] for row in STANDING], ids=[row[0] for row in STANDING])
def test_undoable_calls_are_known_from_the_facts(facts: list[Any], undoable: list[str]) -> None:
    assert SessionChanges(entries(*facts)).undoable() == undoable


EXTENTS: Final = [
    ("the last change", "last", [A, B, C], ["c"]),
    ("all of the last turn", "turn", [A, B, C], ["c", "b"]),
    ("all of the last turn of what stands", "turn", [A, B, C, undid("c", "u"), undid("b", "v")], ["a"]),
    ("of calls without a turn the last", "turn", [A, did("x", 0), did("y", 0)], ["y"]),
    ("the whole session", "session", [A, B, C], ["c", "b", "a"]),
]


@each_row(("extent", "facts", "calls"), [row[1:] for row in EXTENTS], ids=[row[0] for row in EXTENTS])
def test_as_far_as_it_is_said_is_taken_back(extent: str, facts: list[Any], calls: list[str]) -> None:
    steps = planned(*facts, extent=extent)
    assert [(step.call, step.pack, step.problem) for step in steps] == [(call, f"pack-{call}", "") for call in calls]


UNREHEARSED: Final = did("a", effects=None, kept="", unrehearsed="no overlay")
ELSEWHERE: Final = SessionChanged("vault", "m", Context("/other"), ())
PROBLEMS: Final[list[tuple[str, list[Any], str]]] = [
    ("a refused one", [did("a", committed=False)], "a has changed nothing"),
    ("a conflict", [did("a", ended=failed("a", "conflict"))], "a has changed nothing"),
    ("undone already", [A, undid("a", "u")], "a is undone already, by u: undo u to bring it back."),
    ("outside of the sandbox", [did("a", unconfined=True, kept="")], "a ran outside of the sandbox: what it changed"),
    ("unrehearsed", [UNREHEARSED], "without a rehearsal (no overlay): what"),
    ("kept off", [did("a", kept="")], "total_mb was 0 in [undo]"),
    ("in another root", [A, ELSEWHERE], "a changed /root, and the session is in"),
]


@each_row(("facts", "words"), [row[1:] for row in PROBLEMS], ids=[row[0] for row in PROBLEMS])
def test_a_call_that_cannot_be_undone_says_why(facts: list[Any], words: str) -> None:
    (step,) = planned(*facts, calls=["a"])
    assert words in step.problem
    assert step.kind == "invalid_arguments"


def test_a_call_whose_pack_is_no_longer_kept_cannot_be_undone_and_says_so() -> None:
    (step,) = planned(A, calls=["a"], holds=lambda pack: pack != "pack-a")
    assert step.problem.startswith("What a replaced is no longer kept: [undo] total_mb and days say")


def test_a_pack_that_cannot_be_looked_for_says_why() -> None:
    def lost(_pack: str) -> bool:
        raise KeptError("internal", "/home/kept is not there.")

    (step,) = planned(A, calls=["a"], holds=lost)
    assert step.problem == "What a replaced cannot be read: /home/kept is not there."
    assert step.kind == "invalid_arguments"


def test_a_call_that_is_none_is_an_error() -> None:
    with pytest.raises(ConfigError, match="No call 'x' in the session s"):
        planned(A, calls=["x"])


def test_an_undo_that_is_named_can_be_undone() -> None:
    (step,) = planned(A, undid("a", "u"), calls=["u"])
    assert (step.tool, step.pack, step.problem) == ("undo", "pack-u", "")


def test_a_step_says_what_undoing_it_does() -> None:
    (step,) = planned(did("a", effects=Effects(EFFECTS.changes, {"added": 3, "deleted": 1}, b"")))
    assert step.title == "write_file a"
    assert change_lines(step.changes, step.more, done=False) == ["brings back b", "removes a", "4 names in all"]
    assert change_lines(step.changes, 0, done=True) == ["brought back b", "removed a"]


def test_a_decision_that_was_changed_is_not_undone_and_others_are() -> None:
    found = [
        msgspec.structs.replace(entry, damage="changed") if isinstance(entry.fact, CallDecided) else entry
        for entry in entries(A)
    ]
    steps = undo_plan([*found, *entries(A, B)[len(found) :]], [], "session", lambda _pack: True)
    assert [(step.call, "is not what was written" in step.problem) for step in steps] == [("b", False), ("a", True)]


@pytest.mark.parametrize("damage", ["unreadable", "unchecked"])
def test_a_call_whose_decision_is_lost_is_not_said_to_have_changed_nothing(damage: Any) -> None:
    found = entries(A)
    at = next(number for number, entry in enumerate(found) if isinstance(entry.fact, CallDecided))
    if damage == "unchecked":
        found[at + 1] = msgspec.structs.replace(found[at + 1], damage=damage)
        del found[at]
    else:
        found[at] = msgspec.structs.replace(found[at], fact=Unreadable("gone"), damage=damage)
    (step,) = undo_plan(found, ["a"], "last", lambda _pack: True)
    assert "row 3 of the journal, which may have said it, is lost" in step.problem


def test_what_git_keeps_for_itself_is_told_by_number() -> None:
    paths = [".git/index", ".git/objects/04", "a.txt", ".git/refs/heads/main", ".git/config"]
    changed = [Restored(path=path, what="modified") for path in paths]
    assert change_lines(changed, 0, done=True) == ["restored a.txt, .git/config; 3 names that git keeps for itself"]
    assert change_lines(changed[:1], 0, done=True) == ["restored 1 name that git keeps for itself"]
