"""What stands in the memory of another process: a text that ends with a NUL.

Rule: one system call, with buffers made once, because it is on the way of every name that a command changes. What is
read may be another text a moment later. Source: process_vm_readv(2).
"""

import ctypes
from typing import Final

_SHORT: Final = 256
"""Bytes that most texts do not have."""
_ADDRESSES: Final = 2**47
"""User memory ends here, at the latest."""


class _Span(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_size_t), ("size", ctypes.c_size_t))


class Memory:
    """Reads texts of at most `longest` bytes."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._buffer = ctypes.create_string_buffer(longest + 1)
        self._here = _Span(ctypes.addressof(self._buffer), longest)
        self._there = _Span(0, 0)
        self._addresses = ctypes.addressof(self._here), ctypes.addressof(self._there)
        self._read = ctypes.CDLL(None).process_vm_readv
        self._read.argtypes = (ctypes.c_int, *(ctypes.c_size_t,) * 5)
        self._read.restype = ctypes.c_ssize_t

    def text(self, process: int, address: int) -> bytes:
        """Return what begins there, without its end; nothing where it cannot be read."""
        if not 0 < address < _ADDRESSES:
            return b""
        for size in (_SHORT, self._longest):
            self._there.base, self._there.size = address, size
            here, there = self._addresses
            count = self._read(process, here, 1, there, 1, 0)
            if count <= 0:
                return b""
            self._buffer[count] = b"\0"
            text = self._buffer.value
            if len(text) < count or count < size:
                break
        return text
