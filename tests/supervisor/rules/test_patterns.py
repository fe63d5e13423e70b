"""A pattern stands for exactly what it says, in time that no path can stretch."""

import itertools
import random
import re
from collections.abc import Sequence
from typing import Final

import pytest

from supervisor.rules.rule import compiled, literal
from tests.each_row import each_row
from workers.tree.glob import PatternError

MATCHES: Final = [
    ("a.py", ["a.py"], ["A.py", "aXpy", "b/a.py", "a.py/b", "a.py\n"]),
    ("*.py", ["a.py", ".py", ".hidden.py", "a\nb.py"], ["b/a.py", "a.pyc", "a.py/b"]),
    ("?", ["a", "\n", "é", "\udcff"], ["", "ab", "/"]),
    ("a*b*c", ["abc", "axbxbxc", "abbc", "abcc"], ["ab", "acb", "a/bc", "abcd"]),
    ("[a-c]x", ["ax", "cx"], ["dx", "-x", "Ax"]),
    ("[!a-c]", ["d", "!", "\n"], ["a", "/", ""]),
    ("[^a]", ["b", "^"], ["a"]),
    ("[]]", ["]"], ["["]),
    ("[!]]", ["["], ["]"]),
    ("[a-]", ["a", "-"], ["b"]),
    ("[[]", ["["], ["[["]),
    ("[{]x[}]", ["{x}"], ["x"]),
    ("[\\]", ["\\"], ["/"]),
    ("build/*", ["build/a", "build/.a"], ["build", "build/a/b", "builder/a"]),
    ("build/**", ["build/a", "build/a/b", "build/.git/x"], ["build", "builder/a", "x/build/a"]),
    ("build/", ["build", "build/a", "build/a/b"], ["builder", "x/build"]),
    ("**", ["a", "a/b", ".a/.b", "\n"], [""]),
    ("**/*.o", ["a.o", "x/a.o", "x/y/.o"], ["a.os", "a.o/b"]),
    ("**/dist/**", ["dist/a", "x/dist/a/b"], ["dist", "x/dist", "xdist/a"]),
    ("a/**/b", ["a/b", "a/x/b", "a/x/y/b", "a/b/b"], ["ab", "a/bb", "a/b/x"]),
    ("a/**/**/b", ["a/b", "a/x/b"], ["a"]),
    ("a/**/b/**/c", ["a/b/c", "a/b/b/c/c", "a/x/b/y/c"], ["a/c", "a/b/x", "a/c/b"]),
    ("**/a/*/b", ["a/x/b", "a/a/a/b", "y/a/x/b"], ["a/b", "a/x/y/b"]),
    ("./a//b", ["a/b"], ["./a/b", "b"]),
    (".", ["."], ["a", ".a"]),
    ("$(x)|.+", ["$(x)|.+"], ["x", "a"]),
    ("~a", ["~a"], ["a"]),
]


@each_row(("pattern", "matching", "other"), MATCHES)
def test_a_pattern_stands_for_what_it_says(pattern: str, matching: Sequence[str], other: Sequence[str]) -> None:
    found = compiled((pattern,))
    assert [path for path in matching if not found.matches(path)] == []
    assert [path for path in other if found.matches(path)] == []


MISTAKES: Final = {
    "empty": [""],
    "longer than 4096": ["a" * 4097],
    "absolute": ["/a", "~/a", "~"],
    "has a ..": ["..", "a/../b"],
    "no path has": ["a\0", "\udc80"],
    "** beside other": ["a**", "***", "**.py"],
    "[ without its ]": ["[a", "[]", "[!]", "[a/b]"],
    "empty range z-a": ["[z-a]"],
    "has a ]": ["a]"],
    "has a {": ["{a,b}"],
    "has a \\": ["a\\*"],
}


@each_row("problem", MISTAKES)
def test_a_pattern_that_could_mean_two_things_is_refused(problem: str) -> None:
    for pattern in MISTAKES[problem]:
        with pytest.raises(PatternError, match=re.escape(problem)):
            compiled(("a", pattern))


def test_any_of_several_patterns_is_enough_and_none_matches_nothing() -> None:
    found = compiled(("a|b", "c/**", "**/d"))
    assert [bool(found.matches(path)) for path in ("a|b", "a", "b", "c/x", "x/d")] == [True, False, False, True, True]
    assert not compiled(()).matches("")


def test_a_literal_stands_for_its_path_alone() -> None:
    names = ["a", "*", "?", "[a]", "]", "{a,b}", "\\", "~", "a b", "\n", "**", "!a", "^", "a-b"]
    for path in names + [f"{one}/{two}" for one, two in itertools.product(names, repeat=2)]:
        found = compiled((literal(path),))
        assert found.matches(path)
        assert not any(found.matches(other) for other in names if other != path)


def simply(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Match by trying everything."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        least = 1 if len(pattern) == 1 else 0
        return any(simply(pattern[1:], path[at:]) for at in range(least, len(path) + 1))
    return bool(path) and name_matches(pattern[0], path[0]) and simply(pattern[1:], path[1:])


def name_matches(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(name_matches(pattern[1:], name[at:]) for at in range(len(name) + 1))
    return bool(name) and pattern[0] in ("?", name[0]) and name_matches(pattern[1:], name[1:])


def test_any_pattern_matches_what_trying_everything_finds() -> None:
    chance = random.Random(5)
    seen = set()
    for _ in range(3000):
        pattern = [chance.choice(["**", "a", "b", "*", "?a", "*a*b", "a*"]) for _ in range(chance.randint(1, 5))]
        while ["**", "**"] in [pattern[at : at + 2] for at in range(len(pattern))]:
            pattern.remove("**")
        path = ["".join(chance.choices("ab", k=chance.randint(1, 3))) for _ in range(chance.randint(1, 5))]
        expected = simply(pattern, path)
        seen.add(expected)
        assert bool(compiled(("/".join(pattern),)).matches("/".join(path))) == expected, (pattern, path)
    assert seen == {True, False}


def test_no_path_makes_a_pattern_try_everything() -> None:
    """With as many ways to divide it as there are here, trying them would not end."""
    found = compiled(("**/a/**/a/**/a/**/a/**/a/**/a/**/x", "*a*a*a*a*a*a*a*a*a*a*a*b", "**/*a*a*a*/**/*a*a*a*/b"))
    assert not found.matches("/".join(["a"] * 2000))
    assert not found.matches("a" * 255)
    assert not found.matches("/".join(["a" * 200] * 20))
