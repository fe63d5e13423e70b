"""Commands that show how things are: `status`, `tools`, `doctor`."""

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from supervisor.cli.shared import (
    completed_by,
    json_option,
    named,
    on_terminal,
    profile_option,
    put,
    put_json,
    settings,
    show_progress,
    stopped_like_ctrl_c,
)

if TYPE_CHECKING:
    from supervisor.config.repositories import Names
    from supervisor.doctor.table import CheckResult


@click.command()
@json_option
@click.option("--watch", is_flag=True, help="Show it anew each second, on a screen that scrolls; q or Ctrl-C ends.")
def status(as_json: bool, watch: bool) -> int:
    """Show the daemon, its sessions and workers, and what the kernel enforces. Nothing is started.

    \b
      strongroom status
      strongroom status --watch
      strongroom status --json
    """
    if as_json and watch:
        raise click.UsageError("Use --json or --watch, not both.")
    from supervisor.clients import status as program
    from supervisor.config.settings import load

    here = load(read=False)  # the daemon says what is wrong with the configuration
    if watch:
        from supervisor.clients.status_screen import watch as screen

        with suppress(KeyboardInterrupt), stopped_like_ctrl_c():
            screen(here, _columns, _styled)
        return 0
    found = program.look(here)
    if as_json:
        put_json({"running": False} if found is None else program.as_json(found))
    elif found is None:
        put(program.NONE_RUNS)
    else:
        for line in program.status_text(found, _columns()).splitlines():
            put(_styled(line))
    return 1 if found is None else 0


def _columns() -> int:
    """Return how wide the terminal is, within reason; 80 where there is none."""
    import shutil

    return max(20, min(shutil.get_terminal_size((80, 24)).columns, 120)) if on_terminal() else 80


def _styled(line: str) -> str:
    """Make headings, and what is wrong, stand out on a terminal."""
    if not on_terminal():
        return line
    if line.lstrip().startswith(("DEGRADED", "MISSING", "failed:", "waits for", "Configuration problem")):
        return click.style(line, fg="yellow", bold=True)
    return click.style(line, bold=True) if line[:1].isalpha() else line


@click.command()
@json_option
@profile_option
@named
def tools(as_json: bool, profile: str | None, names: "Names") -> None:
    """List the tools of a profile, and which of them cannot work here; with --json, their JSON Schemas too.

    \b
      strongroom tools --profile project
      strongroom tools --profile librarian --group elixir --technology phoenix
      strongroom tools --json
    """
    from supervisor.config.profiles import profile_of, resolve
    from supervisor.config.source_tree import profile_here
    from supervisor.display.columns import wrapped
    from supervisor.tools.catalog import SANDBOXED, offers

    here = settings()
    wanted = profile_of(here, profile or (None if names.given else profile_here(here, ".")))
    context = {"context": resolve(here, profile, None, None, names).context()} if names.given else {}
    found, unavailable = dict(offers(wanted.tools)), {}
    if any(offer.category in SANDBOXED for offer in found.values()):
        from supervisor.doctor.workers import unavailable_tools

        unavailable = unavailable_tools(here, wanted.tools)
        found = {tool: offer for tool, offer in found.items() if tool not in unavailable}
    if as_json:
        rows = [offer.as_api() | {"category": offer.category, "effect": offer.effect} for offer in found.values()]
        put_json({"profile": wanted.name, "tools": rows, **context} | ({"absent": unavailable} if unavailable else {}))
        return
    columns = _columns() if on_terminal() else 0
    for offer in found.values():
        needed = offer.input_schema.get("required", ())
        arguments = (each if each in needed else f"{each}?" for each in offer.input_schema.get("properties", {}))
        put(f"{offer.name}({', '.join(arguments)})")
        put("\n".join(wrapped(offer.description, columns, "    ")) if columns else f"    {offer.description}")
    for tool, why in unavailable.items():
        put(f"{tool}: unavailable here")
        put(f"    Its workers {why}.")


@click.command()
@click.option(
    "--model",
    metavar="[NAME]",
    is_flag=False,
    flag_value="",
    shell_complete=completed_by("models"),
    help="Also check that the models' servers answer and accept the key; with a NAME, try a tiny turn of that model.",
)
@click.option(
    "--root", metavar="DIR", help="List the programs that a command in DIR finds, and those that it does not."
)
@json_option
def doctor(as_json: bool, model: str | None, root: str | None) -> int:
    """Try every protection and dependency for real, in throw-away workers.

    It ends with 1 where something that Strongroom needs is missing.

    \b
      strongroom doctor
      strongroom doctor --root .
      strongroom doctor --model
      strongroom doctor --model claude-haiku-5-5  # two requests
      strongroom doctor --json
    """
    from supervisor.doctor.msgspec_check import msgspec_problem

    if why := msgspec_problem():
        raise click.ClickException(why)
    from supervisor.config.settings import load
    from supervisor.doctor.checks import run_checks
    from supervisor.errors import ConfigError

    problem = ""
    if root is not None and model is not None:
        raise click.UsageError("Use --root or --model, not both.")
    try:
        here = settings()
    except ConfigError as error:
        if root is not None:
            raise
        here, problem = load(read=False), str(error)
    from supervisor.agent.models.key_choice import with_keys

    try:
        here = with_keys(here, here.environment)
    except ConfigError as error:
        problem = problem or str(error)
    if root is not None:
        from supervisor.doctor.programs import check_programs

        show_progress("trying programs")
        results = check_programs(here, root)
    else:
        results = run_checks(
            here, problem=problem, model=model, tell=lambda what: show_progress(what and f"trying {what}")
        )
    show_progress("")
    if as_json:
        put_json(results)
    else:
        _put_checks(results)
    return 1 if any(result.verdict == "missing" for result in results) else 0


def _put_checks(results: "list[CheckResult]") -> None:
    """Print a line a check, as wide as the terminal, and how many went well."""
    import shutil

    from supervisor.doctor.table import lines, summary

    colours = {"ok": "green", "degraded": "yellow", "missing": "red"}
    width = shutil.get_terminal_size().columns
    for verdict, line in lines(results, width):
        begins = line.startswith(verdict)
        put(click.style(verdict, colours[verdict]) + line[len(verdict) :] if begins else line)
    put(summary(results, width if on_terminal() else 0))
