"""The calls of a recorded session, as another policy would have decided about them: other rules, or another profile.

Rule: nothing runs. Each call is judged as it would be if it came now, by its text, by what the model had been shown
then, and by the effects that were recorded; where only a part of those is, it is never judged as if it were all.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import trio

from supervisor.agent.story_transcript import transcript_of
from supervisor.config.config_reader import read_config
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.display.command_text import text_of
from supervisor.display.escape import one_line
from supervisor.errors import ConfigError, reason
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, effective
from supervisor.replay.recorded_session import recorded_profile, recorded_session
from supervisor.rules.judge_effects import Verdict
from supervisor.rules.rule import Rule
from supervisor.session.earlier_session import EarlierSession
from supervisor.system.safe_files import read_bytes
from supervisor.tools.call_policy import judge
from supervisor.tools.recorded_effects import JUDGED, Judgement, of_recorded
from supervisor.tools.services import ChangeServices
from supervisor.tools.session_rules import SessionRules

if TYPE_CHECKING:
    from supervisor.tools.exfiltration.exposure import SeenText

_LIMIT: Final = 2**20
"""Bytes of a policy's file."""
_WIDTH: Final = 80

Decided = Literal["allow", "yes", "no", "deny"]
"""Without a question, by a person's yes or no (nobody there is no), denied."""


class JudgedCall(msgspec.Struct, frozen=True):
    """One call, how it was decided then, and how it would be now."""

    turn: int
    call: str
    tool: str
    text: str
    then: Decided
    now: Judgement
    reason: str
    """Why it would be decided so."""

    @property
    def differs(self) -> bool:
        """Whether another answer, or a question more or less, would have come of it."""
        return self.now != {"yes": "ask", "no": "ask"}.get(self.then, self.then)


class PolicyTrial(msgspec.Struct, frozen=True):
    """What a policy would have decided about one session."""

    session: str
    profile: str
    calls: tuple[JudgedCall, ...]


def try_policy(settings: Settings, wanted: str, file: Path, profile: str | None = None) -> PolicyTrial:
    """Judge the calls of a session by a configuration in `file`.

    Args:
        settings: where the journal is.
        wanted: the session, as `recorded_session`.
        file: TOML as `config.toml`: its rules and profiles count, and no others.
        profile: another one than the session had.

    Raises:
        ConfigError: no such session, file or profile.
        JournalError: the journal cannot be read.
    """
    earlier = recorded_session(settings, wanted)
    try:
        text = read_bytes(file, _LIMIT).decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"The policy {file} cannot be read: {reason(error)}.") from error
    config = read_config(settings.locations._replace(config_file=file), text)
    there, root = replace(settings, config=config), earlier.opened.context.working_directory
    found = recorded_profile(there, earlier, root, profile)
    return PolicyTrial(earlier.id, found.name, tuple(trio.run(_judged, earlier, found, config.rules)))


async def _judged(earlier: EarlierSession, profile: Profile, rules: Sequence[Rule]) -> list[JudgedCall]:
    session_rules = SessionRules(earlier.id, profile, ChangeServices(rules=rules))
    session_rules.mode = earlier.opened.mode
    transcript, judged = transcript_of(earlier.inherited), list[JudgedCall]()
    starts: dict[str, tuple[CallStarted, SeenText]] = {}
    decided: dict[str, CallDecided] = {}
    for entry in earlier.entries:
        fact = entry.fact
        if isinstance(fact, CallStarted):
            starts[fact.call] = fact, transcript.exposure
        elif isinstance(fact, CallDecided):
            decided[fact.call] = fact
        elif isinstance(fact, CallEnded) and fact.call in starts:
            start, seen = starts[fact.call]
            verdict = judge(profile, start.tool, effective(start), seen)
            judged.append(await _judge_one(session_rules, start, decided.get(fact.call), verdict))
        transcript.apply(fact)
    return judged


async def _judge_one(
    rules: SessionRules, start: CallStarted, decided: CallDecided | None, verdict: Verdict
) -> JudgedCall:
    effects = decided.effects if decided is not None else None
    if verdict.decision != "deny" and effects is not None:
        of_effects = await rules.judge(start, effects, network=decided is not None and decided.network)
        if verdict.decision == "allow" or of_effects.decision == "deny":
            verdict = of_effects
    now, why = of_recorded(verdict, effects)
    text = text_of(start.tool, effective(start))
    return JudgedCall(start.turn, start.call, start.tool, text, _then(start, decided), now, why)


def _then(start: CallStarted, decided: CallDecided | None) -> Decided:
    for each in (decided, start):
        if each is not None and each.decision == "ask":
            return "yes" if each.approved else "no"
        if each is not None and each.decision == "deny":
            return "deny"
    return "allow"


def policy_text(found: PolicyTrial) -> str:
    """Return a trial for people: the calls that would be decided otherwise, and a table of counts."""
    if not found.calls:
        return "The session has no calls."
    lines = []
    for each in filter(lambda call: call.differs, found.calls):
        lines.append(f"turn {each.turn}  {one_line(each.call, _WIDTH)}  {each.tool}  {one_line(each.text, _WIDTH)}")
        lines.append(f"    then: {_THEN[each.then]}; now: {each.now}, {one_line(each.reason, 3 * _WIDTH)}")
    same = sum(not each.differs for each in found.calls)
    told = Counter(each.now for each in found.calls)
    counts = ", ".join(f"{told[now]} {now}" for now in JUDGED if told[now])
    lines.append(
        f"{same} of {len(found.calls)} calls would be decided as they were; in profile {found.profile}: {counts}"
    )
    return "\n".join(lines)


_THEN: Final = {"allow": "allowed", "yes": "a person said yes", "no": "nobody said yes", "deny": "denied"}
