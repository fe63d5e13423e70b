"""How many requests a server has at once: halved at a limit, and opened again little by little."""

import math

import trio
import trio.testing

from supervisor.agent.models.request_window import RequestWindow
from tests.supervisor.command import HANG_GUARD


class RefusedError(Exception):
    """What a request ends in at a limit."""


def refuse() -> None:
    raise RefusedError


async def answered(window: RequestWindow) -> int:
    async with window.slot() as began:
        await trio.lowlevel.checkpoint()
    return began


async def test_there_is_no_limit_until_the_server_says_so() -> None:
    window = RequestWindow()
    async with trio.open_nursery() as nursery:
        for _ in range(200):
            nursery.start_soon(answered, window)
    assert window.width is math.inf


async def test_it_is_halved_once_for_all_requests_that_were_under_way() -> None:
    window = RequestWindow()
    rounds: list[int] = []
    done = trio.Event()

    async def refused() -> None:
        try:
            async with window.slot() as began:
                rounds.append(began)
                await done.wait()
                refuse()
        except RefusedError:
            window.limited(rounds[0])

    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as nursery:
            for _ in range(40):
                nursery.start_soon(refused)
            await trio.testing.wait_all_tasks_blocked()
            done.set()
    assert (set(rounds), len(rounds), window.width, window.busy) == ({0}, 40, 20.0, 0)


async def test_no_more_than_its_width_are_under_way_and_all_come_to_pass() -> None:
    window, most, ended = RequestWindow(), [0], [0]
    window.width = 4.0

    async def one() -> None:
        async with window.slot():
            most[0] = max(most[0], window.busy)
            await trio.lowlevel.checkpoint()
        ended[0] += 1

    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(one)
    assert ended[0] == 100
    assert 4 <= most[0] <= window.width
    assert 12 < window.width < 16  # by one for as many answers as it is wide: the square root of twice their number


async def test_one_request_is_always_let_in() -> None:
    window = RequestWindow()
    for _ in range(9):
        window.limited(await answered(window))
    assert window.width >= 1.0
    with trio.fail_after(HANG_GUARD):
        await answered(window)


async def test_who_is_cancelled_while_waiting_takes_no_place() -> None:
    window = RequestWindow()
    window.width = 1.0
    with trio.fail_after(HANG_GUARD):
        async with window.slot():
            with trio.move_on_after(0):
                await answered(window)
        assert window.busy == 0
        await answered(window)
