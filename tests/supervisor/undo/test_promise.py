"""What an undo could not bring back, by what was there and what there is budget for."""

import os
from typing import Final

import msgspec
import pytest

from supervisor.undo.promise import PackBudget, breaks_promise, promise
from tests.each_row import each_row
from workers.changes.effects import Change, Effects, FoldedNames, Kind, NodeState
from workers.wire import messages

BUDGET: Final = PackBudget(each=1000, total=1500)
NEW: Final = NodeState("file", 0o644, 3, digest=b"new")
OTHERS: Final = {"system.posix_acl_access": bytes(44)}
MASKED: Final = {"system.posix_acl_access": bytes(36)}


def old(size: int = 10, digest: bytes = b"old", kind: Kind = "file", mode: int = 0o644, **more: bytes) -> NodeState:
    return NodeState(kind, mode, size, digest=digest, attributes=more)


def effects(*changes: Change) -> Effects:
    return Effects(changes, {each.what: 1 for each in changes}, b"")


LARGE: Final = "too large to keep"
SENTENCES: Final[dict[str, tuple[tuple[Change, ...], str]]] = {
    "nothing": ((), ""),
    "what is new": ((Change("a", "added", None, NEW),), ""),
    "what fits": ((Change("a", "modified", old(1000), NEW),), ""),
    "too large": (
        (Change("a", "deleted", old(1001)),),
        f"it cannot be undone: a (its old content, 1.0 kB, is {LARGE})",
    ),
    "too much together": (
        (Change("a", "deleted", old(900)), Change("b", "deleted", old(601)), Change("c", "deleted", old(600))),
        f"part of it cannot be undone: b (its old content, 601 B, is {LARGE} with the rest)",
    ),
    "not readable": (
        (Change("a", "modified", old(digest=b""), NEW),),
        "it cannot be undone: a (its old content cannot be read)",
    ),
    "mode alone": ((Change("a", "mode", old(5000), old(5000, mode=0o600)),), ""),
    "mode alone of what nobody read": (
        (Change("a", "mode", old(5000, b""), old(5000, b"", mode=0o600)),),
        f"it cannot be undone: a (its old content, 5.0 kB, is {LARGE})",
    ),
    "times alone": ((Change("a", "times", old(5000), old(5000)),), ""),
    "becomes a link": (
        (Change("a", "replaced", old(5000), NodeState("link", 0o777)),),
        f"it cannot be undone: a (its old content, 5.0 kB, is {LARGE})",
    ),
    "a directory": ((Change("a", "deleted", NodeState("dir", 0o755)),), ""),
    "a pipe": ((Change("a", "deleted", NodeState("fifo", 0o644)),), ""),
    "a socket": (
        (Change("a", "deleted", NodeState("socket", 0o755)),),
        "it cannot be undone: a (a socket cannot be made again)",
    ),
    "a list for others": (
        (Change("a", "modified", msgspec.structs.replace(old(), attributes=OTHERS), NEW),),
        "it cannot be undone: a (its access list names others)",
    ),
    "a list for nobody else": ((Change("a", "modified", msgspec.structs.replace(old(), attributes=MASKED), NEW),), ""),
    "an owner": (
        (Change("a", "modified", old(), NEW, loses=("its owner", "its group")), Change("b", "added", None, NEW)),
        "part of it cannot be undone: a (its owner, its group)",
    ),
    "a name that lies": (
        (Change("a\n, all is well", "deleted", old(5000)),),
        f'it cannot be undone: "a\\n, all is well" (its old content, 5.0 kB, is {LARGE})',
    ),
    "many": (
        tuple(Change(f"{number}", "deleted", old(5000)) for number in range(7)),
        "it cannot be undone: "
        + ", ".join(f"{number} (its old content, 5.0 kB, is {LARGE})" for number in range(5))
        + ", 2 more",
    ),
}


@each_row("row", SENTENCES)
def test_it_is_said_what_cannot_be_undone(row: str) -> None:
    changes, said = SENTENCES[row]
    assert promise(effects(*changes), BUDGET) == said


def test_what_is_not_listed_is_taken_for_lost_unless_it_is_new() -> None:
    listed = effects(Change("a", "modified", old(), NEW))
    assert promise(msgspec.structs.replace(listed, left_out={"added": 3}), BUDGET) == ""
    said = promise(msgspec.structs.replace(listed, left_out={"deleted": 3}), BUDGET)
    assert said == "part of it cannot be undone: what is not listed may be too large to keep"


@pytest.mark.parametrize(
    ("budget", "refusal", "why"), [(None, "", "nothing is kept"), (BUDGET, "no doors", "no doors")]
)
def test_where_nothing_is_kept_or_restored_only_additions_lose_nothing(
    budget: PackBudget | None, refusal: str, why: str
) -> None:
    assert promise(effects(Change("a", "added", None, NEW)), budget, refusal) == ""
    assert promise(effects(Change("a", "times", old(), old())), budget, refusal).startswith(
        f"it cannot be undone: {why}"
    )


def test_a_content_that_is_missing_breaks_the_promise_unless_it_was_said() -> None:
    raw = b"\xff"
    missing = messages.Original(1, "\\xff", old(), NEW, raw_path=raw)
    assert breaks_promise(missing, set())
    assert not breaks_promise(missing, {os.fsdecode(raw)})
    assert not breaks_promise(missing, {""})
    assert not breaks_promise(msgspec.structs.replace(missing, kept=True), set())
    assert not breaks_promise(messages.Original(1, "a", old(), old(mode=0o600)), set())
    assert not breaks_promise(messages.Original(1, "a", None, NEW), set())


FOLDED: Final = {
    "little": (FoldedNames(".venv", {"deleted": 3}, b"", old_size=1500, old_largest=1000), ""),
    "too much together": (FoldedNames(".venv", {"deleted": 3}, b"", old_size=1501, old_largest=1000), LARGE),
    "one that is too large": (FoldedNames(".venv", {"deleted": 3}, b"", old_size=1500, old_largest=1001), LARGE),
    "one that nobody read": (FoldedNames(".venv", {"deleted": 3}, b"", unread=True), LARGE),
    "not all": (FoldedNames(".venv", {"deleted": 2}, b""), LARGE),
}


@each_row(("folded", "said"), FOLDED.values(), ids=FOLDED)
def test_what_is_told_together_is_kept_where_there_is_room_for_all_of_it(folded: FoldedNames, said: str) -> None:
    found = Effects((), {"deleted": 3}, b"", left_out={"deleted": 3}, folded=(folded,))
    assert said in promise(found, BUDGET)
    assert bool(promise(found, BUDGET)) is bool(said)
