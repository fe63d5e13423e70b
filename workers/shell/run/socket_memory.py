"""Memory that waits in sockets of the internet's families, which no process has mapped and no limit of one holds.

Rule: what the kernel has given to all namespaces together is cheap to read, so that is looked at first; only where that
has grown are a namespace's own sockets added up. Without a limit one command could take all that the machine has for
TCP (tcp_mem of tcp(7)). Source: the kernel's Documentation/networking/proc_net_tcp.rst.
"""

import os
import re
from contextlib import suppress
from typing import Final

from workers.kernel import read_proc

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_PAGES: Final = re.compile(rb"mem (\d+)")
_QUEUES: Final = 4
"""The column of what waits to be sent and to be read, in hexadecimal."""
_AT_LEAST: Final = 2**20
"""Bytes that each queue is taken for where anything waits: of many small pieces, most of it is not told."""


def of_all_sockets() -> int:
    """Return the bytes that the whole machine's have."""
    return _PAGE * sum(map(int, _PAGES.findall(read_proc("/proc/net/sockstat"))))


def of_own_sockets() -> int:
    """Return the bytes that wait in those of this network namespace."""
    found = 0
    for name in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError), open(f"/proc/net/{name}", "rb") as table:
            for row in list(table)[1:]:
                waiting = (int(part, 16) for part in row.split()[_QUEUES].split(b":"))
                found += sum(max(each, _AT_LEAST) for each in waiting if each)
    return found
