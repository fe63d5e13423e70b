"""What systemd hears: real datagrams on a real socket."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import trio
import trio.testing

from supervisor.config.settings import Settings, load
from supervisor.daemon.process import sd_notify
from supervisor.daemon.process.sd_notify import Notifier
from tests.supervisor.command import HANG_GUARD


@pytest.fixture
def settings(home: Path) -> Settings:
    return replace(load({"STRONGROOM_HOME": str(home)}), notify_socket=str(home / "notify"), watchdog_s=30.0)


@pytest.fixture
def systemd(home: Path) -> Iterator[socket.socket]:
    """The service manager's end."""
    home.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as receiver:
        receiver.bind(str(home / "notify"))
        yield receiver


def heard(systemd: socket.socket) -> list[str]:
    messages: list[str] = []
    try:
        while True:
            messages.append(systemd.recv(4096).decode())
    except BlockingIOError:
        return messages


@pytest.mark.parametrize(("say", "message"), [(Notifier.ready, "READY=1"), (Notifier.stopping, "STOPPING=1")])
def test_each_word_is_one_message(
    settings: Settings, systemd: socket.socket, say: Callable[[Notifier], Any], message: str
) -> None:
    say(Notifier(settings))
    assert heard(systemd) == [message]


def test_a_reload_says_when_it_began(settings: Settings, systemd: socket.socket) -> None:
    before = time.monotonic_ns() // 1000
    Notifier(settings).reloading()
    ((first, second),) = (message.split("\n") for message in heard(systemd))
    name, value = second.split("=")
    assert (first, name) == ("RELOADING=1", "MONOTONIC_USEC")
    assert before <= int(value) <= time.monotonic_ns() // 1000


def test_the_watchdog_is_fed_three_times_in_its_time(
    settings: Settings, systemd: socket.socket, autojump_clock: trio.testing.MockClock
) -> None:
    async def feed() -> None:
        with trio.move_on_after(59):  # seconds of a clock that jumps
            await Notifier(settings).watch()

    trio.run(feed, clock=autojump_clock)
    assert heard(systemd) == ["WATCHDOG=1"] * 6


@pytest.mark.parametrize("silent", [{"watchdog_s": None}, {"notify_socket": None}])
async def test_nobody_feeds_a_watchdog_that_is_not_there(
    settings: Settings, systemd: socket.socket, silent: dict[str, None]
) -> None:
    with trio.fail_after(HANG_GUARD):
        await Notifier(replace(settings, **silent)).watch()  # type: ignore[arg-type]
    assert heard(systemd) == []


def test_an_abstract_socket_is_found(settings: Settings) -> None:
    name = f"strongroom-test-{os.getpid()}-é"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as receiver:
        receiver.bind(b"\0" + name.encode())
        Notifier(replace(settings, notify_socket=f"@{name}")).ready()
        assert heard(receiver) == ["READY=1"]


def test_a_socket_at_a_long_path_is_found(settings: Settings, systemd: socket.socket, home: Path) -> None:
    far = home / ("d" * 120)
    far.mkdir()
    os.rename(home / "notify", far / "notify")
    Notifier(replace(settings, notify_socket=str(far / "notify"))).ready()
    assert heard(systemd) == ["READY=1"]


GONE: Final = [None, "/nowhere/notify", "@nobody", "@" + "x" * 200, "/" + "x" * 5000, "vsock:2:1234", "relative"]


@pytest.mark.parametrize("where", GONE, ids=lambda where: str(where)[:20])
async def test_without_a_listener_nothing_happens(settings: Settings, where: str | None) -> None:
    notifier = Notifier(replace(settings, notify_socket=where))
    for say in (notifier.ready, notifier.reloading, notifier.stopping):
        say()
    with trio.move_on_after(0):
        await notifier.watch()


def test_a_manager_that_reads_no_more_does_not_hold_the_daemon_up(
    settings: Settings, systemd: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sd_notify, "_PATIENCE_S", 0.01)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
        sender.connect(str(settings.notify_socket))
        with contextlib.suppress(BlockingIOError):
            while sender.send(b"full"):
                pass
    Notifier(settings).ready()
    assert set(heard(systemd)) == {"full"}
    Notifier(settings).ready()
    assert heard(systemd) == ["READY=1"]
