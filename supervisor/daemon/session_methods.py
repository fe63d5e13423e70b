"""Methods that open, list, change and close sessions.

Rule: nothing of a session is sent before the answer that names it.
"""

from typing import Final

import trio

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.agent.models.reply_options import OPTIONS, SWITCH, effort_switched
from supervisor.daemon import responses
from supervisor.daemon.key_page import key_page
from supervisor.daemon.method import MethodContext, method
from supervisor.daemon.protocol.connection import ClientRequest, RequestError
from supervisor.daemon.responses import absolute, checked_text, invalid, session_options
from supervisor.daemon.sessions.deletion import delete, prune
from supervisor.daemon.sessions.forking import fork
from supervisor.daemon.sessions.journal_reader import replay
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.settling import settle_remains
from supervisor.daemon.turn_methods import COMMANDS, custom_commands
from supervisor.errors import ConfigError
from supervisor.rules.modes import MODES

_PAGE: Final = 50
_DIGITS: Final = 9
"""Of a cursor, which is a number of sessions."""
_LOOK_S: Final = 2.0
"""Seconds that a session's opening waits for the commands that people wrote."""


@method("session/new", schema.NewSessionParams, schema.NewSessionResult, starts=True)
async def _new(
    context: MethodContext, request: ClientRequest, params: schema.NewSessionParams
) -> schema.NewSessionResult:
    options = session_options(params.meta, request.client.variables)
    changed = context.configuration.look()
    session, notices = await context.registry.open(absolute(params.cwd), options, request.client.keys)
    await settle_remains(context.registry, session.session.pools.root)
    notices += changed
    if params.mcp_servers:
        notices.append("MCP servers are ignored: Strongroom runs only its own, confined tools.")
    wanted = context.registry.model_name(options.model)
    asked = session, wanted, context.registry.settings, request.client.keys
    page = key_page(*asked) if options.attended else None
    commands = await _commands(context, request, session)
    request.then = lambda: _enter(request, session, notices, commands, page)
    return responses.new_session(session, context.registry.settings, request.client.capabilities, notices)


@method("session/load", schema.ReopenParams, schema.SessionResult, starts=True)
async def _load(context: MethodContext, request: ClientRequest, params: schema.ReopenParams) -> schema.SessionResult:
    """Tell the whole history as updates, then answer."""
    session, notices = await _reopened(context, request, params)
    client, registry = request.client, context.registry
    was_here = client in session.subscribers.clients
    session.subscribers.leave(client)  # what happens meanwhile comes in its place in the history
    session.loading += 1
    try:
        await replay(session, client, registry.reader, registry.resources.writer)
    except BaseException:
        if was_here:
            session.subscribers.join(client)
        raise
    finally:
        session.loading -= 1
    if registry.sessions.get(session.id) is not session:
        raise RequestError(jsonrpc.NOT_FOUND, "The session was closed meanwhile.", "not_found")
    commands = await _commands(context, request, session)
    request.then = lambda: _enter(request, session, notices, commands)
    return responses.reopened_session(session, registry.settings, client.capabilities, notices)


@method("session/resume", schema.ReopenParams, schema.SessionResult, starts=True)
async def _resume(context: MethodContext, request: ClientRequest, params: schema.ReopenParams) -> schema.SessionResult:
    """Do as load does, without the history."""
    session, notices = await _reopened(context, request, params)
    commands = await _commands(context, request, session)
    request.then = lambda: _enter(request, session, notices, commands)
    return responses.reopened_session(session, context.registry.settings, request.client.capabilities, notices)


@method("session/fork", schema.ForkParams, schema.NewSessionResult, starts=True)
async def _fork(context: MethodContext, request: ClientRequest, params: schema.ForkParams) -> schema.NewSessionResult:
    """Begin a session with the conversation of another, which may run."""
    options = session_options(params.meta, request.client.variables)
    turn = (params.meta or {}).get(extensions.FORK_TURN)
    if turn is not None and (not isinstance(turn, int) or isinstance(turn, bool)):
        raise invalid(f"{extensions.FORK_TURN} is a number.")
    where = checked_text(params.session_id, "sessionId"), turn, absolute(params.cwd)
    session, notices = await fork(context.registry, *where, options, request.client.keys)
    commands = await _commands(context, request, session)
    request.then = lambda: _enter(request, session, notices, commands)
    return responses.new_session(session, context.registry.settings, request.client.capabilities, notices)


@method("session/list", schema.ListParams, schema.ListResult)
async def _list(context: MethodContext, _request: ClientRequest, params: schema.ListParams) -> schema.ListResult:
    """Return a page, newest first."""
    cursor = params.cursor or "0"
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= _DIGITS):
        raise invalid(f"No cursor {cursor[:40]!r}.")
    start = int(cursor)
    found = await context.registry.reader.index(
        lambda index: index.listing(params.cwd, offset=start, limit=_PAGE + 1, where=lambda each: each.origin != "call")
    )
    more = str(start + _PAGE) if len(found) > _PAGE else None
    return schema.ListResult(sessions=[responses.session_info(each) for each in found[:_PAGE]], next_cursor=more)


@method("session/close", schema.SessionParams, schema.Object)
async def _close(context: MethodContext, _request: ClientRequest, params: schema.SessionParams) -> schema.Object:
    context.session(params.session_id)
    await context.registry.close(params.session_id)
    await context.idle_closer.stop_surplus()
    return schema.Object()


@method("session/delete", schema.SessionParams, schema.Object)
async def _delete(context: MethodContext, _request: ClientRequest, params: schema.SessionParams) -> schema.Object:
    await delete(context.registry, checked_text(params.session_id, "sessionId"))
    return schema.Object()


@method(extensions.PRUNE_METHOD, extensions.PruneParams, extensions.PruneResult, starts=True)
async def _prune(
    context: MethodContext, _request: ClientRequest, params: extensions.PruneParams
) -> extensions.PruneResult:
    return extensions.PruneResult(await prune(context.registry, params.before, params.delete))


@method("session/set_mode", schema.SetModeParams, schema.Object)
async def _set_mode(context: MethodContext, request: ClientRequest, params: schema.SetModeParams) -> schema.Object:
    """Choose which changes are asked about, also while a turn runs; it counts from the next call on."""
    await _switch(context.session(params.session_id), params.mode_id, context, request.client.name)
    return schema.Object()


@method("session/set_config_option", schema.SetOptionParams, schema.OptionsResult)
async def _set_option(
    context: MethodContext, request: ClientRequest, params: schema.SetOptionParams
) -> schema.OptionsResult:
    session = context.session(params.session_id)
    option, value = _chosen(session, params)
    if option == "mode":
        await _switch(session, value, context, request.client.name)
    elif option in OPTIONS:
        await session.session.choose(option, value, request.client.name)
        _tell_options(context, session)
    else:
        await _change(context, session, **{option: value})
    options = responses.config_options(session, context.registry.settings, request.client.capabilities)
    return schema.OptionsResult(config_options=options)


def _chosen(session: OpenSession, params: schema.SetOptionParams) -> tuple[str, str]:
    """Return the option that a client chooses, and its value.

    Raises:
        RequestError: there is no such option, or it has values of another type.
    """
    known = ("model", "mode", "profile", *OPTIONS)
    facts = session.session.model_facts
    if params.config_id == SWITCH and isinstance(params.value, bool) and facts is not None and "none" in facts.efforts:
        return "effort", effort_switched(facts, session.session.reply_options, params.value)
    if params.config_id not in known:
        raise invalid(f"No option {params.config_id[:80]!r}. There is: {', '.join(known)}.")
    if not isinstance(params.value, str) or not params.value:
        raise invalid("An option needs a value, as a text.")
    return params.config_id, checked_text(params.value, "value")


async def _switch(session: OpenSession, wanted: str, context: MethodContext, by: str) -> None:
    mode = next((each for each in MODES if each == wanted), None)
    if mode is None:
        raise ConfigError(f"No mode {wanted[:80]!r}. There is: {', '.join(MODES)}.")
    await session.session.set_mode(mode, by)
    session.subscribers.tell([schema.CurrentMode(current_mode_id=mode)])
    _tell_options(context, session)


async def _reopened(
    context: MethodContext, request: ClientRequest, params: schema.ReopenParams
) -> tuple[OpenSession, list[str]]:
    absolute(params.cwd)
    options = session_options(params.meta, request.client.variables)
    session_id = checked_text(params.session_id, "sessionId")
    changed = context.configuration.look()
    session, notices = await context.registry.reopen(session_id, options, request.client.keys)
    return session, [*notices, *changed]


async def _commands(
    context: MethodContext, request: ClientRequest, session: OpenSession
) -> list[schema.AvailableCommand]:
    """Return the slash commands of a session, those that people wrote last; none for a client that only answers."""
    if request.client.answers_only:
        return []
    with trio.move_on_after(_LOOK_S):
        found = await custom_commands(context, session).listed()
        written = (
            schema.AvailableCommand(name, each.about, schema.CommandInput(each.hint) if each.hint else None)
            for name, each in found.items()
        )
        names = {each.name for each in COMMANDS}
        return [*COMMANDS, *(each for each in written if each.name not in names)]
    return list(COMMANDS)


def _enter(
    request: ClientRequest,
    session: OpenSession,
    notices: list[str],
    commands: list[schema.AvailableCommand],
    page: schema.UrlElicitation | None = None,
) -> None:
    """Let a client that knows the session's id by now hear its commands, what it lacks, and what happens in it."""
    if commands:
        request.client.send(session.subscribers.line(schema.AvailableCommands(available_commands=commands)))
    session.subscribers.notify([schema.Notice.of(each) for each in notices], only=request.client)
    session.subscribers.join(request.client)
    if page is not None:
        session.subscribers.offer(page, request.client)


async def _change(
    context: MethodContext, session: OpenSession, *, profile: str | None = None, model: str | None = None
) -> None:
    if session.session.model is None:
        raise invalid("This session has no model, only calls.")
    await context.registry.change(session, profile, model)
    _tell_options(context, session)


def _tell_options(context: MethodContext, session: OpenSession) -> None:
    settings = context.registry.settings
    session.subscribers.tell_each(
        lambda client: schema.ConfigOptions(
            config_options=responses.config_options(session, settings, client.capabilities)
        )
    )
