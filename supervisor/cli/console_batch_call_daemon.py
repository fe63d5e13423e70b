"""Commands that have the agent work: `console`, `batch`, `call`, `acp` and the `daemon` behind them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from supervisor.cli.shared import (
    json_option,
    model_option,
    on_terminal,
    put,
    put_json,
    session_option,
    settings,
    stopped_like_ctrl_c,
    tool_argument,
    where,
)

if TYPE_CHECKING:
    from supervisor.config.fault_plan import FaultPlan
    from supervisor.config.repositories import Names

faults_option = click.option(
    "--faults",
    metavar="PLAN",
    help="Let workers fail for real, as this TOML or JSON file says: [[faults]] with category, fault, and which calls "
    "(every = 3). scripts/faults.toml is a sample, and lists all faults, moments and keys.",
)


@click.command()
@where
@model_option
@session_option
@click.option("--continue", "continue_", is_flag=True, help="Go on with the newest session of this directory.")
@click.option("--plain", is_flag=True, help="Lines in, lines out, also on a terminal.")
def console(
    profile: str | None,
    root: str | None,
    model: str | None,
    session: str | None,
    continue_: bool,
    plain: bool,
    names: "Names",
) -> int:
    """Talk to the agent. Its daemon is started if none runs.

    \b
      strongroom console --root ~/notes
      strongroom console --continue
      strongroom console --profile librarian --group elixir --technology phoenix
      strongroom console --model offline --plain < lines.txt
    """
    if session and continue_:
        raise click.UsageError("Use --session or --continue, not both.")
    if session and names.given:
        raise click.UsageError("A session keeps its repository: use --session without --group and --technology.")
    from supervisor.clients.connection.requests import absolute, absolute_model
    from supervisor.clients.console.options import ConsoleOptions
    from supervisor.clients.console.start_console import run_console

    loaded = settings()
    options = ConsoleOptions(
        profile=profile,
        root=absolute(root) if root else None,
        names=names,
        model=absolute_model(model) if model else None,
        session=session,
        continue_=continue_,
        plain=plain,
        colour=on_terminal() and not loaded.no_color,
    )
    return run_console(loaded, options)


@click.command()
@click.argument("file")
@click.option("--output", required=True, metavar="FILE", help="Where results go, one JSON line an item.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=1, show_default=True, help="Items at a time.")
@model_option
@click.option("--resume", is_flag=True, help="Resume a batch that was stopped or killed.")
@faults_option
@json_option
@where
def batch(
    file: str,
    output: str,
    concurrency: int,
    model: str | None,
    resume: bool,
    faults: str | None,
    as_json: bool,
    profile: str | None,
    root: str | None,
    names: "Names",
) -> int:
    """Ask many prompts and write the answers as JSON lines.

    FILE (or - for standard input) holds a prompt a line, or JSON lines {"id", "prompt" | "prompts", "profile"?,
    "root"?, "model"?, "group"?, "technology"?}. Each result is on the disk as soon as its item ends.

    \b
      strongroom batch questions.txt --output answers.jsonl
      strongroom batch questions.txt --output answers.jsonl --resume     # after kill -9
      strongroom batch questions.txt --output answers.jsonl --faults plan.toml
    """
    from supervisor.clients.batch.items import Result, read_items
    from supervisor.clients.batch.run import plan, run_batch

    here = settings()
    fault_plan = _plan(faults)
    items = read_items(file)
    planned = plan(here, items, Path(output), profile, root, model, names)
    if fault_plan is not None:
        click.echo(f"warning: FAULT INJECTION IS ON: workers fail as {fault_plan} says", err=True)
    hidden = sys.stderr is None or not sys.stderr.isatty()
    shown = click.progressbar(length=len(items), label="batch", file=sys.stderr, show_pos=True, hidden=hidden)
    with stopped_like_ctrl_c(), shown as bar:

        def done(_result: Result) -> None:
            bar.update(1)

        try:
            statuses = run_batch(
                *(here, items, Path(output), planned),
                resume=resume,
                concurrency=concurrency,
                done=done,
                faults=fault_plan.file if fault_plan else None,
            )
        except KeyboardInterrupt:
            click.echo("\nstopped; the same command with --resume goes on", err=True)
            raise
    bad = len(statuses) - statuses.count("ok")
    if as_json:
        put_json({"items": len(statuses), "ok": len(statuses) - bad, "output": output})
    elif bad:
        click.echo(f"{bad} of {len(statuses)} items failed; see {output}", err=True)
    return 1 if bad else 0


@click.command()
@tool_argument
@click.argument("arguments", required=False, metavar="[JSON]")
@click.option("--stdin", "many", is_flag=True, help="Read calls from standard input, one JSON object a line.")
@click.option("--approve", is_flag=True, help="Say yes beforehand to what a person would be asked.")
@click.option("--json", "_as_json", is_flag=True, help="The answer is JSON in any case.")
@where
def call(
    tool: str | None,
    arguments: str | None,
    many: bool,
    approve: bool,
    _as_json: bool,
    profile: str | None,
    root: str | None,
    names: "Names",
) -> int:
    """Run one tool without a model, under the same policy and confinement.

    \b
      strongroom call list_files '{"pattern": "**/*.md"}'
      strongroom call read_file '{"path": "../etc/passwd"}'        # refused: path_escape
      echo '{"id": 1, "tool": "read_file", "arguments": {"path": "a.md"}}' | strongroom call --stdin

    With --stdin each line {"id", "tool", "arguments"} is answered by one line {"id", "ok", "content" | "error"}.
    """
    if many == (tool is not None):
        raise click.UsageError("Name a tool and its arguments as JSON, or use --stdin.")
    from supervisor.clients.call import call_many, call_once
    from supervisor.config.profiles import resolve

    here = settings()
    resolved = resolve(here, profile, root, None, names)
    with stopped_like_ctrl_c():
        if many:
            return 0 if call_many(here, resolved, approve=approve) else 1
        answer = call_once(here, resolved, tool or "", arguments or "{}", approve=approve)
    put_json(answer.document)
    return 0 if answer.ok else 1


@click.command()
def acp() -> int:
    """Speak the Agent Client Protocol on standard input and output, for editors.

    The daemon is started if none runs. In an editor's settings, the command of the agent is:

    \b
      strongroom acp
    """
    from supervisor.clients.bridge import run_bridge

    return run_bridge()


@click.command()
@click.option("--socket", metavar="PATH", help="Where to listen; default: in the run-time or home directory.")
@click.option("--print-unit", is_flag=True, help="Print a systemd user unit that runs it.")
@click.option("--stop", "stops", is_flag=True, help="End the daemon that runs, when its turns are done.")
@faults_option
@click.pass_obj
def daemon(verbose: int, socket: str | None, print_unit: bool, stops: bool, faults: str | None) -> int:
    """Run the daemon in the foreground. Clients start one in the background where none runs.

    SIGTERM and Ctrl-C let running turns end; a second one cuts them off. SIGHUP reads the configuration again.

    \b
      strongroom -v daemon
      strongroom daemon --stop
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
    if print_unit + stops + (socket is not None) > 1:
        raise click.UsageError("Use one of --socket, --print-unit and --stop.")
    if faults and (print_unit or stops):
        raise click.UsageError("Use --faults only to run the daemon.")
    here = settings()
    if print_unit:
        from supervisor.daemon.process.systemd_unit import unit

        put(unit(here, _executable()).rstrip("\n"))
        return 0
    if stops:
        from supervisor.clients.connection.stop import stop

        pid = stop(here)
        click.echo("no daemon runs" if pid is None else f"the daemon (pid {pid}) has ended", err=True)
        return 0
    plan = _plan(faults)
    from supervisor.config.fault_plan import RunningFaultPlan
    from supervisor.daemon.program import run

    return run(
        here, Path(socket).absolute() if socket else None, verbose, faults=RunningFaultPlan(plan) if plan else None
    )


def _plan(name: str | None) -> "FaultPlan | None":
    """Return the fault plan that was asked for, checked."""
    if name is None:
        return None
    from supervisor.config.fault_plan import read_plan

    return read_plan(Path(name).absolute())


def _executable() -> str:
    """Return where the command `strongroom` is installed."""
    beside = Path(sys.executable).with_name("strongroom")
    return str(beside if beside.exists() else Path(sys.argv[0]).absolute())
