"""The tool `run_cmd`: one text for the system shell."""

from typing import Annotated

from msgspec import Meta

from workers.errors import ToolError
from workers.shell.shell_inputs import TimeLimit
from workers.tool import Args, Proposal, ResultWithNote, ToolContext, tool


class CommandArgs(Args, frozen=True):
    """What the shell shall run."""

    command: Annotated[str, Meta(description='Text for the shell, for example "ls src | wc -l".')]
    timeout_s: TimeLimit | None = None


@tool(CommandArgs, effect=True, kind="execute", subject="command", runs="script", profiles=("code", "operator"))
def run_cmd(args: CommandArgs, context: ToolContext) -> ResultWithNote | Proposal:
    """Run a command line with the system shell in the root, and return what it printed and its exit code.

    It sees the root and the system's programs, not the person's home; it has no network, no terminal and no input, a
    fresh HOME and /tmp, and `timeout_s` seconds, after which it is killed with everything that it started; what it
    leaves running in the background is killed when it ends. What it changes in the root is kept only if that is
    approved; of a command that is killed nothing is kept. A non-zero exit code is a result like any other.
    """
    from workers.shell.command_line import encoded, system_shell
    from workers.shell.command_proposal import run_command

    if not args.command.strip():
        raise ToolError("invalid_arguments", "The command is empty. Send the text that the shell shall run.")
    file = system_shell()
    name = file.rpartition("/")[2].encode()
    # of an approved install nothing is kept where it failed, which a pipe behind it would hide
    options = [b"-o", b"pipefail"] if context.places and name == b"bash" else []
    return run_command(context, file, [name, *options, b"-c", encoded(args.command)], args.timeout_s)
