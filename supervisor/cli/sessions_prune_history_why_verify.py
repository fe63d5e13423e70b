"""Commands about what was: `sessions` and `prune`, `history`, `why`, `verify`."""

import os
from typing import TYPE_CHECKING, Final

import click

from supervisor.cli.shared import (
    attended,
    json_option,
    put,
    put_answer,
    put_json,
    report_page,
    session_argument,
    session_option,
    settings,
)

if TYPE_CHECKING:
    from supervisor.clients.prune import Pruned

_LISTED: Final = 20
"""Sessions that are listed where nobody says how many."""


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
    for line in shown:
        more = f" (in {line.folded + 1} sessions)" if line.folded else ""
        put(f"{line.session}  {line.opened}  {line.profile:8} {line.state:9} {line.turns:3} turns  {line.title}{more}")
    if len(shown) < len(found):
        click.echo(f"{len(found) - len(shown)} more before these; --all lists all", err=True)


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


@click.command()
@session_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "anthropic", "gemini"]),
    default="text",
    show_default=True,
    help="text for people; json for every fact; the others for the messages as that model's API takes them.",
)
def history(session: str, form: str) -> None:
    """Show what happened in a session. SESSION is its id, or the end of it.

    \b
      strongroom history 20260304-101500-a1b2c3
      strongroom history a1b2c3 --format anthropic
    """
    from supervisor.reports import history

    here = settings()
    put(history.history(here, session, form, report_page(here)))


@click.command()
@click.argument("call")
@session_option
@json_option
def why(call: str, session: str | None, as_json: bool) -> None:
    """Show why a tool call ran or did not: who asked for it, who decided, and how it ended.

    CALL is the call's id, as `strongroom history` shows it.

    \b
      strongroom why toolu_01A2B3
      strongroom why call_1 --session a1b2c3
    """
    from supervisor.reports import history
    from supervisor.reports.why import as_text

    here = settings()
    known = history.why(here, call, session)
    put_answer(known, as_text(known, report_page(here)), as_json=as_json)


@click.command()
@json_option
def verify(as_json: bool) -> int:
    """Check that the journal holds exactly what was written, in order. It ends with 1 where it does not.

    \b
      strongroom verify
    """
    from supervisor.reports import history

    verdict = history.verify(settings())
    text = f"intact: {verdict.rows} facts of {verdict.sessions} sessions, head {verdict.head}"
    if verdict.problem:
        text = f"broken at row {verdict.broken_at}: {verdict.problem}; {verdict.rows} rows before it are intact"
    put_answer(verdict, text, as_json=as_json)
    return 1 if verdict.problem else 0
