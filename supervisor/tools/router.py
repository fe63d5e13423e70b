"""The way of one tool call: judged by policy, approved by a person where policy says so, run by a worker, one outcome.

Rule: a tool that fails is an outcome with a kind, never an exception. What `judge` and `request_approval` return is
journaled by their caller before `run`, and what `run` returns before anybody sees it; what is decided while a call
that changes something runs is recorded through its `CallContext`.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from supervisor.config.profiles import Profile
from supervisor.display.escape import one_line
from supervisor.errors import WorkerError, WorkerUnavailable
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Source, effective
from supervisor.journal.passages import RECALL
from supervisor.pool.pools import Pools
from supervisor.rules.judge_effects import Verdict
from supervisor.rules.rule import Rule, quoted
from supervisor.tools import call_policy, outcomes
from supervisor.tools.approval import ApprovalDecision, Approvals, Approve
from supervisor.tools.availability import ToolAvailability, no_answer
from supervisor.tools.call_context import CallContext
from supervisor.tools.catalog import Offer, offers
from supervisor.tools.change_attempt import raw_arguments
from supervisor.tools.check_run import CheckRunner
from supervisor.tools.content_intake import ContentIntake, ContentRefused
from supervisor.tools.content_words import described
from supervisor.tools.execution import Execution
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.exfiltration.flow_ledger import fetched_address, flow_budget
from supervisor.tools.exfiltration.origins import explained, words_of
from supervisor.tools.exfiltration.sources import (
    WrittenBy,
    no_author,
    shows_files,
    sources_of,
    sources_of_attachments,
    subject_of,
)
from supervisor.tools.instruction_files import InstructionFiles
from supervisor.tools.services import ChangeServices
from supervisor.tools.session_recall import recall
from supervisor.tools.session_rules import SessionRules
from supervisor.tools.skills import READ_SKILL, Skills
from workers.catalog import CATEGORIES
from workers.wire.frames import FrameTooLarge
from workers.wire.messages import Done

_UNSEEN: Final = SeenText()
"""What a person, or a script, was shown: policy does not ask whether they may know what they write."""

_NO_SERVICES: Final = ChangeServices()

_UNAVAILABLE: Final = (
    "{tool} is not available: its workers {why}. Nothing was done. Do without it, and tell the person, who can repair "
    "it."
)


_NAME: Final = 200
"""Characters of a file's name that an error repeats."""


class Router:
    """Runs the calls of one session.

    Args:
        profile: decides what exists and what may run.
        pools: the workers on the profile's root.
        approve: asks a person; None where nobody is there, and then what would be asked is denied.
        session: its id.
        services: rules, and where old content is kept.
    """

    def __init__(
        self,
        profile: Profile,
        pools: Pools,
        approve: Approve | None,
        session: str = "",
        services: ChangeServices = _NO_SERVICES,
    ) -> None:
        self.offers: Mapping[str, Offer] = offers(profile.tools)
        self.availability = ToolAvailability(self.offers, pools)
        self.rules = SessionRules(session, profile, services, pools.root)
        escalation = profile.view == "machine" if services.escalation == "machine" else services.escalation
        self.approvals = Approvals(
            approve, escalation=escalation, root=profile.root, plans=lambda: self.rules.mode == "plan"
        )
        self.execution = Execution(pools, self.approvals, self.rules)
        self.asks_about_programs = self.approvals.attended
        """Whether somebody is there who knows what a program that is not listed is for."""
        self.given: Callable[[str], CallEnded | None] = lambda _call: None
        """Returns the outcome of a call that is not run."""
        self._profile = profile
        self._services = services
        self.pools = pools
        self._budget = flow_budget(services.web)
        self.intake = ContentIntake(pools, services.contents, session)
        """Takes images and documents into the session."""
        self.instructions = InstructionFiles(profile, pools, services.own_instructions, services.agent_files)
        skills = Skills(services.own_instructions, pools, self.instructions)
        self.instructions.others = skills.listings if READ_SKILL in self.offers else None
        self._supervised: Mapping[str, Callable[[CallStarted], Awaitable[CallEnded]]]
        self._supervised = {RECALL: partial(recall, services.journal, session), READ_SKILL: skills.read}
        self._foreign_root = pools.root.is_foreign or not profile.trusted
        self._seen = _UNSEEN
        """What the model has been shown, also since its calls were judged."""
        self.checks = CheckRunner(profile, pools, services, self.offers, self._refused, self._with_sources)
        self._unconfined: dict[str, ApprovalDecision] = {}
        """Calls that a person lets run unconfined, until they are started."""
        self._unmade: dict[str, CallDecided] = {}
        """What was decided of those that are run again, until they are started."""
        self._unrunnable: dict[str, WorkerUnavailable] = {}
        """Calls that nobody was asked about, because no worker could run them, and why."""

    def warm(self) -> None:
        """Start the first worker of the categories that nearly every session needs, while the person still types."""
        for category in dict.fromkeys(offer.category for offer in self.offers.values()):
            if category and CATEGORIES[category].warm:
                self.pools.pool(category)

    def judge(
        self,
        turn: int,
        call: str,
        tool: str,
        arguments: str,
        seen: SeenText = _UNSEEN,
        before: Sequence[CallStarted] = (),
    ) -> CallStarted:
        """Return the call with the policy's decision.

        Args:
            turn: the turn's number.
            call: the call's id.
            tool: what the model wrote.
            arguments: raw JSON; the worker will decode it.
            seen: what the model has been shown.
            before: the calls of the same reply that were judged before.
        """
        self._seen = seen
        verdict, flow = call_policy.judge(self._profile, tool, arguments, seen), None
        address = fetched_address(tool, arguments) if seen.has_private and verdict.decision != "deny" else None
        if address is not None:
            ledger = seen.flow.after(before)
            flow = ledger.price(address, self._budget)
            if flow is not None and flow.over:
                why = "; ".join(filter(None, (ledger.asks(flow, self._budget), seen.uploads.told())))
                verdict = Verdict("ask", why if verdict.decision == "allow" else f"{verdict.reason}; {why}")
            elif verdict.decision == "ask" and (told := ledger.told()):
                verdict = Verdict("ask", f"{verdict.reason}; {told}")
        verdict = self._judge_program(turn, tool, arguments, verdict)
        if verdict.decision == "ask" and (seen.foreign or fetched_address(tool, arguments) is not None):
            verdict = verdict._replace(reason=explained(verdict.reason, seen, words_of(arguments)))
        effect = tool in self.offers and self.offers[tool].effect
        return CallStarted(
            turn, call, tool, arguments, effect, verdict.decision, verdict.reason, rehearsed=effect, flow=flow
        )

    def judge_again(self, call: CallStarted, decided: CallDecided, seen: SeenText) -> CallStarted:
        """Return a call whose commit did not take place, to be run again as it was decided; a denial by now holds."""
        self._seen = seen
        judged = call_policy.judge(self._profile, call.tool, effective(call), _UNSEEN)
        if judged.decision == "deny":
            return msgspec.structs.replace(call, decision="deny", reason=judged.reason)
        self._unmade[call.call] = decided
        return call

    def _judge_program(self, turn: int, tool: str, arguments: str, verdict: Verdict) -> Verdict:
        """Return a verdict that asks about a program that is not listed, where somebody is there."""
        started = CallStarted(turn, "", tool, arguments, True, "allow", "")
        if verdict.decision == "deny" or not self.asks_about_programs or not (program := self.rules.unlisted(started)):
            return verdict
        why = f"{quoted(program)} is not among the `programs` of [shell]"
        return Verdict("ask", why if verdict.decision == "allow" else f"{verdict.reason}; {why}")

    async def request_approval(self, call: CallStarted) -> CallStarted:
        """Return a call that policy asks about, as a text, with the person's answer.

        Arguments that the person changed are judged again, and a denial holds. Where policy would ask about them, it
        is answered: this person has seen exactly this text. Nobody is asked about a call that no worker could run.
        """
        if (why := self._no_worker(call.tool)) is not None:
            self._unrunnable[call.call] = why
            return call
        program = self.rules.unlisted(call) if self.asks_about_programs else ""
        rule = Rule("allow", programs=(program,), kinds=(), starts=True) if program else None
        reason = "; ".join(filter(None, (call.reason, self._view(call))))
        approval = await self.approvals.request(call, "call", reason, rule=rule)
        if approval is None:
            return msgspec.structs.replace(call, approved=False)
        if approval.unconfined:
            self._unconfined[call.call] = approval
        made, _problems = self.rules.make(call, approval, rule) if approval.approved else ({}, [])
        decided = msgspec.structs.replace(
            call,
            approved=approval.approved,
            remark=approval.remark,
            decided_by=approval.by,
            edited=approval.edited,
            **made,
        )
        if approval.edited is None:
            return decided
        judged = call_policy.judge(self._profile, call.tool, approval.edited, _UNSEEN)
        if judged.decision == "deny":
            return msgspec.structs.replace(decided, decision="deny", reason=judged.reason)
        return decided

    def _view(self, call: CallStarted) -> str:
        """Return what a command would see, in words for the question about its text."""
        if call.tool not in self.offers:
            return ""
        category = self.offers[call.tool].category
        return call_policy.view(self._profile, call.tool, lambda: self.pools.pool(category).workers.view)

    async def run(self, call: CallStarted, context: CallContext) -> CallEnded:
        """Run one call as it was decided. Cancelling kills the worker that runs it."""
        if (refused := self._refused(call)) is not None:
            return refused
        if (given := self.given(call.call)) is not None:
            return given
        offer = self.offers[call.tool]
        if offer.effect:
            unconfined, before = self._unconfined.pop(call.call, None), self._unmade.pop(call.call, None)
            ended = await self.execution.run(
                call, offer, context, unconfined=unconfined, seen=self._seen, before=before
            )
            return await self._with_sources(call, ended)
        began = time.monotonic()
        if not offer.category:
            ended = await self._supervised[call.tool](call)
            return msgspec.structs.replace(ended, seconds=round(time.monotonic() - began, 6))
        content: str | bytes = ""
        try:
            answer = await self.pools.pool(offer.category).call(
                offer.name, raw_arguments(call), effect=False, output=lambda text: context.output(call.call, text)
            )
            if isinstance(answer, Done) and answer.data:
                content, ended = answer.data, await self._with_content(call, answer)
            else:
                content = answer.content if isinstance(answer, Done) else ""
                ended = outcomes.worker_answered(call, answer)
        except (WorkerError, FrameTooLarge) as error:
            ended = no_answer(call, error, self.pools, offer.category)
        ended = outcomes.with_persons_part(call, await self._with_sources(call, ended, content))
        return msgspec.structs.replace(ended, seconds=round(time.monotonic() - began, 6))

    async def _with_content(self, call: CallStarted, answer: Done) -> CallEnded:
        """Return the end of a call that has found an image or a document."""
        name = subject_of(call.tool, effective(call))
        try:
            content = await self.intake.take(answer.data, answer.content, name)
        except ContentRefused as refused:
            return outcomes.failed(call, refused.kind, f'"{one_line(name, _NAME)}": {refused}')
        return CallEnded(call.turn, call.call, call.tool, True, described(content), contents=(content,))

    async def _with_sources(self, call: CallStarted, ended: CallEnded, content: str | bytes = "") -> CallEnded:
        """Return the end of a call with who wrote what it says; `content` is that as the worker said it."""
        author = await self._author() if shows_files(call.tool) else no_author
        sources = sources_of(effective(call), ended, author, foreign_root=self._foreign_root, content=content)
        return msgspec.structs.replace(ended, sources=sources)

    async def told_sources(self, text: str, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        """Return the sources of a prompt's parts, with what agents wrote of the files that were sent along."""
        root, foreign = f"file://{self._profile.root}/", self._foreign_root
        return sources_of_attachments(text, sources, await self._author(), root, foreign_root=foreign)

    async def _author(self) -> WrittenBy:
        files = self._services.agent_files
        return no_author if files is None else await files.author_in(self._profile.root)

    def _refused(self, call: CallStarted) -> CallEnded | None:
        """Return the end of a call that is not to run; None for one that is."""
        if call.tool not in self.offers:
            if why := dict(self._profile.unavailable_tools).get(call.tool):
                return outcomes.failed(call, "worker_unavailable", _UNAVAILABLE.format(tool=call.tool, why=why))
            message = f"There is no tool {call.tool[:80]!r} here. Use: {', '.join(self.offers)}."
            return outcomes.failed(call, "unknown_tool", message)
        if (unrunnable := self._unrunnable.pop(call.call, None)) is not None:
            return outcomes.unavailable(call, unrunnable)
        if not outcomes.allowed(call):
            attended = self.approvals.attended
            return outcomes.denied(call, call.reason, call.remark, final=call.decision == "deny", asked=attended)
        return None

    def _no_worker(self, tool: str) -> WorkerUnavailable | None:
        """Return why no worker could run a tool now; None where one could."""
        if (gone := self.pools.root.gone) is not None:
            return gone
        why = self.availability.why(tool)
        return WorkerUnavailable(why) if why else None
