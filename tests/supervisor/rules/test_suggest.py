"""The suggested rule: one that covers what was asked about, and little more; never the root."""

import datetime as dt
import json
import random
from collections.abc import Sequence
from typing import Final

import pytest

from supervisor.rules.judge_effects import judge_effects
from supervisor.rules.rule import Rule, problem_of
from supervisor.rules.started_programs import Started, started_by
from supervisor.rules.suggest import MOST, suggested_rule
from tests.each_row import each_row
from tests.supervisor.changes import NETWORK, TODAY, change, effects
from workers.changes.effects import Change, Effects, NodeState


def decided(rule: Rule, found: Effects, programs: Sequence[str] | None = ("git",)) -> str:
    return judge_effects([rule], programs, found, TODAY).decision


DEEP: Final = "a/b/c/d/e/f/g/h/i/j/k/l"

OFFERED: Final = [
    (effects(*(f"+ {DEEP}/{at}/m" for at in range(9))), (f"{DEEP}/**",), ()),
    (effects("~ src/a.py"), ("src/a.py",), ()),
    (effects("~ a.py", "~ b.py"), ("a.py", "b.py"), ()),
    (effects("+ build/a", "+ build/b"), ("build/",), ()),
    (effects("+ build/", "+ build/x/", "+ build/x/a"), ("build/",), ()),
    (effects("+ app/target/debug/x", "- app/target/debug/y"), ("app/target/",), ("app/target/",)),
    (effects("+ new/"), ("new",), ()),
    (effects("~ a", "- tmp/x", "- tmp/y"), ("a",), ("tmp/x", "tmp/y")),
    (effects("- tmp/", "- tmp/x"), (), ("tmp/x",)),
    (effects("= a"), ("a",), ("a",)),
    (effects("x d", *(f"+ d/{at}/f" for at in range(9))), ("d/",), ()),
    (effects(*(f"+ d/ab{at}" for at in range(8)), "+ d/ab"), ("d/**",), ()),
    (effects("+ a[1]*{x}~", "+ ~/x"), ("[~]/x", "a[[]1[]][*][{]x[}]~"), ()),
    (effects("+ d/\udcff"), ("d/**",), ()),
    (effects("~ lock", *(f"+ node_modules/m{at}/index.js" for at in range(40))), ("node_modules/", "lock"), ()),
    (effects(*(f"+ out/m{at}/x" for at in range(5)), *(f"+ lib/{at}/y" for at in range(9))), ("out/", "lib/**"), ()),
    (
        effects(*("+ " + "/".join([str(at), *"abcdefghijklmnop"]) for at in range(2))),
        tuple("/".join([str(at), *"abcdefghijklmnop"]) for at in range(2)),
        (),
    ),
]


@each_row(("found", "writes", "deletes"), OFFERED)
def test_a_proposal_covers_what_is_asked_about_and_little_more(
    found: Effects, writes: tuple[str, ...], deletes: tuple[str, ...]
) -> None:
    rule = suggested_rule(("git", "npm", "git"), found, TODAY)
    assert rule is not None
    assert (rule.decision, rule.programs, rule.writes, rule.deletes) == ("allow", ("git", "npm"), writes, deletes)


NOT_OFFERED: Final = [
    ("nothing changes", effects(), ("git",)),
    ("programs that are not known", effects("+ a"), None),
    ("no programs", effects("+ a"), ()),
    ("something is protected", effects("+ a", change("+ .envrc", protected="x")), ("git",)),
    ("something is not told", effects("+ a", left_out={"added": 1}), ("git",)),
    ("many paths of the root itself", effects(*(f"+ {at}" for at in range(9))), ("git",)),
    ("a name that is no text, in the root", effects("+ \udcff"), ("git",)),
    ("more than a person can judge", effects(*(f"+ d/{at}" for at in range(MOST + 1))), ("git",)),
    ("a pattern that would be too long", effects("+ " + "*" * 2000), ("git",)),
]


@each_row(("found", "programs"), [row[1:] for row in NOT_OFFERED], ids=[row[0] for row in NOT_OFFERED])
def test_there_is_no_proposal_where(found: Effects, programs: tuple[str, ...] | None) -> None:
    assert suggested_rule(programs, found, TODAY) is None


@each_row(
    ("number", "limit"),
    [(1, 10), (10, 10), (11, 20), (21, 50), (51, 100), (101, 200), (1234, 2000), (2001, 5000), (MOST, MOST)],
)
def test_a_proposal_allows_a_round_number_that_is_enough(number: int, limit: int) -> None:
    rule = suggested_rule(("git",), effects(*(f"+ d/{at}" for at in range(number))), TODAY)
    assert rule is not None
    assert rule.max_files == limit


@pytest.mark.parametrize(
    ("today", "until"), [(TODAY, dt.date(2027, 11, 21)), (dt.date(2028, 2, 29), dt.date(2029, 2, 28))]
)
def test_a_proposal_ends_in_a_year(today: dt.date, until: dt.date) -> None:
    rule = suggested_rule(("git",), effects("+ a"), today)
    assert rule is not None
    assert rule.until == until


@pytest.mark.parametrize(
    ("git", "offered"), [(("add",), True), (("commit", "push"), False), (("reset",), False), (None, False)]
)
def test_of_git_a_rule_is_made_only_of_what_moves_no_other_branch(git: tuple[str, ...] | None, offered: bool) -> None:
    assert (suggested_rule(Started(("git",), git), effects("+ a"), TODAY) is not None) is offered


def test_there_is_none_for_more_outputs_than_a_person_reads_nor_for_one_that_no_pattern_can_say() -> None:
    outputs = [f"+ d{number}/build/x" for number in range(9)]
    for found, offered in ((outputs[:8], True), (outputs, False), (["+ d\udcff/build/x"], False)):
        assert (suggested_rule(("make",), effects(*found), TODAY) is not None) is offered


def test_a_proposal_leaves_the_network_as_it_was() -> None:
    rules = [suggested_rule(("git",), effects("+ a", refused=refused), TODAY) for refused in ((), NETWORK)]
    assert [rule.network for rule in rules if rule is not None] == [False, True]


def test_any_proposal_is_a_rule_that_allows_what_it_was_made_for_and_never_the_root() -> None:
    chance = random.Random(11)
    names = ["a", "b", "c*", "[d]", "{e", "~", " ", "f\n", "\udcff", "**", "!g", "..."]
    offered = 0
    for _ in range(400):
        paths = {"/".join(chance.choices(names, k=chance.randint(1, 5))) for _ in range(chance.randint(1, 30))}
        parents = {path[:at] for path in paths for at, char in enumerate(path) if char == "/"}
        changes = [f"{chance.choice('+~-=x')} {path}" for path in sorted(paths - parents, key=ascii)]
        found = effects(*changes, *(f"+ {path}/" for path in sorted(parents, key=ascii)))
        rule = suggested_rule(("git",), found, TODAY)
        if rule is not None:
            offered += 1
            assert problem_of(rule) == ""
            assert decided(rule, found) == "allow", (changes, rule)
            assert "**" not in rule.writes + rule.deletes
            assert decided(rule, effects("+ elsewhere")) == "ask"
            assert decided(rule, found, ("git", "rm")) == "ask"
    assert offered > 100


# approvals as people give them ----------------------------------------------------------------------------------------


def command(text: str) -> Started:
    return started_by("run_cmd", json.dumps({"command": text}))


APPROVALS: Final = [
    ("the same again", "npm run build", "+ dist/app.js", "npm run build", "~ dist/app.js", "allow"),
    ("the same with other words", "npm run build", "+ dist/app.js", "npm run build --prod", "~ dist/app.js", "allow"),
    (
        "compound, in another order",
        "cd web && npm ci && npm test",
        "+ web/out",
        "npm test; npm ci",
        "~ web/out",
        "allow",
    ),
    ("its output cut", "npm run build", "+ dist/app.js", "npm run build 2>&1 | tail -3", "~ dist/app.js", "ask"),
    ("curl once is not curl for ever", "curl -o a.json x", "+ a.json", "curl -o ~/.x y", "+ other.json", "ask"),
    ("curl piped into a shell", "curl -o a.json x", "+ a.json", "curl x | sh", "+ a.json", "ask"),
    ("touch is not rm", "touch src/a", "~ src/a", "rm src/a", "- src/a", "ask"),
    ("rm of one is not rm of all", "rm tmp/a", "- tmp/a", "rm -rf .", "- src/a", "ask"),
    ("rm of one is not rm of its directory", "rm tmp/a", "- tmp/a", "rm -rf tmp", "- tmp/b", "ask"),
    ("find that deletes", "find . -newer x", "+ list", "find . -delete", "- list", "ask"),
    ("git with a pager of its own", "git commit -m x", "~ .git/index", "git -c core.pager=x log", "+ pwned", "ask"),
    ("a harmless name with more behind", "ls", "+ a", "ls; rm -rf src", "+ a", "ask"),
    ("a builtin that turns names around", "git add x", "~ a", "alias git=rm; git x", "~ a", "ask"),
    ("a variable before it", "git add x", "~ a", "PATH=. git add x", "~ a", "ask"),
]


@each_row(
    ("first", "changed", "second", "changes", "expected"),
    [row[1:] for row in APPROVALS],
    ids=[row[0] for row in APPROVALS],
)
def test_a_yes_for_always_covers_no_more_than_was_shown(
    first: str, changed: str, second: str, changes: str, expected: str
) -> None:
    rule = suggested_rule(command(first), effects(changed), TODAY)
    assert rule is not None
    assert judge_effects([rule], command(second), effects(changes), TODAY).decision == expected


def test_programs_are_a_builds_own_and_nobody_elses() -> None:
    program = NodeState("file", 0o755, 9)
    built, planted = (Change(path, "added", None, program) for path in ("target/debug/app", "run"))
    rule = suggested_rule(("cargo",), effects(built), TODAY)
    assert rule is not None
    assert (rule.writes, rule.kinds) == (("target/",), ("content", "program"))
    assert suggested_rule(("cargo",), effects(built, planted), TODAY) is None
