import random
import re
from itertools import product

import pytest

from workers.errors import ToolError
from workers.tree.glob import ALTERNATIVES, Pattern

NAMES = ["a", "b", "ab", "ba", "aab", ".a", ".b", "a.b"]
COMPONENTS = [
    "*",
    "?",
    "a",
    "b",
    "a*",
    "*b",
    "?b",
    "[ab]",
    "[!a]",
    "[a-b]*",
    ".*",
    ".a",
    "**",
    "**",
    "**",
    "{a,b}",
    "*.{b,a}",
]


def matches(pattern: str, path: str) -> bool:
    return Pattern(pattern).matches(path)


def naive(parts: list[str], names: list[str]) -> bool:
    """The same by the definition: every way to read `**` is tried."""
    if not parts:
        return not names
    head, *rest = parts
    if head == "**":
        if not rest:
            return bool(names) and not any(name.startswith(".") for name in names)
        return naive(rest, names) or (bool(names) and not names[0].startswith(".") and naive(parts, names[1:]))
    return bool(names) and naive_name(head, names[0]) and naive(rest, names[1:])


def naive_name(part: str, name: str) -> bool:
    if name.startswith(".") and not part.startswith("."):
        return False
    text = re.escape(part).replace(r"\*", ".*").replace(r"\?", ".")
    text = re.sub(r"\\\[(.*?)\\\]", lambda found: "[" + found[1].replace("!", "^").replace(r"\-", "-") + "]", text)
    return re.fullmatch(text, name, re.DOTALL) is not None


def naive_braces(text: str) -> list[str]:
    found = re.search(r"\{([^{}]*)\}", text)
    if not found:
        return [text]
    choices = found[1].split(",")
    return [each for choice in choices for each in naive_braces(text[: found.start()] + choice + text[found.end() :])]


@pytest.mark.parametrize("seed", range(40))
def test_the_automaton_agrees_with_the_definition(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(50):
        pattern = "/".join(chance.choices(COMPONENTS, k=chance.randint(1, 5)))
        path = "/".join(chance.choices(NAMES, k=chance.randint(1, 5)))
        expected = any(naive(each.split("/"), path.split("/")) for each in naive_braces(pattern))
        assert matches(pattern, path) == expected, (pattern, path)


def test_every_short_pattern_agrees_on_every_short_path() -> None:
    for parts, names in product(product(["*", "a", "**", ".*"], repeat=3), product(["a", "b", ".a"], repeat=3)):
        assert matches("/".join(parts), "/".join(names)) == naive(list(parts), list(names)), (parts, names)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*", "a/b", False),
        ("**", "a/b", True),
        ("**/*", "a", True),
        ("a/**", "a", False),
        ("./a//b", "a/b", True),
        ("{a,b/c}/d", "b/c/d", True),
        ("{a,{b,c}}", "c", True),
        ("{a}", "{a}", True),
        ("{a", "{a", True),
        ("a}", "a}", True),
        ("{a,}b", "b", True),
        ("{x,{a}}", "{a}", True),
        ("[", "[", True),
        ("[]]", "]", True),
        ("[^a]", "^", True),
        ("[^a]", "a", False),
        ("[^a]*", "ab", False),
        ("[^a]*", "ba", True),
        ("x[^a-c]", "xb", False),
        ("x[^a-c]", "xd", True),
        ("[^]]", "]", False),
        ("[^]]", "a", True),
        ("[a[^]", "^", True),
        ("[a[^]", "!", False),
        ("[^a", "[^a", True),
        ("[^a]*", ".b", False),
        ("[.]a", ".a", False),
        ("?a", ".a", False),
        ("**/.a/*", "b/.a/x", True),
        ("**/x", "b/.a/x", False),
        ("~/*", "~/x", True),
        ("\\*", "\\x", True),
        ("*", "a\nb", True),
        ("é?", "é世", True),
    ],
)
def test_a_pattern_means_what_its_table_says(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


@pytest.mark.parametrize(
    "pattern", ["/", "/*", "..", "../*", "a/../b", "**/..", "{..,a}/b", "{/etc,a}", "{,/etc}/x", "a/{b,{c,..}}/d"]
)
def test_a_pattern_that_leads_out_is_refused_with_the_fixed_phrases(pattern: str) -> None:
    with pytest.raises(ToolError) as caught:
        Pattern(pattern)
    assert caught.value.kind == "path_escape"
    assert "Path escape" in caught.value.message
    assert "Access denied: path outside sandbox directory" in caught.value.message


@pytest.mark.parametrize("pattern", ["", "a\0b", "a\1b", "\ud800", "*" * 5000, "a/" * 1500, "{a,b}" * 7])
def test_a_pattern_that_is_unusable_is_an_invalid_argument(pattern: str) -> None:
    with pytest.raises(ToolError) as caught:
        Pattern(pattern)
    assert caught.value.kind == "invalid_arguments"


@pytest.mark.parametrize("pattern", ["a/", "**/", "a/**/", "a//", "{a,b}/", "{a/,b}", "{a,b/{c,d/}}"])
def test_a_pattern_that_ends_in_a_slash_is_refused_as_no_file_does(pattern: str) -> None:
    with pytest.raises(ToolError) as caught:
        Pattern(pattern)
    assert caught.value.kind == "invalid_arguments"
    assert "ends in /, and no file does" in caught.value.message
    assert "/** for all below it" in caught.value.message


def test_braces_may_stand_for_as_many_patterns_as_allowed() -> None:
    assert ALTERNATIVES == 64
    assert matches("{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}", "bdfhjl")


def test_marks_for_any_depth_in_a_row_are_one_state() -> None:
    assert len(Pattern("**/" * 60 + "*").start) == len(Pattern("**/*").start)


def test_states_never_outnumber_the_steps() -> None:
    pattern = Pattern("**/a/" * 30 + "*")
    states = pattern.start
    for _ in range(200):
        states = pattern.advance(states, "a")
    assert len(states) <= 62


def test_a_name_with_many_partial_matches_costs_no_more_than_its_length() -> None:
    assert not matches("*a" * 100 + "b", "a" * 255)
