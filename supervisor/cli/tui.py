"""The command `tui`."""

from typing import Any

import click

from supervisor.cli.conversation_options import conversation, conversation_options
from supervisor.cli.shared import Launched


@click.command()
@conversation
@click.option(
    "--theme", type=click.Choice(["dark", "light", "high-contrast"]), help="Colours; by default those of /theme."
)
@click.pass_obj
def tui(launched: Launched, /, theme: str | None, **chosen: Any) -> int:
    """Talk to the agent on the full screen, with the mouse too. It needs Textual: the extra `tui`.

    \b
      strongroom tui --root ~/notes/vault
      strongroom tui --continue --theme light
      strongroom tui --mode ask --profile code
    """
    from supervisor.clients.tui.start_tui import run_tui

    loaded, options = conversation_options(**chosen)
    return run_tui(loaded, options, theme, launched.early)
