import random
import re
from functools import reduce
from itertools import product

import pytest

from tests.each_row import each_row
from tests.tool_calls import refused
from workers.tree.glob import ALTERNATIVES, Matcher, Pattern

NAMES = ["a", "b", "ab", "ba", "aab", ".a", ".b", "a.b"]
COMPONENTS = "* ? a b a* *b ?b [ab] [!a] [a-b]* .* .a ** ** ** {a,b} *.{b,a}"


def matches(pattern: str, path: str) -> bool:
    return Pattern(pattern).matches(path)


def naive(parts: list[str], names: list[str], *, strict: bool = False) -> bool:
    """The same by the definition: every way to read `**` is tried."""
    if not parts:
        return not names
    head, *rest = parts
    if head == "**":
        hides = not names or (names[0].startswith(".") and not strict)
        if not rest:
            return not hides and (len(names) == 1 or naive(parts, names[1:], strict=strict))
        return naive(rest, names, strict=strict) or (not hides and naive(parts, names[1:], strict=strict))
    return bool(names) and naive_name(head, names[0], strict=strict) and naive(rest, names[1:], strict=strict)


def naive_name(part: str, name: str, *, strict: bool) -> bool:
    if name.startswith(".") and not part.startswith(".") and not strict:
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


@each_row("seed", range(40))
def test_a_pattern_agrees_with_the_definition(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(50):
        pattern = "/".join(chance.choices(COMPONENTS.split(), k=chance.randint(1, 5)))
        path = "/".join(chance.choices(NAMES, k=chance.randint(1, 5)))
        expected = any(naive(each.split("/"), path.split("/")) for each in naive_braces(pattern))
        assert matches(pattern, path) == expected, (pattern, path)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_long_patterns_agree_with_the_definition_and_with_the_walk(seed: int, strict: bool) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        parts = chance.choices(["a", ".a", "*", ".*", "?b", "[!a]", "*a*b*", "**", "**", "**"], k=chance.randint(3, 9))
        names = chance.choices(["a", "b", "ab", ".a", "aab"], weights=[6, 4, 2, 1, 1], k=chance.randint(1, 9))
        matcher = Matcher(["/".join(parts)], strict=strict)
        expected = naive(parts, names, strict=strict)
        assert matcher.matches("/".join(names)) == expected, (parts, names)
        states = reduce(matcher.advance, names[:-1], matcher.start)
        assert states or not expected, (parts, names)


def test_every_short_pattern_agrees_on_every_short_path() -> None:
    for parts, names in product(product(["*", "a", "**", ".*"], repeat=3), product(["a", "b", ".a"], repeat=3)):
        assert matches("/".join(parts), "/".join(names)) == naive(list(parts), list(names)), (parts, names)


MATCHES = (
    ("**", "a/b"), ("**/*", "a"), ("./a//b", "a/b"), ("{a,b/c}/d", "b/c/d"), ("{a,{b,c}}", "c"), ("{a}", "{a}"),
    ("{a", "{a"), ("a}", "a}"), ("{a,}b", "b"), ("{x,{a}}", "{a}"), ("[", "["), ("[]]", "]"), ("[^a]", "^"),
    ("[^a]*", "ba"), ("x[^a-c]", "xd"), ("[^]]", "a"), ("[a[^]", "^"), ("[^a", "[^a"), ("**/.a/*", "b/.a/x"),
    ("~/*", "~/x"), ("\\*", "\\x"), ("*", "a\nb"), ("é?", "é世"),
)  # fmt: skip
OTHERS = (
    ("*", "a/b"), ("a/**", "a"), ("[^a]", "a"), ("[^a]*", "ab"), ("x[^a-c]", "xb"), ("[^]]", "]"), ("[a[^]", "!"),
    ("a[^x]b", "a/b"), ("a?b", "a/b"), ("[^a]*", ".b"), ("[.]a", ".a"), ("?a", ".a"), ("**/x", "b/.a/x"),
)  # fmt: skip


@each_row(("pattern", "path"), MATCHES)
def test_a_pattern_matches_what_its_table_says(pattern: str, path: str) -> None:
    assert matches(pattern, path)


@each_row(("pattern", "path"), OTHERS)
def test_a_pattern_does_not_match_what_its_table_excludes(pattern: str, path: str) -> None:
    assert not matches(pattern, path)


@each_row(
    "pattern", ["/", "/*", "..", "../*", "a/../b", "**/..", "{..,a}/b", "{/etc,a}", "{,/etc}/x", "a/{b,{c,..}}/d"]
)
def test_a_pattern_that_leads_out_is_refused_with_the_fixed_phrases(pattern: str) -> None:
    with refused("path_escape", "Path escape", "Access denied: path outside sandbox directory"):
        Pattern(pattern)


@each_row("pattern", ["", "a\0b", "a\1b", "\ud800", "*" * 5000, "a/" * 1500, "{a,b}" * 7])
def test_a_pattern_that_is_unusable_is_an_invalid_argument(pattern: str) -> None:
    with refused("invalid_arguments"):
        Pattern(pattern)


@each_row("pattern", ["a/", "**/", "a/**/", "a//", "{a,b}/", "{a/,b}", "{a,b/{c,d/}}"])
def test_a_pattern_that_ends_in_a_slash_is_refused_as_no_file_does(pattern: str) -> None:
    with refused("invalid_arguments", "ends in /, and no file does", "/** for all below it"):
        Pattern(pattern)


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


def test_a_path_with_many_partial_matches_costs_no_more_than_its_length() -> None:
    assert not matches("**/a/" * 100 + "b", "a/" * 2000 + "c")
    assert not matches("**/" + "*a*/" * 100 + "b", "aaa/" * 1000 + "c")


def test_a_name_with_many_partial_matches_costs_no_more_than_its_length() -> None:
    assert not matches("*a" * 100 + "b", "a" * 255)
