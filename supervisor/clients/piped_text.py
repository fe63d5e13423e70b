"""Text that is piped in: what goes with a prompt from standard input.

Rule: it is waited for to its end, since an answer to a part of it would be an answer to something else.
"""

import os
import select
import stat
import sys
from collections.abc import Callable
from typing import Final

from supervisor.errors import ConfigError

_PATIENCE: Final = 3.0
"""Seconds after which a person is told that standard input is waited for."""
_MOST: Final = 8 * 2**20
"""Bytes that go with a prompt."""


def piped_text(warn: Callable[[str], None]) -> str:
    """Return what a pipe, a socket or a file on standard input holds; nothing where it is a terminal or a device.

    Raises:
        ConfigError: it cannot be read, is no text, or too much.
    """
    if sys.stdin is None:
        return ""
    try:
        read = _read(sys.stdin.fileno(), warn)
    except OSError as error:
        raise ConfigError(f"Standard input cannot be read: {error.strerror}.") from error
    try:
        return read.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"Standard input is not UTF-8: {error.reason} at byte {error.start}.") from error


def _read(descriptor: int, warn: Callable[[str], None]) -> bytes:
    """Return all of it; as long as nothing comes, the person is told what is waited for."""
    mode = os.fstat(descriptor).st_mode
    streams = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)  # some programs give those that they start a socket
    if not (streams or stat.S_ISREG(mode)):
        return b""
    if streams and not select.select([descriptor], [], [], _PATIENCE)[0]:
        warn("(waiting for the end of standard input, which goes with the prompt; `< /dev/null` is none)")
    read = bytearray()
    while chunk := os.read(descriptor, 2**16):
        read += chunk
        if len(read) > _MOST:
            raise ConfigError(f"Standard input holds more than {_MOST} bytes. Name a file for the agent to read.")
    return bytes(read)
