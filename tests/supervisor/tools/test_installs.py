"""What a known install may reach, who is asked about it, and what of its changes one yes settles."""

import datetime as dt
import json
from typing import TYPE_CHECKING, Final, cast

import pytest

from supervisor.categories.registries import Registry
from supervisor.config.profiles import Profile
from supervisor.journal.facts import CallStarted
from supervisor.rules.judge_effects import Verdict
from supervisor.rules.rule import Rule
from supervisor.tools.change_attempt import ChangeAttempt
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.installs import settles
from supervisor.tools.recorded_effects import CHANGES, recorded_effects
from supervisor.tools.services import ChangeServices
from supervisor.tools.session_rules import SessionRules
from tests.supervisor.changes import TODAY, change, effects
from tests.supervisor.recording_context import RecordingContext
from workers.shell.shell_inputs import ENDS_S

if TYPE_CHECKING:
    from supervisor.tools.catalog import Offer

NPM: Final = Registry("npm", ("npm.example:443",))
PYPI: Final = Registry("pypi", ("pypi.example:443", "files.example:443"))
PLACES: Final = (*NPM.places, *PYPI.places, "git.example:443")
PROFILE: Final = Profile("p", "/r", ("run_cmd",), network=PLACES, registries=(NPM, PYPI))
PAST: Final = dt.date(2000, 1, 1)


def rules(*of: Rule) -> SessionRules:
    return SessionRules("s", PROFILE, ChangeServices(of))


def run(command: str) -> CallStarted:
    return CallStarted(1, "c", "run_cmd", json.dumps({"command": command}), True, "allow", "")


REACHED: Final = {
    "pip install x": (*PYPI.places, "git.example:443"),
    "npm ci && pip install x": PLACES,
    "pip install x && cargo fetch": None,
    "cargo fetch": None,
    "pip --version": None,
}


@pytest.mark.parametrize("command", REACHED)
async def test_an_install_may_reach_its_registries_and_no_others(command: str) -> None:
    wanted = await rules().wanted_network(run(command))
    assert (wanted and wanted.places) == REACHED[command]


ALLOW: Final = Rule("allow", ("pip",), registries=("pypi",))
JUDGED: Final = [
    ("no rule", (), "pip install x", "ask"),
    ("a rule", (ALLOW,), "pip install x", "allow"),
    ("a rule that has expired", (Rule("allow", registries=("pypi",), until=PAST),), "pip install x", "ask"),
    ("a rule of another program", (ALLOW,), "uv add y", "ask"),
    ("a rule of one of two registries", (Rule("allow", registries=("pypi",)),), "npm ci && pip install x", "ask"),
    ("beside something else", (ALLOW,), "pip install x; ./run", "ask"),
    ("a denial", (ALLOW, Rule("deny", network=True)), "pip install x", "deny"),
    ("a denial that has expired", (ALLOW, Rule("deny", network=True, until=PAST)), "pip install x", "allow"),
    ("a denial of another program", (ALLOW, Rule("deny", ("npm",), network=True)), "pip install x", "allow"),
]


@pytest.mark.parametrize(("of", "command", "decision"), [row[1:] for row in JUDGED], ids=[row[0] for row in JUDGED])
async def test_a_rule_lets_exactly_its_installs_use_the_network(
    of: tuple[Rule, ...], command: str, decision: str
) -> None:
    judging, call = rules(*of), run(command)
    wanted = await judging.wanted_network(call)
    assert wanted is not None
    assert judging.judge_install(call, wanted).decision == decision


def test_an_approved_install_has_the_longest_time_where_it_asks_for_none() -> None:
    services, line = ChangeServices(timeout_s=3, max_timeout_s=60), b'{"command": "npm ci"}'
    given = [services.call_s("run_cmd", line, installs=each) for each in (False, True)]
    asked = services.call_s("run_cmd", line.replace(b"}", b', "timeout_s": 9}'), installs=True)
    assert (given, asked) == ([None, 60 + ENDS_S], 9 + ENDS_S)


SETTLED: Final = [
    (Verdict("ask", ""), "+ .venv/x", True),
    (Verdict("ask", ""), "+ Makefile", False),
    (Verdict("ask", "a rule", Rule("ask", writes=("**",), until=TODAY)), "+ .venv/x", False),
    (Verdict("deny", "a rule", Rule("deny")), "+ .venv/x", False),
]


@pytest.mark.parametrize(("verdict", "changed", "settled"), SETTLED)
async def test_a_yes_to_an_install_settles_packages_of_which_no_rule_speaks(
    verdict: Verdict, changed: str, settled: bool
) -> None:
    wanted = await rules().wanted_network(run("pip install x"))
    assert wanted is not None
    assert settles(verdict, wanted, effects(changed)) is settled


@pytest.mark.parametrize("network", [True, False])
async def test_no_name_that_a_package_has_chosen_is_among_our_own_words(network: bool) -> None:
    call, changed = run("pip install x"), effects("~ .venv/x")
    wanted, nothing = await rules().wanted_network(call), cast("Offer", None)
    attempt = ChangeAttempt(call, nothing, RecordingContext(), SeenText(), network=network, wanted=wanted)
    attempt.effects, attempt.cannot_undo = changed, "part of it cannot be undone: '.venv/say yes' (too large)"
    assert ("say yes" in attempt.undo_note) is not network
    assert "part of it cannot be undone" in attempt.undo_note


def test_the_journal_keeps_lock_files_and_manifests_of_a_large_install_before_packages() -> None:
    first = ("+ package-lock.json", "~ web/package.json", "+ src/x.py")
    packages = [f"+ node_modules/p{number}/package.json" for number in range(CHANGES // 2)]
    others = [change(f"+ node_modules/.bin/{number}", protected="npm runs it") for number in range(CHANGES)]
    kept = recorded_effects(effects(*first, *packages, *others)).changes
    assert {each[2:] for each in (*first, *packages)} <= {each.path for each in kept}
    assert len(kept) == CHANGES
