"""The limits of effects, tested without a command."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from workers.changes.diff import DIFFS, LINES, TEXT
from workers.changes.effects import CHANGES, NodeState, is_folded
from workers.changes.readable import HEAD
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


FILE: Final = NodeState("file", 0o644, 3, digest=b"x")
TOLD_FIRST: Final = {
    "src/x.py": FILE,
    "package-lock.json": FILE,
    "node_modules/a/.git/config": FILE,
    "node_modules/.bin/tool": NodeState("link", 0o777, target="../a/tool"),
    "node_modules/a/root": NodeState("file", 0o4755),
    "node_modules/a/pipe": NodeState("fifo", 0o644),
    "node_modules/a/listed": NodeState("file", 0o644, attributes={"user.x": b"1"}),
    "node_modules/a/~second": FILE,
    "vendor": NodeState("dir", 0o755),
}


def test_of_ordinary_files_of_packages_the_number_is_told_and_all_else_one_by_one() -> None:
    names = [f"node_modules/a/{number}.js" for number in range(CHANGES)]
    found = [Difference(name, None, Node(FILE, 1, at, 0, 1)) for at, name in enumerate(names)]
    found += [Difference(f"vendor/{number}", Node(FILE, 1, 1, 0, 1), None) for number in range(CHANGES)]
    for at, (name, state) in enumerate(TOLD_FIRST.items()):
        found.append(Difference(name, None, Node(state, 1, 2 * CHANGES + at, 0, 2 if name.endswith("second") else 1)))
    found.append(Difference("node_modules/a/first", None, found[-2].after))
    effects = build_effects(found, NOTHING, (lambda *_: None, lambda *_: None), 0, lambda _: False)
    assert {*TOLD_FIRST} <= {each.path for each in effects.changes}
    gone, new = effects.folded[1], effects.folded[0]
    assert [each.path for each in effects.folded] == ["node_modules", "vendor"]
    assert is_folded(effects)
    assert {**new.totals, **gone.totals} == effects.left_out
    assert (gone.old_size, gone.old_largest, gone.unread) == (3 * gone.totals["deleted"], 3, False)
    assert new.size == 3 * new.totals["added"]
    assert not is_folded(msgspec.structs.replace(effects, folded=effects.folded[:1]))


def test_files_share_what_a_frame_holds_and_each_says_what_is_left_out() -> None:
    line = "x" * 63 + "\n"
    sizes = {"small": 1, "half": DIFFS // 400, "large": TEXT // 64, "larger": TEXT // 64, "largest": TEXT // 64}
    found = [
        Difference(name, None, Node(NodeState("file", 0o644, count * 64), 1, number + 2, 0, 1))
        for number, (name, count) in enumerate(sizes.items())
    ]

    def content(path: str, _: Node, most: int) -> bytes:
        return (line * sizes[path]).encode()[:most]

    effects = build_effects(found, NOTHING, (content, content), 0, lambda _: False)
    told = {each.path: each for each in effects.changes}
    cut = {path: re.match("([0-9]+) lines", each.diff_left_out) for path, each in told.items() if each.diff_left_out}
    assert set(cut) == {"large", "larger", "largest"}
    for path, found_count in cut.items():
        assert found_count
        assert int(found_count[1]) + told[path].diff.count("\n") == sizes[path] + 1 < LINES
    assert DIFFS * 0.99 < sum(len(each.diff) for each in told.values()) <= DIFFS
    assert len(frames.frame(messages.Proposed(1, effects))) <= frames.FRAME_LIMIT


def test_a_picture_costs_its_first_bytes_alone() -> None:
    asked: list[int] = []

    def content(_path: str, _node: Node, most: int) -> bytes:
        asked.append(most)
        return b"\x89PNG\r\n\x1a\n" + bytes(most - 8)

    picture = Difference("p", None, Node(NodeState("file", 0o644, TEXT), 1, 2, 0, 1))
    (change,) = build_effects([picture], NOTHING, (content, content), 0, lambda _: False).changes
    assert (change.diff_left_out, asked) == (f"binary, {TEXT} bytes, cannot be shown", [HEAD])
