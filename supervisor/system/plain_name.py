"""Ids as parts of file names."""

import re
from typing import Final

_UNPLAIN: Final = re.compile(r"[^A-Za-z0-9_-]")
_PART: Final = 64
"""Characters of an id in a name."""


def plain(part: str) -> str:
    """Return an id as a part of a file's name: without dots, slashes and what not, and not too long."""
    return _UNPLAIN.sub("_", part)[:_PART]
