"""What a client can ask for: one row a method.

Rule: a handler decodes its parameters, asks the registry, and returns a reply; nothing of a session is sent before the
answer that names it, and nothing of a turn after the answer that ends it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.daemon import responses, status
from supervisor.daemon.protocol.connection import ClientReply, Connection, RequestError
from supervisor.daemon.responses import absolute, decoded, invalid, session_options, usable, usable_options
from supervisor.daemon.sessions.idle import IdleCloser
from supervisor.daemon.sessions.open_session import OpenedAt, OpenSession
from supervisor.daemon.sessions.registry import SessionRegistry, names_of
from supervisor.daemon.sessions.replay import replay
from supervisor.errors import ConfigError
from supervisor.reports.why import explain
from supervisor.tools.outcomes import as_answer
from supervisor.undo.packs import KeptStore
from supervisor.undo.plan import UndoStep, lines_of, plan
from supervisor.version import VERSION

_PAGE: Final = 50
_DIGITS: Final = 9
"""Of a cursor, which is a number of sessions."""

_COMMANDS: Final = (
    schema.AvailableCommand(name="tools", description="What the agent may use in this session."),
    schema.AvailableCommand(name="status", description="Where the session stands: profile, model, root, workers."),
    schema.AvailableCommand(name="undo", description="Take back the last change that a tool has made."),
)


class Methods:
    """Serves the requests of all clients.

    Args:
        registry: the sessions.
        idle_closer: closes what is not used.
        about: this daemon, apart from what the configuration may change.
    """

    def __init__(self, registry: SessionRegistry, idle_closer: IdleCloser, about: status.About) -> None:
        self.registry = registry
        self.idle_closer = idle_closer
        self.about = about
        self.clients: set[Connection] = set()

    async def serve(self, client: Connection, request: jsonrpc.Request) -> ClientReply:
        """Answer one request.

        Raises:
            StrongroomError: it cannot be done.
        """
        if request.method != "initialize" and not client.initialized:
            raise RequestError(jsonrpc.fault(jsonrpc.INVALID_REQUEST, "Send initialize first.", "not_initialized"))
        handler = _HANDLERS.get(request.method)
        if handler is None:
            message = f"No method {request.method[:80]!r}."
            raise RequestError(jsonrpc.fault(jsonrpc.METHOD_NOT_FOUND, message, "unknown_method"))
        if self.registry.closing and request.method in _BEGINNINGS:
            raise RequestError(
                jsonrpc.fault(jsonrpc.INTERNAL_ERROR, "The daemon is stopping; connect again.", "stopping")
            )
        return await handler(self, client, request)

    def note(self, client: Connection, notification: jsonrpc.Notification) -> None:
        """Take one notification; unknown ones, and ones that make no sense, are ignored."""
        if notification.method == "session/cancel" and client.initialized:
            params = jsonrpc.decoded(notification.params, schema.SessionParams)
            session = (
                self.registry.sessions.get(params.session_id) if isinstance(params, schema.SessionParams) else None
            )
            if session is not None:
                session.cancel()

    # --- the connection -----------------------------------------------------------------------------------------

    async def initialize(self, client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`initialize`."""
        params = decoded(request, schema.InitializeParams)
        client.client, client.initialized = params.client_info, True
        client.capabilities = params.client_capabilities or schema.ClientCapabilities()
        capabilities = {
            "loadSession": True,
            "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
            "_meta": {extensions.EXTENSIONS: list(dict.fromkeys([*filter(_is_ours, _HANDLERS), *_KEYS]))},
        }
        result = schema.InitializeResult(
            protocol_version=schema.VERSION,
            agent_capabilities=capabilities,
            agent_info=schema.Implementation(name="strongroom", title="Strongroom", version=VERSION),
            auth_methods=[],
            meta={extensions.DAEMON: self.about.daemon(self.registry.settings)},
        )
        return ClientReply(result)

    async def authenticate(self, _client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`authenticate`: the kernel has said who is at the other end; there is nothing to add."""
        decoded(request, schema.AuthenticateParams)
        return ClientReply({})

    # --- sessions -----------------------------------------------------------------------------------------------

    async def new(self, client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`session/new`."""
        params = decoded(request, schema.NewSessionParams)
        options = session_options(params.meta)
        session, notices = await self.registry.open(absolute(params.cwd), options)
        if params.mcp_servers:
            notices.append("MCP servers are not used: every tool of Strongroom runs in a room of its own.")
        return ClientReply(
            responses.new_session(session, self.registry.settings, notices), lambda: self._enter(session, client)
        )

    async def load(self, client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`session/load`: the whole history as updates, then the answer."""
        params = decoded(request, schema.ReopenParams)
        absolute(params.cwd)
        session, notices = await self.registry.reopen(
            usable(params.session_id, "sessionId"), session_options(params.meta)
        )
        was_here = client in session.subscribers.clients
        session.subscribers.leave(client)  # what happens meanwhile comes in its place in the history
        session.loading += 1
        try:
            await replay(session, client, self.registry.reader, self.registry.resources.journal)
        except BaseException:
            if was_here:
                session.join(client)
            raise
        finally:
            session.loading -= 1
        if self.registry.sessions.get(session.id) is not session:
            raise RequestError(jsonrpc.fault(jsonrpc.NOT_FOUND, "The session was closed meanwhile.", "not_found"))
        return ClientReply(
            responses.reopened_session(session, self.registry.settings, notices), lambda: self._enter(session, client)
        )

    async def resume(self, client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`session/resume`: as load, without the history."""
        params = decoded(request, schema.ReopenParams)
        absolute(params.cwd)
        session, notices = await self.registry.reopen(
            usable(params.session_id, "sessionId"), session_options(params.meta)
        )
        return ClientReply(
            responses.reopened_session(session, self.registry.settings, notices), lambda: self._enter(session, client)
        )

    async def listing(self, _client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`session/list`, newest first, a page at a time."""
        params = decoded(request, schema.ListParams)
        cursor = params.cursor or "0"
        if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= _DIGITS):
            raise invalid(f"No cursor {cursor[:40]!r}.")
        start = int(cursor)
        found = await self.registry.reader.index(
            lambda index: index.listing(
                params.cwd, offset=start, limit=_PAGE + 1, origin=lambda origin: origin != "call"
            )
        )
        more = str(start + _PAGE) if len(found) > _PAGE else None
        page = [responses.session_info(each) for each in found[:_PAGE]]
        return ClientReply(schema.ListResult(sessions=page, next_cursor=more))

    async def close(self, _client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`session/close`."""
        params = decoded(request, schema.SessionParams)
        self._session(params.session_id)
        await self.registry.close(params.session_id)
        await self.idle_closer.stop_surplus()
        return ClientReply({})

    async def delete(self, _client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`session/delete`."""
        await self.registry.delete(usable(decoded(request, schema.SessionParams).session_id, "sessionId"))
        return ClientReply({})

    async def set_mode(self, _client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`session/set_mode`: a mode is a profile."""
        params = decoded(request, schema.SetModeParams)
        await self._set(self._session(params.session_id), profile=params.mode_id)
        return ClientReply({})

    async def set_option(self, _client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`session/set_config_option`: the model, or the profile."""
        params = decoded(request, schema.SetOptionParams)
        session = self._session(params.session_id)
        if params.config_id not in ("model", "profile"):
            raise invalid(f"No option {params.config_id[:80]!r}. There is: model, profile.")
        if not params.value:
            raise invalid("An option needs a value.")
        await self._set(session, **{params.config_id: usable(params.value, "value")})
        return ClientReply(
            schema.OptionsResult(config_options=responses.config_options(session, self.registry.settings))
        )

    # --- turns --------------------------------------------------------------------------------------------------

    async def prompt(self, client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`session/prompt`."""
        params = decoded(request, schema.PromptParams)
        session = self._session(params.session_id)
        if session.session.conversation is None:
            raise invalid("This session has no model, only calls.")
        try:
            text = schema.prompt_text(params.prompt)
            text.encode()
        except ValueError as error:
            raise invalid(f"The prompt: {error}.") from error
        if not text.strip():
            raise invalid("The prompt is empty.")
        if session.attended and text.strip() in (f"/{command.name}" for command in _COMMANDS):
            return await self._command(session, client, text.strip()[1:])
        session.refuse_if_busy()
        session.join(client)
        client.cancel_by(request, session.cancel)
        return responses.turn_reply(session, await session.ask(text, client))

    async def continue_turn(self, client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`_strongroom/continue`."""
        session = self._session(decoded(request, schema.SessionParams).session_id)
        session.join(client)
        if not session.busy:  # then the turn is this request's, and goes with it
            client.cancel_by(request, session.cancel)
        end = await session.resume()
        return ClientReply(None) if end is None else responses.turn_reply(session, end)

    async def call(self, client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`_strongroom/call`."""
        params = decoded(request, extensions.CallParams)
        session = self._session(params.session_id)
        if session.session.conversation is not None or session.closing:
            session.refuse_if_busy()
        try:
            f"{params.tool}{params.arguments}".encode()
        except UnicodeEncodeError as error:
            raise ConfigError("The tool and its arguments must be UTF-8.") from error
        session.join(client)
        ended = await session.call(params.tool, params.arguments)
        return ClientReply(
            extensions.CallResult(call=ended.call, answer=msgspec.Raw(msgspec.json.encode(as_answer(ended))))
        )

    async def undo(self, client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`_strongroom/undo`."""
        params = decoded(request, extensions.UndoParams)
        session = self._session(params.session_id)
        session.join(client)
        return ClientReply(await self._undo(session, client, params))

    # --- what there is ------------------------------------------------------------------------------------------

    async def status(self, _client: Connection, _request: jsonrpc.Request) -> ClientReply:
        """`_strongroom/status`."""
        return ClientReply(status.report(self.about, self.registry, len(self.clients)))

    async def why(self, _client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`_strongroom/why`."""
        params = decoded(request, extensions.WhyParams)
        call, session_id, holds = params.tool_call_id, params.session_id, self._kept().holds
        return ClientReply(await self.registry.reader.run(lambda journal: explain(journal, call, session_id, holds)))

    async def check(self, _client: Connection, request: jsonrpc.Request) -> ClientReply:
        """`_strongroom/check`: would a session open? Nothing is recorded."""
        options = usable_options(decoded(request, extensions.SessionOptions))
        profile = self.registry.profile(options.profile, OpenedAt("/", options.root, names_of(options)))
        name = self.registry.model_name(options.model)
        if not options.modelless:
            name = self.registry.resources.model(name).name
        return ClientReply({"profile": profile.name, "root": profile.root, "model": name})

    # --- helpers ------------------------------------------------------------------------------------------------

    def _session(self, session_id: str) -> OpenSession:
        session = self.registry.sessions.get(session_id)
        if session is None:
            message = f"The session {session_id[:80]!r} is not open here. Load or resume it first."
            raise RequestError(jsonrpc.fault(jsonrpc.NOT_FOUND, message, "not_found"))
        return session

    def _kept(self) -> KeptStore:
        return KeptStore(self.registry.settings.kept, self.registry.settings.config.undo)

    def _enter(self, session: OpenSession, client: Connection) -> None:
        """Let a client hear the session once it knows its id, beginning with the commands that there are."""
        client.send(session.subscribers.line(schema.AvailableCommands(available_commands=list(_COMMANDS))))
        session.join(client)

    async def _set(self, session: OpenSession, *, profile: str | None = None, model: str | None = None) -> None:
        if session.session.conversation is None:
            raise invalid("This session has no model, only calls.")
        await self.registry.change(session, profile, model)
        session.subscribers.tell(
            [schema.ConfigOptions(config_options=responses.config_options(session, self.registry.settings))]
        )
        if profile:
            session.subscribers.tell([schema.CurrentMode(current_mode_id=session.profile.name)])

    async def _undo(
        self, session: OpenSession, client: Connection, params: extensions.UndoParams
    ) -> extensions.UndoResult:
        holds = self._kept().holds

        async def planned() -> Sequence[UndoStep]:
            return plan(await self.registry.reader.entries(session.id, 0), params.calls, params.scope, holds)

        steps = await session.undo(planned, force=params.force, by=client.name)
        return extensions.UndoResult(session_id=session.id, steps=tuple(steps))

    async def _command(self, session: OpenSession, client: Connection, name: str) -> ClientReply:
        """Answer a command of ours as a message; it is no part of the conversation."""
        undone: list[str] = []
        if name == "undo":
            result = await self._undo(session, client, extensions.UndoParams(session_id=session.id))
            undone = [f"    {line}" for step in result.steps for line in lines_of(step, "strongroom undo")]
        lines = {
            "undo": undone or ["There is nothing to undo."],
            "tools": [
                *(f"- `{tool}`" for tool in session.profile.tools),
                *(f"- not here: `{tool}`, whose workers {why}" for tool, why in session.profile.absent),
                *(f"- out of order for now: `{tool}`: {why}" for tool, why in session.session.out_of_order.items()),
            ],
            "status": [
                f"- profile {session.profile.name}, model {session.model_name}",
                f"- root `{session.profile.root}`",
                *(f"- {name} `{value}`" for name, value in session.context.items() if name != "working_directory"),
                f"- {session.turns} turns, {session.projection.context} tokens in context",
            ],
        }[name]
        client.send(session.subscribers.line(schema.AgentMessageChunk(content=schema.Text(text="\n".join(lines)))))
        return ClientReply(schema.PromptResult(stop_reason="end_turn"))


Handler = Callable[[Methods, Connection, jsonrpc.Request], Awaitable[ClientReply]]

_HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "initialize": Methods.initialize,
        "authenticate": Methods.authenticate,
        "session/new": Methods.new,
        "session/load": Methods.load,
        "session/resume": Methods.resume,
        "session/list": Methods.listing,
        "session/close": Methods.close,
        "session/delete": Methods.delete,
        "session/prompt": Methods.prompt,
        "session/set_mode": Methods.set_mode,
        "session/set_config_option": Methods.set_option,
        extensions.STATUS_METHOD: Methods.status,
        extensions.WHY_METHOD: Methods.why,
        extensions.CALL_METHOD: Methods.call,
        extensions.CHECK_METHOD: Methods.check,
        extensions.CONTINUE_METHOD: Methods.continue_turn,
        extensions.UNDO_METHOD: Methods.undo,
    }
)


def _is_ours(method: str) -> bool:
    return method.startswith("_")


_BEGINNINGS: Final = frozenset(
    {
        *("session/new", "session/load", "session/resume", "session/prompt"),
        *(extensions.CALL_METHOD, extensions.CONTINUE_METHOD, extensions.UNDO_METHOD),
    }
)

_KEYS: Final = (
    extensions.EDITED,
    extensions.REMARK,
    extensions.SCOPE,
    extensions.UNCONFINED,
    extensions.REVIEW,
    extensions.OPTIONS,
    extensions.TURN,
    extensions.CALL,
    extensions.TURN_STATE,
    extensions.DROPPED,
)
