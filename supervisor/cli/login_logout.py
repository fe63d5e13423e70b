"""Commands for keys of model providers: `login` and `logout`."""

import sys
from typing import Final

import click

from supervisor.cli.shared import completed_by, json_option, put, put_json, settings

_MOST: Final = 2**16
"""Bytes of standard input that are read: more is no key."""


@click.command()
@click.argument("provider", required=False, shell_complete=completed_by("key takers"))
@click.option("--list", "lists", is_flag=True, help="Show for which providers a key is kept, or set here; no key.")
@json_option
def login(provider: str | None, lists: bool, as_json: bool) -> int:
    """Keep the key of a model's PROVIDER on this machine; without a name, say which there are and ask.

    The key is typed unseen, or read from a pipe. It is shown to the provider's server, and kept for that server alone,
    in a file that only you can read. A key in the environment of whoever opens a session goes before it. It ends with 0
    where a key is kept, with 1 where the server refuses it.

    \b
      strongroom login
      strongroom login openai
      pass show gateway | strongroom login gateway  # of [providers.gateway]
      strongroom login --list
    """
    from supervisor.clients import login as program

    here = settings()
    if lists or as_json:
        if provider is not None:
            raise click.UsageError("Use --list without a PROVIDER.")
        found = program.keys_of(here)
        if as_json:
            put_json(program.as_json(found))
        else:
            _show(program.key_lines(found))
        return 0
    if provider is None:
        labels = [row.label for row in program.key_takers(here)]
        if not _at_terminal():
            raise click.UsageError(f"Name the PROVIDER whose key this is: {', '.join(labels)}.")
        _show(program.key_lines(program.keys_of(here)), err=True)
        choice = click.Choice(labels)
        provider = click.prompt(
            "Provider", default=program.usual_taker(here), type=choice, show_choices=False, err=True
        )
    row = program.taker(here, provider)
    for line in program.keep(here, row, _key(row.label)):
        _say(line)
    return 0


@click.command()
@click.argument("provider", required=False, shell_complete=completed_by("key takers"))
def logout(provider: str | None) -> int:
    """Forget the kept key of a PROVIDER; without a name, the only one that is kept.

    Sessions that are open keep what they were opened with. The provider knows nothing of it: a key that may have been
    seen is to be revoked there.

    \b
      strongroom logout openai
    """
    from supervisor.clients import login as program

    here = settings()
    if provider is None:
        kept = program.kept_labels(here)
        if len(kept) > 1:
            raise click.UsageError(f"Name the PROVIDER: {', '.join(kept)}.")
        if not kept:
            _say("No key is kept.")
            return 0
        provider = kept[0]
    forgot = program.forget(here, provider)
    _say(f"The key of {provider} is forgotten." if forgot else f"No key of {provider} is kept.")
    return 0


def _at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _key(label: str) -> str:
    """Return what is typed unseen, or piped, without the blanks and the line's end around it."""
    if not _at_terminal():
        piped = b"" if sys.stdin is None else sys.stdin.buffer.read(_MOST)
        return piped.decode("utf-8", "replace").strip()
    import warnings
    from getpass import GetPassWarning, getpass

    with warnings.catch_warnings():
        warnings.simplefilter("error", GetPassWarning)
        try:
            return getpass(f"Key of {label} (not shown): ").strip()
        except GetPassWarning:
            raise click.ClickException("This terminal cannot keep from showing what is typed; pipe the key.") from None
        except EOFError:
            raise click.Abort from None


def _show(rows: list[tuple[str, str]], *, err: bool = False) -> None:
    width = max(len(name) for name, _ in rows)
    for name, told in rows:
        _say(f"{name:{width}}  {told}", err=err)


def _say(line: str, *, err: bool = False) -> None:
    from supervisor.display.escape import visible

    if err:
        click.echo(visible(line), err=True)
    else:
        put(visible(line))
