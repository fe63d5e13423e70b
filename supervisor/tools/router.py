"""A tool call's way: judged by the policy, reviewed by a person where it says so, run by a worker, one outcome.

Rule: a tool that fails is an outcome with a kind, never an exception. The router records nothing: its caller
journals what `judge` and `review` return before `run`, and what `run` returns before anybody sees it.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from supervisor.errors import WorkerDied, WorkerUnavailable
from supervisor.facts import CallEnded, CallStarted, effective
from supervisor.pool.pools import Pools
from supervisor.profiles import Profile
from supervisor.tools.catalog import Offer, offers
from supervisor.tools.policy import judge
from supervisor.tools.seen import Seen
from workers import wire
from workers.wire import ErrorKind

_NOTHING: Final = Seen()
"""What a person, or a script, was shown: policy does not ask whether they may know what they write."""

_EDIT_SHOWN: Final = 500
"""Characters of a person's edit that the model is told."""


@dataclass(frozen=True)
class Review:
    """A person's answer about one call."""

    approved: bool
    edited: str | None = None
    """The arguments as the person changed them, raw JSON. Counts only with `approved`."""
    remark: str = ""
    """Why, in the person's words, for the model."""
    by: str = ""
    """Who decided, for example "console"."""


Approve = Callable[[CallStarted], Awaitable[Review]]
"""Asks a person about one call."""

UNKNOWN: Final = "It may have had its effect or not: look before you repeat it."

Output = Callable[[str], None]
"""Is given what a tool prints while it runs."""


class Router:
    """Runs the calls of one session.

    Args:
        profile: decides what exists and what may run.
        pools: the workers on the profile's root.
        approve: asks a person; None where nobody is there, and then what would be asked is denied.
    """

    def __init__(self, profile: Profile, pools: Pools, approve: Approve | None) -> None:
        self.offers: Mapping[str, Offer] = offers(profile.tools)
        self._profile = profile
        self._pools = pools
        self._approve = approve

    def judge(self, turn: int, call: str, tool: str, arguments: str, seen: Seen = _NOTHING) -> CallStarted:
        """Return the call with the policy's decision.

        Args:
            turn: the turn's number.
            call: the call's id.
            tool: what the model wrote.
            arguments: raw JSON; the worker will decode it.
            seen: what the model has been shown.
        """
        decision = judge(self._profile, tool, arguments, seen)
        effect = tool in self.offers and self.offers[tool].effect
        return CallStarted(turn, call, tool, arguments, effect, decision.decision, decision.reason)

    async def review(self, call: CallStarted) -> CallStarted:
        """Return a call that policy asks about with the person's answer.

        Arguments that the person changed are judged anew, and a denial holds. Where policy would ask about them, it
        is answered: this person has seen exactly this text.
        """
        if self._approve is None:
            return msgspec.structs.replace(call, approved=False)
        review = await self._approve(call)
        reviewed = msgspec.structs.replace(
            call, approved=review.approved, remark=review.remark.strip(), decided_by=review.by
        )
        if not review.approved or review.edited is None or review.edited == call.arguments:
            return reviewed
        anew = judge(self._profile, call.tool, review.edited, _NOTHING)
        if anew.decision == "deny":
            reviewed = msgspec.structs.replace(reviewed, decision="deny", reason=anew.reason)
        return msgspec.structs.replace(reviewed, edited=review.edited)

    async def run(self, call: CallStarted, output: Output | None = None) -> CallEnded:
        """Run one call as it was decided. Cancelling kills the worker that runs it."""
        offer = self.offers.get(call.tool)
        if offer is None:
            message = f"There is no tool {call.tool[:80]!r} here. Use: {', '.join(self.offers)}."
            return failed(call, "unknown_tool", message)
        if not allowed(call):
            return self._denied(call)
        began = time.monotonic()
        ended = await self._call(call, offer, output)
        return told(call, msgspec.structs.replace(ended, seconds=round(time.monotonic() - began, 6)))

    def _denied(self, call: CallStarted) -> CallEnded:
        was_not = f"{call.tool} was not run: {call.reason}"
        if call.decision == "deny":
            return told(call, failed(call, "denied", f"{was_not}. Do without it."))
        if call.remark:
            return failed(call, "denied", f"{was_not}, and the person declined and said: {call.remark}")
        who = "nobody is here to be asked" if self._approve is None else "the person declined"
        return failed(call, "denied", f"{was_not}, and {who}. Do without it.")

    async def _call(self, call: CallStarted, offer: Offer, output: Output | None) -> CallEnded:
        raw = (effective(call) or "{}").encode("utf-8", "surrogatepass")
        try:
            pool = self._pools.pool(offer.category)
            answer = await pool.call(offer.name, raw, effect=offer.effect, output=output)
        except wire.FrameTooLarge as error:
            message = f"The arguments have {error.size} bytes; at most {wire.FRAME_LIMIT} can be sent. Send less."
            return failed(call, "too_large", message, size=error.size)
        except WorkerUnavailable as error:
            return failed(call, "worker_unavailable", f"{error} Nothing was done; try again later.")
        except WorkerDied as death:
            return _died(call, death, pool.spec.call_timeout)
        if isinstance(answer, wire.Failed):
            return failed(call, answer.kind, answer.message, **answer.details)
        if answer.form == "json" and not _is_json(answer.content):
            return failed(call, "internal", f"The worker's answer to {call.tool} is not JSON. Try again.")
        return CallEnded(call.turn, call.call, call.tool, True, answer.content, answer.form, answer.note)


def allowed(call: CallStarted) -> bool:
    """Say whether policy, or the person it asked, lets the call run."""
    return call.decision == "allow" or (call.decision == "ask" and call.approved is True)


def failed(call: CallStarted, kind: ErrorKind, message: str, **details: str | int) -> CallEnded:
    """Return the end of a call that did not run, or did not end well."""
    return CallEnded(call.turn, call.call, call.tool, False, message, kind=kind, details=details)


def abandoned(call: CallStarted, why: str, otherwise: ErrorKind) -> CallEnded:
    """Return the end of a call that nobody saw end: `otherwise`, or unknown where it may have had an effect."""
    if not allowed(call):
        return failed(call, "cancelled", "The turn ended before this call was started. Nothing was done.")
    if call.effect:
        return told(call, failed(call, "outcome_unknown", f"{why} {UNKNOWN}"))
    return told(call, failed(call, otherwise, why))


def told(call: CallStarted, ended: CallEnded) -> CallEnded:
    """Return the end of a call with what the model must know of the person's part in it: the edit and the remark."""
    words = []
    if call.edited is not None and not _same(call.edited, call.arguments):
        cut = f" (cut at {_EDIT_SHOWN} characters)" if len(call.edited) > _EDIT_SHOWN else ""
        words.append(f"The person changed the arguments to: {call.edited[:_EDIT_SHOWN]}{cut}")
    if call.remark:
        words.append(f"The person said: {call.remark}")
    if not words:
        return ended
    if ended.ok:
        return msgspec.structs.replace(ended, note="\n".join([ended.note, *words] if ended.note else words))
    return msgspec.structs.replace(ended, content="\n".join([ended.content, *words]))


def as_error(ended: CallEnded) -> dict[str, Any]:
    """Return the error object that models, scripts and people are shown for a call that failed."""
    details = {name: value for name, value in ended.details.items() if name not in ("kind", "message")}
    return {"kind": ended.kind, "message": ended.content, **details}


def as_answer(ended: CallEnded) -> dict[str, Any]:
    """Return a call's outcome as scripts read it."""
    if not ended.ok:
        return {"ok": False, "error": as_error(ended)}
    content: Any = msgspec.Raw(ended.content.encode()) if ended.form == "json" else ended.content
    return {"ok": True, "content": content} | ({"note": ended.note} if ended.note else {})


def _died(call: CallStarted, death: WorkerDied, timeout: float) -> CallEnded:
    unknown = f" {UNKNOWN}" if call.effect else ""
    if death.ordered == "timeout":
        message = f"{call.tool} did not end within {timeout:g} s.{unknown} Ask for less at once."
        return failed(call, "timeout", message)
    if death.ordered == "resource_limit":
        message = f"{call.tool} used up its processor time.{unknown} Ask for less at once."
        return failed(call, "resource_limit", message)
    if call.effect:
        return failed(call, "outcome_unknown", f"The worker that ran {call.tool} {death.reason}.{unknown}")
    message = f"The worker that ran {call.tool} {death.reason}, and so did the one after it. Try something else."
    return failed(call, "worker_crashed", message)


def _same(one: str, other: str) -> bool:
    """Say whether two texts are the same JSON, however they are laid out."""
    try:
        first, second = (msgspec.json.encode(msgspec.json.decode(text or "{}")) for text in (one, other))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return first == second


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
