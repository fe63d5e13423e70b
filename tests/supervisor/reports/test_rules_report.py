"""`strongroom rules`: what there is, what is taken back, and what other rules would have decided."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from click.shell_completion import ShellComplete

from supervisor.cli.main import main
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError
from supervisor.journal.facts import CallDecided, CallStarted, Fact, RuleRevoked, SessionOpened
from supervisor.journal.index import SessionIndex, utc
from supervisor.journal.journal import open_journal
from supervisor.reports import rules_report as program
from supervisor.rules.rule import Rule
from supervisor.rules.store import RuleStore, StoredRule
from tests.forked import ForkedStrongroom
from tests.supervisor.changes import effects
from tests.supervisor.command import Strongroom
from tests.supervisor.histories import opening_fact
from workers.wire.messages import Context

EVIL: Final = "\x07 \u202eevil\n"
CONFIGURED: Final = """
[[rules]]
decision = "deny"
writes = ["secret"]
[[rules]]
decision = "allow"
writes = ["build/**"]
until = 2020-01-01
"""
BUILD: Final = "may add or change build/** and delete nothing, however many files"
MADE: Final = Rule("allow", ("git",), ("a", EVIL), (), 10, kinds=("content",))


@pytest.fixture
def made(strongroom: Strongroom) -> StoredRule:
    """A home with two configured rules and one that a person made."""
    strongroom.configure(CONFIGURED)
    return RuleStore(strongroom.home / "rules.json").add(
        MADE, session="20261121-s", call="toolu_1", by="console", profile="project", root=f"/x{EVIL}", identity="1"
    )


SHIPPED_LINES: Final = (
    "Comes with Strongroom, for what no other decides:",
    (
        "  shipped  any program may add, change and delete what git ignores, however many files, even if it tried "
        "to reach the network"
    ),
)


def test_rules_are_listed_with_what_they_cover_and_where_they_come_from(
    strongroom: Strongroom, made: StoredRule
) -> None:
    done = strongroom.run("rules")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"In {strongroom.home / 'config.toml'}; the first one that matches decides:",
        "  1     no program may add or change secret",
        f"  2     EXPIRED  any program {BUILD}, until 2020-01-01",
        "",
        "Made when approving; `strongroom rules revoke ID` removes one:",
        (
            f'  {made.id}  git may add or change a and "\\u0007 \\u202eevil\\n" and delete nothing, at most 10 files, '
            "only content"
        ),
        "        in /x\\x07 \\u202eevil, profile project",
        f"        made {made.made} by console, in the call toolu_1 of the session 20261121-s",
        "",
        *SHIPPED_LINES,
    ]


def test_a_rule_for_one_session_and_one_of_an_older_version_are_listed_as_such(strongroom: Strongroom) -> None:
    store = RuleStore(strongroom.home / "rules.json")
    strongroom.home.mkdir()
    here: dict[str, Any] = {"call": "c", "by": "", "profile": "project", "root": "/x"}
    store.add(MADE, session="s", identity="1", scope="session", **here)
    store.add(Rule("allow", ("git",), ("a",)), session="s", **here)
    lines = strongroom.run("rules").out.splitlines()
    assert lines[3].endswith("in the call c of the session s, and for it alone")
    assert "COUNTS NO LONGER, an older version made it; revoke it, and approve again" in lines[4]


def test_the_listing_is_a_document_too(strongroom: Strongroom, made: StoredRule) -> None:
    found = strongroom.run("rules", "--json").json
    assert [(each["id"], each["decision"], each["expired"]) for each in found] == [
        ("1", "deny", False),
        ("2", "allow", True),
        (made.id, "allow", False),
        ("shipped", "allow", False),
    ]
    assert msgspec.convert(found[2]["rule"], Rule) == MADE
    assert found[2]["standing"]["root"] == made.root


def test_what_comes_with_strongroom_is_listed_and_not_revoked(strongroom: Strongroom) -> None:
    done = strongroom.run("rules")
    assert (done.code, done.out.splitlines()) == (0, [*SHIPPED_LINES])
    assert not strongroom.home.exists()
    done = strongroom.run("rules", "revoke", "shipped")
    assert (done.code, "ignored = true" in done.err) == (2, True)


def test_a_revoked_rule_is_gone(strongroom: Strongroom, made: StoredRule) -> None:
    done = strongroom.run("rules", "revoke", made.id)
    assert (done.code, done.out.partition(" may ")[0]) == (0, "revoked: git")
    assert RuleStore(strongroom.home / "rules.json").listing() == []


def test_a_revocation_is_a_fact_of_the_session_that_made_the_rule(strongroom: Strongroom, made: StoredRule) -> None:
    strongroom.record(made.session, opening_fact(strongroom.folder, "offline", "project"))
    with open_journal(strongroom.settings.journal) as journal:
        index = SessionIndex(journal)
        index.refresh()
        before = index.listing()
        strongroom.run("rules", "revoke", made.id)
        (_opened, revoked) = journal.of_session(made.session)
        assert revoked.fact == RuleRevoked(made.id, "toolu_1", "rules revoke")
        index.refresh()
        assert index.listing() == before  # it makes no session the newest


Act = Callable[[Settings, Path], Any]
REFUSED: Final[list[tuple[Act, str]]] = [
    (lambda here, _: program.revoke(here, "1"), "Rule 1 stands in .*config.toml: remove it there"),
    (lambda here, _: program.revoke(here, "3"), "No rule '3' that a person has made"),
    (lambda here, at: program.try_rules(here, at / "no.toml"), r"no.toml does not exist. Name a .* \[\[rules\]\]"),
    (lambda here, at: program.try_rules(here, at / "config.toml"), "unknown name 'model'; known: rules"),
    (lambda here, at: program.try_rules(here, at / "wrong.toml"), "number 1 of .*: it allows nothing"),
]


@pytest.mark.parametrize(("act", "problem"), REFUSED)
def test_a_mistake_is_named(strongroom: Strongroom, made: StoredRule, act: Act, problem: str) -> None:
    (strongroom.folder / "config.toml").write_text("model = 'x'")
    (strongroom.folder / "wrong.toml").write_text("[[rules]]\ndecision = 'allow'")
    with pytest.raises(ConfigError, match=problem):
        act(strongroom.settings, strongroom.folder)


def test_a_damaged_file_of_rules_is_told(strongroom: Strongroom, made: StoredRule) -> None:
    (strongroom.home / "rules.json").write_text("{")
    strongroom.run("rules").assert_refused("no rule in it counts", "Repair it, or move it away")


def test_a_shell_completes_the_rules_that_can_be_revoked(
    strongroom: Strongroom, made: StoredRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRONGROOM_HOME", str(strongroom.home))
    found = ShellComplete(main, {}, "strongroom", "_COMPLETE").get_completions(["rules", "revoke"], made.id[:2])
    assert [item.value for item in found] == [made.id]


# --- rules test -------------------------------------------------------------------------------------------------------

PROPOSED: Final = """
[[rules]]
decision = "deny"
writes = ["secret"]
[[rules]]
decision = "allow"
programs = ["make"]
writes = ["build/**"]
"""


def started(call: str, text: str, **more: Any) -> CallStarted:
    arguments = msgspec.json.encode({"command": text}).decode()
    return CallStarted(1, call, "run_cmd", arguments, True, "ask", "the profile asks", **more)


def decided(call: str, decision: Any, *changes: str, committed: bool = False, **more: Any) -> CallDecided:
    return CallDecided(1, call, decision, "", committed, effects(*changes), **more)


PARTLY: Final = effects("+ build/a", left_out={"added": 4})
EDIT: Final = '{"command": "make"}'
LIVED: Final[Sequence[Fact]] = (
    *(started("c1", "make"), decided("c1", "ask", "+ build/a", approved=True, committed=True)),
    *(started("c2", "make x"), decided("c2", "ask", "+ build/a", approved=False, remark="no")),
    *(started("c3", "rm x"), decided("c3", "ask", "- build/a")),
    *(started("c4", "touch x"), decided("c4", "allow", "+ secret", committed=True)),
    *(started("c5", "make $X"), decided("c5", "deny", "+ build/a")),
    *(started("c6", "rm x"), decided("c6", "ask", "- x", approved=True, edited=EDIT)),
    *(started("c6", "rm x", edited=EDIT), decided("c6", "ask", "+ build/b", approved=True, committed=True)),
    *(started("c7", "make"), decided("c7", "ask", "+ build/a", approved=True, network=True)),
    *(started("c8", "make"), CallDecided(1, "c8", "ask", "", True, approved=True, unrehearsed="too much")),
    *(started("c9", f"make '{EVIL}'"), CallDecided(1, "c9", "allow", "", True, PARTLY)),
    CallStarted(1, "w", "write_file", "{}", True, "allow", ""),
    decided("w", "allow", "+ build/a", committed=True),
    decided("nowhere", "allow", "+ build/a"),
)
EXPECTED: Final = [
    ("c1", "make", "yes", "allow"),
    ("c2", "make x", "no", "allow"),
    ("c3", "rm x", "nobody", "ask"),
    ("c4", "touch x", "allowed", "deny"),
    ("c5", "make $X", "denied", "ask"),
    ("c6", "rm x", "edited", "ask"),
    ("c6", "make", "yes", "allow"),
    ("c9", f"make '{EVIL}'", "allowed", "unknown"),
]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Strongroom:
    """A home with a journal of commands, and rules to try on them."""
    folder = tmp_path_factory.mktemp("lived")
    strongroom = ForkedStrongroom(folder / "home", folder)
    strongroom.configure("")
    with open_journal(strongroom.home / "journal.db") as journal:
        journal.append("20261121-s", SessionOpened("operator", "m", Context("/x"), (), "acp", "1"), *LIVED)
    (folder / "rules.toml").write_text(PROPOSED)
    return strongroom


def test_rules_are_tried_on_every_command_whose_effects_were_decided_about(lived: Strongroom) -> None:
    found = lived.run("rules", "test", "rules.toml", "--json").json
    assert [(each["call"], each["command"], each["then"], each["now"]) for each in found["commands"]] == EXPECTED
    assert found["commands"][0]["at"] == utc(lived.entries[2].at)
    assert found["unrehearsed"] == 1
    assert found["rules"][0] == "no program may add or change secret"
    assert found["counts"] == {
        "allowed": {"allow": 0, "ask": 0, "deny": 1, "unknown": 1},
        "yes": {"allow": 2, "ask": 0, "deny": 0, "unknown": 0},
        "no": {"allow": 1, "ask": 0, "deny": 0, "unknown": 0},
        "edited": {"allow": 0, "ask": 1, "deny": 0, "unknown": 0},
        "nobody": {"allow": 0, "ask": 1, "deny": 0, "unknown": 0},
        "denied": {"allow": 0, "ask": 1, "deny": 0, "unknown": 0},
    }


def test_for_people_there_is_a_row_a_command_and_a_table(lived: Strongroom) -> None:
    before = {each.name: each.read_bytes() for each in lived.home.iterdir()}
    done = lived.run("rules", "test", "rules.toml")
    assert {each.name: each.read_bytes() for each in lived.home.iterdir()} == before
    assert (done.code, done.err) == (0, "")
    rows, _, table = done.out.partition("\n\n")
    assert rows.splitlines()[2:4] == [
        f"{rows.splitlines()[2][:20]}  20261121-s  c2  make x",
        f"    a person said no; the rules: allow, a rule covers it: make {BUILD}",
    ]
    assert "unknown, 1 of 5 changes are recorded; for those, a rule covers it" in rows
    assert [line.split() for line in table.splitlines()[:3]] == [
        ["allow", "ask", "deny", "unknown"],
        ["allowed", "without", "a", "question", "0", "0", "1", "1"],
        ["a", "person", "said", "yes", "2", "0", "0", "0"],
    ]
    assert table.splitlines()[-1].startswith("1 more had no rehearsal")
    assert not {char for char in done.out if not char.isprintable()} - {"\n"}


def test_without_a_past_there_is_nothing_to_try_them_on(strongroom: Strongroom) -> None:
    (strongroom.folder / "rules.toml").write_text(PROPOSED)
    found = program.try_rules(strongroom.settings, strongroom.folder / "rules.toml")
    assert program.trial_text(found) == "The journal holds no command whose effects were decided about."
    assert not strongroom.home.exists()


def test_a_rule_that_had_expired_by_then_is_not_counted(lived: Strongroom, tmp_path: Path) -> None:
    (tmp_path / "old.toml").write_text(PROPOSED.replace('["make"]', '["make"]\nuntil = 2020-01-01'))
    found = program.try_rules(lived.settings, tmp_path / "old.toml")
    assert {each.now for each in found.commands} == {"ask", "deny"}
