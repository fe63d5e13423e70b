"""The messages of the Agent Client Protocol, version 1, as far as Strongroom speaks it.

Rule: shapes only. Names are the specification's, in Python's spelling; unknown fields of a message are ignored, as the
specification wants it, and every object may carry `_meta`. `Notice` and a call's `name` are of its unstable part; they
need no word of a client that it knows them.

Source: https://agentclientprotocol.com, schema v1.21.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, Self

import msgspec

VERSION: Final = 1


class Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A JSON object of the protocol; `meta` is what extensions ride on."""

    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class OfSession(Object, frozen=True):
    """Something about one session."""

    session_id: str


class Implementation(Object, frozen=True):
    """Who somebody is."""

    name: str = ""
    version: str = ""
    title: str | None = None


class ClientCapabilities(Object, frozen=True):
    """What the client can do, as far as it matters here.

    `auth` is {"terminal": true} where it can run this program in a terminal, `elicitation` has {"form": {}} where it
    can show a form, and {"url": {}} where it can open a page; `session` has {"configOptions": {"boolean": {}}} where it
    can show a switch, and {"compaction": {}} where it can show compactions.
    """

    auth: Any = None
    elicitation: Any = None
    session: Any = None

    def has(self, *names: str) -> bool:
        """Say whether there is an object under these names, each in the one before: the last is what it can do."""
        found = getattr(self, names[0])
        for name in names[1:]:
            found = found.get(name) if isinstance(found, dict) else None
        return isinstance(found, dict)


class InitializeParams(Object, frozen=True):
    """`initialize`."""

    protocol_version: int
    client_capabilities: ClientCapabilities | None = None
    client_info: Implementation | None = None


class TerminalAuth(Object, frozen=True, tag_field="type", tag="terminal"):
    """A way to log in: this program in a terminal, with `args` after those that it has."""

    id: str
    name: str
    description: str
    args: list[str]


class InitializeResult(Object, frozen=True):
    """What this agent is and can do."""

    protocol_version: int
    agent_capabilities: dict[str, Any]
    agent_info: Implementation
    auth_methods: list[TerminalAuth]


class AuthenticateParams(Object, frozen=True):
    """`authenticate`."""

    method_id: str


class NewSessionParams(Object, frozen=True):
    """`session/new`."""

    cwd: str
    mcp_servers: list[dict[str, Any]] | None = None


class ReopenParams(NewSessionParams, frozen=True, kw_only=True):
    """`session/load` and `session/resume`."""

    session_id: str


class ForkParams(ReopenParams, frozen=True, kw_only=True):
    """`session/fork`, of the protocol's unstable part; it is answered as `session/new` is."""


class ListParams(Object, frozen=True):
    """`session/list`."""

    cwd: str | None = None
    cursor: str | None = None


class SessionParams(OfSession, frozen=True):
    """`session/close`, `session/delete`, `session/cancel`: a session and nothing else."""


class PromptParams(OfSession, frozen=True):
    """`session/prompt`. The blocks are read by `prompt_parts`."""

    prompt: list[dict[str, Any]]


class SetModeParams(OfSession, frozen=True):
    """`session/set_mode`."""

    mode_id: str


class SetOptionParams(OfSession, frozen=True):
    """`session/set_config_option`."""

    config_id: str
    value: str | bool


class CancelRequestParams(Object, frozen=True):
    """`$/cancel_request`, either way."""

    request_id: int | str | None


class OptionValue(Object, frozen=True):
    """One value of a configuration option."""

    value: str
    name: str
    description: str | None = None


class ConfigOption(Object, frozen=True, tag_field="type", tag="select"):
    """Something that the person may choose for the session."""

    id: str
    name: str
    category: str
    current_value: str
    options: list[OptionValue]


class SwitchOption(Object, frozen=True, tag_field="type", tag="boolean"):
    """The same with a yes and a no, for clients that can show it."""

    id: str
    name: str
    category: str
    current_value: bool


Option = ConfigOption | SwitchOption


class Mode(Object, frozen=True):
    """One mode: which changes the person is asked about."""

    id: str
    name: str
    description: str | None = None


class Modes(Object, frozen=True):
    """The modes, and which holds."""

    current_mode_id: str
    available_modes: list[Mode]


class SessionResult(Object, frozen=True):
    """Answers `session/load` and `session/resume`."""

    modes: Modes | None = None
    config_options: list[Option] | None = None


class NewSessionResult(SessionResult, frozen=True, kw_only=True):
    """Answers `session/new`."""

    session_id: str


class OptionsResult(Object, frozen=True):
    """Answers `session/set_config_option`."""

    config_options: list[Option]


class SessionInfo(OfSession, frozen=True):
    """One session in a list. `updated_at` is ISO 8601, UTC."""

    cwd: str
    title: str | None = None
    updated_at: str | None = None


class ListResult(Object, frozen=True):
    """Answers `session/list`."""

    sessions: list[SessionInfo]
    next_cursor: str | None = None


StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class TokenUsage(Object, frozen=True):
    """Tokens of a turn."""

    total_tokens: int
    input_tokens: int
    output_tokens: int
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None


class PromptResult(Object, frozen=True):
    """Answers `session/prompt`."""

    stop_reason: StopReason
    usage: TokenUsage | None = None


class Text(Object, frozen=True, tag_field="type", tag="text"):
    """A block of text."""

    text: str


class Image(Object, frozen=True, tag_field="type", tag="image"):
    """An image, in base64."""

    data: str
    mime_type: str
    uri: str | None = None


class ResourceLink(Object, frozen=True, tag_field="type", tag="resource_link"):
    """A file that can be looked at where it lies; `size` in bytes."""

    uri: str
    name: str
    mime_type: str | None = None
    size: int | None = None


class Content(Object, frozen=True, tag_field="type", tag="content"):
    """What a tool call shows."""

    content: Text | Image | ResourceLink


class DiffContent(Object, frozen=True, tag_field="type", tag="diff"):
    """What a tool call changes in a file; `old_text` None where nothing is said about what was there."""

    path: str
    new_text: str
    old_text: str | None = None


def texts_of(shown: Sequence[Content | DiffContent] | None) -> list[str]:
    """Return the texts that a tool call shows."""
    contents = (each.content for each in shown or () if isinstance(each, Content))
    return [each.text for each in contents if isinstance(each, Text)]


class Location(Object, frozen=True):
    """A file that a tool call is about."""

    path: str


ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
ToolStatus = Literal["pending", "in_progress", "completed", "failed"]


class _CallView(Object, frozen=True):
    """What is shown of a tool call."""

    tool_call_id: str
    title: str | None = None
    name: str | None = None
    kind: ToolKind | None = None
    status: ToolStatus | None = None
    content: list[Content | DiffContent] | None = None
    locations: list[Location] | None = None
    raw_input: Any = None
    raw_output: Any = None


class _Update(Object, frozen=True, tag_field="sessionUpdate"):
    """What has happened in a session."""


class _Chunk(_Update, frozen=True):
    content: Text
    message_id: str | None = None

    @classmethod
    def of(cls, text: str, message_id: str | None = None) -> Self:
        return cls(content=Text(text=text), message_id=message_id)


class UserMessageChunk(_Chunk, frozen=True, tag="user_message_chunk"):
    """What the person said."""


class AgentMessageChunk(_Chunk, frozen=True, tag="agent_message_chunk"):
    """A piece of the answer."""


class AgentThoughtChunk(_Chunk, frozen=True, tag="agent_thought_chunk"):
    """A piece of the model's thinking."""


class ToolCall(_CallView, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call"):
    """A tool call, when it is first heard of."""

    title: str


class ToolCallUpdate(_CallView, frozen=True, tag_field="sessionUpdate", tag="tool_call_update"):
    """What has changed about a tool call."""


class CommandInput(Object, frozen=True):
    """What may follow a command's name."""

    hint: str


class AvailableCommand(Object, frozen=True):
    """A command that the person may type as /name."""

    name: str
    description: str
    input: CommandInput | None = None


class AvailableCommands(_Update, frozen=True, tag="available_commands_update"):
    """The commands there are."""

    available_commands: list[AvailableCommand]


class CurrentMode(_Update, frozen=True, tag="current_mode_update"):
    """The mode has changed."""

    current_mode_id: str


class ConfigOptions(_Update, frozen=True, tag="config_option_update"):
    """Options have changed."""

    config_options: list[Option]


class SessionInfoUpdate(_Update, frozen=True, tag="session_info_update"):
    """The session's title has changed."""

    title: str | None = None


class PlanEntry(Object, frozen=True):
    """One step of a plan."""

    content: str
    priority: Literal["high", "medium", "low"]
    status: Literal["pending", "in_progress", "completed"]


class Plan(_Update, frozen=True, tag="plan"):
    """What the agent is about to do, whole; it replaces the plan before."""

    entries: list[PlanEntry]


class Cost(Object, frozen=True):
    """Money spent in a session so far. `currency` is ISO 4217."""

    amount: float
    currency: str


class UsageUpdate(_Update, frozen=True, tag="usage_update"):
    """Tokens in the model's context, of how many; and what the session has cost, where prices are known."""

    used: int
    size: int
    cost: Cost | None = None


class Notice(_Update, frozen=True, tag="notice"):
    """Something that the person should know now; it is no part of the conversation. Both texts are plain."""

    severity: Literal["info", "warning", "error"]
    title: str
    description: str | None = None

    @classmethod
    def of(cls, said: str) -> Self:
        """Return a warning whose title is what stands before the first colon."""
        title, _, more = said.partition(": ")
        return cls(severity="warning", title=title, description=more or None)


class CompactionUpdate(_Update, frozen=True, tag="compaction_update"):
    """The older part of the conversation is kept in short from here on; for clients that can show it."""

    compaction_id: str
    status: Literal["completed"]
    summary: list[dict[str, Any]] | None = None
    """Blocks of text: what a model wrote of it."""


Update = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCall
    | ToolCallUpdate
    | AvailableCommands
    | CurrentMode
    | ConfigOptions
    | SessionInfoUpdate
    | Plan
    | UsageUpdate
    | Notice
    | CompactionUpdate
)


class SessionUpdate(OfSession, frozen=True):
    """The notification `session/update`."""

    update: Update


class PermissionOption(Object, frozen=True):
    """One answer that the person may give."""

    option_id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class PermissionCall(_CallView, frozen=True):
    """The tool call that permission is asked for, with all that the person must see."""


class PermissionParams(OfSession, frozen=True):
    """The request `session/request_permission`."""

    tool_call: PermissionCall
    options: list[PermissionOption]


class PermissionOutcome(Object, frozen=True):
    """What the person chose: "selected" with an option, or "cancelled". Anything else is no approval."""

    outcome: str
    option_id: str | None = None


class PermissionResult(Object, frozen=True):
    """Answers `session/request_permission`."""

    outcome: PermissionOutcome


class ElicitationParams(OfSession, frozen=True, tag_field="mode", tag="form"):
    """The request `elicitation/create`: a form of flat properties."""

    message: str
    requested_schema: dict[str, Any]
    tool_call_id: str | None = None


class UrlElicitation(OfSession, frozen=True, tag_field="mode", tag="url"):
    """The request `elicitation/create` for a page that the person opens, if they want to."""

    elicitation_id: str
    url: str
    message: str


class ElicitationResult(Object, frozen=True):
    """Answers `elicitation/create`."""

    action: str
    content: dict[str, Any] | None = None
