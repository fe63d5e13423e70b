"""The final answer of a turn: a reply without calls, held against the schema that was asked for."""

from typing import Final

import msgspec

from supervisor.agent.answer_check import checked_answer
from supervisor.agent.answer_schema import TRIES, InvalidAnswer
from supervisor.agent.models.model import Reply
from supervisor.agent.transcript import Transcript
from supervisor.journal.facts import Replied, TurnEnded

_TRUNCATED: Final = "\n\n[truncated: the reply reached its token limit]"


async def final_answer(transcript: Transcript, replied: Replied, reply: Reply) -> tuple[Replied, TurnEnded | None]:
    """Return a reply without calls, and the turn's end with it; None where it has to be given again."""
    started = transcript.open_turn
    if started is None or started.answer_schema is None:
        cut_here = _TRUNCATED if reply.stop_reason == "max_tokens" else ""
        return replied, TurnEnded(replied.turn, "ok", reply.text + cut_here, reply.stop_reason)
    try:
        answer = await checked_answer(started.answer_schema, reply.text)
    except InvalidAnswer as error:
        if transcript.refused + 1 < TRIES:
            return msgspec.structs.replace(replied, refused=str(error)), None
        message = f"The answer is not valid by the schema, also when asked again: {error}."
        return replied, TurnEnded(replied.turn, "error", reply.text, reply.stop_reason, "invalid_answer", message)
    return replied, TurnEnded(replied.turn, "ok", answer, reply.stop_reason)
