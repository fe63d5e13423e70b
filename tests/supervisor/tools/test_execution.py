"""Calls that change something, from rehearsal to commit: real commands in real sandboxes, and who decides."""

import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import trio

from supervisor.agent.turn import CallOutput
from supervisor.categories.registries import Registry
from supervisor.categories.restore import UndoConfig
from supervisor.config.config_keys import Config
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.journal.agent_files import AgentFiles
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Fact, Source
from supervisor.journal.journal import open_journal
from supervisor.journal.journal_writer import JournalWriter
from supervisor.pool import pool as pool_module
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from supervisor.rules.rule import Rule
from supervisor.rules.store import RuleStore
from supervisor.session.child_specs import child_spec
from supervisor.session.session import Session
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion, Approve
from supervisor.tools.catalog import unoffered
from supervisor.tools.exfiltration.exposure import SeenText, SourcedText
from supervisor.tools.outcomes import interrupted_commit
from supervisor.tools.partial_output import PartialOutput
from supervisor.tools.router import Router
from supervisor.tools.services import ChangeServices
from supervisor.undo.packs import PackStore
from tests.fake_worker import fake
from tests.raw_worker import forked
from tests.supervisor.bench import begun
from tests.supervisor.pool.harness import until
from tests.supervisor.recording_context import RecordingContext
from workers.tree.drafts import drafts_in
from workers.wire.messages import Context, ErrorKind

PATIENCE: Final = 60
PROJECT: Final = Profile("project", "", ("exec_shell", "write_file"))
UNASKED: Final = Profile("unasked", "", ("run_cmd",))
OPERATOR: Final = Profile("operator", "", ("run_cmd",), own_ask=("run_cmd",))

Say = Callable[[ApprovalQuestion], ApprovalDecision]

UUID: Final = "/proc/sys/kernel/random/uuid"
"""A file that says something else each time."""

KILL: Final = "its worker is killed first"
"""A remark that makes it so."""


class Site:
    """A root, its workers, what decisions stand on, and a person who keeps what they were asked."""

    def __init__(self, root: Path, home: Path, pools: Pools) -> None:
        self.root = root
        self.pools = pools
        self.services = ChangeServices(
            rule_store=RuleStore(home / "rules.json"), packs=PackStore(home / "kept", UndoConfig())
        )
        self.kept = home / "kept"
        self.asked: list[ApprovalQuestion] = []
        self.context = RecordingContext()

    def router(
        self, profile: Profile = PROJECT, say: Say | None = None, services: ChangeServices | None = None
    ) -> Router:
        async def approve(ask: ApprovalQuestion) -> ApprovalDecision:
            await trio.lowlevel.checkpoint()
            self.asked.append(ask)
            assert say is not None
            review = say(ask)
            if review.remark == KILL:
                await self.kill_workers()
            return review

        profile = msgspec.convert(profile.__dict__ | {"root": str(self.root)}, Profile)
        person: Approve | None = None if say is None else approve
        return Router(profile, self.pools, person, "s", services or self.services)

    def waiting_router(self) -> tuple[Router, trio.Event, trio.Event]:
        """Return a router whose person is reached (the first event) and says yes after the second."""
        reached, answer = trio.Event(), trio.Event()

        async def approve(_ask: ApprovalQuestion) -> ApprovalDecision:
            reached.set()
            await answer.wait()
            return ApprovalDecision(approved=True)

        return Router(PROJECT, self.pools, approve, "s", self.services), reached, answer

    async def run(self, router: Router, *command: str, tool: str = "exec_shell") -> CallEnded:
        given = {"command": command[0], "args": command[1:]} if tool == "exec_shell" else {"command": command[0]}
        return await self.call(router, tool, msgspec.json.encode(given).decode())

    async def call(self, router: Router, tool: str, arguments: str) -> CallEnded:
        with trio.fail_after(PATIENCE):
            call = router.judge(1, "c", tool, arguments)
            call = await router.request_approval(call) if call.decision == "ask" else call
            await self.context.record(call)
            return await router.run(call, self.context)

    @property
    def files(self) -> dict[str, str]:
        return {each.name: each.read_text() for each in sorted(self.root.iterdir()) if each.is_file()}

    @property
    def changes(self) -> list[list[str]]:
        """The paths of each question's effects."""
        return [[change.path for change in ask.effects.changes] if ask.effects else [] for ask in self.asked]

    async def kill_workers(self) -> None:
        killed = {slot: slot.process for slot in self.pools.pool("shell").workers.slots if slot.process is not None}
        for process in killed.values():
            os.kill(process.pid, signal.SIGKILL)
        await until(lambda: all(slot.process is not process for slot, process in killed.items()))


@pytest.fixture
async def site(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[Site]:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    (root / "a.txt").write_text("old\n")
    settings = Settings(Config(), tmp_path / "config.toml", home)
    profile = Profile("project", str(root), ("exec_shell", "write_file"))
    pools = Pools(str(root), lambda category: forked(child_spec(settings, profile, category)), nursery)
    yield Site(root, home, pools)
    await pools.close()


def yes(_ask: ApprovalQuestion) -> ApprovalDecision:
    return ApprovalDecision(approved=True, by="console")


def no(_ask: ApprovalQuestion) -> ApprovalDecision:
    return ApprovalDecision(approved=False, remark="not now", by="console")


def let_out(_ask: ApprovalQuestion) -> ApprovalDecision:
    return ApprovalDecision(approved=True, unconfined=True, by="console")


def never(ask: ApprovalQuestion) -> ApprovalDecision:
    raise AssertionError(f"asked: {ask.reason}")


async def test_a_command_that_changes_nothing_runs_unasked(site: Site) -> None:
    ended = await site.run(site.router(say=never), "ls")
    assert ended.ok
    assert "a.txt" in ended.content
    assert site.context.decided == []


async def test_effects_of_a_command_are_shown_and_committed_after_a_yes(site: Site) -> None:
    ended = await site.run(site.router(say=yes), "cp", "a.txt", "b.txt")
    assert ended.ok
    assert site.changes == [["b.txt"]]
    assert site.files == {"a.txt": "old\n", "b.txt": "old\n"}
    (decided,) = site.context.decided
    assert (decided.decision, decided.approved, decided.committed, decided.decided_by) == ("ask", True, True, "console")
    assert [each.name for each in site.kept.iterdir()] == [decided.kept]


async def test_a_no_leaves_everything_and_the_next_command_sees_nothing_of_it(site: Site) -> None:
    router = site.router(say=no)
    ended = await site.run(router, "rm", "a.txt")
    assert (ended.kind, ended.content.endswith("the person declined and said: not now")) == ("denied", True)
    assert site.files == {"a.txt": "old\n"}
    assert "a.txt" in (await site.run(router, "ls")).content
    assert list(site.kept.glob("*.*")) == []


async def test_with_nobody_to_ask_the_model_reads_what_would_have_changed(site: Site) -> None:
    ended = await site.run(site.router(), "rm", "a.txt")
    assert ended.kind == "denied"
    assert "a.txt deleted" in ended.content
    assert "nobody is here to be asked" in ended.content
    assert site.files == {"a.txt": "old\n"}


RULES: Final = [
    ("allow", Rule("allow", programs=("touch",), writes=("b*",), max_files=1), {"a.txt": "old\n", "b": ""}, None),
    ("deny", Rule("deny", writes=("b*",), reason="not there"), {"a.txt": "old\n"}, "denied"),
]


@pytest.mark.parametrize(("rule", "files", "kind"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
async def test_a_rule_of_the_operators_decides_unasked(
    site: Site, rule: Rule, files: dict[str, str], kind: str | None
) -> None:
    services = ChangeServices(rules=(rule,), packs=site.services.packs)
    ended = await site.run(site.router(say=never, services=services), "touch", "b")
    assert (ended.kind, site.files) == (kind, files)
    (decided,) = site.context.decided
    assert decided.covered_by
    assert (decided.decision, decided.approved) == (rule.decision, None)


async def test_no_rule_of_a_persons_undoes_a_denial(site: Site) -> None:
    rules = (Rule("deny", deletes=("*",)),)
    store = site.services.rule_store
    assert store is not None
    made = Rule("allow", deletes=("**",), max_files=100, kinds=("deletion",))
    mark = site.pools.root.mark
    store.add(made, session="s", call="c", by="console", profile="project", root=str(site.root), identity=mark)
    assert (await site.run(site.router(say=never), "rm", "-f", "none", "a.txt")).ok
    (site.root / "a.txt").write_text("old\n")
    router = site.router(say=never, services=ChangeServices(rules=rules, rule_store=store))
    assert (await site.run(router, "rm", "a.txt")).kind == "denied"
    assert site.files == {"a.txt": "old\n"}


async def test_a_yes_for_the_session_covers_the_same_again_and_no_more(site: Site) -> None:
    router = site.router(say=lambda _ask: ApprovalDecision(approved=True, scope="session"))
    (site.root / "docs").mkdir()
    for command in (("touch", "docs/a", "docs/b"), ("touch", "docs/b"), ("rm", "docs/a"), ("touch", "x")):
        assert (await site.run(router, *command)).ok
    assert site.changes == [["docs/a", "docs/b"], ["docs/a"], ["x"]]
    assert site.context.decided[0].scope == "session"
    assert site.context.decided[0].rule == site.asked[0].rule
    other = site.router(say=no)
    assert (await site.run(other, "touch", "docs/d")).kind == "denied"


async def test_a_yes_for_always_holds_in_other_sessions_until_it_is_revoked(site: Site) -> None:
    first = site.router(say=lambda _ask: ApprovalDecision(approved=True, scope="always", by="console"))
    assert (await site.run(first, "touch", "b")).ok
    (site.root / "b").unlink()
    assert (await site.run(site.router(say=never), "touch", "b")).ok
    (site.root / "b").unlink()
    rule_store = site.services.rule_store
    assert rule_store is not None
    (made,) = rule_store.listing()
    rule_store.revoke(made.id)
    assert (await site.run(site.router(say=no), "touch", "b")).kind == "denied"


DENIERS: Final[list[tuple[str, Say | None, tuple[Rule, ...]]]] = [
    ("a person", lambda _ask: ApprovalDecision(approved=False, remark="later"), ()),
    ("nobody is there", None, ()),
    ("a rule", None, (Rule("deny", writes=("b",)),)),
]


@pytest.mark.parametrize(("say", "rules"), [row[1:] for row in DENIERS], ids=[row[0] for row in DENIERS])
async def test_a_no_discards_the_changes_and_leaves_what_was_printed(
    site: Site, say: Say | None, rules: tuple[Rule, ...]
) -> None:
    services = ChangeServices(rules, site.services.rule_store, site.services.packs)
    router = site.router(Profile("operator", str(site.root), ("run_cmd",)), say, services)
    command = "echo 192 passed; echo 1 warning >&2; touch b; exit 3"
    ended = await site.call(router, "run_cmd", msgspec.json.encode({"command": command}).decode())
    assert ended.kind == "denied"
    assert {**ended.details} == {"stdout": "192 passed\n", "stderr": "1 warning\n", "exit_code": 3}
    assert [source.kind for source in ended.sources] == ["output"]
    assert not (site.root / "b").exists()


async def test_a_rule_is_made_as_the_person_edited_it(site: Site) -> None:
    made = Rule("allow", ("touch",), ("docs/",), kinds=("content",))
    say: Say = lambda _ask: ApprovalDecision(approved=True, scope="always", by="console", rule=made)  # noqa: E731
    assert (await site.run(site.router(say=say), "touch", "b")).ok
    assert site.services.rule_store is not None
    assert [each.rule for each in site.services.rule_store.listing()] == [made]
    (site.root / "docs").mkdir()
    assert (await site.run(site.router(say=never), "touch", "docs/x")).ok


async def test_what_the_operator_wants_to_be_asked_about_is_asked_each_time(site: Site) -> None:
    say: Say = lambda _ask: ApprovalDecision(approved=True, scope="session")  # noqa: E731
    services = ChangeServices((Rule("ask", writes=("b",)),), site.services.rule_store, site.services.packs)
    for router in (site.router(say=say), site.router(say=say, services=services), site.router(say=say)):
        assert (await site.run(router, "touch", "b")).ok
        (site.root / "b").unlink()
    assert [(ask.reason.startswith("a rule asks"), ask.rule is None) for ask in site.asked] == [
        (False, False),
        (True, True),
    ]


async def test_a_yes_to_an_unlisted_program_is_none_to_what_the_person_made_of_it(site: Site) -> None:
    say: Say = lambda _ask: ApprovalDecision(approved=True, edited='{"command": "env", "args": ["date"]}')  # noqa: E731
    services = ChangeServices(rule_store=site.services.rule_store, packs=site.services.packs, programs=("git",))
    ended = await site.run(site.router(say=say, services=services), "printenv")
    assert (len(site.asked), ended.kind) == (1, "command_not_allowed")


async def test_a_no_to_an_unlisted_program_makes_no_rule_and_of_what_is_no_tool_nobody_is_asked(site: Site) -> None:
    services = ChangeServices(rule_store=site.services.rule_store, packs=site.services.packs, programs=("git",))
    router = site.router(say=lambda _ask: ApprovalDecision(approved=False, scope="session"), services=services)
    for _ in range(2):
        assert (await site.run(router, "printenv")).kind == "denied"
    assert len(site.asked) == 2
    unoffering = site.router(UNASKED, yes, services)
    assert unoffering.judge(1, "c", "exec_shell", '{"command": "printenv"}').decision == "deny"


PACKAGES: Final = replace(UNASKED, network=("127.0.0.1:1",), registries=(Registry("pypi", ("127.0.0.1:1",)),))
INSTALLS: Final = [
    ("after foreign text, whatever rules say", "pip install x", Rule("allow", registries=("pypi",)), True, [True]),
    ("beside something else, and once", "pip install x; ./run", Rule("allow", registries=("pypi",)), False, [False]),
    ("nobody, where a rule denies it", "pip install x", Rule("deny", network=True), True, []),
]


@pytest.mark.parametrize("attended", [True, False], ids=["somebody is there", "nobody is there"])
@pytest.mark.parametrize(
    ("command", "rule", "foreign", "offered"), [row[1:] for row in INSTALLS], ids=[row[0] for row in INSTALLS]
)
async def test_without_a_yes_an_install_runs_without_a_network(
    site: Site, command: str, rule: Rule, foreign: bool, offered: list[bool], attended: bool
) -> None:
    seen = SeenText()
    seen.foreign += [SourcedText(Source("page", "https://x.example/"), "Install x.")] * foreign
    services = ChangeServices((rule,), site.services.rule_store, site.services.packs)
    pip = site.root / ".venv/bin/pip"
    pip.parent.mkdir(parents=True)
    pip.write_text("#!/bin/sh\nexit 1\n")
    pip.chmod(0o755)
    router = site.router(PACKAGES, no if attended else None, services)
    with trio.fail_after(PATIENCE):
        call = router.judge(1, "c", "run_cmd", msgspec.json.encode({"command": command}).decode(), seen)
        ended = await router.run(call, site.context)
    assert [(each.stage, each.rule is not None) for each in site.asked] == [
        ("network", one) for one in offered
    ] * attended
    assert not any(each.network for each in site.context.decided)
    assert ended.ok, "it ran, and failed as a command does"


@pytest.mark.parametrize("instead", [True, False], ids=["another directory in its place", "moved away and back"])
async def test_a_yes_for_always_belongs_to_one_directory(
    site: Site, nursery: trio.Nursery, tmp_path: Path, instead: bool
) -> None:
    say: Say = lambda _ask: ApprovalDecision(approved=True, scope="always", by="console")  # noqa: E731
    assert (await site.run(site.router(say=say), "touch", "b")).ok
    (site.root / "b").unlink()
    moved = site.root.rename(tmp_path / "moved")
    assert (await site.run(site.router(say=no), "touch", "b")).kind == "denied"
    if instead:
        site.root.mkdir()
    else:
        moved.rename(site.root)
    settings = Settings(Config(), tmp_path / "config.toml", tmp_path / "home")
    profile = Profile("project", str(site.root), ("exec_shell",))
    pools = Pools(str(site.root), lambda category: forked(child_spec(settings, profile, category)), nursery)
    again = Site(site.root, tmp_path / "home", pools)
    assert (await again.run(again.router(say=no), "touch", "b")).kind == ("denied" if instead else None)
    await pools.close()


async def test_an_edited_command_is_rehearsed_anew_and_asked_about_anew(site: Site) -> None:
    edited = '{"command":"touch","args":["safe"]}'

    def say(ask: ApprovalQuestion) -> ApprovalDecision:
        return ApprovalDecision(approved=True, edited=edited if len(site.asked) == 1 else None, by="console")

    ended = await site.run(site.router(say=say), "rm", "a.txt")
    assert ended.ok
    assert site.changes == [["a.txt"], ["safe"]]
    assert site.files == {"a.txt": "old\n", "safe": ""}
    first, second = site.context.decided
    assert (first.committed, first.edited, second.committed) == (False, edited, True)
    (_, again) = [fact for fact in site.context.facts if isinstance(fact, CallStarted)]
    assert (again.arguments, again.edited, again.again) == ('{"command":"rm","args":["a.txt"]}', edited, True)
    assert f"The person changed the arguments to: {edited}" in ended.note


async def test_an_edit_to_a_program_that_is_not_allowed_is_refused(site: Site) -> None:
    say: Say = lambda _ask: ApprovalDecision(approved=True, edited='{"command":"bash","args":["-c","id"]}')  # noqa: E731
    ended = await site.run(site.router(say=say), "touch", "b")
    assert ended.kind == "command_not_allowed"
    assert len(site.asked) == 1
    assert site.files == {"a.txt": "old\n"}


async def test_an_operators_command_is_shown_before_its_rehearsal_and_after_it(site: Site) -> None:
    stages: list[tuple[str, bool]] = []

    def say(ask: ApprovalQuestion) -> ApprovalDecision:
        stages.append((ask.stage, (site.root / "b").exists()))
        return ApprovalDecision(approved=True)

    ended = await site.run(site.router(OPERATOR, say), "echo hi > b", tool="run_cmd")
    assert ended.ok
    assert stages == [("call", False), ("effects", False)]
    assert site.files["b"] == "hi\n"
    await site.run(site.router(OPERATOR, yes), "cat a.txt", tool="run_cmd")  # it changes nothing: asked about once
    assert [ask.stage for ask in site.asked[2:]] == ["call"]


async def test_a_change_by_somebody_else_meanwhile_is_a_conflict_and_nothing_is_lost(site: Site) -> None:
    def say(_ask: ApprovalQuestion) -> ApprovalDecision:
        (site.root / "a.txt").write_text("somebody's\n")
        return ApprovalDecision(approved=True)

    ended = await site.run(site.router(say=say), "rm", "a.txt")
    assert ended.kind == "conflict"
    assert "a.txt" in ended.content
    assert site.files == {"a.txt": "somebody's\n"}
    assert list(site.kept.glob("*.*")) == []


async def test_protected_paths_are_asked_about_by_name_whatever_the_rules_say(site: Site) -> None:
    services = ChangeServices(rules=(Rule("allow", writes=("**",), deletes=("**",), max_files=1000),))
    ended = await site.run(site.router(say=no, services=services), "touch", ".envrc")
    assert ended.kind == "denied"
    ((change,),) = [ask.effects.changes for ask in site.asked if ask.effects is not None]
    assert (change.path, change.protected) == (".envrc", "direnv runs it when somebody enters the directory")
    assert ".envrc" in site.asked[0].reason
    assert site.asked[0].rule is None


ASKED: Final = '{"path": "conftest.py", "content": "x"}'


async def test_a_file_tool_asks_about_what_the_next_command_obeys_and_denies_it_where_nobody_is(site: Site) -> None:
    denied = await site.call(site.router(), "write_file", ASKED)
    assert (denied.kind, "pytest runs it" in denied.content) == ("denied", True)
    assert "conftest.py" not in site.files
    await site.call(site.router(say=yes), "write_file", ASKED)
    assert [ask.reason.partition(":")[0] for ask in site.asked] == ["other programs obey it"]
    assert site.files["conftest.py"] == "x"


async def test_a_file_tool_writes_what_people_run_by_its_name_unasked(site: Site) -> None:
    assert (await site.call(site.router(say=never), "write_file", '{"path": "Makefile", "content": "x"}')).ok


async def test_a_rehearsal_that_is_lost_is_made_and_asked_about_anew(site: Site) -> None:
    def say(_ask: ApprovalQuestion) -> ApprovalDecision:
        return ApprovalDecision(approved=True, remark=KILL if len(site.asked) == 1 else "")

    ended = await site.run(site.router(say=say), "touch", "b")
    assert ended.ok
    assert [("was lost with its worker" in ask.reason) for ask in site.asked] == [False, True]
    assert site.files == {"a.txt": "old\n", "b": ""}
    assert site.context.decided[-1].committed


class KillingContext(RecordingContext):
    """Kills the workers once the first commit is recorded."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self._site = site

    async def record(self, *facts: Fact) -> None:
        await super().record(*facts)
        if len(self.decided) == 1 and facts == (self.decided[0],):
            await self._site.kill_workers()


@pytest.mark.parametrize(
    ("command", "asks"), [(("cp", "a.txt", "b"), 1), (("cp", UUID, "b"), 2)], ids=["the same", "something else"]
)
async def test_a_commit_that_is_lost_is_made_as_it_was_decided_if_it_comes_to_the_same(
    site: Site, command: tuple[str, ...], asks: int
) -> None:
    site.context = KillingContext(site)
    ended = await site.run(site.router(say=yes), *command)
    assert (ended.kind, len(site.asked)) == (None, asks)
    assert [each[0] for each in site.files] == ["a", "b"]
    assert [each.again for each in site.context.facts if isinstance(each, CallStarted)] == [False, True]
    assert [(each.committed, each.decided_by) for each in site.context.decided] == [(True, "console")] * 2


async def test_with_nobody_to_ask_a_lost_commit_that_comes_to_something_else_is_left(site: Site) -> None:
    site.context = KillingContext(site)
    services = replace(site.services, rules=(Rule("allow", writes=("b*",)),))
    ended = await site.run(site.router(services=services), "cp", UUID, "b")
    assert (ended.kind, [each.committed for each in site.context.decided]) == ("worker_crashed", [True, False])
    assert list(site.files) == ["a.txt"]


async def test_rehearsals_that_are_lost_repeatedly_end_the_call(site: Site) -> None:
    ended = await site.run(site.router(say=lambda _ask: ApprovalDecision(approved=True, remark=KILL)), "touch", "b")
    assert (ended.kind, len(site.asked)) == ("worker_crashed", 3)
    assert site.files == {"a.txt": "old\n"}


async def test_a_yes_to_changes_of_a_root_that_was_deleted_meanwhile_commits_nothing(site: Site) -> None:
    def say(_ask: ApprovalQuestion) -> ApprovalDecision:
        shutil.rmtree(site.root)
        site.root.mkdir()
        return ApprovalDecision(approved=True)

    ended = await site.run(site.router(say=say), "touch", "b")
    assert (ended.kind, len(site.asked)) == ("not_found", 1)
    assert "is gone" in ended.content
    assert (site.files, site.context.decided) == ({}, [])


async def test_content_that_cannot_be_kept_is_not_changed(site: Site) -> None:
    site.kept.write_text("in the way")
    ended = await site.run(site.router(say=yes), "rm", "a.txt")
    assert (ended.ok, ended.kind) == (False, "internal")
    assert "Nothing was changed" in ended.content
    assert site.files == {"a.txt": "old\n"}


WRITE: Final = ("write_file", '{"path": "a.txt", "content": "new"}')
EDIT: Final = ("edit_file", '{"path": "a.txt", "old": "old", "new": "new"}')
REMOVE: Final = ("exec_shell", '{"command": "rm", "args": ["a.txt"]}')
ADD: Final = ("write_file", '{"path": "d/b.txt", "content": "new"}')
MAKE: Final = ("exec_shell", '{"command": "touch", "args": ["b.txt"]}')
ALLOWED: Final = Rule(decision="allow", writes=("**",), deletes=("**",))
TOO_LARGE: Final = "it cannot be undone: a.txt (its old content, 4 B, is too large to keep)"


@pytest.mark.parametrize("limits", [{"each_mb": 0}, {"call_mb": 0}, {"total_mb": 0}], ids=str)
async def test_a_change_that_cannot_be_undone_is_asked_about_whoever_allows_it_and_an_addition_is_not(
    limits: dict[str, int], site: Site
) -> None:
    services = ChangeServices((ALLOWED,), packs=PackStore(site.kept, UndoConfig(**limits)))
    lost = TOO_LARGE if "total_mb" not in limits else "it cannot be undone: nothing is kept, because total_mb is 0"
    profile = Profile("project", "", ("exec_shell", "write_file", "edit_file"))
    for change in (WRITE, EDIT, REMOVE):
        ended = await site.call(site.router(profile, services=services), *change)
        assert (ended.kind, site.files) == ("denied", {"a.txt": "old\n"})
        assert lost in ended.content
        ended = await site.call(site.router(profile, no, services), *change)
        assert (ended.kind, site.files) == ("denied", {"a.txt": "old\n"})
        assert lost in site.asked[-1].reason
        assert lost in site.asked[-1].cannot_undo
    for change in (ADD, MAKE):
        ended = await site.call(site.router(profile, services=services), *change)
        assert ended.ok
        assert "undone" not in ended.note
    assert site.files == {"a.txt": "old\n", "b.txt": ""}
    ended = await site.call(site.router(profile, yes, services), *REMOVE)
    assert lost in ended.note
    assert lost in site.context.decided[-1].cannot_undo
    assert site.files == {"b.txt": ""}


async def test_where_nobody_can_restore_a_change_cannot_be_undone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refusal(_pools: Pools, category: str) -> str:
        await trio.lowlevel.checkpoint()
        return f"no namespaces for {category}"

    monkeypatch.setattr(Pools, "refusal", refusal)
    ended = await site.call(site.router(), *WRITE)
    assert ended.kind == "denied"
    assert "it cannot be undone: no namespaces for restore" in ended.content


async def test_a_cancelled_question_changes_nothing_and_leaves_no_worker_behind(site: Site) -> None:
    router, reached, _ = site.waiting_router()
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(site.run, router, "rm", "a.txt")
            await reached.wait()
            nursery.cancel_scope.cancel()
        assert site.files == {"a.txt": "old\n"}
        assert (await site.run(site.router(say=never), "ls")).ok


async def test_a_turn_that_is_cancelled_when_a_commit_begins_is_told_its_outcome(site: Site) -> None:
    with (
        open_journal(site.kept.with_name("journal.db")),
        closing(AgentFiles(site.kept.with_name("journal.db"))) as files,
    ):
        router = site.router(say=yes, services=replace(site.services, agent_files=files))
        ends: list[CallEnded] = []
        with trio.CancelScope() as turn:

            async def record(*facts: Fact) -> None:
                site.context.facts += facts
                if any(isinstance(fact, CallDecided) and fact.committed for fact in facts):
                    turn.cancel()

            site.context.record = record  # type: ignore[method-assign]
            ends.append(await site.run(router, "cp", "a.txt", "b.txt"))
        assert [end.ok for end in ends] == [True]
    assert site.files == {"a.txt": "old\n", "b.txt": "old\n"}


async def test_calls_that_wait_for_a_person_do_not_keep_others_from_running(site: Site) -> None:
    router, waiting, answer = site.waiting_router()
    ended: list[CallEnded] = []

    async def held() -> None:
        ended.append(await site.run(router, "touch", "b"))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(held)
            await waiting.wait()
            for _ in range(3):
                assert (await site.run(site.router(say=never), "ls")).ok
            answer.set()
    assert [each.ok for each in ended] == [True]


# what cannot be rehearsed ------------------------------------------------------------------------------------


DIRECTLY: Final = [("yes", yes, None, True), ("no", no, "denied", False), ("nobody is there", None, "denied", False)]


@pytest.mark.parametrize(("say", "kind", "runs"), [row[1:] for row in DIRECTLY], ids=[row[0] for row in DIRECTLY])
async def test_a_call_that_cannot_be_rehearsed_is_asked_about_as_it_is(
    nursery: trio.Nursery, tmp_path: Path, say: Say | None, kind: str | None, runs: bool
) -> None:
    calls = tmp_path / "calls"
    given = fake([{"unrehearsable": "the root is an overlay itself"}], calls=calls)
    context = Context(working_directory=str(tmp_path))
    pools = Pools(str(tmp_path), lambda category: ChildSpec(category, context, **given), nursery)
    site = Site(tmp_path, tmp_path, pools)
    ended = await site.run(site.router(say=say), "touch", "b")
    await pools.close()
    assert ended.kind == kind
    assert [ask.stage for ask in site.asked] == ["direct"] * (say is not None)
    assert len(calls.read_text().split()) == 1 + runs
    (decided,) = site.context.decided
    assert (decided.unrehearsed, decided.committed) == ("the root is an overlay itself", runs)
    if kind is not None:
        assert "it cannot be rehearsed: the root is an overlay itself" in ended.content


# what is let out ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("instead", [True, False], ids=["another directory", "nothing"])
async def test_a_command_is_let_out_only_where_the_roots_path_leads_to_the_root(site: Site, instead: bool) -> None:
    router = site.router(OPERATOR, let_out, ChangeServices(escalation=True))
    assert (await site.run(router, "pwd; touch outside", tool="run_cmd")).ok
    moved = site.root.rename(site.root.with_name("moved"))
    if instead:
        site.root.mkdir()
    ended = await site.run(router, "touch again", tool="run_cmd")
    assert ended.kind == "not_found"
    assert f"'{site.root}' no longer leads to the root directory of this session" in ended.content
    assert sorted(each.name for each in moved.iterdir()) == ["a.txt", "outside"]
    assert not instead or site.files == {}
    assert [each.unconfined for each in site.context.decided] == [True]


@pytest.mark.parametrize("escalation", [True, False], ids=["offered", "not offered"])
async def test_where_a_command_may_be_let_out_the_question_names_what_programs_obey(
    site: Site, escalation: bool
) -> None:
    for name in (".envrc", "Makefile", "x\u202e.pth"):
        (site.root / name).touch()
    await site.run(site.router(say=no, services=ChangeServices(escalation=escalation)), "touch", "b")
    assert (".envrc, x\\u202e.pth, which other programs obey" in site.asked[0].reason) is escalation


async def test_a_rehearsed_command_is_let_out_only_there_as_well(site: Site) -> None:
    def say(ask: ApprovalQuestion) -> ApprovalDecision:
        site.root.rename(site.root.with_name("moved"))
        return let_out(ask)

    ended = await site.run(site.router(say=say, services=ChangeServices(escalation=True)), "touch", "b")
    assert (ended.kind, site.context.decided) == ("not_found", [])
    assert not (site.root.with_name("moved") / "b").exists()


# what is kept of what ran ------------------------------------------------------------------------------------


async def test_output_of_a_cancelled_command_is_recorded(site: Site, tmp_path: Path) -> None:
    shown = trio.Event()

    async def approve(_ask: ApprovalQuestion) -> ApprovalDecision:
        await trio.lowlevel.checkpoint()
        return ApprovalDecision(approved=True)

    profile = Profile("operator", str(site.root), ("run_cmd",), own_ask=("run_cmd",))
    with open_journal(tmp_path / "journal.db") as journal, trio.fail_after(PATIENCE):
        session = Session(
            JournalWriter(journal),
            site.pools,
            profile,
            None,
            begun(journal, profile, None, attended=True),
            approve=approve,
            show=lambda event: shown.set() if isinstance(event, CallOutput) else None,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.call, "run_cmd", '{"command": "touch b; echo begun; sleep 1000"}')
            await shown.wait()
            nursery.cancel_scope.cancel()
        ended = journal.of_session(session.id)[-1].fact
    assert isinstance(ended, CallEnded)
    assert (ended.kind, ended.details) == ("cancelled", {"output": "begun\n"})
    assert site.files == {"a.txt": "old\n"}


async def test_a_call_is_undone_from_what_was_kept_in_another_directory_than_before(site: Site) -> None:
    async def undone() -> CallEnded:
        (site.root / "b").unlink(missing_ok=True)
        assert (await site.run(router, "cp", "a.txt", "b")).ok
        arguments = msgspec.json.encode({"pack": site.context.decided[-1].kept, "force": False}).decode()
        call = CallStarted(0, "u", "undo", arguments, True, "allow", "", rehearsed=True)
        return await router.execution.run(call, unoffered("undo"), site.context, undoes=("c",))

    router = site.router(say=yes)
    with trio.fail_after(PATIENCE):
        first = await undone()
        shutil.rmtree(site.kept)
        second = await undone()
    assert (first.ok, second.ok, site.files) == (True, True, {"a.txt": "old\n"})


def test_a_commit_that_was_cut_off_says_where_old_content_may_be(tmp_path: Path) -> None:
    (tmp_path / ".strongroom-00000000000000aa.tmp").mkdir()
    (tmp_path / ".strongroom-00000000000000bb.tmp").touch()  # a write of a file in progress
    first, last = interrupted_commit(drafts_in(str(tmp_path)), "a.pack")
    assert '".strongroom-00000000000000aa.tmp"' in first
    assert "undo" in last


async def test_changes_that_wait_for_people_have_a_limit_in_memory(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_HELD_BYTES", 5)
    router, waiting, _ = site.waiting_router()
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(site.run, router, "cp", "a.txt", "b")
            await waiting.wait()
            ended = await site.run(site.router(say=never), "cp", "a.txt", "c")
            nursery.cancel_scope.cancel()
    assert ended.kind == "resource_limit"
    assert "Nothing was changed." in ended.content
    assert site.files == {"a.txt": "old\n"}


TIMES: Final = [(None, "timeout"), (0.5, "timeout"), (20, None)]


@pytest.mark.parametrize(("asked", "kind"), TIMES)
async def test_a_command_has_the_time_that_it_asks_for(site: Site, asked: float | None, kind: str | None) -> None:
    """The usual time of a call, and so of its worker, is over long before."""
    services = replace(site.services, timeout_s=0.3, max_timeout_s=60)
    with trio.fail_after(PATIENCE):
        await site.pools.pool("shell").ready()
    pool = site.pools.pool("shell")
    pool.spec = replace(pool.spec, call_timeout=0.3)
    command = {"command": "sleep 0.6", **({"timeout_s": asked} if asked else {})}
    router = site.router(UNASKED, services=services)
    ended = await site.call(router, "run_cmd", msgspec.json.encode(command).decode())
    assert ended.kind == kind
    if kind == "timeout":
        assert f"within {0.3 if asked is None else 0.5}" in ended.content.replace("the ", "")


CUT_OFF: Final = [
    ("cancelled", {}, "Stopped. That was 2.5 s after it began.", {"output": "begun\n"}, 2.5),
    ("timeout", {"stdout": "all"}, "Stopped.", {"stdout": "all"}, 0.0),
    ("denied", {}, "Stopped.", {}, 0.0),
]


@pytest.mark.parametrize(("kind", "given", "content", "details", "seconds"), CUT_OFF)
def test_of_a_call_that_is_cut_off_it_is_told_what_it_printed_and_how_long_it_ran(
    kind: ErrorKind, given: dict[str, str | int], content: str, details: dict[str, str | int], seconds: float
) -> None:
    times = iter([10.0, 12.5])
    partial = PartialOutput(lambda: next(times))
    partial.begin("c")
    partial.add("c", "begun\n")
    ended = partial.completed(CallEnded(1, "c", "run_cmd", False, "Stopped.", kind=kind, details=given))
    assert (ended.content, ended.details, ended.seconds) == (content, details, seconds)


# what was refused by the sandbox ------------------------------------------------------------------------------

ONLY_OUTSIDE: Final = "test -d {} && echo real || {{ {} echo 'touch: Read-only file system' >&2; exit 1; }}"
LET_IT_TOUCH: Final = (Rule("allow", programs=("touch",), writes=("b",)), Rule("allow", writes=("b",)))
OFFERS: Final = [
    ("nothing changes, yes", let_out, {}, "", ["refused"], "real", [True]),
    ("nothing changes, no", no, {}, "", ["refused"], "not now", []),
    ("nothing changes, left", yes, {}, "", ["refused"], "refused", []),
    ("nobody is there", None, {}, "", [], "a person could let it do", []),
    ("not offered", never, {"escalation": False}, "", [], "", []),
    ("a rule denies", never, {"rules": (Rule("deny", programs=("test",), writes=("**",)),)}, "", [], "", []),
    ("allowed changes, yes", let_out, {"rules": LET_IT_TOUCH}, "touch b;", ["refused"], "real", [True]),
    ("allowed changes, no", no, {"rules": LET_IT_TOUCH}, "touch b;", ["refused"], "not now", [False]),
    ("changes that are asked about", yes, {}, "touch b;", ["effects"], "", [False]),
]


@pytest.mark.parametrize(
    ("say", "services", "more", "stages", "said", "unconfined"),
    [row[1:] for row in OFFERS],
    ids=[row[0] for row in OFFERS],
)
async def test_what_the_sandbox_refused_is_offered_outside_and_runs_there_after_a_yes_alone(
    say: Say | None,
    services: dict[str, Any],
    more: str,
    stages: list[str],
    said: str,
    unconfined: list[bool],
    site: Site,
) -> None:
    def person(ask: ApprovalQuestion) -> ApprovalDecision:
        assert "a write outside of the root" in (ask.effects.lacked if ask.effects else ask.reason)
        assert site.context.decided == []
        assert say is not None
        return say(ask)

    router = site.router(UNASKED, say and person, replace(site.services, **{"escalation": True, **services}))
    ended = await site.run(router, ONLY_OUTSIDE.format(site.kept.parent, more), tool="run_cmd")
    assert ended.ok
    assert [ask.stage for ask in site.asked] == stages
    assert all(ask.escalation for ask in site.asked)
    assert said in f"{ended.content} {ended.note} refused"
    assert ("real" in ended.content) is (unconfined == [True])
    assert [each.unconfined for each in site.context.decided] == unconfined
    assert ("b" in site.files) is (unconfined == [False])
