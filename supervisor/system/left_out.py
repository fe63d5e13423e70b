"""Modules that are left out of what imports them.

Rule: only where a library says itself that it does without, and nobody in this process needs what it then lacks.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_out(name: str) -> Iterator[None]:
    """Let nothing find a module within the block, unless it is imported already."""
    if name in sys.modules:
        yield
        return
    vars(sys)["modules"][name] = None
    try:
        yield
    finally:
        del sys.modules[name]
