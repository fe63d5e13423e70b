"""Options of the commands in which a person talks to an agent: which session, and how."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from supervisor.cli.shared import mode_option, model_option, on_terminal, session_option, settings, where

if TYPE_CHECKING:
    from supervisor.clients.console.options import ConsoleOptions
    from supervisor.config.repositories import Names
    from supervisor.config.settings import Settings

_CONTINUE = click.option("--continue", "continue_", is_flag=True, help="Continue the newest session of this directory.")


def conversation(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that `conversation_options` takes."""
    for option in (_CONTINUE, session_option, mode_option, model_option, where):
        command = option(command)
    return command


def choose_one_session(session: str | None, *, continue_: bool) -> None:
    """Refuse two answers to which session is meant.

    Raises:
        click.UsageError: both are given.
    """
    if session and continue_:
        raise click.UsageError("Use --session or --continue, not both.")


def conversation_options(
    *, root: str | None, model: str | None, session: str | None, continue_: bool, names: "Names", **others: Any
) -> tuple["Settings", "ConsoleOptions"]:
    """Return the settings of this home, and the options of a conversation as the person has given them.

    Raises:
        click.UsageError: they contradict each other.
    """
    choose_one_session(session, continue_=continue_)
    if session and names.given:
        raise click.UsageError("A session keeps its repository: use --session without --group and --technology.")
    from supervisor.clients.connection.requests import absolute, absolute_model
    from supervisor.clients.console.options import ConsoleOptions

    loaded = settings()
    options = ConsoleOptions(
        root=absolute(root) if root else None,
        names=names,
        model=absolute_model(model) if model else None,
        session=session,
        continue_=continue_,
        colour=on_terminal() and not loaded.no_color,
        **others,
    )
    return loaded, options
