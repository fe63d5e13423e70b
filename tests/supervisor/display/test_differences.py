"""Differences in colours: the same lines to the character, and only what is shown is paid for."""

import random
import subprocess
import sys
from typing import Final

import pytest

from supervisor.acp import extensions
from supervisor.display.code_tones import language_of
from supervisor.display.columns import width
from supervisor.display.differences import differences, folded, painted
from supervisor.display.fragments import Fragments, plain, styled
from workers.changes.diff import Budget, unified

OLD: Final = 'def total(items):\n    """Sum."""\n    return sum(items)  # all\n'
NEW: Final = 'def total(items, more=3):\n    """Sum."""\n    return sum(items) + more  # all\n'


def changed(old: str, new: str, path: str = "a.py") -> extensions.ChangedName:
    diff = unified(old, new, 10**7, Budget(10**6)).text
    return extensions.ChangedName(path=path, what="modified", diff=diff)


def lines(change: extensions.ChangedName) -> list[Fragments]:
    return list(painted([change]))


def toned(change: extensions.ChangedName, tone: str) -> list[str]:
    """Return the pieces of a difference that have a tone among theirs."""
    return [text for line in lines(change)[1:] for tones, text in line if tone in tones.split()]


def test_words_that_change_within_a_line_stand_out_on_both_sides() -> None:
    assert toned(changed(OLD, NEW, "a.txt"), "reverse") == [", more=3", " + more"]
    assert toned(changed("one two three\n", "one four three\n", "a"), "reverse") == ["two", "four"]
    assert toned(changed("x\n同じ文です\ny\n", "x\n同じ語です\ny\n", "a"), "reverse") == ["文", "語"]


def test_of_a_block_each_line_is_compared_with_the_one_that_it_has_become() -> None:
    new = "something else\nentirely new\nkeep this word here\n"
    assert toned(changed("keep that word here\n", new, "a"), "reverse") == ["that", "this"]


def test_no_line_is_compared_with_two_and_a_block_may_begin_where_another_ends() -> None:
    assert toned(changed("a b c 1\na b c 2\n", "a b d 1\na b d 2\n", "a"), "reverse") == ["c", "c", "d", "d"]
    close = extensions.ChangedName(path="a", what="modified", diff="-one x\n+one y\n-two z\n\\ No\n+two w\n")
    assert toned(close, "reverse") == ["x", "y", "z", "w"]


def test_lines_with_little_in_common_are_not_compared_by_word() -> None:
    assert toned(changed("abc def ghi\n", "1 2 3 4 5 6\n", "a"), "reverse") == []


def test_code_has_the_tones_of_its_language_and_its_side() -> None:
    change = changed(OLD, NEW)
    assert "return" in toned(change, "magenta")
    assert '"""Sum."""' in toned(change, "yellow")
    (first,) = (line for line in lines(change) if plain(line).startswith("+def"))
    assert first[0] == ("green", "+")
    assert ("magenta", "def") in first
    assert toned(changed(OLD, NEW, "a.unknown"), "magenta") == []
    assert (language_of("x/Dockerfile"), language_of("b.TOML"), language_of("py")) == ("docker", "toml", "python")


def test_a_hunk_that_begins_within_a_text_is_not_read_as_one() -> None:
    before = 'def f():\n    """One.\n\n    Two.\n    """\n    return text\n'
    change = changed(before, before.replace("return text", "return other"))
    assert toned(change, "yellow") == []
    assert [plain(line)[:1] for line in lines(change) if line[0][0] in ("red", "green")] == ["-", "+"]


def test_what_is_painted_is_what_is_told_to_the_character() -> None:
    alphabet = [*("\n\n \t\rx日'#\\{\u202e"), '"""', "\x1b[2J", "if ", "e\u0301", "/*"]
    seeded = random.Random(18)
    for path in ("a.py", "a.md", "a.c", "a.html", "a", "a.json", "a.rs", "a.sh"):
        for _ in range(8):
            old, new = ("".join(seeded.choices(alphabet, k=60)) for _ in range(2))
            change = changed(old, new, path)
            told = [text for _, text in differences(extensions.ProposedEffects(changes=[change]))]
            assert [plain(line) for line in lines(change)[1:]] == told[1:]
            for columns in (20, 3):
                rows = [plain(line) for line in folded([change], columns, 10**6, "")]
                assert max(map(width, rows)) <= columns
                assert "".join(row.removeprefix("↪") for row in rows) == "".join(map(plain, lines(change)))
            assert "\x1b" not in "".join(told)


def test_so_many_rows_are_shown_and_the_others_counted() -> None:
    change = changed("", "".join(f"{number}\n" for number in range(10_000)), "a")
    head, *shown, last = [plain(line) for line in folded([change], 80, 20, "; /show 3")]
    assert head == "M a  +10000 -0"
    assert shown == ["@@ -0,0 +1,10000 @@", *(f"+{number}" for number in range(18))]
    assert last == "... 9982 more lines; /show 3"
    assert [plain(line) for line in folded([change], 0, 10_002, "")][-1] == "+9999"
    (row, *_) = rows = [plain(line) for line in folded([changed("", "x" * 5000, "a")], 20, 5, "")]
    assert (row, len(rows), rows[-1]) == ("M a  +1 -0", 6, "... 2 more lines")


def test_what_has_no_text_says_why_and_files_share_the_rows() -> None:
    binary = extensions.ChangedName(path="b", what="modified", diff_left_out="binary")
    many = [binary, *(changed("a\n", "b\n", f"{number}") for number in range(30))]
    rows = [plain(line) for line in folded(many, 80, 8, "")]
    assert rows[:3] == ["b: binary", "M 0  +1 -1", "@@ -1 +1 @@"]
    assert rows[-1] == "... 113 more lines"


def test_without_colour_weight_is_left_and_in_plain_lines_nothing() -> None:
    change = changed("one two three\n", "one four three\n", "a")
    text = "".join(styled(line, colour=False) for line in lines(change))
    assert "\x1b[7mtwo\x1b[0m" in text
    assert "\x1b[3" not in text
    assert all(len(line) == 1 for line in list(painted([change], colour=False))[1:])


@pytest.mark.parametrize("colour", [False, True])
def test_pygments_is_imported_only_where_code_is_shown_in_colours(colour: bool) -> None:
    code = (
        "import sys; from supervisor.acp.extensions import ChangedName\n"
        "from supervisor.display.differences import folded\n"
        "change = ChangedName(path='a.py', what='added', diff='+x = 1')\n"
        f"list(folded([change], 80, 20, '', colour={colour}))\n"
        "print('pygments' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(colour)
