"""Notifications to systemd: the protocol of sd_notify(3), without its library.

Rule: where systemd did not ask, nothing happens; where it has gone, nothing fails. The watchdog's message comes from
the event loop itself, so a loop that hangs falls silent.
"""

import os
import socket
import time
from contextlib import suppress
from typing import Final

import trio

from supervisor.config.settings import Settings
from supervisor.system import unix_socket

_PATIENCE_S: Final = 1.0
"""How long a full queue at the other end may hold us up."""


class Notifier:
    """Speaks to the socket that systemd named, if it did."""

    def __init__(self, settings: Settings) -> None:
        self._socket = settings.notify_socket
        self._watchdog_s = settings.watchdog_s

    def ready(self) -> None:
        """Say that clients can connect; also after a reload."""
        self._send("READY=1")

    def reloading(self) -> None:
        """Say that the configuration is being read again; `ready` follows."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Say that the daemon is on its way out."""
        self._send("STOPPING=1")

    async def watch(self) -> None:
        """Show that the loop runs, three times in the time that systemd waits; returns at once if it does not."""
        while self._socket is not None and self._watchdog_s is not None:
            self._send("WATCHDOG=1")
            await trio.sleep(self._watchdog_s / 3)

    def _send(self, message: str) -> None:
        if self._socket is None or self._socket[0] not in "@/":
            return  # none, or of a kind that only virtual machines have
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_PATIENCE_S)
            if self._socket.startswith("@"):
                sender.connect(b"\0" + os.fsencode(self._socket[1:]))
            else:
                with unix_socket.address(self._socket) as name:
                    sender.connect(name)
            sender.sendall(message.encode("utf-8"))
