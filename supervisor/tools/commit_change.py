"""The commit of what was rehearsed and approved: old content kept, the decision recorded, then the worker commits.

Rule: an undo pack is on the disk before `CallDecided(committed=True)`, and that before the worker is told.
"""

from contextlib import suppress
from typing import Final

import trio

from supervisor.errors import KeptError, WorkerDied, WorkerError, WorkerUnavailable
from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.pool.open_root import OpenRoot
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.tools.change_attempt import ChangeAttempt
from supervisor.tools.outcomes import (
    failed,
    interrupted_commit,
    remark_sentence,
    with_notes,
    worker_answered,
    worker_died,
)
from supervisor.tools.services import ChangeServices
from supervisor.tools.session_rules import SessionRules
from supervisor.undo.packs import PackStore
from workers.tree.drafts import drafts_in
from workers.wire import messages

_SYNCED_AT_ONCE: Final = 2**20
"""Bytes of old content that are synced in the event loop's thread."""


async def commit_change(
    attempt: ChangeAttempt,
    proposal: PendingProposal,
    session: str,
    root: OpenRoot,
    rules: SessionRules,
    services: ChangeServices,
) -> ChangeAttempt | CallEnded:
    """Keep what a commit replaces, record the decision, and commit; return the call's end.

    Return the next attempt where the rehearsal was lost and nothing has changed.
    """
    call = attempt.call
    if root.gone is not None:
        return attempt.again(lost=True)  # the next attempt reports it
    try:
        kept = await _keep(proposal, services.packs, session, call)
    except WorkerError:
        return attempt.again(lost=True)
    except KeptError as error:
        await discard(proposal)
        return failed(call, error.kind, f"{error} Nothing was changed.")
    if isinstance(kept, messages.Failed):
        await discard(proposal)
        return worker_answered(call, kept)
    pack, left_out = kept
    notes = [f"{left_out} files were too large to keep: undo cannot restore them"] if left_out else []
    if attempt.approval is not None and attempt.approval.remark:
        notes.append(remark_sentence(attempt.approval.remark))
    more, problems = rules.make(call, attempt.approval, attempt.rule)
    attempt.record(committed=True, kept=pack, not_kept=left_out, **more)
    packs = services.packs if pack else None
    if packs is not None:
        packs.decided(pack)
    ended = await _commit(call, proposal, root, pack)
    if packs is not None and (ended is None or ended.kind == "conflict"):
        packs.drop(pack)
    if ended is None:
        return attempt.again(lost=True)
    return with_notes(ended, *notes, *problems) if ended.ok else ended


async def discard(proposal: PendingProposal) -> None:
    """Let the worker forget what it rehearsed."""
    with suppress(WorkerError):
        await proposal.decide(commit=False)


async def _keep(
    proposal: PendingProposal, store: PackStore | None, session: str, call: CallStarted
) -> tuple[str, int] | messages.Failed:
    """Store what a commit replaces; return the pack's name, and how many files are too large for it.

    Raises:
        KeptError: it cannot be stored.
        WorkerError: the worker has ended; nothing has changed.
    """
    if store is None or not store.keeps or not (proposal.effects.changes or proposal.effects.left_out):
        return "", 0
    with store.begin(session, call.call) as pack:
        answer = await proposal.keep(store.each, store.total, pack.add)
        if isinstance(answer, messages.Failed):
            return answer
        if answer.size <= _SYNCED_AT_ONCE:
            return pack.finish(), answer.left_out
        return await trio.to_thread.run_sync(pack.finish), answer.left_out


async def _commit(call: CallStarted, proposal: PendingProposal, root: OpenRoot, pack: str) -> CallEnded | None:
    """Return how a commit ended; None where its worker has seen nothing of the decision."""
    try:
        return worker_answered(call, await proposal.decide(commit=True))
    except WorkerUnavailable:
        return None
    except WorkerDied as death:
        ended = worker_died(call, death, proposal.decide_timeout, committing=True)
        return with_notes(ended, *interrupted_commit(drafts_in(root.place), pack))
