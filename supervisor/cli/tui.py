"""The command `tui`."""

from typing import TYPE_CHECKING, Literal

import click

from supervisor.cli.shared import Launched, mode_option, model_option, on_terminal, session_option, settings, where

if TYPE_CHECKING:
    from supervisor.config.repositories import Names


@click.command()
@where
@model_option
@mode_option
@session_option
@click.option("--continue", "continue_", is_flag=True, help="Continue the newest session of this directory.")
@click.option(
    "--theme", type=click.Choice(["dark", "light", "contrast"]), default="dark", help="Colours; F4 changes them."
)
@click.pass_obj
def tui(
    launched: Launched,
    profile: str | None,
    root: str | None,
    model: str | None,
    mode: "Literal['ask', 'edits', 'plan'] | None",
    session: str | None,
    continue_: bool,
    theme: str,
    names: "Names",
) -> int:
    """Talk to the agent on the full screen, with the mouse too. It needs Textual: the extra `tui`.

    \b
      strongroom tui --root ~/notes
      strongroom tui --continue --theme light
      strongroom tui --mode ask --profile code
    """
    if session and continue_:
        raise click.UsageError("Use --session or --continue, not both.")
    if session and names.given:
        raise click.UsageError("A session keeps its repository: use --session without --group and --technology.")
    from supervisor.clients.connection.requests import absolute, absolute_model
    from supervisor.clients.console.options import ConsoleOptions
    from supervisor.clients.tui.start_tui import run_tui

    loaded = settings()
    options = ConsoleOptions(
        profile=profile,
        root=absolute(root) if root else None,
        names=names,
        model=absolute_model(model) if model else None,
        mode=mode,
        session=session,
        continue_=continue_,
        colour=on_terminal() and not loaded.no_color,
    )
    return run_tui(loaded, options, theme, launched.early)
