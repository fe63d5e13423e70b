"""Calls through the real router, pool and a confined worker that is hostile: what the configuration holds it to."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import trio

from supervisor.config.profiles import resolve
from supervisor.config.settings import load
from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec
from supervisor.session.child_specs import child_spec
from supervisor.tools.catalog import Offer
from supervisor.tools.router import Router
from tests.hostile_worker import hostile_command
from tests.raw_worker import forked
from tests.supervisor.recording_context import RecordingContext

HANG: Final = 60

Attack = Callable[..., Awaitable[CallEnded]]
OpenAttack = Callable[[str], Attack]


@pytest.fixture
async def open_attack(nursery: trio.Nursery, home: Path, root: Path) -> AsyncIterator[OpenAttack]:
    """Return a function that takes a configuration and returns one that runs an attacker's Python under it."""
    opened: list[Pools] = []

    def make(config: str) -> Attack:
        home.mkdir()
        (home / "config.toml").write_text(config)
        settings = load({"STRONGROOM_HOME": str(home)})
        profile = resolve(settings, "vault", str(root))

        def spec_of(category: str) -> ChildSpec:
            spec = child_spec(settings, profile, category)
            return forked(replace(spec, command=hostile_command(), tools=()))

        pools = Pools(str(root), spec_of, nursery)
        opened.append(pools)
        router = Router(profile, pools, None)

        async def attack(code: str, *, effect: bool = False) -> CallEnded:
            router.offers = {"attack": Offer("attack", "", {}, "files", effect)}
            call = CallStarted(1, "c", "attack", json.dumps({"code": code}), effect, "allow", "")
            with trio.fail_after(HANG):
                return await router.run(call, RecordingContext())

        return attack

    yield make
    for pools in opened:
        await pools.close()


SPIN: Final = "open(root_path, 'a').write('x')\nwhile True: pass"


@pytest.mark.parametrize("effect", [False, True], ids=["a read", "a write"])
async def test_a_call_that_uses_up_its_processor_time_says_so_and_is_made_once(
    open_attack: OpenAttack, root: Path, effect: bool
) -> None:
    attack = open_attack("[limits.files]\ncpu_s = 1\n")
    path = str(root / "runs")
    ended = await attack(f"root_path = {path!r}\n{SPIN}", effect=effect)
    assert (ended.ok, ended.kind) == (False, "resource_limit")
    assert "used up its processor time" in ended.content
    assert ("Nothing of it was committed." in ended.content) == effect
    assert (root / "runs").read_text() == "x"
    assert (await attack("result = 1 + 1")).content == "did 2"


class Way(NamedTuple):
    name: str
    code: str
    refusal: str
    """The error of the lock: EACCES is Landlock's, EPERM seccomp's."""


WAYS: Final = [
    Way("make a file", "os.close(os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=context.root.fd))", "EACCES"),
    Way("write a file", "os.write(os.open('a.txt', os.O_WRONLY, dir_fd=context.root.fd), b'x')", "EACCES"),
    Way("truncate a file", "os.close(os.open('a.txt', os.O_RDONLY | os.O_TRUNC, dir_fd=context.root.fd))", "EACCES"),
    Way("make a directory", "call('mkdirat', context.root.fd, b'made', 0o700)", "EPERM"),
    Way("remove a file", "call('unlinkat', context.root.fd, b'a.txt', 0)", "EPERM"),
]

READ_ONLY: Final = [
    ("writable = false", "[profiles.vault]\nwritable = false\n"),
    ("reading tools alone", "[profiles.vault]\ntools = ['read_file', 'list_files']\n"),
    ("both", "[profiles.vault]\nwritable = true\ntools = ['list_files']\n"),
]


@pytest.mark.parametrize("config", [each[1] for each in READ_ONLY], ids=[each[0] for each in READ_ONLY])
async def test_the_workers_of_a_profile_that_only_reads_cannot_write(
    open_attack: OpenAttack, root: Path, config: str
) -> None:
    attack = open_attack(config)
    for way in WAYS:
        assert (await attack(way.code)).content == f"refused {way.refusal}", way.name
    assert [each.name for each in root.iterdir()] == ["a.txt"]
    assert (root / "a.txt").read_text() == "hello\n"


async def test_the_workers_of_a_profile_that_writes_can(open_attack: OpenAttack) -> None:
    """Else the ways above would prove nothing."""
    attack = open_attack("")
    for way in WAYS:
        assert (await attack(way.code)).content.startswith("did "), way.name
