"""Slash commands of the console, and `!command`.

Rule: one row a command. A command shows its answer on the controller's screen; an error is one sentence.
"""

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import msgspec

from supervisor.acp import extensions
from supervisor.clients.console.clipboard import copy
from supervisor.clients.console.file_commands import diff, open_file
from supervisor.clients.console.session_commands import choose, clear, find, resume, sessions, show_table
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.shown import AnswerEnds, Document, Item, Note, Said, ShownAnswer, ShownCall, ShownPrompt
from supervisor.clients.console.status_bar import money, tokens
from supervisor.clients.console.styled_text import call_document, full_document
from supervisor.clients.console.theme_command import change_theme
from supervisor.clients.console.turn_commands import fork, rewind
from supervisor.clients.console.typed_command import run_typed
from supervisor.clients.console.undo_command import ARGUMENT, undo
from supervisor.display.columns import cut
from supervisor.display.escape import visible
from supervisor.errors import StrongroomError

_REVOKE_N: Final = 2
"""Words of `revoke N`."""
_THINKING: Final = "thinking"
KEYS: Final = (
    ("Enter", "send the line, or let it wait for the end of the turn; run the call that is shown, once it was read"),
    ("y", "say yes where Enter alone is none: protected or tracked names, the network, what is not shown"),
    ("Alt-Enter", "begin a new line"),
    ("Tab", "complete a command, a tool, or a path beneath the root; edit the call that is shown"),
    ("@LETTERS", "find a file: Tab takes the best one, arrows and Enter another; it goes along with the line"),
    ("Shift-Tab", "switch to the next mode, also while a turn runs"),
    ("Ctrl-C", "interrupt the turn, or clear the line; twice: leave"),
    ("Up", "on an empty line: take the last line back that waits, or else what was typed before"),
    ("Ctrl-R", "search what was typed before; Enter takes what is found"),
    ("Ctrl-G", "edit the line in your own editor: VISUAL, or EDITOR"),
    ("Ctrl-O", "show the approval request, or the last tool call or thinking, in full"),
    ("Alt-S, Alt-A", "approve for this session, or always; the rule is shown before it is made"),
    ("Escape", "reject the call that is shown; interrupt the turn; on an empty line, without a turn: leave"),
)


class Leave(Exception):
    """The person wants to go."""


class SlashCommand(msgspec.Struct, frozen=True):
    """One command; `argument` is what may follow it, for the help."""

    argument: str
    about: str
    run: Callable[[SessionController, str], Awaitable[None]]
    leaves: bool = False
    """Whether it leaves the session; what runs in it goes on."""
    meanwhile: Literal["always", "bare", "never"] = "always"
    """Whether it can run while the model works; "bare": only to list what there is."""


async def execute(controller: SessionController, line: str) -> None:
    """Run a line that is no prompt.

    Raises:
        Leave: it was /quit.
    """
    name, _, argument = line[1:].strip().partition(" ")
    command = COMMANDS.get(name) if line.startswith("/") else _TYPED
    argument = argument if line.startswith("/") else line[1:]
    if command is None:
        if is_sent(controller, line):
            await controller.prompt(line.strip())
            return
        near = difflib.get_close_matches(name, known(controller), n=1)
        hint = f"Did you mean /{near[0]}?" if near else "/help lists what there is."
        controller.say(f"There is no command /{cut(name, 30)}. {hint}", error=True)
        return
    try:
        await command.run(controller, argument.strip())
    except StrongroomError as error:
        controller.say(str(error), error=True)


def is_command(line: str) -> bool:
    """Say whether a line is no prompt: it begins with a slash, or with an exclamation mark."""
    return line.startswith(("/", "!"))


def leaves(line: str) -> bool:
    """Say whether a line is a command that leaves the session; without its argument, one that takes some only lists."""
    name, _, argument = line.removeprefix("/").strip().partition(" ")
    command = COMMANDS.get(name) if line.startswith("/") else None
    return command is not None and command.leaves and bool(argument or not command.argument)


def runs_meanwhile(controller: SessionController, line: str) -> bool:
    """Say whether a line is a command that need not wait until the model has ended its work."""
    name, _, argument = line.removeprefix("/").strip().partition(" ")
    command = COMMANDS.get(name)
    if not line.startswith("/") or command is None:
        return line.startswith("/") and not is_sent(controller, line)  # there is none, which is said at once
    return command.meanwhile == "always" or (command.meanwhile == "bare" and not argument)


async def while_waiting(controller: SessionController, line: str) -> None:
    """Run a line that starts with a slash, and does not leave the session, while a turn waits or runs."""
    controller.screen.show(ShownPrompt(line))
    if not is_sent(controller, line):
        await execute(controller, line)
        return
    try:
        await controller.prompt_meanwhile(line.strip())
    except StrongroomError as error:
        controller.say(str(error), error=True)


def is_sent(controller: SessionController, line: str) -> bool:
    """Say whether a line with a slash is a command of the daemon's: it is sent, and shown, as a prompt is."""
    name = line[1:].strip().partition(" ")[0]
    return (
        line.startswith("/")
        and name not in COMMANDS
        and name in {command.name for command in controller.state.commands}
    )


def known(controller: SessionController) -> dict[str, str]:
    """Return all commands by name, the agent's own after ours, and what each does."""
    theirs = {each.name: each.description for each in controller.state.commands if each.name not in COMMANDS}
    return {name: command.about for name, command in COMMANDS.items()} | theirs


async def _help(controller: SessionController, _argument: str) -> None:
    rows = [(f"/{name} {command.argument}".rstrip(), command.about) for name, command in COMMANDS.items()]
    rows += [(f"/{name}", about) for name, about in known(controller).items() if name not in COMMANDS]
    show_table(controller, [*rows, (f"!{_TYPED.argument}", _TYPED.about), ("", ""), *KEYS])


async def _history(controller: SessionController, _argument: str) -> None:
    items: list[Item] = []
    for entry in controller.state.entries:
        match entry:
            case ShownAnswer():
                items += [Said(entry.text), AnswerEnds()]
            case ShownCall(ended=False):
                pass
            case _:
                items.append(entry)
    for item in items or [Note("The conversation is empty.")]:
        controller.screen.show(item)


async def _tools(controller: SessionController, _argument: str) -> None:
    listed = "\n".join(controller.state.facts.tools) or "This session has no tools."
    controller.screen.show(Document(f"{listed}\n{controller.state.tools_note}".rstrip()))


async def _rules(controller: SessionController, argument: str) -> None:
    words = argument.split()
    if words and (words[0] not in ("revoke", "keep") or len(words) != _REVOKE_N):
        controller.say("/rules takes nothing, or revoke or keep, and a number.", error=True)
        return
    revoke, keep = (words[1] if words and words[0] == each else "" for each in ("revoke", "keep"))
    params = extensions.RulesParams(session_id=controller.session, revoke=revoke, keep=keep)
    result = await controller.request(extensions.RULES_METHOD, params, extensions.RulesResult)
    controller.screen.show(Document("\n".join(map(visible, result.lines))))


async def _status(controller: SessionController, _argument: str) -> None:
    from supervisor.clients.status import status_text

    status = await controller.request(extensions.STATUS_METHOD, {}, extensions.Status)
    controller.screen.show(Document(status_text(status, controller.screen.width())))


async def _cost(controller: SessionController, _argument: str) -> None:
    state = controller.state
    rows = [
        *((f"budget of the {each.of}", each.used) for each in state.budgets),
        ("context", f"{tokens(state.used)} of {tokens(state.size)} tokens" if state.size else "no tokens counted yet"),
        ("this console", f"{tokens(state.spent.input_tokens)} tokens in, {tokens(state.spent.output_tokens)} out"),
        ("cost", money(state.cost) if state.cost else "not known: [prices] in config.toml says what tokens cost"),
    ]
    show_table(controller, rows)


async def _export(controller: SessionController, argument: str) -> None:
    from supervisor.clients.export import export
    from supervisor.reports.session_formats import HTML, MARKDOWN

    form = HTML if argument.endswith(f".{HTML}") else MARKDOWN
    written = await asyncio.to_thread(export, controller.settings, controller.session, form, argument or None)
    controller.say(f"The conversation is in {written}.")


async def _show(controller: SessionController, argument: str) -> None:
    if argument == _THINKING:
        thought = controller.state.last_thought
        nothing = Document("The model has shown no thinking yet.")
        controller.screen.show(full_document(thought) if thought else nothing)
        return
    count = len(controller.state.calls)
    call = controller.state.numbered(argument or str(count))
    if not count:
        controller.say("No tool was called yet.")
    elif call is None:
        controller.say(f"There is no call {argument!r}; they are numbered 1 to {count}.", error=True)
    else:
        controller.screen.show(call_document(call))


async def _quit(_controller: SessionController, _argument: str) -> None:
    raise Leave


_TYPED: Final = SlashCommand("COMMAND", "run a command as the model's are run, and tell the model", run_typed)
COMMANDS: Final[Mapping[str, SlashCommand]] = {
    "help": SlashCommand("", "list commands and keys", _help),
    "history": SlashCommand("", "the conversation again, from its start", _history, meanwhile="never"),
    "clear": SlashCommand("", "a fresh session like this one, on an empty screen", clear, leaves=True),
    "model": SlashCommand("[NAME]", "list the models, or switch to another", choose("model"), meanwhile="bare"),
    "mode": SlashCommand("[NAME]", "which changes are asked about: list the modes, or switch", choose("mode")),
    "profile": SlashCommand("[NAME]", "list the profiles, or switch to another", choose("profile"), meanwhile="bare"),
    "effort": SlashCommand("[LEVEL]", "how much the model thinks: list the levels, or choose one", choose("effort")),
    "max_tokens": SlashCommand("[NUMBER]", "the longest reply, in tokens, or `default`", choose("max_tokens")),
    "temperature": SlashCommand("[NUMBER]", "how freely the model writes, or `default`", choose("temperature")),
    "tools": SlashCommand("", "list the agent's tools", _tools),
    "show": SlashCommand("[N|thinking]", "the last tool call, the N-th, or what was thought last, in full", _show),
    "undo": SlashCommand(ARGUMENT, "undo the last change, or the named ones", undo, meanwhile="never"),
    "fork": SlashCommand("[TURN]", "go on from the end of a turn in a session of its own", fork, meanwhile="never"),
    "rewind": SlashCommand("TURN [yes]", "take talk and files back to the end of a turn", rewind, meanwhile="never"),
    "rules": SlashCommand("[revoke N|keep N]", "the rules that count here; revoke one, or keep an offer", _rules),
    "status": SlashCommand("", "daemon, sessions and workers", _status),
    "sessions": SlashCommand("", "the newest sessions", sessions),
    "find": SlashCommand("WORDS", "find words in all sessions, and resume one that has them", find),
    "resume": SlashCommand("[ID]", "resume another session", resume, leaves=True),
    "cost": SlashCommand("", "tokens and money", _cost),
    "copy": SlashCommand("[N|code]", "copy the answer, its last code block, or the output of the N-th call", copy),
    "diff": SlashCommand("[PATH]", "what calls have changed so far, call by call", diff),
    "open": SlashCommand(
        "PATH|N", "a file in your editor: beneath the root, or what the N-th call is about", open_file
    ),
    "theme": SlashCommand("[NAME]", "dark, light, high-contrast, none, or a file of your own", change_theme),
    "export": SlashCommand(
        "[FILE]", "write the conversation to a file, as Markdown, or as a page where it ends in .html", _export
    ),
    "quit": SlashCommand("", "leave; a running turn continues", _quit, leaves=True),
}
