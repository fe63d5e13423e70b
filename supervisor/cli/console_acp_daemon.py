"""Commands for conversations: `console`, `acp`, and the `daemon` behind them."""

import sys
from typing import TYPE_CHECKING, Any

import click

from supervisor.cli.conversation_options import conversation, conversation_options
from supervisor.cli.shared import Launched, fault_plan_of, faults_option, put, settings

if TYPE_CHECKING:
    from supervisor.config.settings import Settings


@click.command()
@conversation
@click.option("--plain", is_flag=True, help="Read and write plain lines, also on a terminal.")
@click.pass_obj
def console(launched: Launched, /, **chosen: Any) -> int:
    """Talk to the agent. Its daemon is started if none runs.

    \b
      strongroom console --root ~/notes/vault
      strongroom console --continue
      strongroom console --mode plan
      strongroom console --profile librarian --group elixir --technology phoenix
      strongroom console --model offline --plain < lines.txt
    """
    from supervisor.system.left_out import left_out

    with left_out("ssl"):  # no event loop of ours speaks TLS, and asyncio can do without; it is a third of its import
        import asyncio  # noqa: F401 - for the console
    from supervisor.clients.console.start_console import run_console

    loaded, options = conversation_options(**chosen)
    return run_console(loaded, options, launched.early)


@click.command()
def acp() -> int:
    """Speak the Agent Client Protocol on standard input and output, for editors.

    The daemon is started if none runs. In your editor's settings, use this as the agent's command:

    \b
      strongroom acp
    """
    from supervisor.clients.bridge import run_bridge

    return run_bridge()


@click.command()
@click.option("--socket", metavar="PATH", help="The socket to listen on; default: in the run-time or home directory.")
@click.option("--print-unit", is_flag=True, help="Print a systemd user unit that runs it.")
@click.option("--stop", "stops", is_flag=True, help="Stop the running daemon when its turns are done.")
@click.option("--reload", "reloads", is_flag=True, help="Let the running daemon read the configuration again.")
@faults_option
@click.pass_obj
def daemon(
    launched: Launched, socket: str | None, print_unit: bool, stops: bool, reloads: bool, faults: str | None
) -> int:
    """Run the daemon in the foreground. Clients start one in the background where none runs.

    SIGTERM and Ctrl-C let running turns finish; a second one interrupts them. A changed configuration counts from the
    next session on that is opened; SIGHUP and --reload read it at once, and --reload says what came of it: where there
    is a mistake, what was read before stays in force (exit code 2).

    \b
      strongroom -v daemon
      strongroom daemon --stop
      strongroom daemon --reload
      strongroom daemon --print-unit > ~/.config/systemd/user/strongroom.service
      STRONGROOM_HOME=/tmp/trial strongroom daemon --faults plan.toml

    A fault plan is TOML or JSON. This one kills each third worker that reads a file, and lets one command hang:

    \b
      [[faults]]
      category = "files"
      tool = "read_file"
      every = 3
      fault = "sigkill"
      [[faults]]
      category = "shell"
      call = 1
      fault = "hang"
    """
    if print_unit + stops + reloads + (socket is not None) > 1:
        raise click.UsageError("Use one of --socket, --print-unit, --stop and --reload.")
    if faults and (print_unit or stops or reloads):
        raise click.UsageError("Use --faults only to run the daemon.")
    if reloads:
        from supervisor.clients.connection.reload import reload

        click.echo(reload(), err=True)
        return 0
    if stops:
        return _stop()
    here = settings()
    if print_unit:
        from supervisor.daemon.process.systemd_unit import unit

        put(unit(here, _executable()).rstrip("\n"))
        return 0
    return _run(here, socket, launched.verbose, faults)


def _stop() -> int:
    """Stop the daemon that runs, also where the configuration has a mistake by now; return the exit code."""
    from supervisor.clients.connection.stop import stop
    from supervisor.config.settings import load

    pid = stop(load(read=False))
    click.echo("no daemon runs" if pid is None else f"the daemon (pid {pid}) has ended", err=True)
    return 0


def _run(here: "Settings", socket: str | None, verbose: int, faults: str | None) -> int:
    """Be the daemon; return its exit code."""
    from pathlib import Path

    plan = fault_plan_of(faults)
    from supervisor.config.fault_plan import RunningFaultPlan
    from supervisor.daemon.program import run

    running = RunningFaultPlan(plan) if plan else None
    return run(here, Path(socket).absolute() if socket else None, verbose, faults=running)


def _executable() -> str:
    """Return where the command `strongroom` is installed."""
    from pathlib import Path

    beside = Path(sys.executable).with_name("strongroom")
    return str(beside if beside.exists() else Path(sys.argv[0]).absolute())
