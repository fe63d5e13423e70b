import random
import subprocess
from pathlib import Path

import pytest

from tests.each_row import each_row
from workers.changes.diff import Budget, unified

ENOUGH = 10**6


def diff(old: str, new: str, limit: int = ENOUGH, steps: int = ENOUGH) -> str:
    return unified(old, new, limit, Budget(steps)).text


def texts(seed: int) -> tuple[str, str]:
    """Return a text of few different lines and a second one, made of it or not; either may lack the last line's end."""
    chance = random.Random(seed)
    old = [chance.choice("abcd") for _ in range(chance.randrange(30))]
    new = [chance.choice("abcd") for _ in range(chance.randrange(30))] if seed % 2 else list(old)
    for _ in range(chance.randrange(4)):
        new.insert(chance.randrange(len(new) + 1), chance.choice("abxy"))
        del new[chance.randrange(len(new))]
    ends = chance.choice(["", "\n"]), chance.choice(["", "\n"])
    return "\n".join(old) + ends[0], "\n".join(new) + ends[1]


@pytest.mark.parametrize("steps", [ENOUGH, 30, 0])
def test_patch_makes_the_new_text_of_the_old_one(tmp_path: Path, steps: int) -> None:
    for seed in range(40):
        old, new = texts(seed)
        text = diff(old, new, steps=steps)
        assert bool(text) == (old != new)
        if not text:
            continue
        (tmp_path / "x").write_text(old)
        head = "--- x\n+++ x\n"
        subprocess.run(["patch", "-s", "x"], cwd=tmp_path, input=head + text, text=True, check=True)
        left = (tmp_path / "x").read_text() if (tmp_path / "x").exists() else ""
        assert left == new, (old, new, text)


def test_no_more_lines_than_needed_are_shown_as_changed() -> None:
    text = diff("".join(f"{n}\n" for n in range(50)), "".join(f"{n}\n" for n in range(50) if n % 20 != 7))
    assert [line for line in text.splitlines() if line[0] in "+-"] == ["-7", "-27", "-47"]


@each_row("end", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_line_feeds_end_lines(end: str) -> None:
    assert diff(f"a{end}b\n", f"a{end}c\n") == f"@@ -1 +1 @@\n-a{end}b\n+a{end}c\n"


def test_a_diff_is_cut_between_lines_and_says_how_many_are_left_out() -> None:
    whole = unified("", "line\n" * 100, ENOUGH, Budget(ENOUGH))
    cut = unified("", "line\n" * 100, 100, Budget(ENOUGH))
    assert whole.left_out == 0
    assert whole.text.startswith(cut.text)
    assert cut.text.count("\n") + cut.left_out == whole.text.count("\n")


def test_texts_that_have_nothing_near_each_other_use_no_more_steps_than_there_are() -> None:
    chance = random.Random(1)
    old, new = ("".join(f"{chance.randrange(9)}\n" for _ in range(20_000)) for _ in range(2))
    budget = Budget(50_000)
    text = unified(old, new, ENOUGH, budget).text
    assert budget.steps > -25_000
    assert text.startswith("@@ -1,")
