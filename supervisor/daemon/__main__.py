"""What clients start: `python -m supervisor.daemon background WORD_FD` or `private SOCKET_FD PARENT_PID LOG_LEVEL`."""

import os
import sys


def main() -> int:
    """Run as told; in the background, as a child of nobody who might wait for it."""
    how, *numbers = sys.argv[1:]
    if how == "background" and os.fork():
        os._exit(0)  # before anything of weight is imported: a fork of nothing but Python
    from supervisor.daemon.program import run_background, run_private

    return run_private(*map(int, numbers)) if how == "private" else run_background(int(numbers[0]))


if __name__ == "__main__":
    sys.exit(main())
