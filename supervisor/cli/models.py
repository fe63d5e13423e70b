"""The command that lists models: `models`."""

import click

from supervisor.cli.shared import json_option, on_terminal, put, put_json, settings


@click.command()
@json_option
def models(as_json: bool) -> None:
    """List the models that can be used now: window, longest reply, prices, abilities, and where each figure comes from.

    Each provider with a key or a server is asked which models it has, all at the same time and for five seconds; one
    that does not answer is a line that says why. Prices are for a million tokens.

    \b
      strongroom models
      strongroom models --json
    """
    from supervisor.clients import model_table

    found = model_table.available_models(settings())
    if as_json:
        put_json(model_table.as_json(found))
        return
    import shutil

    width = shutil.get_terminal_size((120, 24)).columns if on_terminal() else 120
    for line in model_table.model_lines(found, max(width, 40)):
        put(click.style(line, bold=True) if line[:1].isalpha() and on_terminal() else line)
