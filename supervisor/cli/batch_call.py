"""Commands for scripts: `batch` and `call`."""

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from supervisor.cli.shared import (
    Launched,
    check_option,
    fault_plan_of,
    faults_option,
    json_option,
    mode_option,
    model_option,
    on_terminal,
    put,
    put_json,
    schema_option,
    settings,
    stopped_like_ctrl_c,
    tool_argument,
    where,
)

if TYPE_CHECKING:
    from pathlib import Path

    from supervisor.config.repositories import Names
    from supervisor.rules.rule import Mode


@click.command()
@click.argument("file")
@click.option(
    "--output", required=True, metavar="FILE", help="The file for results, one JSON line an item; - prints them."
)
@click.option("--concurrency", type=click.IntRange(1, 64), default=1, show_default=True, help="Items at a time.")
@model_option
@mode_option
@schema_option
@check_option
@click.option("--resume", is_flag=True, help="Resume a batch that was stopped or killed, or whose items are suspended.")
@click.option("--budget-tokens", type=click.IntRange(0), metavar="N", help="Tokens that all items may use together.")
@click.option("--budget-cost", type=click.FloatRange(0), metavar="AMOUNT", help="Money that they may.")
@faults_option
@json_option
@where
def batch(
    file: str,
    output: str,
    concurrency: int,
    model: str | None,
    mode: "Mode | None",
    schema: str | None,
    check: str | None,
    resume: bool,
    budget_tokens: int | None,
    budget_cost: float | None,
    faults: str | None,
    as_json: bool,
    profile: str | None,
    root: str | None,
    names: "Names",
) -> int:
    """Ask many prompts and write the answers as JSON lines.

    FILE (or - for standard input) holds a prompt a line, or JSON lines {"id", "prompt" | "prompts", "profile"?,
    "root"?, "model"?, "group"?, "technology"?, "schema"?, "check"?}. Each result is written to the disk as soon as its
    item ends.

    \b
      strongroom batch questions.txt --output out.jsonl
      strongroom batch questions.txt --output out.jsonl --resume  # after kill -9
      strongroom batch questions.txt --output out.jsonl --faults plan.toml
      strongroom batch questions.txt --output - | jq -r .answer  # no --resume
    """
    from supervisor.clients.batch.batch_plan import plan
    from supervisor.clients.batch.items import read_items
    from supervisor.clients.batch.run import run_batch
    from supervisor.clients.connection.requests import schema_in

    file_of_results = _file_of_results(output, resume=resume, as_json=as_json)
    here = settings()
    fault_plan = fault_plan_of(faults)
    items = read_items(file, schema_in(schema) if schema else None, check)
    planned = plan(here, items, file_of_results, profile, root, model, names, mode)
    if fault_plan is not None:
        click.echo(f"warning: FAULT INJECTION IS ON: workers fail as {fault_plan} says", err=True)
    given = {"tokens": budget_tokens, "cost": budget_cost}
    budget = {name: each for name, each in given.items() if each is not None} or None
    run = partial(run_batch, here, items, file_of_results, planned, put=put, resume=resume, concurrency=concurrency)
    run = partial(run, budget=budget, faults=fault_plan.file if fault_plan else None)
    statuses = _with_progress(len(items), run, kept=file_of_results is not None)
    return _exit_code(statuses, output, kept=file_of_results is not None, as_json=as_json)


def _file_of_results(output: str, *, resume: bool, as_json: bool) -> "Path | None":
    """Return the file that is named; None where results are printed."""
    if output == "-" and (resume or as_json):
        why = "keeps no results to resume from" if resume else "has the results, and --json would print its own line"
        raise click.UsageError(f"Standard output {why}. Name a file with --output.")
    from pathlib import Path

    return None if output == "-" else Path(output)


def _with_progress(items: int, run: Callable[..., list[str]], *, kept: bool) -> list[str]:
    """Run a batch with a progress bar on a terminal, unless that is where the results are shown."""
    from supervisor.display.escape import visible

    hidden = sys.stderr is None or not sys.stderr.isatty() or (not kept and on_terminal())
    shown = click.progressbar(length=items, label="batch", file=sys.stderr, show_pos=True, hidden=hidden)
    with stopped_like_ctrl_c(), shown as bar:
        try:
            lead = "" if hidden else "\n"  # the bar stands in the line
            return run(done=lambda _result: bar.update(1), note=lambda text: click.echo(lead + visible(text), err=True))
        except KeyboardInterrupt:
            click.echo("\nstopped" + ("; run the same command with --resume to continue" if kept else ""), err=True)
            raise


def _exit_code(statuses: list[str], output: str, *, kept: bool, as_json: bool) -> int:
    """Say how a batch's items have ended; return 1 where any failed."""
    bad = len(statuses) - statuses.count("ok")
    if as_json:
        put_json({"items": len(statuses), "ok": len(statuses) - bad, "output": output})
    elif bad:
        click.echo(f"{bad} of {len(statuses)} items failed" + (f"; see {output}" if kept else ""), err=True)
    return 1 if bad else 0


@click.command()
@tool_argument
@click.argument("arguments", required=False, metavar="[JSON]")
@click.option("--stdin", "many", is_flag=True, help="Read calls from standard input, one JSON object a line.")
@click.option("--approve", is_flag=True, help="Approve in advance what a person would be asked.")
@mode_option
@click.option("--json", "_as_json", is_flag=True, help="Accepted for symmetry: the answer is always JSON.")
@where
@click.pass_obj
def call(
    launched: Launched,
    tool: str | None,
    arguments: str | None,
    many: bool,
    approve: bool,
    mode: "Mode | None",
    _as_json: bool,
    profile: str | None,
    root: str | None,
    names: "Names",
) -> int:
    """Run one tool without a model, under the same policy and confinement.

    \b
      strongroom call list_files '{"pattern": "**/*.md"}'
      strongroom call read_file '{"path": "../etc/passwd"}'  # refused
      echo '{"id": 1, "tool": "read_file", "arguments": {"path": "a.md"}}' |
          strongroom call --stdin

    With --stdin each line {"id", "tool", "arguments"} is answered by one line {"id", "ok", "content" | "error"}.
    """
    if many == (tool is not None):
        raise click.UsageError("Name a tool and its arguments as JSON, or use --stdin.")
    from supervisor.clients.connection.spawn import private_if_none_runs
    from supervisor.config.profiles import resolve

    here = settings()
    resolved = resolve(here, profile, root, None, names)
    with stopped_like_ctrl_c():
        starting = private_if_none_runs(here, launched.early)
        from supervisor.clients.call import call_many, call_once, is_ok

        if many:
            return 0 if call_many(here, resolved, approve=approve, mode=mode, starting=starting) else 1
        given = tool or "", arguments or "{}"
        answer = call_once(here, resolved, *given, approve=approve, mode=mode, starting=starting)
    put_json(answer)
    return 0 if is_ok(answer) else 1
