"""Methods that run something in a session: a turn, a single call, an undo; and the commands that are typed as prompts.

Rule: nothing of a turn is sent after the answer that ends it.
"""

import binascii
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from supervisor.acp import extensions, schema
from supervisor.acp.prompt_parts import PromptPart, prompt_parts
from supervisor.agent.answer_check import schema_problem
from supervisor.agent.turn import SuspendedTurn
from supervisor.config.profiles import Profile
from supervisor.daemon import responses
from supervisor.daemon.budget_command import budget_lines
from supervisor.daemon.compact_methods import compaction_lines
from supervisor.daemon.method import MethodContext, method
from supervisor.daemon.protocol.connection import ClientRequest
from supervisor.daemon.protocol.turn_messages import suspension_text
from supervisor.daemon.responses import invalid
from supervisor.daemon.rule_methods import rule_lines
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.rewinding import read_again, rewind
from supervisor.errors import ConfigError
from supervisor.tools.check_run import check_arguments
from supervisor.tools.content_intake import Attached
from supervisor.tools.custom_commands import FOLDER, CustomCommands
from supervisor.tools.exfiltration.sources import sources_of_parts
from supervisor.tools.named_files import READ
from supervisor.tools.outcomes import as_answer
from supervisor.undo.undo_lines import undo_lines
from supervisor.undo.undo_plan import REWIND, UndoStep, undo_plan
from workers.wire.media_types import NAMES, TYPES

COMMANDS: Final = (
    schema.AvailableCommand(name="tools", description="What the agent may use in this session."),
    schema.AvailableCommand(name="status", description="Where the session stands: profile, model, root, workers."),
    schema.AvailableCommand(
        name="rules",
        description="The rules that count here; `/rules revoke N` revokes one, `/rules keep N` keeps an offer.",
        input=schema.CommandInput(hint="revoke N, or keep N"),
    ),
    schema.AvailableCommand(
        name="budget",
        description="What the budgets still hold; `/budget turn 500000 tokens`.",
        input=schema.CommandInput(hint="turn 500000 tokens"),
    ),
    schema.AvailableCommand(
        name="compact",
        description="Keep the older part of the conversation in short; `/compact the names of the tests`.",
        input=schema.CommandInput(hint="what to keep in mind"),
    ),
    schema.AvailableCommand(name="go", description="Let a suspended turn go on, or end its wait."),
    schema.AvailableCommand(name="undo", description="Take back the last change that a tool has made."),
)

_CARRY_OUT: Final = "Do what the text of this command says:"


@method("session/prompt", schema.PromptParams, schema.PromptResult, starts=True)
async def _prompt(context: MethodContext, request: ClientRequest, params: schema.PromptParams) -> schema.PromptResult:
    session = context.session(params.session_id)
    if session.session.model is None:
        raise invalid("This session has no model, only calls.")
    try:
        parts = prompt_parts(params.prompt)
        text = "".join(part.text for part in parts)
        text.encode()
        attached: list[Attached | str] = [_attached(part) for part in parts if part.data]
    except ValueError as error:
        raise invalid(f"The prompt: {error}.") from error
    if not text.strip() and not attached:
        raise invalid("The prompt is empty.")
    name, *words = text.strip().split() or [""]
    if (
        session.attended
        and not attached
        and any(name == f"/{each.name}" and (each.input or not words) for each in COMMANDS)
    ):
        return await _command(context, request, session, name[1:], words)
    if name.startswith("/"):
        parts = prompt_parts(await _with_custom_command(context, session, params.prompt))
        text = "".join(part.text for part in parts)
    schema_asked = (params.meta or {}).get(extensions.ANSWER_SCHEMA)
    if schema_asked is not None and (why := await schema_problem(schema_asked)):
        raise ConfigError(f"The schema of the answer cannot be used: {why}.")
    check = str((params.meta or {}).get(extensions.TURN_CHECK, session.profile.check))
    if check:
        check_arguments(session.profile.tools, check, 0.0)
    session.refuse_if_busy()
    session.subscribers.join(request.client)
    request.cancel = session.cancel
    sources = sources_of_parts(parts)
    attached += _linked(parts, session.profile)
    turn = session.start_turn(text, request.client, sources, schema_asked, attached, check)
    try:
        return responses.turn_result(session, await turn.wait())
    except SuspendedTurn as suspended:
        return responses.suspended_result(session, suspended.fact)


async def _with_custom_command(
    context: MethodContext, session: OpenSession, prompt: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the blocks of a prompt with the text of the custom command that its line names, as a file sent along.

    Raises:
        ConfigError: that command cannot be used.
    """
    line, *others = prompt
    name, *words = str(line.get("text", "")).strip().split(maxsplit=1)
    command = await custom_commands(context, session).find(name.removeprefix("/"))
    if command is None or line.get("type") != "text":
        return prompt
    said = {"type": "text", "text": f"{line['text'].strip()}\n\n{_CARRY_OUT}"}
    return [said, {"type": "resource", "resource": {"uri": command.uri, "text": command.filled_in(*words)}}, *others]


def custom_commands(context: MethodContext, session: OpenSession) -> CustomCommands:
    """Return the commands that people wrote for a session."""
    own = context.registry.settings.config_file.parent / FOLDER
    return CustomCommands(own, session.profile, session.session.pools)


def _linked(parts: Sequence[PromptPart], profile: Profile) -> list[str]:
    """Return the paths of images and documents in the root that a prompt links to, where the profile may read them."""
    if READ not in profile.tools:
        return []
    paths = (unquote(urlsplit(part.uri).path) for part in parts if part.media_type and not part.data)
    root = f"{profile.root.rstrip('/')}/"
    return [path.removeprefix(root) for path in paths if path.startswith(root)]


def _attached(part: PromptPart) -> Attached:
    """Return an image or a document of a prompt.

    Raises:
        ValueError: it is of another type, or its data are no base64.
    """
    if part.media_type not in NAMES:
        raise ValueError(f"content of the type {part.media_type[:80]!r} is not taken, but {TYPES}")
    name = unquote(urlsplit(part.uri).path).rpartition("/")[2]
    return Attached(binascii.a2b_base64(part.data, strict_mode=True), part.media_type, name)


@method(extensions.CONTINUE_METHOD, extensions.ContinueParams, schema.PromptResult, starts=True)
async def _continue(
    context: MethodContext, request: ClientRequest, params: extensions.ContinueParams
) -> schema.PromptResult | None:
    session = context.session(params.session_id)
    session.subscribers.join(request.client)
    if not session.busy:  # then the turn is this request's, and goes with it
        request.cancel = session.cancel
    return await _resumed(session, request.client.name if params.go else "")


async def _resumed(session: OpenSession, by: str) -> schema.PromptResult | None:
    """Return how a turn ended that was open; None where there is none."""
    try:
        end = await session.resume(by)
    except SuspendedTurn as suspended:
        return responses.suspended_result(session, suspended.fact)
    return None if end is None else responses.turn_result(session, end)


@method(extensions.CALL_METHOD, extensions.CallParams, extensions.CallResult, starts=True)
async def _call(context: MethodContext, request: ClientRequest, params: extensions.CallParams) -> extensions.CallResult:
    session = context.session(params.session_id)
    if session.session.model is not None or session.closing:
        session.refuse_if_busy()
    try:
        f"{params.tool}{params.arguments}".encode()
    except UnicodeEncodeError as error:
        raise ConfigError("The tool and its arguments must be UTF-8.") from error
    session.subscribers.join(request.client)
    ended = await session.call(params.tool, params.arguments, typed_by=request.client.name if params.typed else "")
    answer = as_answer(ended, context.registry.resources.contents.directory)
    return extensions.CallResult(call=ended.call, answer=msgspec.Raw(msgspec.json.encode(answer)))


@method(extensions.UNDO_METHOD, extensions.UndoParams, extensions.UndoResult, starts=True)
async def _undo(context: MethodContext, request: ClientRequest, params: extensions.UndoParams) -> extensions.UndoResult:
    session = context.session(params.session_id)
    session.subscribers.join(request.client)
    return await _undone(context, request, session, params)


@method(extensions.REWIND_METHOD, extensions.RewindParams, extensions.RewindResult, starts=True)
async def _rewind(
    context: MethodContext, request: ClientRequest, params: extensions.RewindParams
) -> extensions.RewindResult:
    session = context.session(params.session_id)
    session.subscribers.join(request.client)
    return await rewind(context.registry, session, params.turn, look=params.look, by=request.client.name)


async def _undone(
    context: MethodContext, request: ClientRequest, session: OpenSession, params: extensions.UndoParams
) -> extensions.UndoResult:
    async def planned() -> Sequence[UndoStep]:
        entries = await context.registry.reader.entries(session.id, 0)
        return undo_plan(entries, params.calls, params.scope, context.registry.resources.packs.holds)

    steps = await session.undo(planned, force=params.force, by=request.client.name)
    if any(step.ok and step.tool == REWIND for step in steps):  # with the files, the conversation has come back
        with session.calls.running("The undo was cut off."):
            await read_again(context.registry, session)
    return extensions.UndoResult(session_id=session.id, steps=tuple(steps))


async def _command(
    context: MethodContext, request: ClientRequest, session: OpenSession, name: str, words: Sequence[str]
) -> schema.PromptResult:
    """Answer a command of ours as a message; it is no part of the conversation."""
    match name:
        case "undo":
            result = await _undone(context, request, session, extensions.UndoParams(session_id=session.id))
            lines = [f"    {line}" for step in result.steps for line in undo_lines(step, "strongroom undo")]
            lines = lines or ["There is nothing to undo."]
        case "rules":
            revoke, keep = (words[1] if len(words) > 1 and words[0] == each else "" for each in ("revoke", "keep"))
            lines = [f"- {line}" for line in await rule_lines(context, session, revoke, keep, request.client.name)]
        case "budget":
            lines = [f"- {line}" for line in budget_lines(session, words, request.client.name)]
        case "compact":
            lines = await compaction_lines(session, words, request.client.name)
        case "go":
            if session.suspended is not None:
                resumed = await _resumed(session, request.client.name)
                return resumed or schema.PromptResult(stop_reason="end_turn")
            lines = ["No turn is suspended."]
        case "tools":
            profile = session.profile
            lines = [
                *(f"- `{tool}`" for tool in profile.tools),
                *(f"- unavailable: `{tool}`, whose workers {why}" for tool, why in profile.unavailable_tools),
                *(f"- unavailable for now: `{tool}`: {why}" for tool, why in session.session.unavailable_tools.items()),
            ]
        case _:
            lines = [
                f"- profile {session.profile.name}, mode {session.session.mode}, model {session.model_name}",
                f"- root `{session.profile.root}`",
                *(f"- {name} `{value}`" for name, value in session.context.items() if name != "working_directory"),
                *([f"- {suspension_text(session.suspended)}"] if session.suspended is not None else []),
                f"- {session.turns} turns, {session.subscribers.projection.usage.context} tokens in context",
            ]
    message = schema.AgentMessageChunk.of("\n".join(lines))
    request.client.send(session.subscribers.line(message))
    return schema.PromptResult(stop_reason="end_turn")
