"""One attempt to run a call that may change something: what is known and decided of it so far, and its commit.

Rule: what is decided is a fact before it is done: an undo pack is on the disk before `CallDecided(committed=True)`, and
that before the worker is told.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import trio

from supervisor.display.escape import name
from supervisor.display.proposed_effects import traffic
from supervisor.errors import KeptError, WorkerDied, WorkerError, WorkerUnavailable
from supervisor.journal.agent_files import marks_of
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, effective
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pools import Pools
from supervisor.rules.judge_effects import Verdict
from supervisor.rules.rule import Rule
from supervisor.rules.rule_sentence import sentence
from supervisor.system.off_loop import off_loop
from supervisor.tools import outcomes
from supervisor.tools.approval import ApprovalDecision
from supervisor.tools.call_context import CallContext
from supervisor.tools.catalog import Offer
from supervisor.tools.commit_fate import settle, settled
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.installs import WantedNetwork
from supervisor.tools.recorded_effects import recorded_effects
from supervisor.tools.session_rules import SessionRules
from supervisor.undo.packs import PackStore
from supervisor.undo.promise import PackBudget, breaks_promise, losses
from workers.changes.effects import UPLOAD, Effects, is_folded
from workers.tree.drafts import drafts_in
from workers.wire import messages

_SYNCED_AT_ONCE: Final = 2**20
"""Bytes of old content that are synced in the event loop's thread."""

_UNDECIDED: Final = Verdict("ask", "")


@dataclass
class ChangeAttempt:
    """A call as it is run now. It is tried again with other arguments, with a network, or as it was."""

    call: CallStarted
    offer: Offer
    context: CallContext
    seen: SeenText
    """What the model has been shown."""
    undoes: tuple[str, ...] = ()
    """The calls that this one takes back."""
    network: bool = False
    """A person lets it use the profile's network."""
    upload: int = UPLOAD
    """Bytes that it may send there."""
    before: CallDecided | None = None
    """What was decided of a commit that did not take place: it holds where the effects are the same."""
    written_by_person: bool = False
    """A person has written exactly these arguments, and what they come to says no more."""
    lost: int = 0
    """Rehearsals that were lost with their worker."""
    planned: bool = False
    """It was rehearsed in plan mode, by a worker that can commit nothing."""
    waited_s: float = 0.0
    """Seconds that people have taken for their answers."""
    effects: Effects | None = None
    """What its rehearsal would change; None before it, and where there is none."""
    verdict: Verdict = _UNDECIDED
    cannot_undo: str = ""
    """Why it could not be undone, or not all of it: a clause."""
    approval: ApprovalDecision | None = None
    """The person's answer, if one was asked."""
    rule: Rule | None = None
    """What a yes for longer than once allows, where that was offered."""
    lacked: tuple[str, ...] = ()
    """What its rehearsal was refused by the sandbox, in words."""
    wanted: WantedNetwork | None = None
    """Of a known install, once it was decided whether it may have that."""

    @property
    def places(self) -> tuple[str, ...]:
        """Hosts and ports that it may reach, if not all that the profile names."""
        return self.wanted.places if self.wanted is not None and self.network else ()

    @property
    def own_words(self) -> bool:
        """Whether of what it printed the package manager's own words are shown alone: it is an install, and went well.

        Of one that failed, and of whatever runs beside one, all is shown, and is foreign text.
        """
        went_well = self.effects is not None and not self.effects.exit_code
        install = self.wanted.install if self.wanted is not None else None
        return self.network and went_well and install is not None and install.alone and not install.builds

    @property
    def undo_note(self) -> str:
        """Return what the model is told of `cannot_undo`: no names, where packages have chosen them."""
        what, _names, _why = self.cannot_undo.partition(":")
        return f"Note: {what}; the person was shown what." if self.own_words else f"Note: {self.cannot_undo}."

    @property
    def foreign(self) -> bool:
        """Whether foreign text was read before, and nothing but the model stands behind the call."""
        return bool(self.seen.foreign) and not self.undoes and not self.written_by_person

    def show(self, text: str) -> None:
        self.context.output(self.call.call, text)

    def decide_as_before(self, cannot_undo: str) -> bool:
        """Let what was decided of a commit that did not take place count, if that was of the same effects; say so.

        Where it was not, the next thing is to ask; `cannot_undo` is why these could not be undone.
        """
        before, effects, self.cannot_undo = self.before, self.effects, cannot_undo
        assert before is not None
        assert effects is not None
        if not outcomes.has_effects(before, effects) or before.cannot_undo != cannot_undo:
            self.before, self.verdict = None, outcomes.ANOTHER
            return False
        self.verdict = Verdict(before.decision, before.reason)
        if before.approved is not None:
            self.approval = ApprovalDecision(before.approved, remark=before.remark, by=before.decided_by)
        return True

    def again(
        self, *, lost: bool = False, network: bool = False, upload: int = 0, before: CallDecided | None = None
    ) -> "ChangeAttempt":
        """Return the next attempt: after a lost rehearsal, or a commit that did not take place, or with the network."""
        return replace(
            self,
            call=msgspec.structs.replace(self.call, again=True),
            network=self.network or network,
            upload=upload or self.upload,
            lost=self.lost + lost,
            before=before,
            effects=None,
            cannot_undo="",
            verdict=_UNDECIDED,
            approval=None,
            rule=None,
        )

    async def record(self, *, committed: bool, **more: Any) -> CallDecided:
        """Make durable what was decided, and return it; `more` are other fields of `CallDecided`.

        Raises:
            JournalError: it cannot be, and so must not be done.
        """
        approval, rule, effects = self.approval, self.verdict.rule, self.effects
        recorded = await off_loop(len(effects.changes), recorded_effects, effects) if effects is not None else None
        unlisted = effects.changes if committed and effects is not None and recorded is not effects else ()
        decided = CallDecided(
            self.call.turn,
            self.call.call,
            self.verdict.decision,
            self.verdict.reason,
            committed,
            recorded,
            approval.approved if approval is not None else None,
            approval.remark if approval is not None else "",
            approval.by if approval is not None else "",
            covered_by=sentence(rule) if rule is not None else self.before.covered_by if self.before else "",
            network=self.network,
            undoes=next(iter(self.undoes), ""),
            undoes_also=self.undoes[1:],
            cannot_undo=self.cannot_undo,
            files=await off_loop(len(unlisted), marks_of, unlisted),
            unlisted=effects is not None and not is_folded(effects),
            foreign=bool(self.seen.foreign),
            own_words=committed and self.own_words,
        )
        decided = msgspec.structs.replace(decided, **more)
        await self.context.record(decided)
        return decided

    def network_notes(self) -> list[str]:
        """Return what is said of its connections."""
        told = () if self.effects is None else self.effects.traffic
        return [f"network: {traffic(told)}"] if told else []

    async def commit(self, proposal: PendingProposal, pools: Pools, rules: SessionRules) -> "ChangeAttempt | CallEnded":
        """Keep what a commit replaces, record the decision, and commit; return the call's end.

        Return the next attempt where the rehearsal was lost and nothing has changed.
        """
        call, packs = self.call, rules.services.packs
        if pools.root.gone is not None:
            return self.again(lost=True)  # the next attempt reports it
        try:
            kept = await _keep(proposal, packs, rules.session, call)
        except WorkerError:
            return self.again(lost=True)
        except KeptError as error:
            await proposal.discard()
            return outcomes.failed(call, error.kind, f"{error} Nothing was changed.")
        if isinstance(kept, messages.Failed):
            await proposal.discard()
            return outcomes.worker_answered(call, kept)
        pack, left_out = kept
        notes = [self.undo_note] if self.cannot_undo else []
        notes += self.network_notes()
        if self.approval is not None and self.approval.remark:
            notes.append(outcomes.remark_sentence(self.approval.remark))
        more, problems = rules.make(call, self.approval, self.rule)
        said = None if proposal.said is None or self.own_words else outcomes.worker_answered(call, proposal.said)
        end = outcomes.with_notes(said, *notes, *problems) if said is not None and said.ok else None
        decided = await self.record(
            committed=True,
            number=proposal.number,
            kept=pack,
            not_kept=left_out if self.cannot_undo else 0,
            end=end,
            **more,
        )
        if packs is not None and pack:
            packs.decided(pack)
        again = self.before is None and outcomes.is_repeatable(call, decided)
        ended = await _commit(call, proposal, pools, pack, said, again=again)
        if packs is not None and pack and (ended is None or ended.kind in ("conflict", "worker_crashed")):
            packs.drop(pack)
        if ended is None:
            return self.again(lost=True, before=decided if outcomes.is_repeatable(call, decided) else None)
        if self.own_words:  # a name that a script has tried may be a sentence
            ended = msgspec.structs.replace(ended, note="")
        return outcomes.with_notes(ended, *notes, *problems) if ended.ok else ended


def raw_arguments(call: CallStarted) -> bytes:
    """Return a call's arguments as a worker is sent them."""
    return (effective(call) or "{}").encode("utf-8", "surrogatepass")


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
    lost = await off_loop(len(proposal.effects.changes), _lost, proposal.effects, store.budget)
    with store.begin(session, call.call) as pack:

        def take(part: messages.Original | messages.Piece) -> None:
            if isinstance(part, messages.Original) and breaks_promise(part, lost):
                raise KeptError("conflict", f"The old content of {name(part.path)} cannot be read any more.")
            pack.add(part)

        answer = await proposal.keep(*store.budget, take)
        if isinstance(answer, messages.Failed):
            return answer
        if answer.size <= _SYNCED_AT_ONCE:
            return pack.finish(), answer.left_out
        return await trio.to_thread.run_sync(pack.finish), answer.left_out


def _lost(effects: Effects, budget: PackBudget) -> set[str]:
    return {loss.path for loss in losses(effects, budget)}


async def _commit(
    call: CallStarted, proposal: PendingProposal, pools: Pools, pack: str, said: CallEnded | None, *, again: bool
) -> CallEnded | None:
    """Commit, and return how the call ended; None where nothing of it was made, and it is to be rehearsed again.

    Args:
        call: whose commit it is.
        proposal: that is committed.
        pools: the workers on its root.
        pack: what was kept of it; empty if nothing was.
        said: the call's end if all of it is made; None where that is not known.
        again: whether it is where its worker died. One that has seen nothing of the decision is lost in any case.
    """
    try:
        return outcomes.worker_answered(call, await proposal.decide(commit=True))
    except WorkerUnavailable:
        return None
    except WorkerDied as death:
        ended = outcomes.worker_died(call, death, proposal.decide_timeout, committing=True)
        found = await settle(pools, proposal.number, proposal.effects, pack) if await proposal.is_gone() else None
        if again and found is not None and found.is_undone and not death.ordered:
            return None
        left: list[str] = []
        with suppress(OSError):
            left = drafts_in(pools.root.place)
        unknown = outcomes.with_notes(ended, *outcomes.interrupted_commit(left, pack))
        why = f"The worker that ran {call.tool} {death.reason} while it committed."
        return settled(call, why, unknown, found, said)
