"""Commands about changes: `undo`, and `rules`, `rules revoke`, `rules test` for what commands may change."""

import datetime as dt
import os
from typing import TYPE_CHECKING

import click

from supervisor.cli.shared import (
    attended,
    json_option,
    put,
    put_answer,
    rule_argument,
    session_id_option,
    settings,
    undoable_argument,
)

if TYPE_CHECKING:
    from supervisor.undo.undo_plan import Extent


@click.command()
@undoable_argument
@click.option("--turn", is_flag=True, help="Undo all of the last turn that changed anything.")
@click.option("--session", "whole", is_flag=True, help="Undo everything that the session has changed.")
@session_id_option
@click.option(
    "--force",
    is_flag=True,
    help="Also restore files that have changed since, and continue where one cannot be restored.",
)
@click.option("--yes", is_flag=True, help="Do not ask first.")
@json_option
def undo(call: str | None, turn: bool, whole: bool, session: str | None, force: bool, yes: bool, as_json: bool) -> int:
    """Restore what tool calls have changed: the last change, or CALL, as `strongroom history` shows it.

    A file that has changed since stops the undo, unless you use --force. An undo is a call itself: run it again
    without CALL to undo the change before, or with the undo's own id to redo what it undid.

    \b
      strongroom undo
      strongroom undo toolu_01A2B3 --force
      strongroom undo --turn --yes
      strongroom undo --session --session-id a1b2c3
    """
    if turn + whole + (call is not None) > 1:
        raise click.UsageError("Use one of CALL, --turn and --session.")
    from supervisor.clients import undo as client

    here = settings()
    extent: Extent = "turn" if turn else "session" if whole else "last"
    wanted = client.planned(here, call, extent, session, os.path.realpath(os.getcwd()))
    if not as_json:
        put(client.preview(wanted))
        if all(step.problem for step in wanted.steps) or not (yes or _agreed()):
            click.echo("nothing was undone", err=True)
            return 1
    result = client.undo(here, wanted, force=force)
    put_answer(client.document(result), client.told(result), as_json=as_json)
    return 0 if result.steps and all(step.ok for step in result.steps) else 1


def _agreed() -> bool:
    """Ask the person, if one is there; a script has said what it wants."""
    return not attended() or click.confirm("Undo this?")


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def rules(context: click.Context, as_json: bool) -> None:
    """List the rules that decide what commands may change: the configured ones, and those made with approvals.

    A rule matches a command's effects: its programs, the paths that it writes or deletes, and how many. You are asked
    about whatever no rule covers.

    \b
      strongroom rules
      strongroom rules revoke k7tm
      strongroom rules test proposed.toml
    """
    if context.invoked_subcommand is not None:
        return
    from supervisor.reports import rules_report as program

    here = settings()
    found = program.listing(here, dt.datetime.now().astimezone().date())
    put_answer(found, program.as_text(found, here), as_json=as_json)


@rules.command()
@rule_argument
def revoke(rule: str) -> None:
    """Revoke a rule that was made with an approval, in running sessions too.

    RULE is its id, as `strongroom rules` shows it.

    \b
      strongroom rules revoke k7tm
    """
    from supervisor.reports import rules_report as program

    put(f"revoked: {program.revoke(settings(), rule)}")


@rules.command()
@click.argument("file", type=click.Path(path_type=str))
@json_option
def test(file: str, as_json: bool) -> None:
    """Show what rules would have decided about all commands in the journal, next to what was decided.

    FILE is TOML with [[rules]] as in the configuration, and nothing else. Nothing is changed.

    \b
      strongroom rules test proposed.toml
      strongroom rules test proposed.toml --json

    \b
      [[rules]]
      decision = "allow"
      programs = ["npm"]
      writes = ["build/**"]
      max_files = 200
      until = 2027-06-30
      reason = "build output is ours"
    """
    from pathlib import Path

    from supervisor.reports import rules_report as program

    found = program.try_rules(settings(), Path(file))
    put_answer(found, program.trial_text(found), as_json=as_json)
