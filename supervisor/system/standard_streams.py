"""The descriptors that have a meaning: standard input, output and error."""

import os
from typing import Final

_LAST: Final = 2


def occupy_standard_descriptors() -> None:
    """Put /dev/null where one is closed, so that no socket of ours becomes one."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _LAST:
        pass
    os.close(descriptor)
