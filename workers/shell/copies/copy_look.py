"""A command that only looks where there are no namespaces: at the root itself, for which nothing is copied.

Rule: as in `workers.shell.look`; Landlock lets it write nowhere, so what would change anything is told first, and is
begun anew in a copy.
"""

from contextlib import ExitStack

import msgspec

from workers.shell.command_runner import CommandRunner
from workers.shell.copies.command_copy import own_places
from workers.shell.copies.copy_calls import FORKING, CopyCalls
from workers.shell.copies.moved_paths import moved
from workers.shell.run.attempts import Answer
from workers.shell.run.process_group import ProcessGroup


def look_engine(engine: CommandRunner, stack: ExitStack) -> CommandRunner:
    """Return what lets a command look at the root itself, for which nothing is copied.

    Raises:
        CannotRehearse: its own places cannot be made.
    """
    _directory, places = own_places(engine, stack)
    places, watch = places._replace(root=engine.layout.root), engine.calls

    def answers(group: ProcessGroup) -> Answer:
        forks, others = CopyCalls(group, (), engine.start.limits.processes), watch(group) if watch else None

        def answer(pid: int, number: int, arguments: tuple[int, ...]) -> int:
            return (forks if others is None or number in FORKING else others)(pid, number, arguments)

        return answer

    environment = moved(engine.environment, engine.layout.root, places)
    return msgspec.structs.replace(engine, copied=places, calls=answers, environment=environment)
