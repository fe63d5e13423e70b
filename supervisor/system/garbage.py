"""Python's search for garbage, kept away from what is imported.

Rule: imports leave no garbage, and all that they make stays. To search it takes a tenth of a program's start, and stops
an event loop for 0.1 s or more, again and again.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_USUAL: Final = (700, 10, 10)
"""Python's own thresholds."""


def collect_from_here() -> None:
    """Search what is made from here on, and never again what is there."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
    gc.enable()


@contextmanager
def importing(library: str) -> Iterator[None]:
    """Search nothing within the block, which imports something large, nor later what it has imported.

    Where it is imported already, the block is like any other.
    """
    if library in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        collect_from_here()


def give_back() -> None:
    """Give the kernel the memory that is free here, of which glibc keeps what once was needed (malloc_trim(3))."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none, and keep little
    if trim is not None:
        trim(0)
