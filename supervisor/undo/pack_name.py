"""The name of a pack: the session and the call that it is of, and something that nobody can guess."""

import re

from supervisor.system.plain_name import plain


def is_pack(name: str) -> bool:
    """Say whether a name can be a pack's."""
    return re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}", name) is not None


def beginning_of(session: str, *call: str) -> str:
    """Return how the names of a call's packs begin; without a call, those of all packs of a session."""
    return "".join(f"{plain(part)}." for part in (session, *call))
