"""Commands about what was: `history`, `export`, `why`, `verify`."""

from typing import Final

import click

from supervisor.cli.shared import json_option, put, put_answer, report_page, session_argument, session_option, settings
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
