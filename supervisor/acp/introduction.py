"""The answer to `initialize`: who this agent is, what it can do, and how a person gives it a key.

Rule: it needs no daemon, no key and no protection, so that an editor is told it also where nothing else can be had. A
way to log in is named only to a client that can open a terminal for it.
"""

from collections.abc import Sequence
from typing import Any, Final

from supervisor.acp import extensions, schema

_ANNOUNCED: Final = "terminal-auth"
"""In `_meta`: what clients said that could do so before the capability had a name."""
_LOGIN: Final = schema.TerminalAuth(
    id="login",
    name="Log in",
    description="Runs `strongroom login` in a terminal, which keeps the key of a model's provider.",
    args=["login"],
)


def introduction(
    version: str, client: schema.ClientCapabilities, methods: Sequence[str] = (), meta: dict[str, Any] | None = None
) -> schema.InitializeResult:
    """Return what a client is told.

    Args:
        version: of this program.
        client: what it can do.
        methods: the extensions of ours that it may use.
        meta: what else it is told.
    """
    return schema.InitializeResult(
        protocol_version=schema.VERSION,
        agent_capabilities={
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {}},
            "_meta": {extensions.EXTENSIONS: methods},
        },
        agent_info=schema.Implementation(name="strongroom", title="Strongroom", version=version),
        auth_methods=[_LOGIN] if _opens_terminals(client) else [],
        meta=meta,
    )


def _opens_terminals(client: schema.ClientCapabilities) -> bool:
    stated = client.auth.get("terminal") if isinstance(client.auth, dict) else None
    return stated is True or (client.meta or {}).get(_ANNOUNCED) is True
