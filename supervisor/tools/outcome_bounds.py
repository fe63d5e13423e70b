"""Bounds of what one reply and one turn may come to: how many calls, and how many bytes of results.

Rule: what is beyond them has an outcome that says so. A call that may have changed something keeps its own. Pure.
"""

from typing import Final

import msgspec

from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.tools.outcomes import failed

CALLS_AT_MOST: Final = 64
"""Calls of one reply that are judged and run."""

CALLS_ANSWERED: Final = 256
"""Calls of one reply that have an outcome; it is recorded, and shown again, without those beyond."""

RESULTS_AT_MOST: Final = 16 * 2**20
"""Bytes that the results of one turn have together."""

_SHOWN: Final = 500
"""Characters of an outcome that are kept where there is no room for it."""


def beyond_a_reply(turn: int, call: str, tool: str) -> CallEnded:
    """Return the end of a call of a reply that has too many: neither judged nor started."""
    why = (
        f"A reply may make {CALLS_AT_MOST} calls, and this one comes after those: it was not run. Make it anew, if you "
        f"still want it. Calls after the {CALLS_ANSWERED}th are dropped."
    )
    return CallEnded(turn, call, tool, False, why, kind="resource_limit")


def size_of(ended: CallEnded) -> int:
    """Return the bytes of a result, with what it had printed."""
    texts = [ended.content, *(each for each in ended.details.values() if isinstance(each, str))]
    return sum(len(each) if each.isascii() else len(each.encode("utf-8", "replace")) for each in texts)


def within(call: CallStarted, ended: CallEnded, left: int) -> CallEnded:
    """Return a call's end that takes no more than is `left` of its turn's bytes, or little.

    What was read is left out; a call that may have changed something keeps its outcome, and the beginning of its words.
    """
    if (size := size_of(ended)) <= max(left, _SHOWN):
        return ended
    full = (
        f"The results of this turn have come to {RESULTS_AT_MOST // 2**20} MiB together: the {size} bytes of this one"
    )
    if ended.ok and not call.effect:
        why = f"{full} are left out. Answer with what is here, or ask for less: a part of a file, a narrower pattern."
        return msgspec.structs.replace(failed(call, "resource_limit", why), seconds=ended.seconds)
    return msgspec.structs.replace(
        ended,
        content=f"{ended.content[:_SHOWN]}\n[{full} are cut here. What it did stands.]",
        form="text",
        details={name: value for name, value in ended.details.items() if isinstance(value, int)},
    )
