"""Entry of the daemons that clients start.

Its arguments are `background WORD_FD`, or `private SOCKET_FD PARENT_PID LOG_LEVEL`.

A fault plan may follow the latter.
"""

import gc
import os
import sys
from pathlib import Path

from supervisor.system.process_end import run_to_exit


def main() -> int:
    """Run as told; in the background, as a child of nobody who might wait for it."""
    how, *words = sys.argv[1:]
    if how == "background" and os.fork():
        os._exit(0)  # before anything of weight is imported: a fork of nothing but Python
    gc.disable()  # imports leave no garbage: to look for it takes a tenth of their time. `program` enables it
    from supervisor.daemon.program import run_background, run_private

    if how == "background":
        return run_background(int(words[0]))
    descriptor, parent, level = map(int, words[:3])
    return run_private(descriptor, parent, level, Path(words[3]) if words[3:] else None)


def begin() -> None:
    """Run as told, to the end of the process."""
    run_to_exit(main)


if __name__ == "__main__":
    begin()
