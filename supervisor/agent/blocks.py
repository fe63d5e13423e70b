"""Blocks of a conversation that say what came of a call, and what a person did meanwhile.

Rule: pure; the words are for the model.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from supervisor.agent.answer_schema import refusal_block
from supervisor.agent.models.model import CONTENTS, Block
from supervisor.journal.facts import CallEnded, CallStarted, Replied, TurnEnded, effective
from supervisor.journal.kept_content import KeptContent
from supervisor.rules.modes import MODES
from supervisor.rules.rule import Mode
from supervisor.tools.outcomes import as_error
from workers.wire.media_types import DOCUMENT

_OURS: Final = "interrupted refusal internal context_full too_many_steps invalid_answer check_failed"
AFTER_A_REPLY: Final = frozenset(_OURS.split())
"""Errors of a turn that are not a failed request."""
_UNDONE: Final = 20
"""Names of undone changes that the model is told."""


def mode_block(mode: Mode) -> Block:
    """Return what the model is told of the mode that holds from here on."""
    return {"type": "text", "text": f"(From here on the session is in the mode {mode!r}. {MODES[mode]})"}


def gone_block(tools: Sequence[str]) -> Block:
    """Return what the model is told again of tools that it cannot have for now."""
    return {"type": "text", "text": f"(For now these tools are not there: {', '.join(tools)}.)"}


def undone_block(names: Sequence[str]) -> Block:
    """Return what the model is told of changes that the person has undone, of files with these names."""
    listed = ", ".join(names[:_UNDONE]) + (f" and {len(names) - _UNDONE} more" if len(names) > _UNDONE else "")
    return {"type": "text", "text": f"(Meanwhile the person undid earlier changes, of: {listed}.)"}


def typed_block(started: CallStarted, ended: CallEnded) -> Block:
    """Return what the model is told of a call that the person typed; nothing that it printed can end the JSON."""
    try:
        msgspec.json.decode(ended.content)
        content = msgspec.Raw(ended.content.encode())
    except (msgspec.DecodeError, RecursionError):
        content = msgspec.Raw(msgspec.json.encode(ended.content))
    call: dict[str, Any] = {"tool": started.tool, "arguments": effective(started)}
    call |= {"result": content} if ended.ok else {"error": as_error(ended)}
    call |= {"note": ended.note} if ended.note else {}
    said = "(Meanwhile the person ran this themselves, with your tools; it is no request, but tells you what they saw: "
    return {"type": "text", "text": f"{said}{msgspec.json.encode(call).decode()})"}


def ending_block(end: TurnEnded, cut: str) -> Block:
    """Return what stands for the answer of a turn that got none: what people have read of it, marked as `cut`."""
    why = end.kind or end.status
    return cut_block(cut, why) if cut else {"type": "text", "text": f"(This turn ended without an answer: {why}.)"}


def cut_block(cut: str, why: str) -> Block:
    """Return what people have read of a reply of which no more has come."""
    said = f"{cut.rstrip()}\n\n(This reply was cut here: {why}. So far the person has read it.)"
    return {"type": "text", "text": said}


def again_block() -> Block:
    """Return what is said after it where the turn goes on: its answer is what comes then, and nothing before."""
    return {"type": "text", "text": "(The turn goes on. Give this reply anew, and whole.)"}


def result_block(fact: CallEnded, notice: str = "") -> Block:
    """Return the block of a call's outcome, with a notice of ours where there is one."""
    said: str | list[Block] = f"{result_text(fact)}\n\n[{notice}]" if notice else result_text(fact)
    if fact.contents:
        said = [{"type": "text", "text": said}, *map(content_block, fact.contents)]
    block: Block = {"type": "tool_result", "tool_use_id": fact.call, "content": said}
    return block if fact.ok else block | {"is_error": True}


def told_after(reply: Replied) -> list[Block]:
    """Return what the model is told of a reply of its own that does not end the turn; nothing where it was taken."""
    if not reply.check_failed:
        return [refusal_block(reply.refused)] if reply.refused else []
    printed = msgspec.json.encode(reply.check_failed).decode()
    said = "Before this turn can end, a check of the person's has to pass, and it failed; nothing of it was kept:"
    return [
        {"type": "text", "text": f"({said} {printed} Mend what is wrong, or say why it cannot be, and answer again.)"}
    ]


def content_block(content: KeptContent) -> Block:
    """Return the block that names an image or a document; what it stands for is put in by a request."""
    source = {"type": "content", "digest": content.digest, "media_type": content.media_type}
    return {"type": "document" if content.media_type == DOCUMENT else "image", "source": source}


def holds_contents(blocks: Iterable[Block]) -> bool:
    """Say whether a message's blocks name images or documents, also within the results of tools."""
    return any(
        block["type"] in CONTENTS or (isinstance(within := block.get("content"), list) and holds_contents(within))
        for block in blocks
    )


def result_text(fact: CallEnded) -> str:
    """Return a call's outcome as the model reads it: the result, or the error object."""
    if not fact.ok:
        return msgspec.json.encode({"error": as_error(fact)}).decode()
    text = fact.content if fact.content.strip() else "(empty)"
    return f"{text}\n\n[{fact.note}]" if fact.note else text
