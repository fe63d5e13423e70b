"""`replay`: a recorded session run again, or judged by another policy."""

import click

from supervisor.cli.shared import json_option, put_answer, session_argument, settings, show_progress


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
