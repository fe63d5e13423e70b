"""Commands that go back to a turn: `fork` for the conversation, and `show` for a file."""

import os
import sys

import click

from supervisor.cli.shared import (
    complete_sessions,
    json_option,
    on_terminal,
    put,
    put_answer,
    put_json,
    session_option,
    settings,
    turn_of,
)


@click.command()
@click.argument("session", metavar="SESSION[@TURN]", shell_complete=complete_sessions)
@json_option
def fork(session: str, as_json: bool) -> None:
    """Begin a new session with the conversation of another, up to the end of a turn.

    SESSION is its id, or the end of it. Without TURN it goes on from the last turn that has ended, also while another
    runs. The other session stays as it is, and so do the files: what it has changed is still undone in it.

    \b
      strongroom fork a1b2c3
      strongroom fork a1b2c3@4
      strongroom console --session "$(strongroom fork a1b2c3@4 --json | jq -r .session)"
    """
    from supervisor.clients import fork as client

    wanted, turn = turn_of(session)
    made = client.fork(settings(), wanted, turn)
    put_answer(made, client.told(made), as_json=as_json)


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
