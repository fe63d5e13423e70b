"""Commands for the first day: `init` and `completion`."""

import click

from supervisor.cli.shared import put, settings


@click.command()
@click.argument("directory", metavar="[DIR]", default=".")
def init(directory: str) -> None:
    """Make a vault with a welcome note in DIR (default: here), and a commented configuration that names it.

    What exists is left as it is.

    \b
      strongroom init ~/notes
    """
    from supervisor.clients.init import set_up
    from supervisor.config.config_keys import VAULT
    from supervisor.display.escape import visible

    made = set_up(settings(), directory)
    for each in made:
        put(f"{'made' if each.new else 'exists':7} {visible(str(each.path))}  ({each.what})")
    root = visible(str(next(each.path for each in made if each.path.name == VAULT)))
    put("\nNext:")
    put("  strongroom doctor                  try every protection on this machine")
    put("  strongroom login                   keep a model's key; offline needs none")
    here = any(each.new and each.what == "the configuration" for each in made)
    put("  strongroom" if here else f"  strongroom console --root {root}")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
      eval "$(strongroom completion bash)"  # in ~/.bashrc
      eval "$(strongroom completion zsh)"   # in ~/.zshrc, below compinit
      strongroom completion fish > ~/.config/fish/completions/strongroom.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    put(found(context.find_root().command, {}, "strongroom", "_STRONGROOM_COMPLETE").source())
