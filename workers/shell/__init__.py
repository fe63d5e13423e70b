"""The category `shell`: commands, each in a sandbox of its own.

Rule: the list of programs is a convenience for the person who reads; the kernel is the boundary. Whatever a program
runs, it reaches the root, its own places and nothing else, and ends with the command. The tools import light; the rest
is imported where the category is prepared.

    exec_shell, run_cmd -> command_proposal -> run/command -> the program, in a sandbox of its own
                                            -> proxy           where it has a network
    prepare -> sandbox/setup -> private_root                   once, when the worker starts
"""

from typing import TYPE_CHECKING, Final

from workers.shell.exec_shell import exec_shell
from workers.shell.run_cmd import run_cmd
from workers.shell.shell_inputs import ShellInputs
from workers.tool import Tool
from workers.wire import messages

if TYPE_CHECKING:
    from workers.confine.steps import Prepared

TOOLS: Final[tuple[Tool, ...]] = (exec_shell, run_cmd)
"""What a shell worker serves."""


def prepare(start: messages.Start, inputs: ShellInputs) -> "Prepared":
    """Import everything that commands are run with, and read what was given.

    Raises:
        ValueError: something of it is missing or wrong, or the root cannot be used.
    """
    from workers.shell.sandbox.setup import prepared

    if inputs.registries.caches:
        from workers.shell import package_index, pip_entry  # noqa: F401 - a locked worker can import nothing

    return prepared(start, inputs)
