"""The command that a prompt on the command line is: `strongroom "PROMPT"`."""

import sys
from typing import Any, Literal

import click

from supervisor.cli.conversation_options import choose_one_session
from supervisor.cli.shared import (
    Launched,
    check_option,
    mode_option,
    model_option,
    on_terminal,
    put,
    schema_option,
    session_option,
    settings,
    show_progress,
    stopped_like_ctrl_c,
    where,
)


@click.command(hidden=True)
@click.argument("prompt", required=False, default="")
@click.option("-p", "--print", "_prints", is_flag=True, help="Ask PROMPT, or what stands in standard input, and end.")
@click.option(
    "--output-format",
    "output",
    type=click.Choice(("text", "json", "stream-json")),
    help="What is printed: the answer (text), one JSON document, or the turn's events as JSON lines.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --output-format json.")
@schema_option
@check_option
@model_option
@mode_option
@session_option
@click.option("--continue", "continue_", is_flag=True, help="Continue the newest session of this directory.")
@where
@click.pass_obj
def prompt(
    launched: Launched,
    /,
    prompt: str,
    _prints: bool,
    output: "Literal['text', 'json', 'stream-json'] | None",
    as_json: bool,
    schema: str | None,
    model: str | None,
    session: str | None,
    continue_: bool,
    root: str | None,
    **chosen: Any,
) -> int:
    """Ask one prompt and print the answer.

    What a pipe or a file on standard input holds goes with it. Nobody is asked: what a person would have to approve is
    denied and named, and the exit code is 1. The turn is recorded; --continue goes on with it.

    \b
      strongroom "What did I decide about the greenhouse?"
      git diff | strongroom -p "Review this." --json
      strongroom -p "Mend the parser." --profile code --check pytest
      strongroom -p "And the roof?" --continue
    """
    choose_one_session(session, continue_=continue_)
    if as_json and output not in (None, "json"):
        raise click.UsageError("Use --json or --output-format, not both.")
    from supervisor.clients.connection.spawn import private_if_none_runs

    here = settings()
    with stopped_like_ctrl_c():
        starting = private_if_none_runs(here, launched.early)
        from supervisor.clients.connection.requests import absolute, absolute_model, schema_in
        from supervisor.clients.single_prompt import Printers, PromptOptions, ask_once

        options = PromptOptions(
            prompt=prompt,
            root=absolute(root),
            model=absolute_model(model) if model else None,
            session=session,
            continue_=continue_,
            answer_schema=schema_in(schema) if schema else None,
            output="json" if as_json else output or "text",
            **chosen,
        )
        return ask_once(here, options, starting, Printers(_shown, _warn, show_progress))


def _shown(text: str) -> None:
    """Print a line at once, safe to see where a person sees it."""
    if on_terminal():
        from supervisor.display.escape import visible

        text = visible(text)
    put(text)
    sys.stdout.flush()


def _warn(text: str) -> None:
    from supervisor.display.escape import visible

    if sys.stderr is not None:
        click.echo(visible(text), err=True)
