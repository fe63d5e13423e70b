"""`search`: where all sessions hold some words."""

import os

import click

from supervisor.cli.shared import json_option, on_terminal, put, put_json, session_option, settings


@click.command()
@click.argument("words", nargs=-1, required=True)
@session_option
@click.option("--root", metavar="DIR", help="Only in sessions that work on DIR, or were opened in it.")
@click.option("--here", is_flag=True, help="The same of this directory.")
@click.option("--limit", metavar="N", type=click.IntRange(1, 1000), default=20, show_default=True, help="So many.")
@json_option
def search(words: tuple[str, ...], session: str | None, root: str | None, here: bool, limit: int, as_json: bool) -> int:
    """Find words in all sessions: in your lines, in answers, in tool calls and in what they returned. The newest last.

    What is found holds all WORDS near each other, in any order, without regard to case and accents. In quotes, words
    stand together; "green*" is how a word begins; -WORD, behind --, must not be there. An index beside the journal is
    made at the first search, and again where it is damaged.

    \b
      strongroom search greenhouse
      strongroom search '"due on" friday' --here
      strongroom search read_file 'garden*' --limit 5 --json
      strongroom search --session a1b2c3 -- tomato -basil
    """
    if root is not None and here:
        raise click.UsageError("Use one of --root and --here.")
    from supervisor.acp.extensions import SearchParams
    from supervisor.display.fragments import styled
    from supervisor.reports.search import lines, plain_lines
    from supervisor.reports.search import search as report

    config = settings()
    directory = os.path.realpath(root or os.curdir) if root is not None or here else ""
    typed = words[0] if len(words) == 1 else " ".join(f'"{each}"' if " " in each else each for each in words)
    found = report(config.journal, SearchParams(typed, session or "", directory, limit))
    if as_json:
        from supervisor.clients.connection.link import every_field

        put_json([every_field(each) for each in found])
        return 0
    for each in reversed(found):
        where, said = lines(each)
        put(f"{where}\n    {styled(said, colour=False)}" if on_terminal() else plain_lines(each))
    if not found:
        put("Nothing holds these words.")
        return 0
    told = "strongroom history SESSION shows all of one; --session SESSION looks in one alone"
    click.echo(told, err=True)
    return 0
