"""Entry of the daemons that clients start.

Its arguments are `background WORD_FD`, or `private SOCKET_FD PARENT_PID`, which a fault plan may follow. It imports all
that it needs, and does nothing else before its client lets it go on: by a line on standard input, the level of the log.
"""

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from supervisor.system.left_out import import_msgspec
from supervisor.system.process_end import run_to_exit

if TYPE_CHECKING:
    from supervisor.pool.template_process import TemplateProcess

_STDIN: Final = 0
_LINE: Final = 16


def main() -> int:
    """Run as told; in the background, as a child of nobody who might wait for it."""
    how, *words = sys.argv[1:]
    if how == "background" and os.fork():
        os._exit(0)  # before anything of weight is imported: a fork of nothing but Python
    gc.disable()  # imports leave no garbage: to look for it takes a tenth of their time. `program` enables it
    template = _template() if how == "private" else None
    import_msgspec()
    from supervisor.daemon.program import run_background, run_private

    if not (level := os.read(_STDIN, _LINE)):
        return 0  # nobody needs it any more
    os.close(_STDIN)
    os.open(os.devnull, os.O_RDWR)  # which takes its place
    if template is None:
        return run_background(int(words[0]))
    descriptor, parent = map(int, words[:2])
    return run_private(descriptor, parent, int(level), template, Path(words[2]) if words[2:] else None)


def _template() -> "TemplateProcess":
    """Start the workers' template, which imports while this process does: soon a call waits for a worker."""
    from supervisor.pool.template_process import TemplateProcess, worker_command

    return TemplateProcess(worker_command())


def begin() -> None:
    """Run as told, to the end of the process."""
    run_to_exit(main)


if __name__ == "__main__":
    begin()
