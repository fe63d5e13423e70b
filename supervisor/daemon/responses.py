"""Parameters and results of methods: options checked, and sessions and turns in the protocol's shapes. Pure.

Rule: parameters come in here and results go out; nothing here changes anything.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.agent.models.providers import fixed_names
from supervisor.agent.models.reply_options import DEFAULT, OPTIONS, SWITCH, suggested, thinks
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.profiles import profiles
from supervisor.config.settings import Settings
from supervisor.daemon.protocol.connection import RequestError
from supervisor.daemon.protocol.turn_messages import suspension
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.journal.facts import TurnEnded, TurnSuspended
from supervisor.journal.index import Summary
from supervisor.rules.modes import MODES

_T = TypeVar("_T")

_STOPS: Final[Mapping[str, schema.StopReason]] = MappingProxyType(
    {"max_tokens": "max_tokens", "too_many_steps": "max_turn_requests", "refusal": "refusal", "cancelled": "cancelled"}
)
"""The protocol's reason for a turn's kind of end, or for the model's last stop reason; else end_turn."""


def invalid(message: str) -> RequestError:
    """Return the error for parameters that cannot be used."""
    return RequestError(jsonrpc.INVALID_PARAMS, message, "invalid_params")


def decoded(params: bytes, as_type: type[_T]) -> _T:
    """Return a request's parameters.

    Raises:
        RequestError: they have another shape.
    """
    found = jsonrpc.decoded(params, as_type)
    if isinstance(found, jsonrpc.ErrorObject):
        raise RequestError(found.code, found.message, found.kind)
    return found


def session_options(meta: dict[str, Any] | None, variables: dict[str, str] | None) -> extensions.SessionOptions:
    """Return how a session shall be, from `_meta`, and from the `variables` that the client told before.

    Raises:
        RequestError: they have another shape, or hold what no path and no journal can.
    """
    try:
        options = msgspec.convert((meta or {}).get(extensions.OPTIONS) or {}, extensions.SessionOptions)
    except msgspec.ValidationError as error:
        raise invalid(f"Wrong {extensions.OPTIONS}: {jsonrpc.quoted(error)}.") from error
    given = variables if options.variables is None else options.variables
    return checked_options(msgspec.structs.replace(options, variables=given))


def checked_options(options: extensions.SessionOptions) -> extensions.SessionOptions:
    """Return options that a path and the journal can hold.

    Raises:
        RequestError: they cannot be held.
    """
    for text in (options.profile, options.model, options.root, options.origin):
        checked_text(text or "", extensions.OPTIONS)
    return options


def absolute(cwd: str) -> str:
    """Return the client's directory.

    Raises:
        RequestError: it is no absolute path.
    """
    if not cwd.startswith("/"):
        raise invalid(f"`cwd` is an absolute path, not {cwd[:80]!r}.")
    return checked_text(cwd, "cwd")


def checked_text(text: str, name: str) -> str:
    """Return `text`, which a path and the journal can hold.

    Raises:
        RequestError: they cannot.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise invalid(f"`{name}` is not Unicode.") from error
    if "\0" in text:
        raise invalid(f"`{name}` holds a zero byte.")
    return text


def reopened_session(
    session: OpenSession, settings: Settings, able: schema.ClientCapabilities, notices: list[str]
) -> schema.SessionResult:
    """Return the answer to session/load and session/resume."""
    every = [schema.Mode(id=mode, name=mode.capitalize(), description=about) for mode, about in MODES.items()]
    modes = schema.Modes(current_mode_id=session.session.mode, available_modes=every)
    return schema.SessionResult(
        modes=modes, config_options=config_options(session, settings, able), meta=_facts(session, notices)
    )


def new_session(
    session: OpenSession, settings: Settings, able: schema.ClientCapabilities, notices: list[str]
) -> schema.NewSessionResult:
    """Return the answer to session/new."""
    found = reopened_session(session, settings, able, notices)
    return schema.NewSessionResult(
        session_id=session.id, modes=found.modes, config_options=found.config_options, meta=found.meta
    )


def config_options(session: OpenSession, settings: Settings, able: schema.ClientCapabilities) -> list[schema.Option]:
    """Return what can be chosen: the model, the mode, the profile, and what the model has of its replies.

    Of models and numbers any may be set; these are suggestions. A switch is for clients that are `able` to show it.
    """
    configured = settings.config.model or DEFAULT_MODEL, *settings.config.fallbacks
    models = dict.fromkeys((session.model_name, *configured, *fixed_names()))
    model = schema.ConfigOption(
        id="model",
        name="Model",
        category="model",
        current_value=session.model_name,
        options=[schema.OptionValue(value=name, name=name) for name in models if name],
    )
    mode = schema.ConfigOption(
        id="mode",
        name="Mode",
        category="mode",
        current_value=session.session.mode,
        options=[schema.OptionValue(value=name, name=name, description=about) for name, about in MODES.items()],
    )
    profile = schema.ConfigOption(
        id="profile",
        name="Profile",
        category="_strongroom/profile",
        current_value=session.profile.name,
        options=[
            schema.OptionValue(value=name, name=name, description=", ".join(each.tools))
            for name, each in profiles(settings).items()
        ],
    )
    return [model, mode, profile, *_reply_options(session, able)]


def _reply_options(session: OpenSession, able: schema.ClientCapabilities) -> Iterator[schema.Option]:
    facts, chosen = session.session.model_facts, session.session.reply_options
    if facts is not None and "none" in facts.efforts and able.has("session", "configOptions", "boolean"):
        yield schema.SwitchOption(
            id=SWITCH, name="Thinking", category="model_config", current_value=thinks(facts, chosen)
        )
    for name, values in suggested(facts).items() if facts is not None else ():
        current = chosen.get(name, DEFAULT)
        yield schema.ConfigOption(
            id=name,
            name=OPTIONS[name],
            category="thought_level" if name == "effort" else f"_strongroom/{name}",
            current_value=current,
            options=[schema.OptionValue(value=each, name=each) for each in dict.fromkeys((DEFAULT, *values, current))],
        )


def session_info(each: Summary) -> schema.SessionInfo:
    """Return a session as it is listed."""
    at = datetime.fromtimestamp(each.updated_at, UTC).isoformat(timespec="seconds")
    names = {"group": each.group, "technology": each.technology} if each.group else {}
    return schema.SessionInfo(
        session_id=each.session,
        cwd=each.cwd or each.root,
        title=each.title or None,
        updated_at=at,
        meta={extensions.OPTIONS: {"profile": each.profile, **names}},
    )


def turn_result(session: OpenSession, end: TurnEnded) -> schema.PromptResult:
    """Return a prompt's answer.

    Raises:
        RequestError: the turn ended in an error that is no stop reason.
    """
    stop = _STOPS.get(end.kind) or _STOPS.get(end.stop_reason)
    summary = extensions.TurnSummary(
        turn=end.turn,
        status=end.status,
        answer=end.answer,
        kind=end.kind,
        message=end.message,
        note=end.note,
        receipt=None if end.receipt is None else msgspec.to_builtins(end.receipt),
        steps=session.session.conversation.transcript.replies,
    )
    if end.status == "error" and stop is None:
        raise RequestError(jsonrpc.INTERNAL_ERROR, end.message, end.kind, turn=msgspec.to_builtins(summary))
    usage = session.subscribers.projection.usage.of_turn
    return schema.PromptResult(stop_reason=stop or "end_turn", usage=usage, meta={extensions.TURN: summary})


def suspended_result(session: OpenSession, fact: TurnSuspended) -> schema.PromptResult:
    """Return a prompt's answer where the turn is suspended: it stays open."""
    summary = extensions.TurnSummary(
        turn=fact.turn,
        status="suspended",
        answer="",
        kind=fact.kind,
        message=fact.why,
        steps=session.session.conversation.transcript.replies,
    )
    usage = session.subscribers.projection.usage.of_turn
    return schema.PromptResult(stop_reason="max_turn_requests", usage=usage, meta={extensions.TURN: summary})


def _facts(session: OpenSession, notices: list[str]) -> dict[str, Any]:
    suspended = session.suspended
    resting = "suspended" if suspended is not None else "open" if session.interrupted else "-"
    facts = extensions.SessionFacts(
        session_id=session.id,
        profile=session.profile.name,
        model=session.model_name,
        root=session.profile.root,
        tools=session.profile.tools,
        context=session.context,
        state=session.subscribers.state.value if session.busy else resting,
        turns=session.turns,
        mode=session.session.mode,
        options=dict(session.session.reply_options),
        suspended=None if suspended is None else suspension(suspended),
        notices=tuple(notices),
    )
    return {extensions.OPTIONS: facts}
