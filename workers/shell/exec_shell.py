"""The tool `exec_shell`: one program from the allowlist, its arguments as they are given."""

from typing import Annotated

from msgspec import Meta

from workers.shell.shell_inputs import TimeLimit
from workers.tool import Args, Proposal, ResultWithNote, ToolContext, tool


class ExecArgs(Args, frozen=True):
    """Which program, with which arguments."""

    command: Annotated[str, Meta(description='Name of an allowed program, alone, for example "git".')]
    args: Annotated[
        tuple[str, ...],
        Meta(description='Its arguments, one each, for example ["commit", "-m", "two words"]. No shell reads them.'),
    ] = ()
    timeout_s: TimeLimit | None = None


@tool(ExecArgs, effect=True, kind="execute", subject="command", runs="program", profiles=("project",))
def exec_shell(args: ExecArgs, context: ToolContext) -> ResultWithNote | Proposal:
    """Run one program in the root, and return what it printed and its exit code.

    Allowed are, unless the operator chose others: git cargo npm yarn pnpm node bun ls find grep mkdir rm mv cp touch;
    a person is asked about any other, where one is there. There is no shell: no pipes, redirections, variables or
    wildcards. The program sees the root and the system's programs, not the person's home; it has no network, no
    terminal and no input, a fresh HOME and /tmp, and `timeout_s` seconds, after which it is killed with everything
    that it started. What it changes in the root is kept only if that is approved; of a command that is killed nothing
    is kept. A non-zero exit code is a result like any other.
    """
    from workers.shell.command_line import encoded, find_allowed
    from workers.shell.command_proposal import run_command
    from workers.shell.own_programs import own_program

    engine = context.engine
    own = own_program(args.command, engine.layout.root, engine.held, engine.own)
    file = find_allowed(args.command, engine.programs, engine.path, own, unlisted=context.unlisted)
    return run_command(context, file, [encoded(each) for each in (args.command, *args.args)], args.timeout_s)
