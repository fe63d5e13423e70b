"""Modes and attributes of directories in the root, changed by descriptors.

Rule: a directory is made writable only for as long as something in it, or it itself, has to be moved.
"""

import os
import stat
from typing import Final

from workers.treediff.snapshot import BITS, attributes_of

_HANDLE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def give(directory: int, attributes: dict[str, bytes], mode: int) -> None:
    """Let a directory have these attributes and no others, and then this mode."""
    os.fchmod(directory, mode | stat.S_IRWXU)
    for name in attributes_of(directory).keys() - attributes.keys():
        os.removexattr(directory, name)
    for name, value in attributes.items():
        os.setxattr(directory, name, value)
    os.fchmod(directory, mode)


def loosen(parent: int, name: str) -> None:
    """Let a directory be moved and emptied: that takes the right to write it."""
    handle = os.open(name, _HANDLE, dir_fd=parent)
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            change_mode(handle, status.st_mode & BITS | stat.S_IRWXU)
    finally:
        os.close(handle)


def set_mode(parent: int, name: str, mode: int) -> None:
    """Give a directory its mode, if it has another."""
    handle = os.open(name, _HANDLE, dir_fd=parent)
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode) and status.st_mode & BITS != mode:
            change_mode(handle, mode)
    finally:
        os.close(handle)


def change_mode(handle: int, mode: int) -> None:
    """Change the mode of what an O_PATH descriptor stands for, which fchmod(2) does not do."""
    os.chmod(f"/proc/self/fd/{handle}", mode)
