"""Options, completions, printing and stopping that several commands share.

Rule: this imports click and nothing else of weight, and so do the commands; what a command needs it imports when it
runs.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from supervisor.clients.connection.spawn import Starting
    from supervisor.config.fault_plan import FaultPlan
    from supervisor.config.settings import Settings
    from supervisor.display.fragments import ReportPage


_DIGITS: Final = 10
"""Of a turn's number."""


class Launched(NamedTuple):
    """What there is before a command is read: `context.obj` of each."""

    verbose: int
    early: "Starting | None"
    """The daemon that was begun for it."""


def settings() -> "Settings":
    """Read the configuration."""
    from supervisor.config.settings import load

    return load()


def start_logging(verbose: int) -> None:
    """Log to stderr: errors, with -v more, with -vv everything."""
    import logging

    level = (logging.ERROR, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    ours = logging.getLogger("strongroom")  # not the root: a library may log requests, and with them the key
    ours.addHandler(handler)
    ours.setLevel(level)
    ours.propagate = False


# --- printing --------------------------------------------------------------------------------------------------------


def put(text: str) -> None:
    """Print to standard output; where there is none, an answer that nobody gets is a failure."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    click.echo(text)


def put_json(value: Any) -> None:
    """Print one JSON document."""
    from supervisor.display.escape import document

    put(document(value))


def put_answer(value: Any, text: str, *, as_json: bool) -> None:
    """Print what was found: one JSON document, or as people read it."""
    if as_json:
        put_json(value)
    else:
        put(text)


def on_terminal() -> bool:
    """Say whether a person sees what is printed."""
    return sys.stdout is not None and sys.stdout.isatty()


def show_progress(what: str) -> None:
    """Say on a terminal what is being done; an empty text takes it away."""
    if sys.stderr is not None and sys.stderr.isatty():
        click.echo(f"\r\x1b[K{what and f'{what} ...'}", err=True, nl=False)


def attended() -> bool:
    """Say whether a person is there who sees what is printed, and can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and on_terminal()


def report_page(settings: "Settings") -> "ReportPage":
    """Return the page of a report on standard output."""
    import shutil

    from supervisor.display.fragments import ReportPage

    columns = shutil.get_terminal_size().columns if on_terminal() else 0
    return ReportPage(columns, toned=on_terminal() and not settings.no_color)


def turn_of(text: str) -> tuple[str, int | None]:
    """Return what stands before an "@" and a number at the end, and the number; None where there is none."""
    before, at, turn = text.rpartition("@")
    return (before, int(turn)) if at and turn.isascii() and turn.isdecimal() and len(turn) < _DIGITS else (text, None)


# --- stopping --------------------------------------------------------------------------------------------------------


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM, and SIGINT also where a shell has it ignored, stop the block as Ctrl-C does."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- completions -----------------------------------------------------------------------------------------------------


def completed_by(name: str) -> "Callable[..., list[CompletionItem]]":
    """Return the completion of that name, of `completions`, which is imported when a shell asks."""

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        from supervisor.cli.completions import offered

        return offered(name, context, incomplete)

    return complete


# --- options and arguments -------------------------------------------------------------------------------------------

profile_option = click.option(
    "--profile",
    metavar="NAME",
    shell_complete=completed_by("profiles"),
    help="The tools and root that the agent gets; see `strongroom tools`.",
)
root_option = click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=str),
    help="The directory that it works on; default: the profile's own.",
)


class _ModelOption(click.Option):
    """Finds out which models there are when its help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from supervisor.agent.models.providers import model_names

        self.help = f"{model_names(', ')}; default: the configured one."
        return super().get_help_record(ctx)


model_option = click.option("--model", metavar="MODEL", shell_complete=completed_by("models"), cls=_ModelOption)
mode_option = click.option("--mode", type=click.Choice(("ask", "edits", "plan")), help="Which changes are asked about.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
schema_option = click.option("--schema", metavar="FILE", help="A JSON Schema: the answer is one document valid by it.")
check_option = click.option("--check", metavar="COMMAND", help="A command that must pass after the last change.")
session_option = click.option(
    "--session",
    metavar="ID",
    shell_complete=completed_by("sessions"),
    help="A session's id, or the last characters of it.",
)
session_argument = click.argument("session", shell_complete=completed_by("sessions"))
optional_session_argument = click.argument("session", required=False, shell_complete=completed_by("sessions"))
session_id_option = click.option(
    "--session-id",
    "session",
    metavar="ID",
    shell_complete=completed_by("sessions"),
    help="A session's id, or the last characters of it; default: the newest that changed something here.",
)
undoable_argument = click.argument("call", required=False, shell_complete=completed_by("undoable"))
question_argument = click.argument("question", shell_complete=completed_by("questions"))
rule_argument = click.argument("rule", shell_complete=completed_by("rules"))
tool_argument = click.argument("tool", required=False, shell_complete=completed_by("tools"))

faults_option = click.option(
    "--faults",
    metavar="PLAN",
    help="Make workers fail for real, as this TOML or JSON file says: [[faults]] with category, fault, and which calls "
    "(every = 3). scripts/faults.toml is a sample, and lists all faults, moments and keys.",
)


def fault_plan_of(name: str | None) -> "FaultPlan | None":
    """Return the fault plan that was asked for, checked."""
    if name is None:
        return None
    from pathlib import Path

    from supervisor.config.fault_plan import read_plan

    return read_plan(Path(name).absolute())


def named(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a repository; the command gets them as one, `names`."""

    @click.option(
        "--group",
        metavar="NAME",
        shell_complete=completed_by("groups"),
        help="With --profile librarian: the group that --technology is in.",
    )
    @click.option(
        "--technology",
        metavar="NAME",
        shell_complete=completed_by("technologies"),
        help="With --profile librarian: the repository; default: the one that this directory is in.",
    )
    @click.option(
        "--environment",
        metavar="NAME",
        help="With --profile librarian: the environment that the agent is told; default: the configured one, '' for "
        "none.",
    )
    @wraps(command)
    def run(*given: Any, group: str | None, technology: str | None, environment: str | None, **others: Any) -> Any:
        from supervisor.config.repositories import Names

        return command(*given, names=Names(group, technology, environment), **others)

    return run


def where(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose a profile, and its root or its repository."""
    return root_option(profile_option(named(command)))
