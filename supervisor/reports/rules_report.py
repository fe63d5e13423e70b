"""Reports for `strongroom rules`: the rules there are, and what others would have decided about recorded commands.

Rule: rules and journal are only read, except by `revoke`. A command whose effects the journal holds only in part is
never judged as if they were all.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, CallEnded, Compacted, ContentsRefused, FaultsAllowed,
InstructionsRead, ModeChanged, ModelRetried, ModelSwitched, OptionChosen, Replied, ReplyCut, Rewound, RuleRevoked,
SessionChanged, SessionDeleted, SessionOpened, ToolsChanged, TurnEnded, TurnQuestioned, TurnResumed, TurnStarted,
TurnSuspended, Unreadable.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from supervisor.config.config_reader import rules_of
from supervisor.config.settings import Settings
from supervisor.display.command_text import text_of
from supervisor.display.escape import one_line
from supervisor.errors import ConfigError
from supervisor.journal.facts import CallDecided, CallStarted, RuleRevoked, effective
from supervisor.journal.index import utc
from supervisor.journal.journal import JournalEntry, open_journal
from supervisor.rules.judge_effects import judge_effects
from supervisor.rules.rule import Rule
from supervisor.rules.rule_sentence import sentence
from supervisor.rules.shipped import SHIPPED, or_shipped
from supervisor.rules.started_programs import started_by
from supervisor.rules.store import RuleStore, StoredRule
from supervisor.tools.call_policy import COMMANDS
from supervisor.tools.recorded_effects import JUDGED, Judgement, of_recorded
from workers.changes.effects import Effects

_OUTDATED: Final = "COUNTS NO LONGER, an older version made it; revoke it, and approve again what you want:  "
_WIDTH: Final = 60
"""Characters of a command in a row."""

_SHIPPED: Final = "shipped"
"""In place of an id."""

Then = Literal["allowed", "yes", "no", "edited", "nobody", "denied"]
"""How it was decided: by a rule, or because nothing changed; by a person; because there was nobody; by a rule."""

_THEN: Final[Mapping[Then, str]] = MappingProxyType(
    {
        "allowed": "allowed without a question",
        "yes": "a person said yes",
        "no": "a person said no",
        "edited": "a person changed the command",
        "nobody": "no client was there to ask",
        "denied": "denied without a question",
    }
)


class ListedRule(msgspec.Struct, frozen=True):
    """One rule as a listing shows it."""

    id: str
    """Of a configured rule its number, of a person's what `revoke` takes."""
    decision: str
    covers: str
    expired: bool
    rule: Rule
    standing: StoredRule | None = None
    """None for a configured one."""
    outdated: bool = False
    """An older version made it, and it counts no longer."""


class RecordedCommand(msgspec.Struct, frozen=True):
    """One command of the past, and what the rules would have decided."""

    at: str
    session: str
    call: str
    tool: str
    command: str
    then: Then
    now: Judgement
    reason: str
    """Why it would be decided so."""


class Trial(msgspec.Struct, frozen=True):
    """What rules would have decided about the commands in the journal."""

    rules: tuple[str, ...]
    commands: tuple[RecordedCommand, ...]
    counts: dict[Then, dict[Judgement, int]]
    """How it was decided -> what would be decided -> commands."""
    unrehearsed: int = 0
    """Commands of which no effects are known; rules say nothing about them."""


def listing(settings: Settings, today: dt.date) -> list[ListedRule]:
    """Return all rules, the configured ones first, in the order in which they are tried.

    Raises:
        ConfigError: the file of the rules that people made cannot be used.
    """
    configured = [(str(number), rule, None) for number, rule in enumerate(settings.config.rules, 1)]
    made = [(each.id, each.rule, each) for each in RuleStore(settings.rules_file).listing()]
    shipped = [(_SHIPPED, rule, None) for rule in SHIPPED]
    return [
        ListedRule(
            *(name, rule.decision, sentence(rule), not rule.counts(today), rule, standing),
            outdated=standing is not None and standing.outdated,
        )
        for name, rule, standing in (*configured, *made, *shipped)
    ]


def as_text(rules: Sequence[ListedRule], settings: Settings) -> str:
    """Return the listing for people."""
    configured = [each for each in rules if each.standing is None and each.id != _SHIPPED]
    shipped = [each for each in rules if each.id == _SHIPPED]
    made = [each for each in rules if each.standing is not None]
    lines = []
    if configured:
        lines += [f"In {one_line(str(settings.config_file), 4096)}; the first one that matches decides:"]
        lines += [_line(each) for each in configured]
    if made:
        lines += [*([""] if lines else []), "Made when approving; `strongroom rules revoke ID` removes one:"]
        lines += [line for each in made for line in (_line(each), *_origin(each.standing))]
    lines += [*([""] if lines else []), "Comes with Strongroom, for what no other decides:", *map(_line, shipped)]
    return "\n".join(lines)


def _line(listed: ListedRule) -> str:
    state = "EXPIRED  " if listed.expired else _OUTDATED if listed.outdated else ""
    return f"  {listed.id:4}  {state}{listed.covers}"


def _origin(made: StoredRule | None) -> Iterator[str]:
    if made is not None:
        yield f"        in {one_line(made.root, 4096)}, profile {one_line(made.profile, _WIDTH)}"
        by = f" by {one_line(made.by, _WIDTH)}" if made.by else ""
        how = f"in the call {one_line(made.call, _WIDTH)}" if made.call else "from the instructions"
        where = f"{how} of the session {made.session}"
        yield f"        made {made.made}{by}, {where}{', and for it alone' if made.scope == 'session' else ''}"


def revoke(settings: Settings, wanted: str) -> str:
    """Take back a rule that a person made; return it as a sentence.

    Raises:
        ConfigError: there is none with that id, or the file cannot be used.
        JournalError: it is revoked, and that could not be recorded.
    """
    if wanted == _SHIPPED:
        raise ConfigError(
            f"Rule {wanted} cannot be revoked. To be asked about what git ignores, write in {settings.config_file}: "
            '[[rules]] with decision = "ask" and ignored = true.'
        )
    if wanted in map(str, range(1, len(settings.config.rules) + 1)):
        raise ConfigError(f"Rule {wanted} stands in {settings.config_file}: remove it there.")
    gone = RuleStore(settings.rules_file).revoke(wanted)
    if settings.journal.exists():
        with open_journal(settings.journal) as journal:
            journal.append(gone.session, RuleRevoked(gone.id, gone.call, "rules revoke"))
    return sentence(gone.rule)


def try_rules(settings: Settings, file: Path) -> Trial:
    """Return what the rules in `file` would have decided about all commands in the journal.

    Raises:
        ConfigError: the file holds no rules, or wrong ones.
        JournalError: the journal cannot be read.
    """
    rules = rules_of(file)
    if not settings.journal.exists():
        return trial(rules, ())
    with open_journal(settings.journal) as journal:
        return trial(rules, journal.everything())


def trial(rules: Sequence[Rule], entries: Iterable[JournalEntry]) -> Trial:
    """Judge every command whose effects were decided about."""
    commands: list[RecordedCommand] = []
    unrehearsed = 0
    started: dict[tuple[str, str], CallStarted] = {}
    for entry in entries:
        match entry.fact:
            case CallStarted() as fact:
                started[entry.session, fact.call] = fact
            case CallDecided() as fact:
                call = started.get((entry.session, fact.call))
                then = _how_decided(fact)
                if call is None or call.tool not in COMMANDS or then is None:
                    continue
                if fact.effects is None:
                    unrehearsed += 1
                else:
                    commands.append(_judged(rules, entry, call, then, fact.effects, network=fact.network))
            case _:
                continue
    tally = Counter((each.then, each.now) for each in commands)
    counts = {
        then: {now: tally[then, now] for now in JUDGED} for then in _THEN if any(tally[then, now] for now in JUDGED)
    }
    return Trial(tuple(map(sentence, rules)), tuple(commands), counts, unrehearsed)


def _how_decided(fact: CallDecided) -> Then | None:
    """Return how it was decided; None where it was not the effects that were."""
    if fact.decision != "ask":
        return "allowed" if fact.decision == "allow" else "denied"
    if fact.edited is not None:
        return "edited"
    if fact.approved:
        return "yes" if fact.committed and not fact.unconfined else None
    return "nobody" if fact.approved is None else "no"


def _judged(
    rules: Sequence[Rule], entry: JournalEntry, call: CallStarted, then: Then, effects: Effects, *, network: bool
) -> RecordedCommand:
    arguments = effective(call)
    day = dt.datetime.fromtimestamp(entry.at).astimezone().date()
    recorded = msgspec.structs.replace(effects, left_out={})
    started = started_by(call.tool, arguments, network=network)
    verdict = or_shipped(judge_effects(rules, started, recorded, day), started, recorded, day)
    now, reason = of_recorded(verdict, effects)
    text = text_of(call.tool, arguments)
    return RecordedCommand(utc(entry.at), entry.session, call.call, call.tool, text, then, now, reason)


def trial_text(found: Trial) -> str:
    """Return a trial for people: a row a command, and a table of counts."""
    if not found.commands and not found.unrehearsed:
        return "The journal holds no command whose effects were decided about."
    lines = []
    for each in found.commands:
        lines.append(f"{each.at}  {each.session}  {one_line(each.call, _WIDTH)}  {one_line(each.command, _WIDTH)}")
        lines.append(f"    {_THEN[each.then]}; the rules: {each.now}, {each.reason}")
    width = max(map(len, _THEN.values()))
    if found.commands:
        lines += ["", " " * width + "".join(f"{now:>9}" for now in JUDGED)]
        lines += [
            f"{_THEN[then]:{width}}" + "".join(f"{row[now]:9}" for now in JUDGED)
            for then in _THEN
            if (row := found.counts.get(then))
        ]
    if found.unrehearsed:
        lines.append(f"{found.unrehearsed} more had no rehearsal: rules say nothing about them.")
    return "\n".join(lines)
