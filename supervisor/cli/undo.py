"""The command that restores what calls have changed: `undo`."""

import os
import sys
from typing import TYPE_CHECKING

import click

from supervisor.cli.shared import (
    json_option,
    on_terminal,
    put,
    put_json,
    session_id_option,
    settings,
    undoable_argument,
)

if TYPE_CHECKING:
    from supervisor.undo.plan import Extent


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
    if as_json:
        put_json(client.document(result))
    else:
        put(client.told(result))
    return 0 if result.steps and all(step.ok for step in result.steps) else 1


def _agreed() -> bool:
    """Ask the person, if one is there; a script has said what it wants."""
    if sys.stdin is None or not sys.stdin.isatty() or not on_terminal():
        return True
    return click.confirm("Undo this?")
