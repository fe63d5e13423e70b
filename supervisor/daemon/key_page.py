"""The page where a provider's keys are made, for a session that lacks one.

Rule: a key never comes this way: who has made one keeps it with `strongroom login`, or in the environment.
"""

from collections.abc import Mapping

from supervisor.acp import schema
from supervisor.agent.models.key_choice import with_keys
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.providers import provider_of
from supervisor.config.settings import Settings
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.errors import ConfigError


def key_page(
    session: OpenSession, wanted: str, settings: Settings, keys: Mapping[str, str]
) -> schema.UrlElicitation | None:
    """Return where the key is made that the model lacks which the session should have; None where it is no key.

    `keys` are those of the client.
    """
    row = provider_of(wanted, settings) if session.model_name not in ("", wanted) else None
    if row is None or not row.key_page or _has_key(row, settings, keys):
        return None
    said = f"The model {wanted} needs a key. Make one on this page: {row.key_advice}. Then open a new session."
    return schema.UrlElicitation(session_id=session.id, elicitation_id=row.key, url=row.key_page, message=said)


def _has_key(row: Provider, settings: Settings, keys: Mapping[str, str]) -> bool:
    try:
        return bool(row.key_in(with_keys(settings, keys)))
    except ConfigError:  # those that are kept cannot be read: another one would be lost, too
        return True
