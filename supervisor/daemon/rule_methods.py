"""The rules that count in a session, for whoever is in it: listed, revoked, and kept of what its instructions state.

Rule: what a person made with a yes can be revoked, here and everywhere, and that is a fact of the session in which it
was made. What instructions state is a rule only once a person keeps it. The operator's stand in the configuration.
"""

from collections.abc import Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from supervisor.acp import extensions
from supervisor.daemon.method import MethodContext, method
from supervisor.daemon.protocol.connection import ClientRequest
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.errors import ConfigError
from supervisor.journal.facts import RuleRevoked
from supervisor.rules.rule import Rule
from supervisor.rules.rule_sentence import sentence
from supervisor.rules.shipped import SHIPPED
from supervisor.rules.store import RuleStore, StoredRule

if TYPE_CHECKING:
    from supervisor.rules.stated_rules import StatedRule

_SCOPES: Final = MappingProxyType({"session": "for this session", "always": "for this profile and root"})


@method(extensions.RULES_METHOD, extensions.RulesParams, extensions.RulesResult)
async def _rules(
    context: MethodContext, request: ClientRequest, params: extensions.RulesParams
) -> extensions.RulesResult:
    session = context.session(params.session_id)
    asked = params.revoke.strip(), params.keep.strip()
    lines = await rule_lines(context, session, *asked, request.client.name)
    return extensions.RulesResult(session.id, tuple(lines))


async def rule_lines(context: MethodContext, session: OpenSession, revoke: str, keep: str, by: str) -> list[str]:
    """Return the rules that count in a session, a line each; or revoke one of them, or keep an offer, and say which.

    Raises:
        ConfigError: there is none of that number or id, none can be kept, or the rules that people made cannot be used.
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
    offers = _offers(session, made)
    if keep:
        return [f"kept: {sentence(_kept(session, store, offers, keep, by))}"]
    lines = [f"configured: {sentence(rule)}" for rule in services.rules]
    for number, each in enumerate(made, 1):
        held = _SCOPES[each.scope]
        if each.outdated or each.identity != session.session.pools.root.mark:
            held = "counts no longer, for it was made by an older version, or for another directory with this path"
        lines.append(f"{number}. {each.id}, {held}: {sentence(each.rule)}")
    for number, offer in enumerate(offers, 1):
        lines.append(f"offered, `/rules keep {number}`: {sentence(offer.rule)}, as {offer.told}")
    return [*lines, *(f"shipped: {sentence(rule)}" for rule in SHIPPED)]


def _offers(session: OpenSession, made: Sequence[StoredRule]) -> "list[StatedRule]":
    """Return what the instructions of a session state, and nobody has kept yet."""
    from supervisor.rules.stated_rules import stated_rules  # its patterns take milliseconds, and few ask for them

    if session.session.model is None:
        return []
    files = session.session.conversation.transcript.instructions.files
    stated = stated_rules({path: file.text for path, file in files.items()})
    mark = session.session.pools.root.mark
    known = {msgspec.structs.replace(each.rule, reason="") for each in made if each.identity == mark}
    return [each for each in stated if each.rule not in known]


def _kept(session: OpenSession, store: RuleStore | None, offers: "Sequence[StatedRule]", keep: str, by: str) -> Rule:
    """Keep an offer for the profile on the root, from now on; return the rule."""
    root = session.session.pools.root
    offer = {str(number): each for number, each in enumerate(offers, 1)}.get(keep)
    if offer is None:
        raise ConfigError(f"No rule {keep[:20]!r} is offered here. /rules lists those that are.")
    if store is None or not root.found_by_name:
        raise ConfigError("No rule can be kept here: the root's name leads to another directory by now.")
    rule, profile = msgspec.structs.replace(offer.rule, reason=offer.told), session.profile
    add = partial(store.add, rule, session=session.id, call="", by=by)
    return add(profile=profile.name, root=profile.root, identity=root.mark).rule
