"""The commands about rules: `rules`, `rules revoke`, `rules test`."""

import datetime as dt
from pathlib import Path

import click

from supervisor.cli.shared import json_option, put, put_json, rule_argument, settings


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def rules(context: click.Context, as_json: bool) -> None:
    """List the rules that decide what commands may change: the configured ones, and those made with approvals.

    A rule matches a command's effects: its programs, the paths that it writes or deletes, and how many. You are asked
    about whatever no rule covers.

    \b
      strongroom rules
      strongroom rules revoke k7tm
      strongroom rules test proposed.toml
    """
    if context.invoked_subcommand is not None:
        return
    from supervisor.reports import rules_report as program

    here = settings()
    found = program.listing(here, dt.datetime.now().astimezone().date())
    if as_json:
        put_json(found)
    else:
        put(program.as_text(found, here))


@rules.command()
@rule_argument
def revoke(rule: str) -> None:
    """Revoke a rule that was made with an approval, in running sessions too.

    RULE is its id, as `strongroom rules` shows it.

    \b
      strongroom rules revoke k7tm
    """
    from supervisor.reports import rules_report as program

    put(f"revoked: {program.revoke(settings(), rule)}")


@rules.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def test(file: Path, as_json: bool) -> None:
    """Show what rules would have decided about all commands in the journal, next to what was decided.

    FILE is TOML with [[rules]] as in the configuration, and nothing else. Nothing is changed.

    \b
      strongroom rules test proposed.toml
      strongroom rules test proposed.toml --json

    \b
      [[rules]]
      decision = "allow"
      programs = ["npm"]
      writes = ["build/**"]
      max_files = 200
      until = 2027-06-30
      reason = "build output is ours"
    """
    from supervisor.reports import rules_report as program

    found = program.try_rules(settings(), file)
    if as_json:
        put_json(found)
    else:
        put(program.trial_text(found))
