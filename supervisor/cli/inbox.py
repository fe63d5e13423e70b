"""`inbox`: the questions of all sessions, and answers to them."""

from typing import TYPE_CHECKING

import click

from supervisor.cli.shared import attended, json_option, put, put_json, question_argument, settings

if TYPE_CHECKING:
    from supervisor.acp.extensions import WaitingQuestion


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def inbox(context: click.Context, as_json: bool) -> int:
    """Answer what the agents of all sessions ask, one question after the other; without a terminal, list it.

    Each question has an id, for exactly what it shows. The first answer counts, here or in a console; whoever comes
    later is told.

    \b
      strongroom inbox
      strongroom inbox list
      strongroom inbox yes 3f2a91bc
      strongroom inbox no 3f2a91bc not on a Friday
      strongroom inbox --json
    """
    if context.invoked_subcommand is not None:
        return 0
    if as_json or not attended():
        return _list(as_json=as_json)
    import asyncio

    from supervisor.clients import waiting_questions as program
    from supervisor.clients.console.inbox_dialogue import InboxDialogue

    with program.opened(settings()) as opened:
        return asyncio.run(InboxDialogue().answer_all(opened))


def _list(*, as_json: bool) -> int:
    from supervisor.clients import waiting_questions as program
    from supervisor.clients.connection.link import every_field

    with program.opened(settings()) as opened:
        found = opened.waiting()
    if as_json:
        rows = [every_field(each) for each in found]
        put_json(
            [row | {"request": every_field(program.request_of(each))} for row, each in zip(rows, found, strict=True)]
        )
        return 0
    put("\n".join(map(program.listed, found)) or "No question waits.")
    return 0


@inbox.command("list")
@json_option
def list_questions(as_json: bool) -> int:
    """List the questions that wait, the oldest first.

    \b
      strongroom inbox list
    """
    return _list(as_json=as_json)


@inbox.command()
@question_argument
def yes(question: str) -> int:
    """Say yes to one question, once. QUESTION is its id.

    Where the console takes no Enter for a yes (protected names, the network, the real root, what git tracks), it is
    shown, and the word is asked for.

    \b
      strongroom inbox yes 3f2a91bc
    """
    return _answer(question, None)


@inbox.command()
@question_argument
@click.argument("why", nargs=-1)
def no(question: str, why: tuple[str, ...]) -> int:
    """Say no to one question. QUESTION is its id; the model is told WHY.

    \b
      strongroom inbox no 3f2a91bc
      strongroom inbox no 3f2a91bc not on a Friday
    """
    return _answer(question, " ".join(why))


def _answer(question: str, remark: str | None) -> int:
    from supervisor.clients import waiting_questions as program

    result = program.answer(settings(), question, remark, _confirmed)
    put(program.told(result))
    return 0 if result.counts else 1


def _confirmed(question: "WaitingQuestion", why: str) -> bool:
    """Show a question where Enter alone would be no yes, and ask for the word."""
    if not attended():
        raise click.UsageError(f"It is not answered by an id alone: {why}. Answer it at a terminal.")
    import asyncio

    from supervisor.clients.console.inbox_dialogue import InboxDialogue

    return asyncio.run(InboxDialogue().confirmed(question, why))
