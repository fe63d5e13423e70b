"""What a call would change, as an editor shows it."""

from typing import Final

import pytest

from supervisor.acp.schema import Content, DiffContent, texts_of
from supervisor.daemon.protocol.effect_blocks import effects_shown
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
    _, difference = effects_shown(effects(change), ROOT)
    return difference


WHOLE: Final = [
    ("one\n", "two\n"),
    ("a\nb\nc\n", "a\nB\nc"),
    ("no end", "no end\n"),
    (None, "new\n"),
    ("old", None),
    ("form\x0cfeed\rreturn\n", "é\n"),
]


@pytest.mark.parametrize(("old", "new"), WHOLE)
def test_two_whole_texts_are_a_difference(old: str | None, new: str | None) -> None:
    difference = shown(modified(old, new))
    assert isinstance(difference, DiffContent)
    assert difference.path == "/the/root/a"
    seen = [None if text is None else text.replace("\x0c", "\\x0c").replace("\r", "\\r") for text in (old, new)]
    assert (difference.old_text, difference.new_text) == (seen[0], seen[1] or "")


LONG: Final = "".join(f"{number}\n" for number in range(100))
PARTS: Final = [
    ("a part of a long text", modified(LONG, LONG.replace("50", "fifty"))),
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


def test_no_text_ends_its_block() -> None:
    difference = shown(modified(f"{LONG}````\n", f"{LONG}`````\n"))
    assert texts_of([difference])[0].startswith("``````diff\n")


def test_a_protected_path_is_shown_first() -> None:
    hook = Change(".git/hooks/x", "added", None, NodeState("file", 0o755), protected="git runs it", diff="+x\n")
    listing, first, _second = effects_shown(effects(modified("one\n", "two\n", ".a"), hook), ROOT)
    listed, shown_first = texts_of([listing, first])
    assert ".git/hooks/x" in listed.split("\n")[2]
    assert ".git/hooks/x" in shown_first


def test_a_history_shows_so_much_of_the_differences() -> None:
    found = effects_shown(effects(modified("one\n", "two\n"), modified("one\n", "two\n", "b")), ROOT, 30)
    assert isinstance(found[1], DiffContent)
    assert isinstance(found[2], Content)
    assert len(found) == 3
