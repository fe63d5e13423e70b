"""The command that shows and changes the configuration: `config`."""

import click

from supervisor.cli.shared import completed_by, json_option, put, put_json, settings

key_argument = click.argument("key", shell_complete=completed_by("config keys"))


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def config(context: click.Context, as_json: bool) -> None:
    """Show what holds, and where it comes from: the default, a line of the file, the environment or an option.

    What it prints is TOML. `set` keeps comments and form, and refuses keys and values that cannot be, as `unset` does.

    \b
      strongroom config
      strongroom config get web.allow
      strongroom config set max_steps 80
      strongroom config set web.allow '["docs.python.org"]'
      strongroom config set 'models."ollama/qwen3".window' 32768
      strongroom config unset max_steps
    """
    if context.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("--json stands behind the subcommand.")
        return
    from supervisor.clients import config_view
    from supervisor.display.escape import visible

    here = settings()
    about, values = list(config_view.surroundings(here)), config_view.held_values(here)
    if as_json:
        put_json({"about": config_view.as_json(about), "values": config_view.as_json(values)})
        return
    for each in about:
        told = f"{each.key}: {each.value}" if each.value else each.key
        put(visible(f"# {told}  ({each.source})"))
    for line in config_view.held_lines(values):
        put(visible(line))


@config.command()
@key_argument
@json_option
def get(key: str, as_json: bool) -> None:
    """Print the value of KEY; of a table its keys.

    \b
      strongroom config get model
      strongroom config get web --json
    """
    from supervisor.clients import config_view
    from supervisor.config.reference import toml_value
    from supervisor.display.escape import visible

    found = config_view.held_at(settings(), key)
    if as_json:
        rows = config_view.as_json(found)
        put_json(rows[0] if len(rows) == 1 else rows)
    elif len(found) == 1:
        value = found[0].value
        put(visible("" if value is None else value if isinstance(value, str) else toml_value(value)))
    else:
        for line in config_view.held_lines(found):
            put(visible(line))


@config.command(name="set", context_settings={"ignore_unknown_options": True})  # a number below 0 is a value
@key_argument
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Give KEY a VALUE, which is TOML or else a text.

    \b
      strongroom config set model claude-haiku-5-5
    """
    from supervisor.config.config_editor import set_value
    from supervisor.config.settings import load

    _say(f"{key} is set in {set_value(load(read=False), key, value)}")


@config.command()
@key_argument
def unset(key: str) -> None:
    """Take KEY out of the file, so that its default holds.

    \b
      strongroom config unset model
    """
    from supervisor.config.config_editor import unset as take_out
    from supervisor.config.settings import load

    _say(f"{key} is no longer set in {take_out(load(read=False), key)}")


def _say(text: str) -> None:
    from supervisor.display.escape import visible

    click.echo(visible(f"{text}; it counts for sessions that are opened from now on"), err=True)
