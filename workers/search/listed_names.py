"""The names of files as ripgrep lists them, one run, piece by piece."""

from collections.abc import Iterator

from workers.errors import ToolError
from workers.search import rg_arguments
from workers.search.rg_process import Run, Runs


def listed_names(program: str, arguments: tuple[str, ...], deadline: float) -> Iterator[tuple[Run, bytes]]:
    """Yield whole names, with a NUL between two, and the run that lists them; it is ended with the generator.

    Raises:
        Overdue: the deadline, of time.monotonic(), has passed.
        ToolError: ripgrep failed.
    """
    with Runs(program, deadline) as runs:
        run = runs.start(*arguments)
        rest = b""
        for _, chunk in runs.chunks():
            names, _, rest = (rest + chunk).rpartition(b"\0")
            yield run, names
    assert run.status is not None
    if rg_arguments.out_of_memory(run.status):
        raise ToolError("resource_limit", "The search ran out of memory. Use a narrower pattern.")
    if run.status not in rg_arguments.ENDS_WELL:
        raise rg_arguments.failure(run.status, run.stderr)


def decoded(names: bytes, between: bytes) -> tuple[list[str], list[bytes]]:
    """Return the names that are UTF-8, and those that are not."""
    try:
        return names.decode().split(between.decode()) if names else [], []
    except UnicodeDecodeError:
        apart = names.split(between)
        return [name.decode() for name in apart if _is_utf8(name)], [name for name in apart if not _is_utf8(name)]


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
