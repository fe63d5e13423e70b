"""Modules that are left out of what imports them.

Rule: only where a library says itself that it does without, or asks it one word, and nobody in this process needs what
it then lacks.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Platform:
    """What uuid asks of `platform`, whose import takes longer than the rest of it."""

    @staticmethod
    def system() -> str:
        """Return the system that this runs on, and on no other."""
        return "Linux"


def import_msgspec() -> None:
    """Import msgspec for all that follow, without what it has no need of; as in `pool.template_process`."""
    with left_out("typing_extensions"), left_out("platform", _Platform):
        import msgspec  # noqa: F401


@contextmanager
def left_out(name: str, instead: object = None) -> Iterator[None]:
    """Let nothing find a module within the block, or something else, unless it is imported already."""
    if name in sys.modules:
        yield
        return
    vars(sys)["modules"][name] = instead
    try:
        yield
    finally:
        del sys.modules[name]
