"""The first divergence of a replay from its record. Pure.

Rule: what is compared is what decisions, effects, outcomes and answers came to, call by call in the order of the
record; times, ids of commits and how long something took are not. Durations that a program printed count as equal.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Fact, TurnEnded, TurnStarted, effective

_TOOK: Final = re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|sec|secs|seconds|minutes|min|m)\b")

_PACK: Final = re.compile(r'"packs?":\s*(?:"[^"]*"|\[[^]]*\])')
"""What an undo is made from: another name each time."""


class Divergence(msgspec.Struct, frozen=True):
    """Where a replay first came to something else."""

    turn: int
    what: str
    """"decision", "effects", "outcome", "call", "answer"."""
    then: str
    now: str
    call: str = ""
    tool: str = ""
    arguments: str = ""


class _ReplayedCall(msgspec.Struct):
    started: CallStarted | None = None
    decided: list[CallDecided] = []
    ended: CallEnded | None = None


def first_divergence(
    then: Sequence[Fact], now: Sequence[Fact], given: Iterable[str], translate: Callable[[str], str]
) -> Divergence | None:
    """Return where the facts of a turn first differ; None where they do not.

    Args:
        then: the record.
        now: the replay.
        given: calls that were not run again: they have had no effects.
        translate: makes the text of the replay that of the record.
    """
    before, after = _calls(then), _calls(now)
    unrun = frozenset(given)
    for call, recorded in before.items():
        if recorded.started is None:
            continue  # it was refused before it was judged, with its reply
        found = after.get(call, _ReplayedCall())
        pairs = _compared(recorded, found, translate, effects=call not in unrun)
        for what, was, is_now in pairs:
            if was != is_now:
                made = recorded.started
                return Divergence(made.turn, what, was, is_now, call, made.tool, effective(made))
    if more := [each.started for call, each in after.items() if call not in before and each.started is not None]:
        start = more[0]
        return Divergence(start.turn, "call", "it was not made", start.tool, start.call, start.tool, effective(start))
    return _of_ends(then, now, translate)


def _calls(facts: Iterable[Fact]) -> dict[str, _ReplayedCall]:
    """Return the calls by their ids, in the order of their first fact; of one that began anew, its last beginning."""
    found: dict[str, _ReplayedCall] = {}
    for fact in facts:
        if not isinstance(fact, CallStarted | CallDecided | CallEnded):
            continue
        call = found.setdefault(fact.call, _ReplayedCall())
        if isinstance(fact, CallStarted):
            call.started, call.decided = fact, [] if fact.again else call.decided
        elif isinstance(fact, CallDecided):
            call.decided.append(fact)
        else:
            call.ended = fact
    return found


def _compared(
    then: _ReplayedCall, now: _ReplayedCall, translate: Callable[[str], str], *, effects: bool
) -> Iterable[tuple[str, str, str]]:
    yield "call", _start(then, str), _start(now, translate)
    yield "decision", _decision(then), _decision(now)
    if effects:
        yield "effects", _effects(then), _effects(now)
    yield "outcome", _outcome(then, str), _outcome(now, translate)


def _start(call: _ReplayedCall, translate: Callable[[str], str]) -> str:
    if call.started is None:
        return "it was not made"
    arguments = translate(effective(call.started))
    if not call.started.turn:
        arguments = _PACK.sub('"pack":""', arguments)
    return f"{call.started.tool} {arguments}"


def _decision(call: _ReplayedCall) -> str:
    start = call.started
    said = {None: "", True: ", a person said yes", False: ", a person said no"}
    return "" if start is None else f"{start.decision}{said[start.approved]}"


def _effects(call: _ReplayedCall) -> str:
    lines = []
    for each in call.decided:
        done = "committed" if each.committed else "not committed"
        changes = each.effects.changes if each.effects is not None else ()
        lines.append(f"{each.decision}, {done}")
        lines += sorted(f"{change.what} {change.path} {change.diff}" for change in changes)
    return "\n".join(lines)


def _outcome(call: _ReplayedCall, translate: Callable[[str], str]) -> str:
    ended = call.ended
    if ended is None:
        return "none"
    text = _TOOK.sub("(a while)", translate(ended.content))
    return f"{'ok' if ended.ok else ended.kind}: {text}"


def _of_ends(then: Sequence[Fact], now: Sequence[Fact], translate: Callable[[str], str]) -> Divergence | None:
    """Compare the ends of a turn; one that was cut off came from outside, and is not compared."""
    number = next((fact.turn for fact in then if isinstance(fact, TurnStarted)), 0)
    ends = [next((fact for fact in facts if isinstance(fact, TurnEnded)), None) for facts in (then, now)]
    was, is_now = ends
    if was is None or (was.status != "ok" and (is_now is None or is_now.kind == "cancelled")):
        return None
    told = [
        "no end" if end is None else f"{end.status} {end.kind}: {change(end.answer)}".replace(" :", ":")
        for end, change in ((was, str), (is_now, translate))
    ]
    return Divergence(number, "answer", *told) if told[0] != told[1] else None
