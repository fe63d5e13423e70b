"""The entry of every worker process: park the pipes, confine, serve.

Rule: the order below is the protection. Death with the supervisor comes first, so that no later step can leave
an orphan; the frames leave fds 0 and 1 before anything is imported that could print; Landlock and seccomp come
last, after every import and what the category prepares; nothing that a model wrote is read before `Ready`.
"""

import gc
import os
import stat
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from workers import kernel
from workers.catalog import CATEGORIES, Category
from workers.confine import ProtectionUnavailable, confine, die_with
from workers.loop import Pipe, by_name, serve
from workers.tool import ToolContext
from workers.tree.obeyed_names import read_names
from workers.tree.root import Root
from workers.wire import messages

if TYPE_CHECKING:
    from workers.faults.injector import FaultInjector

_OBJECTS: Final = 20_000
"""New objects after which Python looks for garbage; at its own 700 that is a twentieth of what many files take."""


def park() -> Pipe:
    """Move the frames to private descriptors; then fd 0 is at its end, and no file of the machine's; fd 1 is stderr."""
    pipe, ends = Pipe(os.dup(0), os.dup(1)), os.pipe()
    os.dup2(ends[0], 0)
    os.dup2(2, 1)
    for each in ends:
        os.close(each)
    return pipe


def run(supervisor: int, categories: Mapping[str, Category]) -> int:
    """Live one worker's life; `supervisor` is the pid that it must not outlive. Returns the exit code.

    Where fd 0 is a socket this process is the template, and its copies live a worker's life each.
    """
    die_with(supervisor)
    kernel.keep_heap()
    read_names()  # while a file can be opened, and once for all that are forked
    if stat.S_ISSOCK(os.fstat(0).st_mode):
        from workers.confine.template import fork_workers

        fork_workers(lambda: die_with(supervisor), categories)
    pipe = park()
    start = pipe.receive()
    if start is None:
        return 0
    if not isinstance(start, messages.Start) or start.version != messages.VERSION or start.category not in categories:
        pipe.send(messages.Refused("version", f"this worker speaks version {messages.VERSION} of the wire"))
        return 1
    category, pipe.plan = categories[start.category], start.plan
    tools = by_name(category.tools)
    root = Root(start.root_fd, os.umask(0), plan=start.plan)
    faults = _faults(start)
    try:
        confinement = category.confinement()
        prepared = category.prepare(start, messages.decode_inputs(start.inputs, category.inputs))
        keep = (*pipe.descriptors, *(faults.descriptors if faults else ()))
        enforced = confine(confinement, start, keep, prepared=prepared)
    except ProtectionUnavailable as missing:
        pipe.send(messages.Refused(missing.feature, str(missing)))
        return 1
    except (OSError, ValueError) as error:  # what the category stands on, or works on, is not there
        pipe.send(messages.Refused(category.name, f"the {category.name} worker cannot be set up: {error}"))
        return 1
    gc.freeze()
    gc.set_threshold(_OBJECTS)
    gc.enable()
    ready = messages.Ready(messages.VERSION, category.name, tuple(tools), enforced.features, enforced.degraded)
    (faults.starting(pipe, start.fault) if faults else pipe).send(ready)
    context = ToolContext(start.context, root, engine=prepared.engine)
    serve(pipe, tools, context, lambda: prepared.doors(confinement.opens), faults.arrange if faults else None)
    return 0


def _faults(start: messages.Start) -> "FaultInjector | None":
    """Return what makes calls have faults, where the supervisor allows any; later it could not be imported."""
    if not start.faults:
        return None
    from workers.faults.injector import FaultInjector

    return FaultInjector(start)


def main() -> None:
    """Run with `python -c ... SUPERVISOR_PID`, as `supervisor.pool.worker_process` does."""
    os._exit(run(int(sys.argv[-1]), CATEGORIES))


if __name__ == "__main__":
    main()
