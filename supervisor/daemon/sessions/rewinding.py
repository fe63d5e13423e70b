"""The rewinding of an open session: talk and files go back to the end of a turn.

Rule: nothing else happens in the session meanwhile. A turn that is suspended, or was interrupted, is closed first. The
files are looked at before anything is recorded; what others have changed since is left, and named. The conversation is
then read anew from its facts.
"""

from typing import Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.daemon.responses import invalid
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.errors import JournalError, StrongroomError
from supervisor.journal.facts import CallEnded, Rewound
from supervisor.journal.journal import Journal
from supervisor.journal.lineage import inherited
from supervisor.session.taking_back import arguments_of, rewinding
from supervisor.tools.catalog import unoffered
from supervisor.undo.rewind_plan import RewindPlan, rewind_plan
from supervisor.undo.undo_plan import REWIND
from workers.wire import messages

_LOOK_S: Final = 60.0
"""Seconds that a look at the files may take."""


class _Looked(msgspec.Struct, frozen=True):
    """What a worker says of the files."""

    changes: tuple[tuple[str, str], ...] = ()
    total: int = 0
    left: tuple[tuple[str, str], ...] = ()
    left_total: int = 0


async def rewind(
    registry: SessionRegistry, session: OpenSession, turn: int, *, look: bool, by: str
) -> extensions.RewindResult:
    """Go back to the end of a turn; with `look`, only say what that would come to.

    Raises:
        RequestError: something runs, or it was cut off because the daemon stops.
        ConfigError: there is no such turn, or it has not ended.
        StrongroomError: the files cannot be looked at; nothing was done.
        JournalError: it cannot be recorded; nothing was done beyond what is.
    """
    if session.session.model is None:
        raise invalid("This session has no model, only calls.")
    session.refuse_if_busy()
    with session.calls.running("The rewinding was cut off."):
        if not look:
            session.session.conversation.interrupt()
        plan = await registry.reader.run(lambda journal: _planned(registry, journal, session.id, turn))
        looked = await _look(session, plan)
        result = _result(session, plan, looked)
        if look:
            return result
        if not looked.total:
            await registry.resources.writer.append(session.id, Rewound(turn, by=by))
        else:
            ended, _decided = await session.session.undo(rewinding(plan), by=by)
            result = msgspec.structs.replace(result, call=ended.call, **_outcome(ended))
        if result.ok:
            session.subscribers.take(Rewound(turn, by=by))
            await read_again(registry, session)
            said = f"{by or 'Somebody'} went back to the end of turn {turn}."
            session.subscribers.notify([schema.Notice.of(said)])
        return result


def _planned(registry: SessionRegistry, journal: Journal, session: str, turn: int) -> RewindPlan:
    own = journal.of_session(session)
    return rewind_plan(inherited(journal, own), own, turn, registry.resources.packs.holds)


async def _look(session: OpenSession, plan: RewindPlan) -> _Looked:
    """Return what a worker says would be changed and left.

    Raises:
        StrongroomError: it cannot say.
    """
    if not plan.packs:
        return _Looked()
    pool = session.session.pools.pool(unoffered(REWIND).category)
    answer = await pool.call(REWIND, arguments_of(plan, look=True).encode(), effect=False, timeout=_LOOK_S)
    if isinstance(answer, messages.Failed):
        raise StrongroomError(f"The files cannot be looked at, and nothing was done: {answer.message}")
    return msgspec.json.decode(answer.content, type=_Looked)


def _outcome(ended: CallEnded) -> dict[str, object]:
    return {"ok": ended.ok, "kind": ended.kind, "message": ended.content}


def _result(session: OpenSession, plan: RewindPlan, looked: _Looked) -> extensions.RewindResult:
    return extensions.RewindResult(
        session_id=session.id,
        turn=plan.turn,
        turns=plan.turns,
        again=plan.again,
        changes=tuple(extensions.Restored(path=path, what=what) for path, what in looked.changes),
        more=looked.total - len(looked.changes),
        left=tuple(extensions.LeftName(path, why) for path, why in looked.left),
        more_left=looked.left_total - len(looked.left),
        remaining=tuple(extensions.RemainingCall(each.call, each.title, each.why) for each in plan.remaining),
    )


async def read_again(registry: SessionRegistry, session: OpenSession) -> None:
    """Let a session go on with what its facts say now; one that cannot be read is closed.

    Raises:
        JournalError: it cannot be read.
    """
    try:
        earlier, projection = await registry.reader.earlier(session.id, registry.resources.models.facts)
    except JournalError:
        session.closing = True
        registry.forget(session)
        raise
    session.session.read_again(earlier)
    session.subscribers.look_anew(projection)
