"""The command line: its commands, and how each ends.

Rule: this module and `supervisor.cli` import click and nothing else of weight; a command is imported when it is named,
and imports its program when it runs. What a person sees on failure is one sentence on stderr and an exit code: 0 done,
1 the work failed, 2 wrong usage or configuration, 130 interrupted. With --json, stdout holds one JSON document and
nothing else.
"""

import io
import itertools
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO

import click

from supervisor.cli.shared import Launched, start_logging
from supervisor.system.standard_streams import occupy_standard_descriptors
from supervisor.version import VERSION

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_MODULES: Final = (
    "batch_call",
    "config",
    "console_acp_daemon",
    "fork_rewind_show",
    "history_export_why_verify",
    "inbox",
    "init_completion",
    "login_logout",
    "models",
    "prompt",
    "replay_search",
    "sessions_prune",
    "status_tools_doctor",
    "traces",
    "tui",
    "undo_rules",
)
"""Named as their commands are: the one that is run is imported, and all of them for `--help`."""
_COMMANDS: Final = {name: module for module in _MODULES for name in module.split("_")}
_ASKING: Final = frozenset({"-p", "--print", "--output-format", "--json", "--schema"})
"""Options that a prompt has and the console has not."""


class _CommandGroup(click.Group):
    """Turns every failure into a sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in _COMMANDS:
            self.add_command(getattr(import_module(f"supervisor.cli.{_COMMANDS[cmd_name]}"), cmd_name))
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take options that are none of its own for those of the console, and what is no command for a prompt."""
        own = {option for each in self.get_params(ctx) for option in each.opts}
        verbose = itertools.takewhile(lambda each: each == "--verbose" or set(each[1:]) == {"v"}, args)
        at = len([*verbose])
        if args[at : at + 2] == ["acp", "login"]:  # an editor knows no other command, and adds what logs in to that
            del args[at]
        if args[at:] and (any(map(str.isspace, args[at])) or (args[at].startswith("-") and args[at] not in own)):
            args.insert(at, "prompt" if self._has_prompt(ctx, args[at:]) else "console")
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0].startswith("-") or self.get_command(ctx, args[0]) is not None:
            return super().resolve_command(ctx, args)
        raise click.UsageError(_no_command(args))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete commands and options, also those of a prompt, which are the console's and more."""
        prompt = self.get_command(ctx, "prompt")
        assert prompt is not None
        options = prompt.shell_complete(ctx, incomplete) if incomplete.startswith("-") else []
        return super().shell_complete(ctx, incomplete) + [each for each in options if each.value != "--help"]

    def _has_prompt(self, ctx: click.Context, args: list[str]) -> bool:
        """Say whether a command line without a command asks something."""
        command = self.get_command(ctx, "prompt")
        assert command is not None
        asks = any(each.partition("=")[0] in _ASKING for each in itertools.takewhile(lambda each: each != "--", args))
        try:
            given, _, _ = command.make_parser(click.Context(command)).parse_args([*args])
        except click.UsageError:  # explained by the one whose options these are
            return asks
        text = given.get("prompt")  # click has a value of its own for none
        if text in _COMMANDS and "_prints" not in given and not ctx.resilient_parsing:
            raise click.UsageError(
                f"A command's options stand behind it: strongroom {text} ... (as a prompt: -p {text})"
            )
        return asks or (isinstance(text, str) and bool(text))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        occupy_standard_descriptors()
        try:
            sys.exit(super().main(*args, **kwargs) or 0)
        except click.ClickException as error:
            told = io.StringIO()
            error.show(told)
            click.echo(_sentence(told.getvalue().rstrip("\n")), err=True)
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


def _no_command(args: list[str]) -> str:
    """Return what is said of words that are neither a command nor, in quotes, a prompt."""
    import difflib
    import shlex

    near = difflib.get_close_matches(args[0], _COMMANDS, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "`strongroom --help` lists them."
    prompt = " ".join(itertools.takewhile(lambda each: not each.startswith("-"), args))
    return f"No such command {args[0]!r}. {hint} To ask it as a prompt: strongroom -p {shlex.quote(prompt)}"


def _end_as_interrupted() -> NoReturn:
    click.echo("interrupted", err=True)
    sys.exit(130)


def _sentence(text: str) -> str:
    """Return what a person is told, safe to show, and on a terminal broken between words."""
    try:
        from supervisor.display.escape import visible
    except ImportError:  # of a library, which is what is told
        return text
    if sys.stderr is None or not sys.stderr.isatty():
        return visible(text)
    import shutil

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
    opens, also with its options; a prompt in quotes gets one answer (-p, --json), and standard input is its context.

    \b
      strongroom
      strongroom "What did I decide about the greenhouse?"
      strongroom call read_file '{"path": "notes/idea.md"}' --root vault
      echo 'list **/*.md' | strongroom batch - --model offline --output out.jsonl
      strongroom doctor
    """
    context.obj = Launched(verbose, context.obj)
    if context.invoked_subcommand != "daemon":  # which logs by itself
        start_logging(verbose)
    if context.invoked_subcommand is None:
        from supervisor.cli.console_acp_daemon import console

        return context.invoke(console)  # type: ignore[no-any-return]
    return None
