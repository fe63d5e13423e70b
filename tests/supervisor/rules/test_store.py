"""Rules that people made for always: kept whatever happens, revoked everywhere at once, none where in doubt."""

import datetime as dt
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from supervisor.errors import ConfigError
from supervisor.rules.rule import Rule
from supervisor.rules.store import RuleStore, StoredRule
from tests.supervisor.command import CODE, HANG_GUARD

TODAY: Final = dt.date(2026, 11, 21)
RULE: Final = Rule("allow", ("make",), ("a",), (), 10, until=TODAY, kinds=("content",))
ORIGIN: Final = {"session": "20261121-s", "call": "toolu_1", "by": "console"}
HERE: Final = {"profile": "project", "root": "/x", "identity": "1:2:3"}

ADDING: Final = """
import os, sys
from pathlib import Path
from supervisor.rules.rule import Rule
from supervisor.rules.store import RuleStore
rules = RuleStore(Path(sys.argv[1]))
for name in "abc":
    if os.fork() == 0:
        for number in range(10):
            rule = Rule("allow", None, (f"{name}/{number}",))
            rules.add(rule, session="s", call="c", by="b", profile="p", root="/")
        os._exit(0)
for name in "abc":
    os.wait()
"""

KILLED: Final = """
import os, signal, sys
from pathlib import Path
from supervisor.rules.rule import Rule
from supervisor.rules.store import RuleStore
rules, rule = RuleStore(Path(sys.argv[1])), Rule("allow", None, ("second",))
def add(deadly):
    seen = 0
    def audit(event, arguments):
        nonlocal seen
        if event in ("open", "os.rename", "fcntl.flock"):
            seen += 1
            if seen == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(audit)
    rules.add(rule, session="s", call="c", by="b", profile="p", root="/")
    os._exit(0)
for deadly in range(1, 20):
    child = os.fork()
    if child == 0:
        add(deadly)
    lived = os.waitpid(child, 0)[1] == 0
    listing = rules.listing()
    print(lived, *(each.rule.writes[0] for each in listing))
    for each in listing[1:]:
        rules.revoke(each.id)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rules.json"


@pytest.fixture
def rules(path: Path) -> RuleStore:
    return RuleStore(path, lambda: dt.datetime(2026, 3, 4, 10, 15, tzinfo=dt.UTC))


def add(rules: RuleStore, rule: Rule = RULE, **there: Any) -> StoredRule:
    return rules.add(rule, **{**ORIGIN, **HERE, **there})


def run(code: str, path: Path) -> str:
    """Run Python to its end, which has nothing to complain of, and return what it printed."""
    environment = {"PYTHONPATH": str(CODE)}
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_GUARD, check=False, env=environment)
    assert done.stderr == ""
    return done.stdout


def test_a_rule_is_listed_with_where_it_comes_from(rules: RuleStore, path: Path) -> None:
    made = add(rules)
    assert made == StoredRule(
        made.id, RULE, "project", "/x", "2026-03-04 10:15:00Z", "console", "20261121-s", "toolu_1", "1:2:3"
    )
    assert len(made.id) == 4
    assert not made.id.isdecimal()
    assert RuleStore(path).listing() == [made]


def test_without_a_file_there_are_none(rules: RuleStore, path: Path) -> None:
    assert (rules.listing(), rules.active(**HERE, today=TODAY)) == ([], [])
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("there", "today", "counts"),
    [
        (HERE, TODAY, True),
        ({**HERE, "profile": "operator"}, TODAY, False),
        ({**HERE, "root": "/x/y"}, TODAY, False),
        ({**HERE, "identity": "1:2:4"}, TODAY, False),
        ({**HERE, "identity": ""}, TODAY, False),
        (HERE, TODAY + dt.timedelta(1), False),
    ],
)
def test_a_rule_counts_where_it_was_made_until_its_last_day(
    rules: RuleStore, there: dict[str, Any], today: dt.date, counts: bool
) -> None:
    add(rules)
    assert rules.active(**there, today=today) == ([RULE] if counts else [])


def test_a_rule_of_a_session_counts_in_it_until_that_ends(rules: RuleStore) -> None:
    always, mine = add(rules), add(rules, scope="session")
    assert [len(rules.active(**HERE, today=TODAY, session=each)) for each in ("20261121-s", "20261121-t")] == [2, 1]
    rules.end("20261121-t")
    assert rules.listing() == [always, mine]
    rules.end("20261121-s")
    assert rules.listing() == [always]


OLD: Final = [("without an identity", RULE, ""), ("without kinds", msgspec.structs.replace(RULE, kinds=None), "1:2:3")]


@pytest.mark.parametrize(("rule", "identity"), [row[1:] for row in OLD], ids=[row[0] for row in OLD])
def test_a_rule_of_an_older_version_is_listed_and_counts_nowhere(rules: RuleStore, rule: Rule, identity: str) -> None:
    made = add(rules, rule, identity=identity)
    assert (made.outdated, rules.listing()) == (True, [made])
    assert rules.active("project", "/x", TODAY, identity=identity) == []


def test_a_file_of_an_older_version_is_read_and_gets_a_seal(rules: RuleStore, path: Path) -> None:
    old = {"id": "abcd", "rule": {"decision": "allow", "writes": ["a"]}, "profile": "p", "root": "/x", "made": "m"}
    path.write_bytes(msgspec.json.encode({"rules": [old | {"by": "b", "session": "s", "call": "c"}]}))
    path.chmod(0o600)
    assert [(each.id, each.outdated) for each in rules.listing()] == [("abcd", True)]
    add(rules)
    path.write_bytes(path.read_bytes().replace(b"abcd", b"efgh"))
    with pytest.raises(ConfigError, match="something else than Strongroom has changed it"):
        rules.listing()


def test_a_rule_that_another_process_revokes_counts_no_longer(rules: RuleStore, path: Path) -> None:
    first, second = add(rules), add(rules, msgspec.structs.replace(RULE, writes=("b",)))
    before = path.stat()
    assert RuleStore(path).revoke(first.id) == first
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert rules.active(**HERE, today=TODAY) == [second.rule]


def test_a_rule_that_is_not_there_cannot_be_revoked(rules: RuleStore, path: Path) -> None:
    with pytest.raises(ConfigError, match=r"No rule 'x' .*`strongroom rules` lists them"):
        rules.revoke("x")
    made = add(rules)
    rules.revoke(made.id)
    with pytest.raises(ConfigError, match="No rule"):
        rules.revoke(made.id)


def test_a_rule_that_means_nothing_is_not_kept(rules: RuleStore, path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be a rule: it allows nothing"):
        add(rules, Rule("allow"))
    assert not path.exists()


def test_the_file_is_for_its_owner_alone(rules: RuleStore, path: Path, umask_000: None) -> None:
    add(rules)
    assert {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()} == {0o600}


def linked(path: Path) -> None:
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


def made_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def made_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def written(change: Callable[[bytes], bytes]) -> Callable[[Path], Any]:
    """Return what writes something else into a file."""
    return lambda path: path.write_bytes(change(path.read_bytes()))


truncated: Final = written(lambda data: data[:-20])

DAMAGES: Final[list[Callable[[Path], Any]]] = [
    linked,
    made_a_directory,
    made_a_pipe,
    lambda path: path.chmod(0o666),
    truncated,
    written(lambda data: msgspec.json.encode({"rules": msgspec.json.decode(data)["rules"] * 2})),
    written(lambda data: data.replace(b'"a"', b'"/a"')),
    written(lambda data: data.replace(b'"max_files"', b'"max"')),
    written(lambda data: data.replace(b'"a"', b'"b"')),
    written(lambda data: data.replace(b"2026-11-21", b"2036-11-21")),
    written(lambda data: data.replace(b"1:2:3", b"1:2:4")),
    written(lambda data: data.replace(b'"seal"', b'"sea1"')),
    written(lambda data: msgspec.json.encode({"rules": msgspec.json.decode(data)["rules"]})),
    written(lambda _data: b""),
    written(lambda _data: b"\xff"),
    written(lambda _data: b"[" * 100_000),
    written(lambda data: data + b" " * 2**20),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_in_a_damaged_file_no_rule_counts(
    rules: RuleStore, path: Path, damage: Callable[[Path], Any], caplog: pytest.LogCaptureFixture
) -> None:
    add(rules)
    damage(path)
    with caplog.at_level(logging.ERROR, "strongroom"):
        assert rules.active(**HERE, today=TODAY) == rules.active(**HERE, today=TODAY) == []
    assert [f"{path} cannot be used, and no rule in it counts" in each for each in caplog.messages] == [True]
    for act in (rules.listing, lambda: add(rules), lambda: rules.revoke("x")):
        with pytest.raises(ConfigError, match=r"Repair it, or move it away"):
            act()


def test_a_file_that_was_repaired_counts_again(rules: RuleStore, path: Path) -> None:
    add(rules)
    whole = path.read_bytes()
    truncated(path)
    assert rules.active(**HERE, today=TODAY) == []
    path.write_bytes(whole)
    assert rules.active(**HERE, today=TODAY) == [RULE]


def test_a_full_file_takes_no_more_and_stays(rules: RuleStore, path: Path) -> None:
    made = add(rules)
    with pytest.raises(ConfigError, match="has no room for another rule"):
        add(rules, msgspec.structs.replace(RULE, reason="x" * 2**20))
    assert rules.listing() == [made]


def test_all_that_several_processes_add_at_once_is_kept(path: Path) -> None:
    assert run(ADDING, path) == ""
    found = [each.rule.writes[0] for each in RuleStore(path).listing()]
    assert sorted(found) == sorted(f"{name}/{number}" for name in "abc" for number in range(10))


def test_a_process_that_is_killed_while_it_adds_leaves_the_old_or_the_new(rules: RuleStore, path: Path) -> None:
    made = add(rules)
    ends = run(KILLED, path).splitlines()
    assert set(ends) == {"False a", "False a second", "True a second"}
    assert ends[0] == "False a"
    assert ends == sorted(ends)  # the new one from some moment on
    assert rules.listing() == [made]
