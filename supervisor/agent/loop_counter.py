"""The loop counter: calls of a turn that repeat, with the same arguments and result, and change nothing. Pure.

Rule: exact. A call counts as the same only where its tool, its arguments as JSON and its whole result are the same, and
no change of any call lies in between; a commit that was not seen to change nothing is one. Those of one reply count
once: the model had seen no result between them. What others have changed is looked up before a loop is told of
(`others_changes.py`), and begins the count anew.
"""

import hashlib
from typing import Final, NamedTuple

import msgspec

from supervisor.display.escape import one_line
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, effective

TOLD_AT: Final = 3
"""How often a call has had the same result when the model is told of it."""
SUSPENDED_AT: Final = 5
"""How often it has had it when the turn is suspended."""

_NOTICE: Final = (
    "This is the third time that this call had exactly this result, and no change of any file was seen in between. "
    "Repeating it will not help: do something else, or say what is in the way."
)
_SHOWN: Final = 200
"""Characters of the arguments, and of the result, that a person is told."""


class _Repeated(NamedTuple):
    result: bytes
    """Its digest."""
    times: int
    step: int
    """Of the reply that it was last wanted by."""
    first: str
    """The id of the first of them."""


class LoopCounter:
    """Counts the calls of one turn. `found` says what repeats, for a person, once that has gone too far."""

    def __init__(self) -> None:
        self.found = ""
        self._repeated: dict[bytes, _Repeated] = {}
        """By the digest of tool and arguments."""

    def count(self, step: int, started: CallStarted | None, decided: CallDecided | None, ended: CallEnded) -> str:
        """Count a call that has ended; return what the model is told beside its result, or "".

        Args:
            step: of the reply that wants it.
            started: as it was judged; None where it never was.
            decided: what was decided last about its effects.
            ended: its outcome.
        """
        if may_have_changed(decided) or ended.changed_by_others:
            self._repeated, self.found = {}, ""
        if may_have_changed(decided) or started is None:
            return ""
        call, result, first = _call_mark(started), _result_mark(ended), ended.call
        before = self._repeated.get(call)
        times = 1
        if before is not None and before.result == result:
            if before.step == step:
                return ""
            times, first = before.times + 1, before.first
        self._repeated[call] = _Repeated(result, times, step, first)
        if times == SUSPENDED_AT:
            given, came = one_line(effective(started), _SHOWN), one_line(ended.content, _SHOWN)
            outcome = "ok" if ended.ok else str(ended.kind)
            self.found = f"{started.tool} {given} had the same result {times} times, {outcome}: {came}"
        return _NOTICE if times == TOLD_AT else ""

    def repeats(self, step: int, started: CallStarted, decided: CallDecided | None, ended: CallEnded) -> str:
        """Return the id of the first of the calls that one repeats, where `count` would tell of it; else ""."""
        before = self._repeated.get(_call_mark(started))
        if before is None or before.step == step or before.times + 1 not in (TOLD_AT, SUSPENDED_AT):
            return ""
        return before.first if before.result == _result_mark(ended) and not may_have_changed(decided) else ""


def may_have_changed(decided: CallDecided | None) -> bool:
    """Say whether a call has changed something, or may have: it may unless its rehearsal says otherwise."""
    if decided is None or not decided.committed:
        return False
    effects = decided.effects
    if effects is None or decided.unlisted or effects.git:
        return True
    return any(what != "times" and count for what, count in effects.totals.items())


def _canonical(arguments: str) -> str:
    """Return arguments as one text, however they are spaced and ordered."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments or "{}"), order="sorted").decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return arguments


def _call_mark(started: CallStarted) -> bytes:
    """Return what stands for a call: its tool and its arguments."""
    return _digest(started.tool, _canonical(effective(started)))


def _result_mark(ended: CallEnded) -> bytes:
    """Return what stands for its whole result."""
    return _digest(str(ended.ok), str(ended.kind), ended.content, ended.note, str(ended.contents))


def _digest(*parts: str) -> bytes:
    """Return what stands for texts; none of them can pass for a part of another."""
    return hashlib.sha256(msgspec.json.encode(parts)).digest()
