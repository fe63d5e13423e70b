"""The outcome of a turn's check: it has passed, or why it has not. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from supervisor.display.escape import visible
from supervisor.journal.facts import CallEnded

_LINES: Final = 20
_TAIL: Final = 2000
"""Lines and characters of what a check printed that are told: its end."""


def check_problem(ended: CallEnded) -> str:
    """Return why a check has not passed, with the end of what it printed; "" where it has."""
    told = _record_of(ended)
    code = told.get("exit_code")
    if ended.ok and code == 0:
        return ""
    why = f"exit code {code}" if ended.ok else f"{ended.kind}: {ended.content}"
    text = "\n".join(str(told[name]).strip("\n") for name in ("stdout", "stderr") if told.get(name))
    tail = "\n".join(visible(text[-_TAIL:], prose=True).split("\n")[-_LINES:])
    return f"{why}\n{tail}" if tail else why


def _record_of(ended: CallEnded) -> Mapping[str, Any]:
    """Return what a command printed, and its exit code; nothing where that cannot be read."""
    if not ended.ok:
        return ended.details
    try:
        found = msgspec.json.decode(ended.content)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
