"""Methods about the questions of all sessions: what waits for an answer, and an answer from anywhere.

Rule: the first answer counts, whoever gives it; everybody else is told what that was.
"""

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.daemon.method import MethodContext, method
from supervisor.daemon.protocol.connection import ClientRequest, RequestError


@method(extensions.INBOX_METHOD, schema.Object, extensions.InboxResult)
async def _inbox(context: MethodContext, _request: ClientRequest, _params: schema.Object) -> extensions.InboxResult:
    found = [
        extensions.WaitingQuestion(
            id=pending.id,
            title=session.subscribers.title,
            root=session.session.pools.root.path,
            since=pending.asked_at,
            asked=pending.listed(),
            printed=session.subscribers.projection.output_so_far(pending.shown.tool_call_id),
        )
        for session in context.registry.sessions.values()
        for pending in session.subscribers.approvals.values()
        if not pending.answered.is_set()
    ]
    answered = [
        extensions.AnsweredQuestion(id=each.id, approved=each.decision.approved, by=each.decision.by)
        for session in context.registry.sessions.values()
        for each in session.subscribers.answered_approvals
    ]
    return extensions.InboxResult(questions=sorted(found, key=lambda each: each.since), answered=answered)


@method(extensions.ANSWER_METHOD, extensions.AnswerParams, extensions.AnswerResult)
async def _answer(
    context: MethodContext, request: ClientRequest, params: extensions.AnswerParams
) -> extensions.AnswerResult:
    for session in context.registry.sessions.values():
        subscribers = session.subscribers
        for pending in (*subscribers.approvals.values(), *subscribers.answered_approvals):
            if pending.id == params.question:
                counts = pending.take(params.answer, request.client)
                made = pending.decision
                return extensions.AnswerResult(id=pending.id, counts=counts, approved=made.approved, by=made.by)
    raise RequestError(jsonrpc.NOT_FOUND, f"No question {params.question[:80]!r} waits for an answer.", "not_found")
