"""The rules that count in a session, for whoever is in it: listed, and revoked.

Rule: what a person made with a yes can be revoked, here and everywhere, and that is a fact of the session in which it
was made. The operator's rules stand in the configuration.
"""

from types import MappingProxyType
from typing import Final

from supervisor.acp import extensions
from supervisor.daemon.method import MethodContext, method
from supervisor.daemon.protocol.connection import ClientRequest
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.errors import ConfigError
from supervisor.journal.facts import RuleRevoked
from supervisor.rules.rule_sentence import sentence
from supervisor.rules.shipped import SHIPPED

_SCOPES: Final = MappingProxyType({"session": "for this session", "always": "for this profile and root"})


@method(extensions.RULES_METHOD, extensions.RulesParams, extensions.RulesResult)
async def _rules(
    context: MethodContext, request: ClientRequest, params: extensions.RulesParams
) -> extensions.RulesResult:
    session = context.session(params.session_id)
    lines = await rule_lines(context, session, params.revoke.strip(), request.client.name)
    return extensions.RulesResult(session.id, tuple(lines))


async def rule_lines(context: MethodContext, session: OpenSession, revoke: str, by: str) -> list[str]:
    """Return the rules that count in a session, a line each; or revoke one of them, and say which.

    Raises:
        ConfigError: there is none of that number or id, or the rules that people made cannot be used.
        JournalError: it is revoked, and that could not be recorded.
    """
    services, profile = context.registry.resources.services, session.profile
    store = services.rule_store
    made = [
        each
        for each in (store.listing() if store is not None else ())
        if (each.profile, each.root) == (profile.name, profile.root)
        and (each.scope == "always" or each.session == session.id)
    ]
    if store is not None and revoke:
        found = [each for number, each in enumerate(made, 1) if revoke in (str(number), each.id)]
        if not found:
            raise ConfigError(f"No rule {revoke[:20]!r} here that a person made. /rules lists them.")
        gone = store.revoke(found[0].id)
        await context.registry.resources.writer.append(gone.session, RuleRevoked(gone.id, gone.call, by))
        return [f"revoked: {sentence(gone.rule)}"]
    lines = [f"configured: {sentence(rule)}" for rule in services.rules]
    for number, each in enumerate(made, 1):
        held = _SCOPES[each.scope]
        if each.outdated or each.identity != session.session.pools.root.mark:
            held = "counts no longer, for it was made by an older version, or for another directory with this path"
        lines.append(f"{number}. {each.id}, {held}: {sentence(each.rule)}")
    return [*lines, *(f"shipped: {sentence(rule)}" for rule in SHIPPED)]
