"""Commands about what was: `history`, `export`, `why`, `verify`."""

from typing import Final

import click

from supervisor.cli.shared import (
    json_option,
    optional_session_argument,
    put,
    put_answer,
    report_page,
    session_argument,
    session_option,
    settings,
)
from supervisor.reports.session_formats import FORMATS, HTML, MARKDOWN, TEXT

_FORMAT: Final = click.Choice([*FORMATS])
_FORMAT_HELP: Final = (
    "text and markdown for people, html for a browser, json for every fact; the others for the messages as that "
    "model's API takes them (openai: Responses, chat: Chat Completions)."
)


@click.command()
@session_argument
@click.option("--format", "form", type=_FORMAT, default=TEXT, show_default=True, help=_FORMAT_HELP)
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
@session_argument
@click.option("--format", "form", type=_FORMAT, default=MARKDOWN, show_default=True, help=_FORMAT_HELP)
@click.option("--html", "form", flag_value=HTML, help="The same as --format html.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=str),
    help="Where to write it, a new file, or - for standard output; default: strongroom-SESSION.md, .html, ..., here.",
)
def export(session: str, form: str, output: str | None) -> None:
    """Write a session to a file, as Markdown or as `--format` says. SESSION is its id, or the end of it.

    The page needs no network and runs nothing: the conversation, with calls to unfold, differences, images, and a
    timeline of where the time and the tokens went.

    \b
      strongroom export a1b2c3
      strongroom export a1b2c3 --html -o talk.html
      strongroom export a1b2c3 --format openai -o - | less
    """
    from supervisor.clients.export import export as program
    from supervisor.reports.history import history as report

    here = settings()
    put(
        report(here, session, form)
        if output == "-"
        else f"The conversation is in {program(here, session, form, output)}."
    )


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
    from supervisor.reports.why_text import as_text

    here = settings()
    known = history.why(here, call, session)
    put_answer(known, as_text(known, report_page(here)), as_json=as_json)


@click.command()
@optional_session_argument
@click.option(
    "--proof",
    metavar="FILE",
    help="Where to write what a stranger needs to check SESSION offline, with scripts/verify_proof.py: a new file.",
)
@json_option
def verify(session: str | None, proof: str | None, as_json: bool) -> int:
    """Check that the journal holds exactly what was written, in order. It ends with 1 where it does not.

    A proof holds all that was said and done in SESSION, and nothing of other sessions. It is signed with the key of
    this installation, which is made for the first one; tell its fingerprint to those who shall check proofs.

    \b
      strongroom verify
      strongroom verify --proof a1b2c3.proof a1b2c3
    """
    from supervisor.reports import verification

    here = settings()
    if (session is None) != (proof is None):
        raise click.UsageError("A proof is of one session: `strongroom verify --proof FILE SESSION`.")
    if session is not None and proof is not None:
        import time
        from functools import partial

        from supervisor.clients.new_file import write_new_file

        checked = verification.prove(here, session, time.time(), partial(write_new_file, proof))
    else:
        checked = verification.verify(here)
    put_answer(checked, verification.as_text(checked), as_json=as_json)
    return 1 if checked.problem else 0
