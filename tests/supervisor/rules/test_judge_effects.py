"""Rules judge effects: what they cover is allowed, what they touch is asked about or denied, the rest is asked about.

A rule reads as a sentence, and one that means nothing is refused.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec
import pytest

from supervisor.rules.judge_effects import (
    Verdict,
    blocked_attempts,
    judge_effects,
    network_denied,
    protected_changes,
    summary,
    unmade,
)
from supervisor.rules.rule import Rule, problem_of
from supervisor.rules.rule_sentence import sentence
from supervisor.rules.shipped import or_shipped
from supervisor.rules.started_programs import Started
from supervisor.rules.suggest import suggested_rule
from tests.each_row import each_row
from tests.supervisor.changes import FILE, NETWORK, TODAY, change, effects
from workers.changes.effects import Attempt, Change, Effects, NodeState, Traffic, What


def allow(programs: tuple[str, ...] | None = None, **more: Any) -> Rule:
    return Rule("allow", programs, **more)


def ignored(text: str, **more: Any) -> Change:
    return change(text, ignored=True, **more)


def decided(rules: Rule | Sequence[Rule], found: Effects, programs: Sequence[str] | None = ("git",)) -> str:
    return judge_effects([rules] if isinstance(rules, Rule) else rules, programs, found, TODAY).decision


BUILD: Final = allow(programs=("git",), writes=("build/**",), max_files=3)
TIDY: Final = allow(deletes=("tmp/**",))
BOTH: Final = allow(writes=("a", "d/**"), deletes=("a",))
ANY: Final = allow(writes=("**",), deletes=("**",))

COVERED: Final = [
    ("an addition", BUILD, effects("+ build/a"), "allow"),
    ("another path", BUILD, effects("+ src/a"), "ask"),
    ("a path that begins alike", BUILD, effects("+ builder/a"), "ask"),
    ("one of two", BUILD, effects("+ build/a", "~ src/a"), "ask"),
    ("a mode", BUILD, effects("x build/a"), "allow"),
    ("a mode elsewhere", BUILD, effects("x run.sh"), "ask"),
    ("a deletion where only writes are allowed", BUILD, effects("- build/a"), "ask"),
    ("a write where only deletions are allowed", TIDY, effects("~ tmp/a"), "ask"),
    ("a deletion", TIDY, effects("- tmp/a"), "allow"),
    ("a replacement that may be written alone", BUILD, effects("= build/a"), "ask"),
    ("a replacement that may be deleted alone", TIDY, effects("= tmp/a"), "ask"),
    ("a replacement that may be both", BOTH, effects("= a"), "allow"),
    ("as many as it says", BUILD, effects("+ build/a", "+ build/b", "+ build/c"), "allow"),
    ("one more", BUILD, effects("+ build/a", "+ build/b", "+ build/c", "+ build/d"), "ask"),
    ("directories are counted", BUILD, effects("+ build/x/", "+ build/x/a", "+ build/x/b", "+ build/x/c"), "ask"),
    ("a directory that comes with its file", BUILD, effects("+ build/", "+ build/a"), "allow"),
    ("directories that come with theirs", BUILD, effects("+ build/", "+ build/x/", "+ build/x/a"), "allow"),
    ("an empty directory elsewhere", BUILD, effects("+ lib/"), "ask"),
    ("an empty directory beside", BUILD, effects("+ build/a", "+ lib/"), "ask"),
    ("a directory that stays, with another mode", BUILD, effects("x build/", "+ build/a"), "ask"),
    ("a directory that goes with its file", TIDY, effects("- tmp/", "- tmp/a"), "allow"),
    ("a directory that goes alone", TIDY, effects("- tmp/"), "ask"),
    ("a directory that a file replaces", TIDY, effects("= tmp/", "- tmp/a"), "ask"),
    ("a name that is no text, within", BUILD, effects("+ build/\udcff"), "allow"),
    ("a name that is no text, elsewhere", allow(writes=("\\xff".replace("\\", "[\\]"),)), effects("+ \udcff"), "ask"),
    ("the network", BUILD, effects("+ build/a", refused=NETWORK), "ask"),
    ("the network that it speaks of", allow(writes=("**",), network=True), effects("+ a", refused=NETWORK), "allow"),
    ("a path outside", BUILD, effects("+ build/a", refused=(Attempt("path", "/etc/x"),)), "allow"),
    ("more attempts than are told", BUILD, effects("+ build/a", refused_left_out=1), "ask"),
    ("what is protected", ANY, effects("+ a", change("+ .envrc", protected="it runs")), "ask"),
    ("what is not told", ANY, effects("+ a", left_out={"added": 7}), "ask"),
    ("the root itself", ANY, effects(change("x .")), "allow"),
]


@each_row(("rule", "found", "expected"), [row[1:] for row in COVERED], ids=[row[0] for row in COVERED])
def test_a_rule_allows_what_it_covers_entirely(rule: Rule, found: Effects, expected: str) -> None:
    assert decided(rule, found) == expected


LOADED: Final[dict[str, Any]] = {"protected": "Node.js loads it", "level": "asked"}
AT_ONCE: Final[dict[str, Any]] = {"protected": "Node.js loads it", "level": "refused"}
NO_X: Final = Rule("deny", writes=("x/**",), ignored=True)
NOT_OURS: Final = Rule("ask", ignored=True)
IGNORED: Final = [
    ("an output", (), effects(ignored("+ build/a"), ignored("~ build/b"), ignored("- build/c")), "allow"),
    ("with its directory", (), effects("+ out/", ignored("+ out/a.o")), "allow"),
    ("a directory alone", (), effects("+ out/"), "ask"),
    ("a program that was built", (), effects(ignored("+ app", script=False)), "allow"),
    ("what is not ignored beside", (), effects(ignored("+ build/a"), "~ .gitignore"), "ask"),
    ("what programs obey", (), effects(ignored("+ .env", protected="a program takes it")), "ask"),
    ("what its makers made", (), effects(ignored("+ node_modules/.cache/x", **LOADED)), "allow"),
    ("what is obeyed at once among it", (), effects(ignored("+ node_modules/.cache/x", **AT_ONCE)), "ask"),
    ("what others made", (), effects(ignored("+ build/CMakeCache.txt", **LOADED)), "ask"),
    ("a dependency", (), effects(ignored("~ node_modules/x/index.js", **LOADED)), "ask"),
    ("one of another manager", (), effects(ignored("~ bower_components/x/index.js", **LOADED)), "ask"),
    ("one in capitals", (), effects(ignored("~ Node_Modules/x/index.js", **LOADED)), "ask"),
    ("a dependency of a cache's name", (), effects(ignored("~ node_modules/x/.cache/index.js", **LOADED)), "ask"),
    ("what is obeyed at once", (), effects(ignored("+ .venv/x.pth", protected="it runs", level="refused")), "ask"),
    ("a network that was tried", (), effects(ignored("+ build/a"), refused=NETWORK), "allow"),
    ("a network that was had", (), effects(ignored("+ build/a"), traffic=(Traffic("x:443", 1, 1),)), "ask"),
    ("what was not told", (), effects(ignored("+ build/a"), left_out={"added": 1}), "ask"),
    ("a rule that asks about it", (NOT_OURS,), effects(ignored("+ build/a")), "ask"),
    ("a rule that denies a path", (Rule("deny", writes=("build/**",)),), effects(ignored("+ build/a")), "deny"),
    ("a rule about what is ignored there", (NO_X,), effects(ignored("+ x/a")), "deny"),
    ("the same, elsewhere", (NO_X,), effects(ignored("+ y/a")), "allow"),
    ("the same, tracked", (NO_X,), effects("+ x/a"), "ask"),
]


@each_row(("rules", "found", "expected"), [row[1:] for row in IGNORED], ids=[row[0] for row in IGNORED])
def test_what_git_ignores_is_allowed_where_nobody_says_otherwise(
    rules: Sequence[Rule], found: Effects, expected: str
) -> None:
    started = Started(("npm",))
    verdict = judge_effects(rules, started, found, TODAY)
    assert or_shipped(verdict, started, found, TODAY).decision == expected


def test_of_what_had_a_network_nothing_is_allowed_that_no_rule_covers() -> None:
    found = effects(ignored("+ build/a"))
    verdict = judge_effects([], ("npm",), found, TODAY)
    assert or_shipped(verdict, Started(("npm",), network=True), found, TODAY) == verdict


MADE: Final = [
    ("+ node_modules/.bin/tsc", ("npm",), "allow"),
    ("+ node_modules/.bin/tsc", ("cd", "/usr/bin/npm"), "allow"),
    ("+ node_modules/.bin/tsc", ("cp",), "ask"),
    ("+ node_modules/.bin/tsc", ("npm", "cp"), "ask"),
    ("+ node_modules/.bin/tsc", None, "ask"),
    ("+ node_modules/.bin/tsc", ("cd",), "ask"),
    ("+ a/__pycache__/a.cpython-313.pyc", ("pytest",), "allow"),
    ("+ a/__pycache__/a.cpython-313.pyc", ("cp",), "ask"),
    ("+ .venv/bin/python", ("python3",), "allow"),
    ("+ .venv/bin/python", ("npm",), "ask"),
    ("+ node_modules/a/.vscode/tasks.json", ("npm",), "allow"),
    ("+ node_modules/a/conftest.py", ("pytest",), "ask"),
    ("~ conftest.py", ("pytest",), "ask"),
]


@each_row(("written", "programs", "expected"), MADE)
def test_a_rule_covers_what_is_protected_only_of_the_programs_that_make_it(
    written: str, programs: Sequence[str] | None, expected: str
) -> None:
    found = effects(change(written, protected="it runs", level="refused"))
    assert decided(ANY, found, programs) == expected
    assert (suggested_rule(programs, found, TODAY) is not None) is (expected == "allow")


DENY: Final = Rule("deny", ("git",), ("src/**",), ("src/**", "keep"))
TOUCHED: Final = [
    ("a write", DENY, ("git",), effects("+ src/a"), "deny"),
    ("one of many", DENY, ("git",), effects("+ a", "+ b", "~ src/a"), "deny"),
    ("a write where deletions are meant", DENY, ("git",), effects("~ keep"), "ask"),
    ("a deletion", DENY, ("git",), effects("- keep"), "deny"),
    ("a replacement where writes are meant", Rule("deny", None, ("a",)), None, effects("= a"), "deny"),
    ("a replacement", DENY, ("git",), effects("= keep"), "deny"),
    ("another program", DENY, ("npm",), effects("+ src/a"), "ask"),
    ("one of the programs", DENY, ("npm", "git"), effects("+ src/a"), "deny"),
    ("the program by its path", DENY, ("/usr/bin/git",), effects("+ src/a"), "deny"),
    ("programs that are not known", DENY, None, effects("+ src/a"), "deny"),
    ("another path", DENY, ("git",), effects("+ a"), "ask"),
    ("no patterns", Rule("deny", ("git",)), ("git",), effects("+ a"), "deny"),
    ("nothing but a reason", Rule("deny", reason="not today"), None, effects("- a"), "deny"),
    ("a new directory by name", Rule("deny", None, ("d",)), None, effects("+ d/", "+ d/a"), "deny"),
    ("what is protected", Rule("deny", None, (".envrc",)), None, effects(change("~ .envrc", protected="x")), "deny"),
    ("what is told of more", DENY, ("git",), effects("+ src/a", left_out={"added": 1}), "deny"),
    ("the network", Rule("deny", network=True), None, effects("+ a", refused=NETWORK), "deny"),
    ("no network", Rule("deny", network=True), None, effects("+ a"), "ask"),
    ("no network, but a path", Rule("deny", None, ("a",), network=True), None, effects("+ a"), "deny"),
]


@each_row(("rule", "programs", "found", "expected"), [row[1:] for row in TOUCHED], ids=[row[0] for row in TOUCHED])
def test_a_rule_denies_what_touches_it(
    rule: Rule, programs: Sequence[str] | None, found: Effects, expected: str
) -> None:
    assert decided(rule, found, programs) == expected
    asking = judge_effects([msgspec.structs.replace(rule, decision="ask"), ANY], programs, found, TODAY)
    assert (asking.rule is not None and asking.rule.decision == "ask") == (expected == "deny")


LINK: Final = Change("d/l", "added", None, NodeState("link", 0o777, target="/etc"))
PIPE: Final = Change("d/p", "added", None, NodeState("fifo", 0o644))
KINDS: Final = [
    ("a link to the outside", allow(writes=("**",)), effects(LINK), "ask"),
    ("a pipe", allow(writes=("**",)), effects(PIPE), "ask"),
    ("what is named", allow(writes=("**",), kinds=("link-outside", "special")), effects(LINK, PIPE), "allow"),
    ("one that is not named", allow(writes=("**",), kinds=("link-outside",)), effects(LINK, PIPE), "ask"),
    ("a time alone", allow(writes=("a",), kinds=()), effects(Change("a", "times", FILE, FILE)), "allow"),
    ("as many bytes", allow(writes=("a",), max_bytes=9), effects("+ a", size=9), "allow"),
    ("one byte more", allow(writes=("a",), max_bytes=9), effects("+ a", size=10), "ask"),
    ("in .git, of old", allow(writes=("**",)), effects("~ .git/refs/heads/x"), "allow"),
    ("in .git, with kinds", allow(writes=("**",), kinds=("content",)), effects("~ d/.git/refs/heads/x"), "ask"),
    ("a denied kind", Rule("deny", kinds=("special",)), effects("+ a", PIPE), "deny"),
    ("another kind than the denied", Rule("deny", kinds=("special",)), effects("+ a", LINK), "ask"),
    ("a denied kind elsewhere", Rule("deny", None, ("a",), kinds=("special",)), effects("+ a", PIPE), "ask"),
    ("a denied kind there", Rule("deny", None, ("d/**",), kinds=("special",)), effects("+ a", PIPE), "deny"),
    ("a denied path, perhaps", Rule("deny", None, ("x",)), effects("+ a", left_out={"added": 1}), "deny"),
    ("no denied path", Rule("deny", None, (), ("x",)), effects("+ a", left_out={"added": 1}), "ask"),
    ("a denied deletion, perhaps", Rule("deny", None, (), ("x",)), effects("+ a", left_out={"replaced": 1}), "deny"),
    ("a denied kind, perhaps", Rule("deny", kinds=("special",)), effects("+ a", left_out={"added": 1}), "deny"),
]


@each_row(("rule", "found", "expected"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_a_rule_speaks_of_kinds_and_sizes(rule: Rule, found: Effects, expected: str) -> None:
    assert decided(rule, found) == expected


STARTED: Final = [
    ("a network that it had", Rule("deny", network=True), Started(("git",), ("add",), network=True), "deny"),
    ("a network that is not allowed", allow(writes=("a",)), Started(("git",), ("add",), network=True), "ask"),
    ("a network that is", allow(writes=("a",), network=True), Started(("git",), ("add",), network=True), "allow"),
    ("a subcommand", allow(("git",), writes=("a",), git=("add",)), Started(("git",), ("add",)), "allow"),
    ("another", allow(("git",), writes=("a",), git=("add",)), Started(("git",), ("rm",)), "ask"),
    ("another too", allow(("git",), writes=("a",), git=("add",)), Started(("git",), ("add", "rm")), "ask"),
    ("one that is not known", allow(("git",), writes=("a",), git=("add",)), Started(("git",), None), "ask"),
    ("a denied one", Rule("deny", ("git",), git=("push", "rm")), Started(("git",), ("add", "rm")), "deny"),
    ("none that is denied", Rule("deny", ("git",), git=("push",)), Started(("git",), ("add",)), "ask"),
    ("perhaps a denied one", Rule("deny", ("git",), git=("push",)), Started(("git",), None), "deny"),
    ("a program beside", Rule("deny", ("git", "rm"), git=("push",)), Started(("git", "rm"), ("add",)), "deny"),
    ("git by a path", Rule("deny", ("git",), git=("push",)), Started(("/bin/git",), None), "deny"),
    ("perhaps a denied program", Rule("deny", ("rm",)), Started(("env",), launches=True), "deny"),
    ("no denied program", Rule("deny", ("rm",)), Started(("env",)), "ask"),
    ("what launches, allowed", allow(("env",), writes=("a",)), Started(("env",), launches=True), "allow"),
    ("a tool without programs", Rule("deny", ("git",)), Started(()), "ask"),
    ("a tool without programs, by a rule for all", Rule("deny"), Started(()), "deny"),
    ("a tool without programs, allowed", allow(("git",), writes=("a",)), Started(()), "ask"),
]


@each_row(("rule", "started", "expected"), [row[1:] for row in STARTED], ids=[row[0] for row in STARTED])
def test_a_rule_speaks_of_what_is_started(rule: Rule, started: Started, expected: str) -> None:
    assert judge_effects([rule], started, effects("+ a"), TODAY).decision == expected


def test_a_denied_program_gets_no_network_where_it_may_be_started() -> None:
    rules = [Rule("deny", ("curl",), network=True)]
    found = [network_denied(rules, Started(("env",), launches=each), TODAY) for each in (True, False)]
    assert found == [rules[0], None]


PROGRAMS: Final[list[tuple[tuple[str, ...] | None, tuple[str, ...] | None, str]]] = [
    (None, None, "allow"),
    (None, ("git",), "allow"),
    (("git",), ("git",), "allow"),
    (("git",), None, "ask"),
    (("git",), (), "ask"),
    (("git",), ("git", "npm"), "ask"),
    (("git", "npm"), ("npm", "git", "npm"), "allow"),
    (("git",), ("Git",), "ask"),
    (("git",), ("./git",), "ask"),
    (("git",), ("/usr/bin/git",), "ask"),
]


@each_row(("named", "programs", "expected"), PROGRAMS)
def test_a_rule_allows_exactly_its_programs(
    named: tuple[str, ...] | None, programs: tuple[str, ...] | None, expected: str
) -> None:
    assert decided(allow(programs=named, writes=("**",)), effects("+ a"), programs) == expected


def test_no_change_is_allowed_whatever_was_refused_or_denied() -> None:
    verdict = judge_effects([Rule("deny")], None, effects(refused=NETWORK), TODAY)
    assert verdict == Verdict("allow", "it changes nothing; blocked: network (tcp 192.0.2.1:443)")
    assert judge_effects([], None, effects(), TODAY).reason == "it changes nothing"


def test_a_change_that_is_only_counted_is_a_change() -> None:
    assert decided([ANY], effects(left_out={"added": 1})) == "ask"
    assert decided([ANY], Effects((), {}, b"", left_out={"added": 1})) == "ask"
    assert decided([ANY], Effects((change("+ a"),), {}, b"")) == "allow"


def test_the_first_rule_that_matches_decides() -> None:
    deny = Rule("deny", None, ("build/secret",))
    assert decided([deny, BUILD], effects("+ build/secret")) == "deny"
    assert decided([BUILD, deny], effects("+ build/secret")) == "allow"
    assert decided([TIDY, BUILD], effects("+ build/a")) == "allow"


@pytest.mark.parametrize(("until", "expected"), [(TODAY, "allow"), (TODAY - dt.timedelta(1), "ask"), (None, "allow")])
def test_a_rule_counts_until_its_last_day(until: dt.date | None, expected: str) -> None:
    assert decided(msgspec.structs.replace(BUILD, until=until), effects("+ build/a")) == expected


def test_a_reason_says_which_rule_or_what_would_change() -> None:
    covering = allow(writes=("a",), reason="it is\x1b mine")
    found = effects("+ a")
    assert judge_effects([covering], None, found, TODAY) == Verdict(
        "allow",
        "a rule covers it: any program may add or change a and delete nothing, however many files: it is\\x1b mine",
        covering,
    )
    assert judge_effects([], None, found, TODAY).reason == "1 file would change (a added), and no rule covers that"
    assert judge_effects([Rule("ask")], None, found, TODAY).reason == (
        "a rule asks: a person is asked before any program changes anything"
    )
    guarded = effects("+ a", change("~ .envrc", protected="direnv runs it"))
    assert judge_effects([ANY], None, guarded, TODAY).reason == (
        "protected files always need approval: .envrc (direnv runs it)"
    )
    assert judge_effects([Rule("ask")], None, guarded, TODAY).reason.endswith("; protected: .envrc (direnv runs it)")
    hooks = [change(f"+ .git/hooks/{name}", protected="git runs it") for name in "abcdefgh"]
    assert protected_changes(effects(*hooks[:2], change("+ .envrc", protected="direnv runs it"))) == (
        ".envrc (direnv runs it), .git/hooks/a, .git/hooks/b (git runs it)"
    )
    assert protected_changes(effects(*hooks)).endswith(".git/hooks/f (git runs it), 2 more")
    many = effects("+ a", left_out={"added": 9})
    assert judge_effects([ANY], None, many, TODAY).reason == (
        "10 names would change (a added, 9 more), too many to list, which always needs approval"
    )


DESCRIBED: Final = [
    (effects("~ src/a.py", "+ b", "- c"), "3 files would change (c deleted, src/a.py modified, b added)"),
    (effects("+ d/", "+ d/a"), "2 names would change (d added, d/a added)"),
    (
        effects(*(f"+ {at}" for at in range(9))),
        "9 files would change (0 added, 1 added, 2 added, 3 added, 4 added, 5 added, 3 more)",
    ),
    (effects("+ a", change("~ .envrc", protected="direnv runs it")), "2 files would change (.envrc modified, a added)"),
    (effects("x a"), "1 file would change (a (permissions only))"),
    (effects("+ a, b deleted"), '1 file would change ("a, b deleted" added)'),
    (effects("+ a\x1b[2J\n\u202eb"), '1 file would change ("a\\u001b[2J\\n\\u202eb" added)'),
    (effects("+ \udcff"), "1 file would change (\\xff added)"),
]


def test_effects_are_described_in_a_few_words() -> None:
    assert [summary(found) for found, _words in DESCRIBED] == [words for _found, words in DESCRIBED]
    tried = effects("x a", refused=(*NETWORK, Attempt("path", "/home/x")), refused_left_out=2)
    assert blocked_attempts(tried) == "network (tcp 192.0.2.1:443), 3 more"
    assert blocked_attempts(effects(refused=(Attempt("path", "/home/x"),))) == ""
    assert blocked_attempts(effects(refused=(Attempt("path", "/home/.netrc"),))) == "path (/home/.netrc)"
    long = summary(effects(*(f"+ {'x' * 4000}\n\t{at}" for at in range(500))))
    assert len(long) < 1000
    assert long.isprintable()


SENTENCES: Final = [
    (
        Rule("allow", ("git",), ("build/**",), (), 50, reason="build output is ours", until=dt.date(2027, 6, 30)),
        "git may add or change build/** and delete nothing, at most 50 files, until 2027-06-30: build output is ours",
    ),
    (
        Rule("allow", ("git", "npm", "a b"), ("x", "y"), ("z",), 1, network=True),
        (
            'git, npm and "a b" may add or change x and y and delete z, at most 1 file, '
            "even if it tried to reach the network"
        ),
    ),
    (Rule("allow", None, (), ("z",)), "any program may delete z and add or change nothing, however many files"),
    (Rule("deny", ("git", "npm")), "git and npm may not change anything"),
    (Rule("deny", None, ("x",), ("y", "z")), "no program may add or change x, or delete y or z"),
    (Rule("deny", network=True), "no program may change anything after trying the network"),
    (
        Rule("ask", ("git", "npm"), ("x",), until=TODAY),
        "a person is asked before git or npm adds or changes x, until 2026-11-21",
    ),
    (Rule("ask"), "a person is asked before any program changes anything"),
    (
        Rule(
            "allow",
            ("git", "make"),
            (".git/objects/**", "d/.git/refs/heads/x"),
            (),
            500,
            kinds=("content", "executable"),
            max_bytes=20_000_000,
            git=("add", "commit --amend"),
        ),
        (
            "git add, git commit --amend and make may add or change .git/objects/** and d/.git/refs/heads/x and delete "
            "nothing, at most 500 files and at most 20 MB, only content and executable bits of text, "
            "moving no ref but heads/x"
        ),
    ),
    (
        Rule("allow", ("rm",), (), ("z",), kinds=(), max_bytes=1_234),
        "rm may delete z and add or change nothing, however many files and at most 1234 bytes, only time stamps",
    ),
    (
        Rule("deny", None, ("x",), kinds=("link-outside", "special"), git=None),
        "no program may add or change x, as to links to the outside and pipes and sockets",
    ),
    (
        Rule("ask", ("git", "rm"), git=("push", "tag")),
        "a person is asked before git push, git tag or rm changes anything",
    ),
    (
        Rule("allow", None, ("a and delete **", "b\n\x1b\u202e,"), reason="x\ny"),
        (
            'any program may add or change "a and delete **" and "b\\n\\u001b\\u202e," and delete nothing, '
            "however many files: x\\ny"
        ),
    ),
]


@each_row(("rule", "words"), SENTENCES)
def test_a_rule_reads_as_a_sentence(rule: Rule, words: str) -> None:
    assert sentence(rule) == words


def test_the_sentence_says_every_part_of_a_rule() -> None:
    whole = Rule("allow", ("git",), ("a",), ("b",), 5, True, "why", TODAY, ("link",), 7, ("add",))
    parts = {
        "decision": "deny",
        "programs": ("npm",),
        "writes": ("c",),
        "deletes": ("c",),
        "max_files": 6,
        "network": False,
        "reason": "else",
        "until": None,
        "kinds": ("content", "link"),
        "max_bytes": None,
        "git": ("add", "commit"),
        "ignored": True,
        "registries": ("npm",),
        "starts": True,
    }
    assert list(parts) == list(Rule.__struct_fields__)
    others = {sentence(msgspec.structs.replace(whole, **{key: value})) for key, value in parts.items()}
    assert len(others | {sentence(whole)}) == len(parts) + 1


PROBLEMS: Final = [
    (Rule("allow", None, ("a",)), ""),
    (Rule("deny"), ""),
    (Rule("allow"), "it allows nothing: name the paths that may be changed in `writes`, or `deletes`."),
    (Rule("allow", None, ("a",), max_files=0), "it allows nothing: `max_files` is 0."),
    (Rule("deny", max_files=3), "`max_files` limits what a rule allows: leave it out here."),
    (Rule("deny", max_bytes=3), "`max_bytes` limits what a rule allows: leave it out here."),
    (Rule("deny", kinds=()), "`kinds` is empty: name some, or leave it out to mean any."),
    (Rule("deny", ("git",), git=()), "`git` is empty: name some, or leave it out to mean any."),
    (Rule("deny", ("make",), git=("add",)), "`git` names subcommands of git: name git in `programs` as well."),
    (
        Rule("deny", ("git",), git=("commit -a",)),
        '"commit -a" of `git` is no subcommand: give it as it is typed, without arguments.',
    ),
    (Rule("ask", ()), "`programs` is empty: name some, or leave it out to mean any."),
    (
        Rule("deny", None, ("a", "/b")),
        "the pattern /b of `writes` is absolute, or in a home: name the path as it is seen from the root.",
    ),
    (
        Rule("deny", None, (), ("a]",)),
        "the pattern a] of `deletes` has a ], which means nothing here; name each path, or write []] for it.",
    ),
    (Rule("deny", ("git ",)), '"git " of `programs` is no program\'s name: give it as it is typed, without arguments.'),
    (
        Rule("deny", ("git status",)),
        '"git status" of `programs` is no program\'s name: give it as it is typed, without arguments.',
    ),
]


@each_row(("rule", "problem"), PROBLEMS)
def test_a_rule_that_cannot_mean_anything_is_a_problem(rule: Rule, problem: str) -> None:
    assert problem_of(rule) == problem


def test_every_kind_of_change_is_told_and_judged() -> None:
    for what in get_args(What):
        found = effects(Change("a", what, FILE, FILE))
        assert summary(found).startswith("1 file would change (a ")
        assert decided([], found) == "ask"


def test_hostile_paths_are_judged_in_good_time() -> None:
    deny = [Rule("deny", None, (f"**/{char}*a*a*a*x", "**/a/**/a/**/a/**/x")) for char in "ab"]
    for paths in (
        ["/".join(["a"] * 2000) + f"/{at}" for at in range(100)],
        [f"{'a' * 200}/{at}" for at in range(2000)],
    ):
        found = effects(*(f"+ {path}" for path in paths))
        assert decided([*deny, allow(writes=("a*/**",))], found) == "allow"
        assert suggested_rule(("git",), found, TODAY) is not None


@each_row(
    ("programs", "made"),
    [
        (("cmake",), True),
        (("cd", "cmake", "/usr/bin/tail"), True),
        (("tail",), False),
        (("cmake", "cp"), False),
        (None, False),
    ],
)
def test_what_is_a_programs_work_is_so_beside_programs_that_write_nothing(
    programs: tuple[str, ...] | None, made: bool
) -> None:
    cache = effects(change("+ build/CMakeCache.txt", protected="CMake reads it"))
    assert (unmade(cache, programs) == []) is made
