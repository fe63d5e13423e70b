"""Commands about all sessions: `sessions` lists them, `prune` deletes old ones."""

import os
import shutil
from typing import TYPE_CHECKING, Final

import click

from supervisor.cli.shared import attended, json_option, on_terminal, put, put_answer, put_json, settings

if TYPE_CHECKING:
    from supervisor.clients.prune import Pruned
    from supervisor.reports.session_lines import SessionLine

_LISTED: Final = 20
"""Sessions that are listed where nobody says how many."""
_INDENT: Final = 30
"""Columns before a title that has no room on its session's row."""


@click.command()
@click.option("--here", is_flag=True, help="Only what was opened in this directory, or works on it.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="The newest N alone; default: 20, in JSON all.")
@click.option("--all", "every", is_flag=True, help="All of them, and a row for each `strongroom call`.")
@json_option
def sessions(here: bool, limit: int | None, every: bool, as_json: bool) -> None:
    """List the newest sessions in the journal, the newest last. What `strongroom call` did on a root is one row.

    JSON has each session, unless --limit says how many.

    \b
      strongroom sessions
      strongroom sessions --here --limit 5
      strongroom sessions --all
      strongroom sessions --json
    """
    from supervisor.reports.session_lines import sessions as listed

    every = every or as_json
    found = listed(settings(), os.path.realpath(os.curdir) if here else None, every=every)
    shown = found[-limit:] if limit else found if every else found[-_LISTED:]
    if as_json:
        put_json(shown)
        return
    columns = shutil.get_terminal_size().columns if on_terminal() else 0
    for line in shown:
        put(session_row(line, columns))
    if not found:
        click.echo(f"no session{' of this directory' * here} yet", err=True)
    if len(shown) < len(found):
        click.echo(f"{len(found) - len(shown)} more before these; --all lists all", err=True)


def session_row(line: "SessionLine", columns: int) -> str:
    """Return what is listed of a session; broken between words at `columns`, if not 0."""
    from supervisor.display.columns import wrapped

    more = f" (in {line.folded + 1} sessions)" if line.folded else ""
    turns = f"{line.turns:3} turn{' ' if line.turns == 1 else 's'}"
    row = f"{line.session}  {line.opened}  {line.profile:8} {line.state:9} {turns}  {line.title}{more}"
    return "\n".join(wrapped(row, columns, "", " " * _INDENT)) if columns else row


@click.command()
@click.option(
    "--older-than", "age", metavar="AGE", required=True, help="For how long nobody has used them: 12h, 30d, 8w."
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask first; needed with --json, and where nobody can be asked.")
@json_option
def prune(age: str, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Delete old sessions from the listing, with their images, their documents, and what undo has kept for them.

    You see how many, how much and how old, and are asked. One that is open stays, and so does one whose last turn was
    interrupted or is suspended. The journal is append-only: it keeps what was said, and `strongroom verify` finds it
    whole.

    \b
      strongroom prune --older-than 30d --dry-run
      strongroom prune --older-than 30d
      strongroom prune --older-than 8w --yes --json
    """
    from supervisor.clients import prune as program

    seconds = program.seconds_of(age)
    if not (dry_run or yes) and (as_json or not attended()):
        raise click.UsageError("Nobody can be asked. Use --yes to delete, or --dry-run to see what would be deleted.")

    def agrees(found: "Pruned") -> bool:
        if dry_run or yes:
            return not dry_run
        put(program.listing(found, _LISTED))
        return click.confirm("Delete them? Undo data and images cannot be had back.")

    found = program.prune(settings(), seconds, agrees)
    if found.going and not (found.deleted or dry_run):
        click.echo("nothing was deleted", err=True)
        return 1
    text = program.summary(found) if found.deleted and not yes else program.listing(found)
    put_answer(program.document(found), text, as_json=as_json)
    return 0
