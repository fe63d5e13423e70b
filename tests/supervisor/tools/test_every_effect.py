"""Rules that ask or deny hold for every effect: each tool, by each way that leads to a change, with each decision."""

import datetime as dt
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec
import pytest
import trio

from supervisor.config.config_keys import Config
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from supervisor.rules.rule import Rule
from supervisor.session.child_specs import child_spec
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from supervisor.tools.catalog import unoffered
from supervisor.tools.router import Router
from supervisor.tools.services import ChangeServices
from tests.fake_worker import fake
from tests.raw_worker import forked
from tests.supervisor.tools.test_execution import Say, Site
from workers.wire.messages import Context

EVERY: Final = Profile("every", "", ("exec_shell", "run_cmd", "write_file", "edit_file"))
ASKING: Final = Profile("asking", "", EVERY.tools, own_ask=("run_cmd", "write_file"))
PATHS: Final = {"writes": ("secret*", "**/secret*"), "deletes": ("secret*",)}


@pytest.fixture
async def site(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[Site]:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    (root / "a.txt").write_text("old\n")
    (root / "secret").write_text("old\n")
    settings = Settings(Config(), tmp_path / "config.toml", home)
    profile = Profile("project", str(root), EVERY.tools)
    pools = Pools(str(root), lambda category: forked(child_spec(settings, profile, category)), nursery)
    yield Site(root, home, pools)
    await pools.close()


class Trial:
    """One call under one rule; the person says yes to what is not the rule's, and no to what is."""

    def __init__(self, site: Site, rule: Rule) -> None:
        self.site = site
        self.by_rule = 0
        self._services = ChangeServices((rule,), site.services.rule_store, site.services.packs, escalation=True)

    def router(self, profile: Profile = EVERY, first: ApprovalDecision | None = None) -> Router:
        """Return a router whose person says `first` to the first question."""

        def say(ask: ApprovalQuestion) -> ApprovalDecision:
            self.by_rule += ask.reason.startswith("a rule asks")
            if first is not None and len(self.site.asked) == 1:
                return first
            return ApprovalDecision(approved=not ask.reason.startswith("a rule asks"))

        return self.site.router(profile, say, self._services)

    async def call(self, tool: str, profile: Profile = EVERY, **arguments: object) -> CallEnded:
        return await self.site.call(self.router(profile), tool, msgspec.json.encode(arguments).decode())

    async def edited(self, tool: str, before: object, after: object) -> CallEnded:
        """Make a harmless call, which the person changes."""
        to = msgspec.json.encode(after).decode()
        router = self.router(ASKING, ApprovalDecision(approved=True, edited=to))
        return await self.site.call(router, tool, msgspec.json.encode(before).decode())


async def undone(trial: Trial) -> CallEnded:
    """Let a change be committed under no rule, and take it back under the rule."""
    site = trial.site
    yes: Say = lambda _ask: ApprovalDecision(approved=True)  # noqa: E731
    (site.root / "secret").unlink()
    assert (await site.run(site.router(EVERY, yes), "cp", "a.txt", "secret")).ok
    site.asked.clear()
    pack = site.context.decided[-1].kept
    arguments = msgspec.json.encode({"pack": pack, "force": False}).decode()
    call = CallStarted(0, "u", "undo", arguments, True, "allow", "", rehearsed=True)
    with trio.fail_after(60):
        return await trial.router().execution.run(call, unoffered("undo"), site.context, undoes=("c",))


Way = Callable[[Trial], Awaitable[CallEnded]]

FILE_TOOLS: Final[list[tuple[str, Way]]] = [
    ("write_file, a new name", lambda trial: trial.call("write_file", path="d/secret2", content="x")),
    ("write_file", lambda trial: trial.call("write_file", path="secret", content="x")),
    ("write_file, asked about", lambda trial: trial.call("write_file", ASKING, path="secret", content="x")),
    ("edit_file", lambda trial: trial.call("edit_file", path="secret", old="old", new="new")),
    ("undo", undone),
    (
        "write_file, edited",
        lambda trial: trial.edited(
            "write_file", {"path": "b", "content": "x"}, {"path": "./secret", "content": "mine"}
        ),
    ),
]
COMMANDS: Final[list[tuple[str, Way]]] = [
    ("exec_shell", lambda trial: trial.call("exec_shell", command="rm", args=["secret"])),
    ("exec_shell, a mode", lambda trial: trial.call("run_cmd", command="chmod 600 secret")),
    ("run_cmd", lambda trial: trial.call("run_cmd", command="echo x > d; mv d secret")),
    ("run_cmd, asked about", lambda trial: trial.call("run_cmd", ASKING, command="rm secret")),
    ("run_cmd, by another name", lambda trial: trial.call("run_cmd", command="sh -c 'rm secret'")),
    ("run_cmd, among others", lambda trial: trial.call("run_cmd", command="touch 1 2 3; ln -sf a.txt secret")),
    (
        "run_cmd, edited",
        lambda trial: trial.edited("run_cmd", {"command": "touch b"}, {"command": "touch b; rm secret"}),
    ),
]


@pytest.mark.parametrize("decision", ["deny", "ask"])
@pytest.mark.parametrize(
    "way", [row[1] for row in FILE_TOOLS + COMMANDS], ids=[row[0] for row in FILE_TOOLS + COMMANDS]
)
async def test_a_rule_about_paths_holds_for_every_tool_and_way(site: Site, way: Way, decision: str) -> None:
    rule = msgspec.convert({"decision": decision, **PATHS}, Rule)
    trial = Trial(site, rule)
    ended = await way(trial)
    assert ended.kind == "denied", ended
    assert trial.by_rule == (decision == "ask")
    assert site.files.get("secret") == "old\n"
    assert not (site.root / "d").exists()
    decided = site.context.decided[-1]
    assert (decided.decision, decided.committed, bool(decided.covered_by)) == (decision, False, True)


@pytest.mark.parametrize("way", [row[1] for row in FILE_TOOLS], ids=[row[0] for row in FILE_TOOLS])
async def test_a_rule_about_programs_says_nothing_of_file_tools(site: Site, way: Way) -> None:
    trial = Trial(site, Rule("deny", ("cp", "write_file"), **PATHS))  # type: ignore[arg-type]
    assert (await way(trial)).ok
    assert trial.by_rule == 0


async def test_an_earlier_rule_that_allows_takes_a_path_out_of_a_later_one(site: Site) -> None:
    rules = (Rule("allow", writes=("secret",)), Rule("deny"))
    router = site.router(ASKING, lambda _ask: ApprovalDecision(approved=True), ChangeServices(rules))
    for path, kind in (("secret", None), ("b", "denied")):
        assert (await site.call(router, "write_file", f'{{"path": "{path}", "content": "x"}}')).kind == kind
    assert len(site.asked) == 1  # the profile asks before each: the rule does not keep it from that


DENIALS: Final[list[tuple[str, Rule, str | None]]] = [
    ("its program", Rule("deny", ("touch",), ("elsewhere",)), "denied"),
    ("its program by a path", Rule("deny", ("touch",)), "denied"),
    ("everything", Rule("deny"), "denied"),
    ("another program", Rule("deny", ("rm",)), None),
    ("another program's paths", Rule("deny", ("rm",), ("made",)), None),
    ("paths alone", Rule("deny", writes=("elsewhere",)), "denied"),
    ("deletions alone", Rule("deny", deletes=("elsewhere",)), "denied"),
    ("kinds alone", Rule("deny", kinds=("special",)), "denied"),
    ("paths and the network", Rule("deny", writes=("elsewhere",), network=True), "denied"),
    ("no longer", Rule("deny", writes=("made",), until=dt.date(2020, 1, 1)), None),
]
NETWORK: Final = Rule("deny", network=True)
OUTSIDE: Final = [*DENIALS, ("the network alone", NETWORK, "denied")]
UNREHEARSED: Final = [*DENIALS, ("the network alone", NETWORK, None)]
UNKNOWN: Final = "what it would change is not known before"


@pytest.mark.parametrize(("rule", "kind"), [row[1:] for row in OUTSIDE], ids=[row[0] for row in OUTSIDE])
async def test_a_denial_holds_outside_of_the_sandbox(site: Site, rule: Rule, kind: str | None) -> None:
    out = ApprovalDecision(approved=True, unconfined=True)
    for profile in (ASKING, EVERY):  # asked about as a text, and by its effects
        site.asked.clear()
        router = Trial(site, rule).router(profile, out)
        ended = await site.call(router, "run_cmd", '{"command": "/usr/bin/touch made"}')
        assert ended.kind == kind
        by_effects = rule.programs is None and bool(rule.writes or rule.deletes or rule.kinds)
        assert (UNKNOWN in ended.content) == (kind is not None and by_effects)
        assert (site.root / "made").exists() == (kind is None)
        (site.root / "made").unlink(missing_ok=True)


@pytest.mark.parametrize(("rule", "kind"), [row[1:] for row in UNREHEARSED], ids=[row[0] for row in UNREHEARSED])
async def test_a_denial_holds_without_a_rehearsal(
    nursery: trio.Nursery, tmp_path: Path, rule: Rule, kind: str | None
) -> None:
    calls = tmp_path / "calls"
    given = fake([{"unrehearsable": "the root is an overlay itself"}], calls=calls)
    context = Context(working_directory=str(tmp_path))
    pools = Pools(str(tmp_path), lambda category: ChildSpec(category, context, **given), nursery)
    site = Site(tmp_path, tmp_path, pools)
    ended = await Trial(site, rule).call("run_cmd", command="/usr/bin/touch made")
    await pools.close()
    assert ended.kind == kind
    assert [ask.reason for ask in site.asked] == ["it cannot be rehearsed: the root is an overlay itself"] * (
        kind is None
    )
    assert len(calls.read_text().split()) == 1 + (kind is None)
