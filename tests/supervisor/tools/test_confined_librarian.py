"""An attacker's Python in the workers of a librarian: it reads one repository, and changes nothing anywhere."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import trio

from supervisor.config.profiles import resolve
from supervisor.config.repositories import Names
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
from tests.supervisor.repositories import FIRST, GROUP, SECOND, Repos

HANG: Final = 60

Attack = Callable[[str], Awaitable[CallEnded]]
OpenWorker = Callable[..., Attack]


@pytest.fixture
def repos(tmp_path: Path) -> Repos:
    return Repos(tmp_path)


@pytest.fixture
async def open_worker(nursery: trio.Nursery, repos: Repos) -> AsyncIterator[OpenWorker]:
    """Return a function that lets an attacker into the worker of a category, of a session on a technology."""
    opened: list[Pools] = []

    def make(category: str = "files", technology: str = FIRST, profile: str = "librarian") -> Attack:
        settings = load({"STRONGROOM_HOME": str(repos.home)})
        root = None if profile == "librarian" else str(repos.path / GROUP / technology)
        names = Names(GROUP, technology, "staging") if root is None else Names()
        using = resolve(settings, profile, root, None, names)

        def spec_of(name: str) -> ChildSpec:
            spec = child_spec(settings, using, name)
            return forked(replace(spec, command=hostile_command(category=name), tools=()))

        pools = Pools(using.root, spec_of, nursery)
        opened.append(pools)
        router = Router(using, pools, None)
        router.offers = {"attack": Offer("attack", "", {}, category, False)}

        async def attack(code: str) -> CallEnded:
            call = CallStarted(1, "c", "attack", json.dumps({"code": code}), False, "allow", "")
            with trio.fail_after(HANG):
                return await router.run(call, RecordingContext())

        return attack

    yield make
    for pools in opened:
        await pools.close()


CATEGORIES: Final = ["files", "search"]
SEES: Final = "result = [context.agent.working_directory, context.agent.environment, context.agent.group, "
SEES_ALSO: Final = "context.agent.technology]"


@pytest.mark.parametrize("category", CATEGORIES)
async def test_every_tool_is_given_the_context(open_worker: OpenWorker, repos: Repos, category: str) -> None:
    for technology in (FIRST, SECOND):
        ended = await open_worker(category, technology)(SEES + SEES_ALSO)
        assert ended.content == f"did {[str(repos.path / GROUP / technology), 'staging', GROUP, technology]!r}"


async def test_the_workers_of_another_profile_are_given_no_names(open_worker: OpenWorker, repos: Repos) -> None:
    ended = await open_worker(profile="project")(SEES + SEES_ALSO)
    assert ended.content == f"did {[str(repos.first), None, None, None]!r}"


class Way(NamedTuple):
    name: str
    code: str
    writable: bool = True
    """True: a worker that may write can do it."""


FD: Final = "dir_fd=context.root.fd"
WAYS: Final = [
    Way("make a file", f"os.close(os.open('new', os.O_WRONLY | os.O_CREAT, {FD}))"),
    Way("make a file by its absolute path", "open(context.agent.working_directory + '/new', 'x').close()"),
    Way("write a file", f"os.write(os.open('guide.md', os.O_WRONLY, {FD}), b'x')"),
    Way("append to a file", f"os.write(os.open('guide.md', os.O_WRONLY | os.O_APPEND, {FD}), b'x')"),
    Way("read and write a file", f"os.write(os.open('guide.md', os.O_RDWR, {FD}), b'x')"),
    Way("truncate a file as it is opened", f"os.close(os.open('guide.md', os.O_RDONLY | os.O_TRUNC, {FD}))"),
    Way("truncate what is open", f"os.ftruncate(os.open('guide.md', os.O_RDONLY, {FD}), 0)", writable=False),
    Way("remove a file", "call('unlinkat', context.root.fd, b'guide.md', 0)"),
    Way("rename a file", "call('renameat', context.root.fd, b'guide.md', context.root.fd, b'new')"),
    Way("rename a directory", "call('renameat', context.root.fd, b'lib', context.root.fd, b'new')"),
    Way("make a directory", "call('mkdirat', context.root.fd, b'new', 0o700)"),
    Way("make a file without a name", f"os.close(os.open('.', os.O_WRONLY | os.O_TMPFILE, {FD}))", writable=False),
    Way("link a file", "call('linkat', context.root.fd, b'guide.md', context.root.fd, b'new', 0)", writable=False),
    Way("make a symbolic link", "call('symlinkat', b'guide.md', context.root.fd, b'new')", writable=False),
    Way("change a mode", "call('fchmodat', context.root.fd, b'guide.md', 0o777)", writable=False),
]


def contents(folder: Path) -> dict[str, str]:
    """Return everything in a directory: what a file holds, and where a link leads."""
    return {
        str(each.relative_to(folder)): str(each.readlink()) if each.is_symlink() else each.read_text()
        for each in sorted(folder.rglob("*"))
        if each.is_symlink() or each.is_file()
    }


@pytest.mark.parametrize("category", CATEGORIES)
async def test_nothing_in_the_repository_can_be_changed(open_worker: OpenWorker, repos: Repos, category: str) -> None:
    """All in one worker: what is refused leaves it as it was."""
    before = contents(repos.first)
    attack = open_worker(category)
    for way in WAYS:
        content = (await attack(way.code)).content
        assert content in {"refused EACCES", "refused EPERM"}, f"{way.name}: {content}"
    assert contents(repos.first) == before


@pytest.mark.parametrize("way", [way for way in WAYS if way.writable], ids=[way.name for way in WAYS if way.writable])
async def test_a_worker_that_may_write_there_can(open_worker: OpenWorker, way: Way) -> None:
    """Else the ways above would prove nothing."""
    assert (await open_worker(profile="project")(way.code)).content.startswith("did ")


PEEPHOLES: Final = [
    ("an absolute path", "result = open(other + '/guide.md').read()"),
    ("an absolute listing", "result = os.listdir(other)"),
    ("the way up", f"result = os.open('../{SECOND}/guide.md', os.O_RDONLY, {FD})"),
    ("a listing of the group", f"result = os.listdir(os.open('..', os.O_RDONLY | os.O_DIRECTORY, {FD}))"),
    ("a link beside", f"result = os.open('beside/guide.md', os.O_RDONLY, {FD})"),
    ("an absolute link", f"result = os.open('absolute/guide.md', os.O_RDONLY, {FD})"),
    ("the root's descriptor", f"result = open('/proc/self/fd/%d/../{SECOND}/guide.md' % context.root.fd).read()"),
]


@pytest.mark.parametrize("category", CATEGORIES)
async def test_nothing_of_the_other_technology_can_be_read(
    open_worker: OpenWorker, repos: Repos, category: str
) -> None:
    """Also while that one has a session of its own, which reads it."""
    first, second = open_worker(category), open_worker(category, SECOND)
    other = f"other = {str(repos.second)!r}\n"
    for name, code in PEEPHOLES:
        content = (await first(other + code)).content
        assert content == "refused EACCES", f"{name}: {content}"
    own = f"result = os.read(os.open('guide.md', os.O_RDONLY, {FD}), 99)"
    assert (await second(own)).content == "did b'All about ecto.\\n'"
    assert (await second(other + PEEPHOLES[0][1])).content == "did 'All about ecto.\\n'"
