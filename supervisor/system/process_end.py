"""The end of a process, without taking apart what it has imported: that takes as long as many a command's work.

Rule: all else that Python does at an end is done first. Threads are waited for, what was registered with `atexit` runs,
and output is flushed; where it cannot be, or the end is no exit code, the rest is left to Python, which tells why.
"""

import atexit
import os
import sys
from collections.abc import Callable


def run_to_exit(program: Callable[[], int | None]) -> None:
    """Run a program, and end the process with the code that it returns or exits with.

    Call it before anything registers with `atexit`: what was registered earlier would run later, and so not at all.
    """
    code: list[int] = []
    atexit.register(_end, code)
    try:
        sys.exit(program())
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            code.append(end.code or 0)
        raise


def _end(code: list[int]) -> None:
    """Leave, if there is a code to leave with and nothing is left to say."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):  # as Python will find again, and tell
        return
    if code:
        os._exit(code[0])
