"""Commands that go back to a turn: `fork` for the conversation, `rewind`, and `show` for a file."""

import os
import sys
from typing import TYPE_CHECKING

import click

from supervisor.cli.shared import (
    attended,
    completed_by,
    json_option,
    on_terminal,
    put,
    put_answer,
    put_json,
    session_option,
    settings,
    turn_of,
)

if TYPE_CHECKING:
    from supervisor.acp.extensions import RewindResult


@click.command()
@click.argument("session", metavar="SESSION[@TURN]", shell_complete=completed_by("sessions"))
@json_option
def fork(session: str, as_json: bool) -> None:
    """Begin a new session with the conversation of another, up to the end of a turn.

    SESSION is its id, or the end of it. Without TURN it goes on from the last turn that has ended, also while another
    runs. The other session stays as it is, and so do the files: what it has changed is still undone in it.

    \b
      strongroom fork a1b2c3
      strongroom fork a1b2c3@4
      strongroom --session "$(strongroom fork a1b2c3@4 --json | jq -r .session)"
    """
    from supervisor.clients import fork as client

    wanted, turn = turn_of(session)
    made = client.fork(settings(), wanted, turn)
    put_answer(made, client.told(made), as_json=as_json)


@click.command()
@click.argument("session", metavar="SESSION@TURN", shell_complete=completed_by("sessions"))
@click.option("--dry-run", is_flag=True, help="Show what would be changed and what would be left, and do nothing.")
@click.option("--yes", is_flag=True, help="Do not ask first; needed with --json, and where nobody can be asked.")
@json_option
def rewind(session: str, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Take a session back to the end of a turn: its conversation, and the files that its calls have changed since.

    SESSION is its id, or the end of it; TURN is a number, as `strongroom history` shows it, and 0 is before the first
    one. You see what would be changed, and are asked. What others have changed since is left, and named; so is what
    cannot be taken back. It can be taken back itself: rewind to the turn that was the last.

    \b
      strongroom rewind a1b2c3@4 --dry-run
      strongroom rewind a1b2c3@4
      strongroom rewind a1b2c3@4 --yes --json
    """
    from supervisor.clients import session_rewind as client
    from supervisor.clients.connection.link import every_field
    from supervisor.undo.rewinding_words import rewinding_lines

    wanted, turn = turn_of(session)
    if turn is None:
        raise click.UsageError("Name a session and a turn: SESSION@TURN, for example a1b2c3@4.")
    if not (dry_run or yes) and (as_json or not attended()):
        raise click.UsageError("Nobody can be asked. Use --yes to rewind, or --dry-run to see what would be changed.")

    def agrees(found: "RewindResult") -> bool:
        if dry_run or yes:
            return not dry_run
        put("\n".join(rewinding_lines(found, done=False)))
        return click.confirm("Rewind?")

    result, done = client.rewind(settings(), wanted, turn, agrees)
    if not (done or dry_run):
        click.echo("nothing was changed", err=True)
        return 1
    lines = rewinding_lines(result, done=done)
    if done and result.ok:
        back = f"rewind {result.session_id}@{max(result.turns)}" if result.turns else f"undo {result.call}"
        lines += [f"    back again: strongroom {back}"] if result.turns or result.call else []
    put_answer({**every_field(result), "done": done and result.ok}, "\n".join(lines), as_json=as_json)
    return 0 if result.ok else 1


@click.command()
@click.argument("file", metavar="PATH@TURN")
@session_option
@click.option("--diff", is_flag=True, help="What has changed since, as a unified diff.")
@json_option
def show(file: str, session: str | None, diff: bool, as_json: bool) -> int:
    """Show a file as it was at the end of a turn. PATH is relative to the session's root, or absolute.

    TURN is a number, as `strongroom history` shows it; 0 is before the first one. The session is the newest here
    with a turn, unless you name another. The content comes from what undo has kept, or from the file itself where
    nothing has changed it since; where it is kept nowhere any more, you are told so, and it ends with 1.

    \b
      strongroom show src/app.py@3
      strongroom show src/app.py@3 --diff
      strongroom show notes/idea.md@0 --session a1b2c3 > idea.md
    """
    from supervisor.clients import show as client
    from supervisor.display.escape import visible

    path, turn = turn_of(file)
    if not path or turn is None:
        raise click.UsageError("Name a file and a turn: PATH@TURN, for example src/app.py@3.")
    shown = client.shown_file(settings(), path, turn, session, os.path.realpath(os.getcwd()))
    there = shown.then.held in ("pack", "root")
    if as_json:
        put_json(client.document(shown))
        return 0 if there else 1
    for line in client.remarks(shown):
        click.echo(line, err=True)
    if diff:
        put(visible(client.difference(shown)).removesuffix("\n") or "no difference")
        return 0
    if there and on_terminal():  # what is in it must not move the cursor
        put(visible(shown.then.content.decode("utf-8", "backslashreplace")).removesuffix("\n"))
    elif there:
        sys.stdout.buffer.write(shown.then.content)
    return 0 if there else 1
