"""The pools of one root, with the real files worker where the root matters."""

import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
import trio
import trio.testing

from supervisor.errors import ConfigError, WorkerError, WorkerUnavailable
from supervisor.pool.open_root import RootGone
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pool import Pool
from supervisor.pool.pools import Pools
from supervisor.pool.spec import ChildSpec, Restart
from supervisor.pool.template_process import worker_command
from tests.fake_worker import Step, fake
from tests.raw_worker import forked, template_of
from tests.supervisor.pool.harness import (
    HANG,
    QUICK,
    ask,
    busy,
    children,
    commit,
    descriptors,
    process_of,
    ready,
    restarts,
    until,
)
from workers.catalog import CATEGORIES
from workers.wire import messages
from workers.wire.messages import Context

Given = dict[str, Any]

REFUSES: list[Step] = [{"at_start": {"confine_fails": True}}]
NEVER = Restart(intensity=0)
TOOLS = tuple(tool.name for tool in CATEGORIES["files"].tools)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    for command in (worker_command(), fake([])["command"]):
        template_of(command)  # which lives on
    family, opened = children(), descriptors()
    yield
    assert children() == family
    assert {number for number in descriptors() if number not in opened} == set()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("the original\n")
    return root


class OpenPools(Protocol):
    def __call__(self, fakes: Mapping[str, Given] | None = None, **fields: Any) -> Pools:
        """Open pools of real, confined workers, or of fake ones, good but for these; `fields` are those of the spec."""


@pytest.fixture
async def open_pools(root: Path, nursery: trio.Nursery) -> AsyncIterator[OpenPools]:
    opened: list[Pools] = []

    def open_them(fakes: Mapping[str, Given] | None = None, **fields: Any) -> Pools:
        def spec(category: str) -> ChildSpec:
            if fakes is not None:
                return ChildSpec(category, context, **(fakes.get(category) or fake([])), **fields)
            spec = ChildSpec(category, context, tools=TOOLS, restart=QUICK, call_timeout=HANG, stop_timeout=HANG)
            return forked(spec)

        context = Context(str(root))
        opened.append(Pools(str(root), spec, nursery))
        return opened[-1]

    yield open_them
    with trio.fail_after(HANG):
        for pools in opened:
            await pools.close()


async def tool(pool: Pool, name: str, *, effect: bool = False, **arguments: Any) -> str:
    with trio.fail_after(HANG):
        raw = json.dumps(arguments).encode()
        answer = await (commit(pool, name, raw) if effect else pool.call(name, raw, effect=False))
    assert isinstance(answer, messages.Done), answer
    return answer.content


async def test_a_root_that_is_no_directory_is_a_configuration_error(root: Path, nursery: trio.Nursery) -> None:
    for name, reason in (("none", "No such file"), ("a.txt", "Not a directory")):
        with pytest.raises(ConfigError, match=reason):
            Pools(str(root / name), lambda category: ChildSpec(category, Context(str(root))), nursery)


async def test_a_category_has_one_pool_which_closes_even_if_it_never_ran(open_pools: OpenPools) -> None:
    pools = open_pools()
    assert pools.pool("files") is pools.pool("files")
    assert list(pools.opened) == ["files"]
    with trio.fail_after(HANG):
        await pools.close()


async def test_restarted_workers_still_see_the_directory_that_was_opened(open_pools: OpenPools, root: Path) -> None:
    pools = open_pools()
    pool = pools.pool("files")
    assert "the original" in await tool(pool, "read_file", path="a.txt")
    await until(lambda: len(ready(pool)) == 2)
    leading_there = [number for number, target in descriptors().items() if target == str(root)]
    assert leading_there == [str(pools.root.descriptor)]  # the one that every worker has

    moved, evil = root.with_name("moved"), root.with_name("evil")
    root.rename(moved)
    evil.mkdir()
    (evil / "a.txt").write_text("CANARY\n")
    root.symlink_to(evil)
    for slot in ready(pool):
        os.kill(process_of(slot).pid, signal.SIGKILL)
    await until(lambda: restarts(pool) == 2 and ready(pool))

    assert "the original" in await tool(pool, "read_file", path="a.txt")
    await tool(pool, "write_file", effect=True, path="b.txt", content="new")
    assert (moved / "b.txt").read_text() == "new"
    assert not (evil / "b.txt").exists()


async def test_a_mebibyte_goes_in_and_two_come_out(open_pools: OpenPools, root: Path) -> None:
    pools = open_pools()
    pool = pools.pool("files")
    line = "0123456789abcde\n"
    await tool(pool, "write_file", effect=True, path="in.txt", content=line * 2**16)
    assert (root / "in.txt").stat().st_size == 2**20
    (root / "out.txt").write_text(line * 2**17)
    assert await tool(pool, "read_file", path="out.txt") == line * 2**17


async def test_pools_close_in_the_reverse_order_of_their_opening(open_pools: OpenPools, nursery: trio.Nursery) -> None:
    pools = open_pools({})
    stopped: list[str] = []

    async def watch(category: str) -> None:
        await pools.pool(category).workers.slots[0].stopped.wait()
        stopped.append(category)

    for category in ("first", "second", "third"):
        assert await ask(pools.pool(category), "ping") == "pong"
        nursery.start_soon(watch, category)
    await trio.testing.wait_all_tasks_blocked()
    with trio.fail_after(HANG):
        await pools.close()
    await trio.testing.wait_all_tasks_blocked()
    assert stopped == ["third", "second", "first"]
    assert pools.opened == {}


async def test_no_pool_is_opened_while_others_close_or_later(open_pools: OpenPools, nursery: trio.Nursery) -> None:
    """It would be on a descriptor that is about to be another directory's."""
    pools = open_pools()
    files = pools.pool("files")
    await until(lambda: len(ready(files)) > 0)
    nursery.start_soon(pools.close)
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(WorkerUnavailable, match="have been stopped"):
        pools.pool("search")
    await until(lambda: not pools.opened)
    with pytest.raises(WorkerUnavailable, match="have been stopped"):
        pools.pool("files")


async def test_the_death_of_one_category_does_not_touch_another(open_pools: OpenPools) -> None:
    pools = open_pools({"bad": fake([{"exit": 1}])}, restart=QUICK)
    assert await ask(pools.pool("good"), "ping") == "pong"
    await until(lambda: len(ready(pools.pool("good"))) == 2)
    with pytest.raises(Exception, match="exited with code 1"):
        await pools.pool("bad").call("read", b"{}", effect=False)
    assert await ask(pools.pool("good"), "ping") == "pong"
    assert restarts(pools.pool("good")) == 0


async def test_a_held_call_is_discarded_by_its_worker_when_the_pools_close(open_pools: OpenPools, root: Path) -> None:
    pools = open_pools()
    pool = pools.pool("files")
    with trio.fail_after(HANG):
        held = await pool.propose("write_file", b'{"path": "b.txt", "content": "new"}')
        assert isinstance(held, PendingProposal)
        (slot,) = pool.checkout.held
        await pools.close()
    assert slot.last_death == "exited with code 0"
    assert sorted(each.name for each in root.iterdir()) == ["a.txt"]
    with pytest.raises(WorkerUnavailable):
        await held.decide(commit=True)


async def test_calls_of_a_category_are_answered_while_those_of_others_are_not(
    open_pools: OpenPools, nursery: trio.Nursery
) -> None:
    bad = {
        "stops": fake([{"stop": True}]),
        "spins": fake([{"ignore": ["SIGTERM"]}, {"spin": True}]),
        "dies": fake([{"at_start": {"exit": 1}}]),
    }
    pools = open_pools(
        bad,
        workers=1,
        stop_timeout=0.05,
        terminate_timeout=0.05,
        call_timeout=3600.0,
        restart=Restart(intensity=1000, first_backoff=0.01, longest_backoff=0.01),
    )
    ended: list[str] = []

    async def call(category: str) -> None:
        with pytest.raises(WorkerError):
            await pools.pool(category).call("work", b"{}", effect=True)
        ended.append(category)

    for category in bad:
        for _ in range(3):
            nursery.start_soon(call, category)
    await until(lambda: all(len(busy(pools.pool(each))) == 1 for each in ("stops", "spins")))
    await until(lambda: restarts(pools.pool("dies")))
    for _ in range(10):
        assert await ask(pools.pool("good"), "ping") == "pong"
    assert ended == []
    with trio.fail_after(HANG):
        await pools.close()
    await until(lambda: len(ended) == 9)


async def test_a_question_about_workers_that_refuse_says_why_and_tries_them_anew_next_time(
    open_pools: OpenPools, tmp_path: Path
) -> None:
    cured = tmp_path / "cured"
    pools = open_pools({"shell": fake(REFUSES, cured=cured)}, restart=NEVER)
    with trio.fail_after(HANG):
        assert "refused to serve without landlock" in await pools.refusal("shell")
        assert pools.opened == {}
        cured.touch()
        assert await pools.refusal("shell") == ""
        first = pools.pool("shell")
        assert await pools.refusal("shell") == ""
        assert pools.pool("shell") is first
        assert await ask(first, "ping") == "pong"
        await pools.close()
        assert await pools.refusal("shell") == ""


async def test_several_may_ask_about_the_same_workers_at_once(open_pools: OpenPools) -> None:
    pools = open_pools({"shell": fake(REFUSES)}, restart=NEVER)
    heard: list[str] = []

    async def hear() -> None:
        heard.append(await pools.refusal("shell"))

    with trio.fail_after(HANG):
        async with trio.open_nursery() as asking:
            for _ in range(3):
                asking.start_soon(hear)
        await pools.close()
    assert len([why for why in heard if "refused" in why]) == 3


async def test_workers_that_die_have_not_refused(open_pools: OpenPools) -> None:
    pools = open_pools({"shell": fake([{"at_start": {"exit": 1}}])}, restart=NEVER)
    with trio.fail_after(HANG):
        assert await pools.refusal("shell") == ""


async def test_there_are_no_workers_for_a_root_that_was_deleted(open_pools: OpenPools, root: Path) -> None:
    pools = open_pools()
    assert "the original" in await tool(pools.pool("files"), "read_file", path="a.txt")
    shutil.rmtree(root)
    root.mkdir()
    with pytest.raises(RootGone, match=f"{root}.* has been deleted"):
        pools.pool("files")


# what workers stand on ---------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """What workers stand on."""
    place = tmp_path / "kept"
    place.mkdir()
    return place


async def test_workers_are_others_once_what_they_stand_on_is_another_directory(
    open_pools: OpenPools, place: Path
) -> None:
    pools = open_pools({}, stands_on=str(place))
    first = pools.pool("restore")
    assert await ask(first, "ping") == "pong"
    assert pools.pool("restore") is first
    place.rename(place.with_name("old"))
    assert pools.pool("restore") is first  # as long as there is none
    place.mkdir()
    second = pools.pool("restore")
    assert second is not first
    assert pools.pool("restore") is second
    await until(lambda: first.workers.slots == [])


async def test_workers_stay_until_they_have_ended_what_they_do(open_pools: OpenPools, place: Path) -> None:
    pools = open_pools({}, stands_on=str(place))
    first = pools.pool("restore")
    with trio.fail_after(HANG):
        held = await first.propose("write_file", b"{}")
        assert isinstance(held, PendingProposal)
        place.rename(place.with_name("old"))
        place.mkdir()
        assert pools.pool("restore") is first
        await held.decide(commit=True)
        assert pools.pool("restore") is not first
