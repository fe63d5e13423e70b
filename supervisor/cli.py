"""The command line: what can be typed, and how it ends.

Rule: this module imports click and nothing else of weight; each command imports its program when it runs. What a
person sees on failure is one sentence on stderr and an exit code: 0 done, 1 the work failed, 2 wrong usage or
configuration, 130 interrupted. With --json, stdout holds one JSON document and nothing else.
"""

import errno
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from supervisor.config import Settings

_F = TypeVar("_F", bound=Callable[..., Any])


class _Group(click.Group):
    """Turns every failure into a sentence and an exit code."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        try:
            sys.exit(super().main(*args, **kwargs) or 0)
        except click.ClickException as error:
            error.show()
            sys.exit(2)
        except (KeyboardInterrupt, click.Abort):
            click.echo("interrupted", err=True)
            sys.exit(130)
        except OSError as error:
            _lose(sys.stdout)
            if not isinstance(error, BrokenPipeError):
                click.echo(f"error: the output cannot be written: {error.strerror}", err=True)
            sys.exit(1)
        except Exception as error:
            from supervisor.errors import ConfigError, StrongroomError

            if not isinstance(error, StrongroomError):
                raise
            from supervisor.render import visible

            click.echo(f"error: {visible(str(error))}", err=True)
            sys.exit(2 if isinstance(error, ConfigError) else 1)


def _lose(stream: TextIO | None) -> None:
    """Drop what a stream still holds, so that the interpreter does not try to write it once more at its end."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_profile = click.option("--profile", metavar="NAME", help="What the agent may use; see `strongroom tools`.")


def _where(command: _F) -> _F:
    """Add the options that choose a profile and its root."""
    command = _profile(command)
    return click.option("--root", metavar="DIR", help="The directory it works on; default: the profile's own.")(command)


_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def _settings() -> "Settings":
    from supervisor.config import load

    return load()


def _logging(verbose: int) -> None:
    import logging

    level = (logging.ERROR, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    ours = logging.getLogger("strongroom")  # not the root: a library may log requests, and with them the key
    ours.addHandler(handler)
    ours.setLevel(level)
    ours.propagate = False


def _print(text: str) -> None:
    """Print to standard output; where there is none, an answer that nobody gets is a failure."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    click.echo(text)


def _print_json(value: Any) -> None:
    from supervisor.render import document

    _print(document(value))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", count=True, help="Log to stderr; twice for more.")
@click.version_option(package_name="strongroom", message="%(prog)s %(version)s")
def main(verbose: int) -> None:
    """A local agent whose tools live in locked rooms.

    Every tool runs in a worker process that the kernel confines to one directory. Examples:

    \b
      strongroom call read_file '{"path": "notes/idea.md"}' --root vault
      printf 'list **/*.md\\n' | strongroom batch - --model offline --output answers.jsonl
      strongroom doctor
    """
    _logging(verbose)


@main.command()
@click.argument("tool", required=False)
@click.argument("arguments", required=False, metavar="[JSON]")
@click.option("--stdin", "many", is_flag=True, help="Read calls from standard input, one JSON object a line.")
@click.option("--approve", is_flag=True, help="Say yes beforehand to what a person would be asked.")
@click.option("--json", "_as_json", is_flag=True, help="The answer is JSON in any case.")
@_where
def call(
    tool: str | None,
    arguments: str | None,
    many: bool,
    approve: bool,
    _as_json: bool,
    profile: str | None,
    root: str | None,
) -> int:
    """Run one tool without a model, under the same policy and confinement.

    \b
      strongroom call list_files '{"pattern": "**/*.md"}'
      strongroom call read_file '{"path": "../etc/passwd"}'        # refused: path_escape
      echo '{"id": 1, "tool": "read_file", "arguments": {"path": "a.md"}}' | strongroom call --stdin

    With --stdin each line {"id", "tool", "arguments"} is answered by one line {"id", "ok", "content" | "error"}.
    """
    if many == (tool is not None):
        raise click.UsageError("Name a tool and its arguments as JSON, or use --stdin.")
    from supervisor.profiles import resolve
    from supervisor.programs import call as program

    settings = _settings()
    resolved = resolve(settings, profile, root)
    if many:
        return 0 if program.call_many(settings, resolved, approve=approve) else 1
    ended = program.call_once(settings, resolved, tool or "", arguments or "{}", approve=approve)
    _print_json(program.as_answer(ended))
    return 0 if ended.ok else 1


@main.command()
@_json
@_profile
def tools(as_json: bool, profile: str | None) -> None:
    """List the tools of a profile, with their JSON Schemas.

    \b
      strongroom tools --profile project
      strongroom tools --json
    """
    from supervisor.profiles import profiles
    from supervisor.tools.catalog import offers

    settings = _settings()
    known = profiles(settings)
    name = profile or settings.config.profile
    if name not in known:
        raise click.UsageError(f"No profile {name!r}. There is: {', '.join(known)}.")
    found = offers(known[name].tools)
    if as_json:
        rows = [offer.as_api() | {"category": offer.category, "effect": offer.effect} for offer in found.values()]
        _print_json({"profile": name, "tools": rows})
        return
    for offer in found.values():
        _print(f"{offer.name}({', '.join(offer.input_schema.get('properties', {}))})")
        _print(f"    {offer.description}")


@main.command()
@click.argument("file")
@click.option("--output", required=True, metavar="FILE", help="Where results go, one JSON line an item.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=1, show_default=True, help="Items at a time.")
@click.option("--model", metavar="MODEL", help="offline, scripted:FILE, claude-...; default: the configured one.")
@click.option("--resume", is_flag=True, help="Go on with a batch that was stopped or killed.")
@_json
@_where
def batch(
    file: str,
    output: str,
    concurrency: int,
    model: str | None,
    resume: bool,
    as_json: bool,
    profile: str | None,
    root: str | None,
) -> int:
    """Ask many prompts and write the answers as JSON lines.

    FILE (or - for standard input) holds a prompt a line, or JSON lines {"id", "prompt" | "prompts", "profile"?,
    "root"?, "model"?}. Each result is on the disk as soon as its item ends.

    \b
      strongroom batch questions.txt --output answers.jsonl
      strongroom batch questions.txt --output answers.jsonl --resume     # after kill -9
    """
    from pathlib import Path

    from supervisor.programs.batch import plan, run_batch
    from supervisor.programs.items import Result, read_items

    settings = _settings()
    items = read_items(file)
    planned = plan(settings, items, Path(output), profile, root, model)
    hidden = sys.stderr is None or not sys.stderr.isatty()
    shown = click.progressbar(length=len(items), label="batch", file=sys.stderr, show_pos=True, hidden=hidden)
    with shown as bar:

        def done(_result: Result) -> None:
            bar.update(1)

        try:
            statuses = run_batch(
                settings, items, Path(output), planned, resume=resume, concurrency=concurrency, done=done
            )
        except KeyboardInterrupt:
            click.echo("\nstopped; the same command with --resume goes on", err=True)
            raise
    bad = len(statuses) - statuses.count("ok")
    if as_json:
        _print_json({"items": len(statuses), "ok": len(statuses) - bad, "output": output})
    elif bad:
        click.echo(f"{bad} of {len(statuses)} items did not end well; see {output}", err=True)
    return 1 if bad else 0


@main.command()
@_json
def sessions(as_json: bool) -> None:
    """List the sessions in the journal, oldest first.

    \b
      strongroom sessions
      strongroom sessions --json
    """
    from supervisor.programs import past

    found = past.sessions(_settings())
    if as_json:
        _print_json(found)
        return
    for line in found:
        _print(f"{line.session}  {line.opened}  {line.profile:8} {line.state:9} {line.turns:3} turns  {line.title}")


@main.command()
@click.argument("session")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "anthropic", "gemini"]),
    default="text",
    show_default=True,
    help="For people, every fact, or the messages as a model's API takes them.",
)
def history(session: str, form: str) -> None:
    """Show what happened in a session. SESSION is its id, or the end of it.

    \b
      strongroom history 20260304-101500-a1b2c3
      strongroom history a1b2c3 --format anthropic
    """
    from supervisor.programs import past

    _print(past.history(_settings(), session, form))


@main.command()
@_json
def verify(as_json: bool) -> int:
    """Check that the journal holds exactly what was written, in order.

    \b
      strongroom verify
    """
    from supervisor.programs import past

    verdict = past.verify(_settings())
    if as_json:
        _print_json(verdict)
    elif verdict.problem:
        _print(f"broken at row {verdict.broken_at}: {verdict.problem}; {verdict.rows} rows before it are whole")
    else:
        _print(f"whole: {verdict.rows} facts of {verdict.sessions} sessions, head {verdict.head}")
    return 1 if verdict.problem else 0


@main.command()
@_json
def doctor(as_json: bool) -> int:
    """Try every protection and dependency for real, in a worker that is thrown away.

    \b
      strongroom doctor
      strongroom doctor --json
    """
    from supervisor.programs.doctor import examine

    findings = examine(_settings())
    if as_json:
        _print_json(findings)
    else:
        colours = {"ok": "green", "degraded": "yellow", "missing": "red"}
        for finding in findings:
            _print(
                f"{click.style(f'{finding.verdict:9}', colours[finding.verdict])} {finding.subject}: {finding.detail}"
            )
            if finding.advice:
                _print(f"          {finding.advice}")
    return 1 if any(finding.verdict == "missing" for finding in findings) else 0


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
      strongroom completion bash > ~/.local/share/bash-completion/completions/strongroom
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    _print(found(main, {}, "strongroom", "_STRONGROOM_COMPLETE").source())
