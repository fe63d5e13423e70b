"""`/compact`: keep the older part of a conversation in short, now, or before the next request of a turn that runs.

Rule: what comes of it is told to every client, as any compaction is; whoever asked for it is told a sentence.
"""

from collections.abc import Sequence
from typing import Final

from supervisor.acp import extensions
from supervisor.agent.compaction_words import compaction_notice
from supervisor.daemon.method import MethodContext, method
from supervisor.daemon.protocol.connection import ClientRequest
from supervisor.daemon.responses import invalid
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.journal.facts import Compacted

_LATER: Final = "A turn runs: the conversation is compacted before its next request to the model."
_NOTHING: Final = "There is nothing that could be left out."
_LONGEST: Final = 4000
"""Characters of what shall be kept in mind."""


@method(extensions.COMPACT_METHOD, extensions.CompactParams, extensions.CompactResult, starts=True)
async def _compact(
    context: MethodContext, request: ClientRequest, params: extensions.CompactParams
) -> extensions.CompactResult:
    session = context.session(params.session_id)
    if session.session.model is None:
        raise invalid("This session has no model, only calls.")
    session.subscribers.join(request.client)
    request.cancel = session.cut
    fact, said = await compacted_now(session, params.remark, request.client.name)
    return extensions.CompactResult(session_id=session.id, compacted=fact is not None, said=said)


async def compaction_lines(session: OpenSession, words: Sequence[str], by: str) -> list[str]:
    """Compact a session's conversation; return what its summary says, for everybody is told the rest.

    Raises:
        JournalError: it cannot be recorded.
        RequestError: a call runs, or the daemon stops.
    """
    fact, said = await compacted_now(session, " ".join(words), by)
    if fact is None:
        return [said]
    return ["Its summary:", "", fact.summary] if fact.summary else ["It has no summary."]


async def compacted_now(session: OpenSession, remark: str, by: str) -> tuple[Compacted | None, str]:
    """Compact a session's conversation; return the fact, if there is one, and a sentence about it.

    Raises:
        JournalError: it cannot be recorded.
        RequestError: a call runs, or the daemon stops.
    """
    if len(remark) > _LONGEST:
        raise invalid(f"What shall be kept in mind has more than {_LONGEST} characters.")
    conversation = session.session.conversation
    if conversation.running:
        conversation.compact_later(by, remark.strip())
        return None, _LATER
    if not session.waiting:
        session.refuse_if_busy()
    with session.calls.running("The compaction was cut off."):
        fact = await conversation.compact(by, remark.strip())
    return fact, _NOTHING if fact is None else compaction_notice(fact)
