"""Outcomes of tool calls, as facts and as models, scripts and people read them. Pure.

Rule: every call has exactly one outcome, with a kind where it failed. That of a call that was cut off says no more than
is known: it has changed nothing unless its commit was recorded.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from supervisor.display.changes import counted, overview
from supervisor.display.differences import differences
from supervisor.display.escape import written_out
from supervisor.display.proposed_effects import presented
from supervisor.errors import OUT_OF_MEMORY, WorkerDied, WorkerError
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, ToolsChanged
from supervisor.pool.open_root import RootGone
from supervisor.rules.judge_effects import Verdict, count_changed
from supervisor.rules.modes import PLANNED
from workers.changes.effects import Effects
from workers.wire import messages
from workers.wire.messages import ErrorKind

UNKNOWN: Final = "It may have had its effect or not: look before you repeat it."

_HIDDEN: Final = "not seen by people (tags, selectors), written out as \\U and eight digits:"

_PRINTED: Final = ("stdout", "stderr", "exit_code", "signal")
COULD: Final = "What it was refused, a person could let it do: on the real system, where somebody is there to be asked."

ANOTHER: Final = Verdict(
    "ask", "its commit was cut off before anything had changed; run again, it comes to this instead"
)
UNMADE: Final = "Its commit was cut off, and nothing was changed. Run again, it came to something else. Do it again."
"""What is said where that is so, and nobody is there to be asked."""

_UNTOUCHED: Final = "Nothing of it was committed."
_NOT_STARTED: Final = "The turn ended before this call was started. Nothing was done."

_PLANNED: Final = 20_000
"""Characters of what a call in plan mode would have changed that are told."""

_EDIT_SHOWN: Final = 500
"""Characters of a person's edit that the model is told."""


def allowed(call: CallStarted) -> bool:
    """Say whether policy, or the person it asked, lets the call start."""
    return call.decision == "allow" or (call.decision == "ask" and call.approved is True)


def awaits_answer(call: CallStarted) -> bool:
    """Say whether a person is to be asked whether the call may start, and has not been yet."""
    return call.decision == "ask" and call.approved is None


def failed(call: CallStarted, kind: ErrorKind, message: str, **details: str | int) -> CallEnded:
    """Return the end of a call that did not run, or failed."""
    return CallEnded(call.turn, call.call, call.tool, False, message, kind=kind, details=details)


def not_started(turn: int, call: str, tool: str) -> CallEnded:
    """Return the end of a call that was wanted, and neither judged nor started."""
    return CallEnded(turn, call, tool, False, _NOT_STARTED, kind="cancelled")


def denied(
    call: CallStarted, reason: str, remark: str, *, final: bool, asked: bool, rehearsed: bool = False
) -> CallEnded:
    """Return the end of a call that policy, or the person it asked, did not let pass.

    Args:
        call: that was judged.
        reason: the policy's.
        remark: the person's.
        final: whether policy denied it itself.
        asked: whether somebody was there to be asked.
        rehearsed: whether it had been rehearsed.
    """
    was_not = f"{call.tool} was {'only rehearsed, and nothing was changed' if rehearsed else 'not run'}: {reason}"
    if final:
        return with_persons_part(call, failed(call, "denied", f"{was_not}. Do without it."))
    if remark:
        return failed(call, "denied", f"{was_not}, and the person declined and said: {remark}")
    who = "the person declined" if asked else "nobody is here to be asked"
    return failed(call, "denied", f"{was_not}, and {who}. Do without it.")


def with_output(ended: CallEnded, result: str) -> CallEnded:
    """Return the end of a command that was rehearsed in vain, with what it printed; `result` is that of its worker."""
    try:
        found = msgspec.json.decode(result or "{}")
    except (msgspec.DecodeError, RecursionError):
        found = None
    printed = found if isinstance(found, dict) else {}
    details = {key: value for key, value in printed.items() if key in _PRINTED and isinstance(value, str | int)}
    return msgspec.structs.replace(ended, details={**ended.details, **details})


def planned(call: CallStarted, printed: str, effects: Effects) -> CallEnded:
    """Return the end of a call in plan mode: what its rehearsal has `printed`, JSON, and what it would change."""
    would = presented(effects)
    lines = [text for _tone, text in (*overview(would, short=True)[1:], *differences(would, short=True))]
    left, shown = _PLANNED, len(lines)
    for at, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            shown = at
            break
    words = [f"Nothing was changed: {PLANNED}. {call.tool} would have changed {counted(would)}:", *lines[:shown]]
    words += [f"... {len(lines) - shown} more lines"] * (len(lines) > shown)
    if not count_changed(effects):
        words = []
    if not printed:
        return with_persons_part(call, failed(call, "denied", "\n".join(words)))
    return with_notes(worker_answered(call, messages.Done(0, printed, "json")), *["\n".join(words)] * bool(words))


def abandoned(call: CallStarted, why: str, otherwise: ErrorKind, decided: CallDecided | None = None) -> CallEnded:
    """Return the end of a call that nobody saw end.

    Args:
        call: as it was started.
        why: what cut it off.
        otherwise: the kind where it has changed nothing.
        decided: what was decided last about its effects, if anything was.
    """
    if not allowed(call):
        return failed(call, "cancelled", _NOT_STARTED)
    if not call.effect:
        return with_persons_part(call, failed(call, otherwise, why))
    if call.rehearsed and decided is not None and is_final(decided):
        final, asked = decided.decision == "deny", decided.approved is not None
        return denied(call, decided.reason, decided.remark, final=final, asked=asked, rehearsed=True)
    if call.rehearsed and (decided is None or not decided.committed):
        return with_persons_part(call, failed(call, "cancelled", f"{why} {_UNTOUCHED}"))
    return with_persons_part(call, failed(call, "outcome_unknown", f"{why} {UNKNOWN}"))


def is_final(decided: CallDecided) -> bool:
    """Say whether it was decided that nothing is changed; else the call continues with another attempt."""
    return not decided.committed and decided.approved is not True  # a yes that changed nothing continues: edited, ...


def is_repeatable(call: CallStarted, decided: CallDecided) -> bool:
    """Say whether a call whose commit did not take place may be rehearsed again: the root is all that it touches.

    What had a network, or ran outside of its sandbox, may have done something there.
    """
    effects = decided.effects
    if effects is None or effects.traffic or decided.network or decided.unconfined or decided.unrehearsed:
        return False
    return call.rehearsed and decided.committed


def has_effects(decided: CallDecided, effects: Effects) -> bool:
    """Say whether these are the effects that were decided about, but for the times of what is new."""
    was = decided.effects
    return was is not None and (was.digest, was.exit_code) == (effects.digest, effects.exit_code)


def unavailable(call: CallStarted, error: WorkerError) -> CallEnded:
    """Return the end of a call that there is no worker for."""
    if isinstance(error, RootGone):
        return failed(call, "not_found", f"{error} Nothing was done.")
    return failed(call, "worker_unavailable", f"{error} Nothing was done; try again later.")


def worker_died(call: CallStarted, death: WorkerDied, timeout: float, *, committing: bool) -> CallEnded:
    """Return the end of a call whose worker ended, after `timeout` seconds where that is why."""
    fate = UNKNOWN if committing else _UNTOUCHED if call.effect else ""
    after = f" {fate}" if fate else ""
    if death.ordered == "timeout":
        message = f"{call.tool} did not end within {timeout:g} s.{after} Ask for less at once."
        return failed(call, "timeout", message)
    if death.ordered == "resource_limit":
        what = "memory" if OUT_OF_MEMORY in death.reason else "processor time"
        message = f"{call.tool} used up its {what}.{after} Ask for less at once."
        return failed(call, "resource_limit", message)
    if committing:
        return failed(call, "outcome_unknown", f"The worker that ran {call.tool} {death.reason}.{after}")
    again = "" if call.effect else ", and so did the one after it"
    message = f"The worker that ran {call.tool} {death.reason}{again}.{after} Try something else."
    return failed(call, "worker_crashed", message)


def refused(lacked: Sequence[str]) -> str:
    """Return what a command was refused, as a clause."""
    return f"by the look of it, it was refused: {', '.join(lacked)}"


def availability_notice(fact: ToolsChanged) -> str:
    """Return the sentence for models and people."""
    tools = ", ".join(fact.tools)
    if not fact.because:
        return f"These tools work again and can be called: {tools}."
    return f"These tools cannot be called for now and will be restored automatically: {tools}. {fact.because}"


def interrupted_commit(staging: Sequence[str], kept: str) -> list[str]:
    """Return what is to be known of a commit that was cut off, in sentences.

    Args:
        staging: names in the root of directories in which commits are made ready.
        kept: the name of what was kept for undo, if anything was.
    """
    words = [
        f'What it had replaced by then may be in "{name}" in the root, which the next change there renames or removes.'
        for name in staging
    ]
    return [*words, "A person can take back what it did, with undo."] if kept else words


def worker_answered(call: CallStarted, answer: messages.Done | messages.Failed) -> CallEnded:
    """Return the end of a call that a worker has answered."""
    if isinstance(answer, messages.Failed):
        details = {
            key: written_out(value)[0] if isinstance(value, str) else value for key, value in answer.details.items()
        }
        return failed(call, answer.kind, written_out(answer.message)[0], **details)
    content, hidden = written_out(answer.content, json=answer.form == "json")
    if answer.form == "json" and not _is_json(content):
        return failed(call, "internal", f"The worker's answer to {call.tool} is not JSON. Try again.")
    ended = CallEnded(call.turn, call.call, call.tool, True, content, answer.form, written_out(answer.note)[0])
    return with_notes(ended, f"{_HIDDEN} {hidden} character{'' if hidden == 1 else 's'}") if hidden else ended


def with_persons_part(call: CallStarted, ended: CallEnded) -> CallEnded:
    """Return the end of a call with what the model must know of the person's part in it: the edit and the remark."""
    words = []
    if call.edited is not None and not _same(call.edited, call.arguments):
        cut = f" (cut at {_EDIT_SHOWN} characters)" if len(call.edited) > _EDIT_SHOWN else ""
        words.append(f"The person changed the arguments to: {call.edited[:_EDIT_SHOWN]}{cut}")
    if call.remark:
        words.append(remark_sentence(call.remark))
    return with_notes(ended, *words)


def remark_sentence(remark: str) -> str:
    """Return what a person remarked, as the model is told it."""
    return f"The person said: {remark.strip()}"


def with_notes(ended: CallEnded, *words: str) -> CallEnded:
    """Return the end of a call with more said about it."""
    if not words:
        return ended
    if ended.ok:
        return msgspec.structs.replace(ended, note="\n".join([ended.note, *words] if ended.note else words))
    return msgspec.structs.replace(ended, content="\n".join([ended.content, *words]))


def as_error(ended: CallEnded) -> dict[str, Any]:
    """Return the error object that models, scripts and people are shown for a call that failed."""
    details = {name: value for name, value in ended.details.items() if name not in ("kind", "message")}
    return {"kind": ended.kind, "message": ended.content, **details}


def as_answer(ended: CallEnded, where: Path = Path()) -> dict[str, Any]:
    """Return a call's outcome as scripts read it; `where` is the directory of contents."""
    if not ended.ok:
        return {"ok": False, "error": as_error(ended)}
    content: Any = msgspec.Raw(ended.content.encode()) if ended.form == "json" else ended.content
    kept = [{"path": str(where / each.digest), **msgspec.to_builtins(each)} for each in ended.contents]
    named = ("note", ended.note), ("contents", kept)
    return {"ok": True, "content": content} | {name: value for name, value in named if value}


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _same(one: str, other: str) -> bool:
    """Say whether two texts are the same JSON, however they are laid out."""
    try:
        first, second = (msgspec.json.encode(msgspec.json.decode(text or "{}")) for text in (one, other))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return first == second
