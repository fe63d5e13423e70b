"""What the rules of a session say where no command has to run for it."""

import datetime as dt
from pathlib import Path
from typing import Final

import pytest

from supervisor.config.profiles import Profile
from supervisor.journal.facts import CallStarted
from supervisor.rules.rule import Narrowing, Rule
from supervisor.tools.services import ChangeServices
from supervisor.tools.session_rules import SessionRules
from tests.each_row import each_row
from tests.supervisor.changes import change, effects

SED: Final = Rule("allow", ("sed",), starts=True)
STARTED: Final = [
    ("no rule", (), "sed", False),
    ("a rule", (SED,), "sed", True),
    ("one of another", (SED,), "awk", False),
    ("one by another path", (SED,), "./sed", False),
    ("one that has expired", (Rule("allow", ("sed",), until=dt.date(2000, 1, 1), starts=True),), "sed", False),
    ("one of what may be changed", (Rule("allow", ("sed",), ("**",)),), "sed", False),
]


@each_row(("rules", "program", "starts"), [row[1:] for row in STARTED], ids=[row[0] for row in STARTED])
def test_a_rule_lets_its_program_start(rules: tuple[Rule, ...], program: str, starts: bool) -> None:
    judging = SessionRules("s", Profile("p", "/r", ("exec_shell",)), ChangeServices(rules, programs=("git",)))
    call = CallStarted(1, "c", "exec_shell", f'{{"command": "{program}"}}', True, "allow", "")
    assert judging.lets_start(call) is starts
    assert judging.unlisted(call) == ("" if starts or "/" in program else program)


async def test_what_the_roots_file_denies_no_rule_allows() -> None:
    allow, deny = Rule("allow", writes=("**",)), Rule("deny", writes=("secret/**",))
    profile = Profile("project", "/r", ("exec_shell",), narrowing=Narrowing("/r/.strongroom.toml", (), rules=(deny,)))
    call = CallStarted(1, "c", "exec_shell", '{"command": "touch"}', True, "allow", "")
    rules = SessionRules("s", profile, ChangeServices((allow,)))
    found = [(await rules.judge(call, effects(change))).decision for change in ("+ a", "+ secret/a")]
    assert found == ["allow", "deny"]


RUN: Final = CallStarted(1, "c", "run_cmd", '{"command": "rm a"}', True, "allow", "")
WRITE: Final = CallStarted(1, "c", "write_file", '{"path": "a", "content": ""}', True, "allow", "")


@pytest.mark.parametrize(("root", "decision"), [("", "allow"), ("sub", "ask")])
async def test_beneath_a_repository_whose_index_is_not_seen_all_may_be_tracked(
    tmp_path: Path, root: str, decision: str
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    profile = Profile("code", str(tmp_path / root), ("run_cmd",), source_tree=True)
    verdict = await SessionRules("s", profile, ChangeServices()).judge(RUN, effects("- a"))
    assert verdict.decision == decision


@pytest.mark.parametrize("source_tree", [True, False])
async def test_a_file_that_programs_obey_is_asked_about_whichever_tool_writes_it(source_tree: bool) -> None:
    judging = SessionRules("s", Profile("p", "/r", ("write_file",), source_tree=source_tree), ChangeServices())
    assert (await judging.judge(WRITE, effects("+ a"))).decision == "allow"
    assert (await judging.judge(WRITE, effects(change("+ a", protected="it runs")))).decision == "ask"


def test_what_cannot_be_rehearsed_is_denied_in_plan_mode() -> None:
    judging = SessionRules("s", Profile("p", "/r", ("run_cmd",)), ChangeServices())
    assert judging.judge_unrehearsed(RUN, network=False).decision == "ask"
    judging.mode = "plan"
    assert judging.judge_unrehearsed(RUN, network=False).decision == "deny"
