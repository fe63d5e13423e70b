"""An offered rule as a person edits it before it is saved: its paths and numbers, as JSON on one line.

Rule: pure. All else stays as it was offered: the programs, the kinds that were seen, the network and the end. A rule
that was offered for no paths, as for an install, is about none, for no kinds were seen.
"""

from typing import Final

import msgspec

from supervisor.rules.rule import Rule, problem_of

EDITABLE: Final = ("writes", "deletes", "max_files", "max_bytes")


class _Edited(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is not named stays."""

    writes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    deletes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    max_files: int | msgspec.UnsetType | None = msgspec.UNSET
    max_bytes: int | msgspec.UnsetType | None = msgspec.UNSET


def editable(rule: Rule) -> str:
    """Return what of a rule can be edited."""
    return msgspec.json.encode({key: getattr(rule, key) for key in EDITABLE}).decode()


def edited(offered: Rule, text: str) -> Rule:
    """Return a rule with what a person made of it.

    Raises:
        ValueError: it is no rule; the text says why.
    """
    try:
        found = msgspec.json.decode(text.encode("utf-8", "replace"), type=_Edited)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"This is no rule: {error}.") from error
    given = {key: value for key, value in msgspec.structs.asdict(found).items() if value is not msgspec.UNSET}
    rule = msgspec.structs.replace(offered, **given)
    if (rule.writes or rule.deletes) and not (offered.writes or offered.deletes):
        raise ValueError("This rule allows no changes: leave `writes` and `deletes` empty.")
    if problem := problem_of(rule):
        raise ValueError(f"This cannot be a rule: {problem}")
    return rule
