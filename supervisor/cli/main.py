"""The command line: its commands, and how each ends.

Rule: this module and `supervisor.cli` import click and nothing else of weight; each command imports its program
when it runs. What a person sees on failure is one sentence on stderr and an exit code: 0 done, 1 the work failed, 2
wrong usage or configuration, 130 interrupted. With --json, stdout holds one JSON document and nothing else.
"""

import os
import shutil
import sys
from typing import Any, Final, NoReturn, TextIO

import click

from supervisor.cli import (
    batch_call,
    console_acp_daemon,
    init_completion,
    rules,
    sessions_history_why_verify,
    status_tools_doctor,
    undo,
)
from supervisor.cli.shared import start_logging
from supervisor.version import VERSION

_STANDARD: Final = 2
"""The highest of the descriptors that have a meaning: standard error."""


class _CommandGroup(click.Group):
    """Turns every failure into a sentence and an exit code."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        _occupy_standard_descriptors()
        try:
            sys.exit(super().main(*args, **kwargs) or 0)
        except click.ClickException as error:
            error.show()
            sys.exit(2)
        except (KeyboardInterrupt, click.Abort):
            _end_as_interrupted()
        except BaseExceptionGroup as group:  # where trio runs, and Ctrl-C came before somebody waited for it
            if group.subgroup(KeyboardInterrupt) is None:
                raise
            _end_as_interrupted()
        except OSError as error:
            _lose(sys.stdout)
            if not isinstance(error, BrokenPipeError):
                click.echo(f"error: the output cannot be written: {error.strerror}", err=True)
            sys.exit(1)
        except Exception as error:
            from supervisor.errors import ConfigError, StrongroomError

            if not isinstance(error, StrongroomError):
                raise
            click.echo(_sentence(f"error: {error}"), err=True)
            sys.exit(2 if isinstance(error, ConfigError) else 1)


def _end_as_interrupted() -> NoReturn:
    click.echo("interrupted", err=True)
    sys.exit(130)


def _occupy_standard_descriptors() -> None:
    """Put /dev/null where a standard descriptor is closed, so that no socket of ours becomes one."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STANDARD:
        pass
    os.close(descriptor)


def _sentence(text: str) -> str:
    """Return what a person is told, safe to show, and on a terminal broken between words."""
    from supervisor.display.escape import visible

    if sys.stderr is None or not sys.stderr.isatty():
        return visible(text)
    from supervisor.display.columns import wrapped

    columns = shutil.get_terminal_size().columns
    return "\n".join(piece for line in visible(text).split("\n") for piece in wrapped(line, columns))


def _lose(stream: TextIO | None) -> None:
    """Drop what a stream still holds, so that the interpreter does not try to write it once more at its end."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@click.group(cls=_CommandGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", count=True, help="Log to stderr; twice for more.")
@click.version_option(VERSION, message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context, verbose: int) -> int | None:
    """A local agent whose tools live in locked rooms.

    Every tool runs in a worker process that the kernel confines to one directory. Without a command, the console
    opens. Examples:

    \b
      strongroom                                                   # talk to the agent
      strongroom call read_file '{"path": "notes/idea.md"}' --root vault
      printf 'list **/*.md\\n' | strongroom batch - --model offline --output answers.jsonl
      strongroom doctor
    """
    context.obj = verbose
    if context.invoked_subcommand != console_acp_daemon.daemon.name:  # which logs by itself
        start_logging(verbose)
    if context.invoked_subcommand is None:
        return context.invoke(console_acp_daemon.console)  # type: ignore[no-any-return]
    return None


for _command in (
    console_acp_daemon.console,
    batch_call.batch,
    batch_call.call,
    console_acp_daemon.acp,
    console_acp_daemon.daemon,
    status_tools_doctor.status,
    status_tools_doctor.tools,
    status_tools_doctor.doctor,
    sessions_history_why_verify.sessions,
    sessions_history_why_verify.history,
    sessions_history_why_verify.why,
    undo.undo,
    rules.rules,
    sessions_history_why_verify.verify,
    init_completion.init,
    init_completion.completion,
):
    main.add_command(_command)
