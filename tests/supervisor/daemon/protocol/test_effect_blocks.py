"""What a call would change, as an editor shows it."""

from typing import Final

import msgspec
import pytest

from supervisor.acp.schema import Content, DiffContent, texts_of
from supervisor.daemon.protocol.effect_blocks import differences_shown, effects_shown
from supervisor.display.proposed_effects import presented
from tests.each_row import each_row
from tests.supervisor.changes import effects
from workers.changes.diff import Budget, unified
from workers.changes.effects import Change, NodeState

ROOT: Final = "/the/root"


def modified(old: str | None, new: str | None, path: str = "a", *, cut: str = "") -> Change:
    """Return a change of a text, as a rehearsal tells it."""
    before, after = (None if text is None else NodeState("file", 0o644, len(text.encode())) for text in (old, new))
    diff = unified(old or "", new or "", 10_000, Budget(10_000)).text
    return Change(path, "modified", before, after, diff=diff, diff_left_out=cut)


def shown(change: Change) -> Content | DiffContent:
    (difference,) = differences_shown(effects(change), ROOT)
    return difference


WHOLE: Final = [
    ("one\n", "two\n"),
    ("a\nb\nc\n", "a\nB\nc"),
    ("no end", "no end\n"),
    (None, "new\n"),
    ("old", None),
    ("form\x0cfeed\rreturn\n", "é\n"),
]


@each_row(("old", "new"), WHOLE)
def test_two_whole_texts_are_a_difference(old: str | None, new: str | None) -> None:
    difference = shown(modified(old, new))
    assert isinstance(difference, DiffContent)
    assert difference.path == "/the/root/a"
    seen = [None if text is None else text.replace("\x0c", "\\x0c").replace("\r", "\\r") for text in (old, new)]
    assert (difference.old_text, difference.new_text) == (seen[0], seen[1] or "")


LONG: Final = "".join(f"{number}\n" for number in range(100))
PARTS: Final = [
    ("a decoded text", msgspec.structs.replace(modified("one\n", "two\n"), encoding="UTF-16 LE, decoded")),
    ("a difference that was cut", modified("one\n", "two\n", cut="the rest is too long")),
    ("a name that cannot be shown", modified("one\n", "two\n", "a\x1b[2Jb")),
]


@pytest.mark.parametrize("change", [each for _, each in PARTS], ids=[name for name, _ in PARTS])
def test_everything_else_is_text(change: Change) -> None:
    difference = shown(change)
    (text,) = texts_of([difference])
    assert text.startswith("```diff\n")
    assert text.endswith("\n```")
    assert "\x1b" not in text


def test_each_part_of_a_long_text_that_changes_is_a_difference() -> None:
    change = modified(LONG, LONG.replace("50\n", "@fifty\n").replace("90\n", ""))
    first, second = differences_shown(effects(change), ROOT)
    assert isinstance(first, DiffContent)
    assert isinstance(second, DiffContent)
    assert first.old_text == "47\n48\n49\n50\n51\n52\n53\n"
    assert first.new_text == "47\n48\n49\n@fifty\n51\n52\n53\n"
    assert second.new_text == "87\n88\n89\n91\n92\n93\n"


def test_no_text_ends_its_block() -> None:
    difference = shown(modified(f"{LONG}````\n", f"{LONG}`````\n", cut="the rest is too long"))
    assert texts_of([difference])[0].startswith("``````diff\n")


def test_a_protected_path_is_shown_first() -> None:
    hook = Change(".git/hooks/x", "added", None, NodeState("file", 0o755), protected="git runs it", diff="+x\n")
    found = effects(modified("one\n", "two\n", ".a"), hook)
    listing, first, _second = effects_shown(found, ROOT, presented(found))
    assert ".git/hooks/x" in texts_of([listing])[0].split("\n")[2]
    assert isinstance(first, DiffContent)
    assert first.path == "/the/root/.git/hooks/x"
