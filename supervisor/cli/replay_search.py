"""`replay` and `search`: a recorded session run again, or judged by another policy; words found in all sessions."""

import os

import click

from supervisor.cli.shared import (
    json_option,
    on_terminal,
    put,
    put_answer,
    put_json,
    session_argument,
    session_option,
    settings,
    show_progress,
)


@click.command()
@session_argument
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(path_type=str),
    help="Run nothing: say what the rules and profiles in FILE, a configuration, would have decided.",
)
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=str),
    help="A directory that is as the root was, instead of the root with what was changed since taken back.",
)
@click.option("--profile", metavar="NAME", help="With --policy: judge by this profile instead of the session's.")
@json_option
def replay(session: str, policy: str | None, root: str | None, profile: str | None, as_json: bool) -> int:
    """Run a recorded session again, without a network, and say where it first comes to something else.

    SESSION is its id, or the end of it, or the name, with a slash, of a file that `history --format json` has written.
    The replies of the model and the answers of people are those of the record; the supervisor and the workers are
    real, in a copy of the root as it was, which is thrown away. It ends with 1 where something diverges.

    \b
      strongroom replay a1b2c3
      strongroom replay ./session.json --root ./as-it-was
      strongroom replay a1b2c3 --policy proposed.toml --profile vault
    """
    if policy is not None:
        if root is not None:
            raise click.UsageError("--root goes without --policy, which runs nothing.")
        from pathlib import Path

        from supervisor.replay import policy_trial as program

        judged = program.try_policy(settings(), session, Path(policy), profile)
        put_answer(judged, program.policy_text(judged), as_json=as_json)
        return 0
    if profile is not None:
        raise click.UsageError("--profile goes with --policy: a replay has the session's own.")
    from supervisor.replay.replay_text import replay_text
    from supervisor.replay.session_replay import replay as replayed

    report = replayed(settings(), session, root, show_progress)
    show_progress("")
    put_answer(report, replay_text(report), as_json=as_json)
    return 1 if report.divergence else 0


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
    from supervisor.reports.search_report import lines, plain_lines
    from supervisor.reports.search_report import search as report

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
