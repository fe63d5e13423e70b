"""The receipt of a turn: a fold over a session's facts. Pure.

Rule: only what the journal holds counts: what was committed, and what stands of it at the turn's end; an exit code, and
never the words of a command, says whether a check passed. A call that was cut off, or ran outside of the sandbox, is
counted as one whose changes nobody has seen. The tables of claims and runners are imported when a turn has ended or a
command has run: a daemon that starts has no need of them yet, and they take a tenth of its time to start.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, Compacted, ContentsRefused, FaultsAllowed, InstructionsRead,
ModeChanged, ModelRetried, ModelSwitched, OptionChosen, ReplyCut, Rewound, RuleRevoked, SessionDeleted, SessionOpened,
ToolsChanged, TurnEnded, TurnQuestioned, TurnResumed, TurnSuspended, Unreadable.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from supervisor.agent.receipts.known_work import (
    KNOWN,
    KnownCheck,
    KnownCommand,
    KnownWork,
    NetChange,
    is_cache,
    is_prose,
)
from supervisor.display.escape import one_line
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    Replied,
    SessionChanged,
    TurnEnded,
    TurnStarted,
    effective,
)
from supervisor.journal.receipt import ChangedFile, CheckRun, CommandRun, Receipt
from supervisor.tools.check_outcome import check_problem
from supervisor.tools.exfiltration.sources import as_object, lines_by_path
from workers.catalog import find_tool
from workers.changes.effects import Change

if TYPE_CHECKING:
    from supervisor.agent.receipts.run_line import FoundCheck

_COMMANDS: Final = 20
_FILES: Final = 50
"""Commands and files that a receipt lists."""
_COMMAND: Final = 200
"""Characters of a command."""
_CUT_OFF: Final = ("cancelled", "outcome_unknown")
"""Ends of a call that was stopped from outside: a check that ended so says nothing."""
_SEEN: Final = 400
"""Characters of what a call was about that are remembered."""


class ReceiptFold:
    """What the journal knows of a session's work so far."""

    def __init__(self) -> None:
        self.known = KnownWork()
        self._started: dict[str, CallStarted] = {}
        self._decided: dict[str, CallDecided] = {}
        self._commands: list[CommandRun] = []
        self._checks: dict[tuple[str, str], KnownCheck] = {}
        """Of the turn."""
        self._unlisted = self._unseen = 0
        self.own_check: CallEnded | None = None
        """The turn's check, as it ended last."""
        self.failed_checks = self.told_checks = 0
        """How often that failed, and the model was told."""
        self._checked_at = 0
        self._structured = False
        """The answer is to be a JSON document, in which nothing is claimed."""

    def apply(self, fact: Fact) -> None:
        match fact:
            case TurnStarted():
                self.known.turn, self.known.net, self.known.refused = fact.turn, {}, {}
                self._commands, self._checks, self._unlisted, self._unseen = [], {}, 0, 0
                self.own_check, self.failed_checks, self.told_checks = None, 0, 0
                self._structured = fact.answer_schema is not None
                self.known.seen.update(each.name[:_SEEN].casefold() for each in fact.sources)
                self._started.clear()
                self._decided.clear()
            case SessionChanged():
                self.known = KnownWork(turn=self.known.turn)
            case Replied():
                self.told_checks += bool(fact.check_failed)
            case CallStarted():
                self._started[fact.call] = fact
                self._decided.pop(fact.call, None)
            case CallDecided():
                self._decided[fact.call] = fact
            case CallEnded():
                started = self._started.pop(fact.call, None)
                decided = self._decided.pop(fact.call, None)
                if started is not None:
                    self._call(started, decided, fact)
            case _:
                return

    @property
    def changed(self) -> bool:
        """Whether the turn has changed anything but caches, or may have."""
        changed = any(not is_cache(path) for path in self.known.changed_in_turn())
        return changed or bool(self._unlisted or self._unseen)

    @property
    def changed_since_own_check(self) -> bool:
        """Whether anything was changed after the turn's check ended."""
        return self._checked_at != self.known.changes

    def of(self, end: TurnEnded) -> Receipt | None:
        """Return the receipt of the turn that ends so; None where there is nothing to say."""
        from supervisor.agent.receipts.evidence import unproven

        cut = [call for call, decided in self._decided.items() if decided.committed and call in self._started]
        net = {path: self.known.net[path].what for path in self.known.changed_in_turn() if not is_cache(path)}
        left_out = max(0, len(net) - _FILES) + self._unlisted
        claims = unproven(end.answer, self.known) if end.status == "ok" and not self._structured else ()
        did = bool(net or left_out or self._checks)
        passed = [check for check in self.known.checks.values() if check.run.result == "passed"]
        last = max(passed, key=lambda check: check.order, default=None)
        receipt = Receipt(
            tuple(self._commands[-_COMMANDS:]),
            max(0, len(self._commands) - _COMMANDS),
            tuple(self._told(check) for check in self._checks.values()),
            tuple(ChangedFile(path, net[path]) for path in sorted(net)[:_FILES]),
            left_out,
            self._unseen + len(cut),
            None if last is None or not did else last.changes != self.known.changes,
            claims,
        )
        return receipt if receipt != Receipt() else None

    def _told(self, check: KnownCheck) -> CheckRun:
        return msgspec.structs.replace(check.run, changed_since=check.changes != self.known.changes)

    # --- calls ----------------------------------------------------------------------------------------------------

    def _call(self, started: CallStarted, decided: CallDecided | None, ended: CallEnded) -> None:
        row = find_tool(started.tool)
        given = as_object(effective(started))
        runs = row is not None and bool(row.runs)
        subject = str(given.get(row.subject, "")) if row is not None and row.subject else ""
        changes = self._changes(decided, ended)
        told = [each for each in changes if not (runs and (each.ignored or is_cache(each.path)))]
        checks = self._command(started, decided, ended, given) if runs else []
        before = self.known.changes, self.known.code
        if told and not (checks and all(each.runner.kind == "build" for each in checks)):
            self.known.changes += 1
            self.known.code += any(not is_prose(each.path) for each in told)
            self.known.looks = 0
        if started.check and ended.kind not in _CUT_OFF:
            self.own_check, self._checked_at = ended, self.known.changes
            self.failed_checks += bool(check_problem(ended))
            checks = checks or [_unknown_runner(started, ended)]
        for found in checks:
            self._check(started, ended, found, before if found.followed else (self.known.changes, self.known.code))
        if ended.ok and not told and (not runs or not self._commands or self._commands[-1].exit_code == 0):
            self.known.looks += 1
        self._take_names(started, ended, subject, writes=row is not None and row.effect and not runs, same=not changes)

    def _changes(self, decided: CallDecided | None, ended: CallEnded) -> Sequence[Change]:
        """Return what a call has changed, taken into account; of directories nothing is said."""
        if decided is None or not decided.committed:
            return ()
        if ended.kind == "outcome_unknown" or (decided.effects is None and not decided.undoes):
            self._unseen += 1
            self.known.unseen += 1
            self.known.changes, self.known.code = self.known.changes + 1, self.known.code + 1
            return ()
        if not ended.ok or decided.effects is None:
            return ()
        self._unlisted += (left := sum(decided.effects.left_out.values()))
        packages = sum(sum(each.totals.values()) for each in decided.effects.folded)
        self.known.unlisted += max(0, left - packages)  # nobody claims to have edited those
        changes = [each for each in decided.effects.changes if each.what != "times" and not _of_directory(each)]
        for each in changes:
            for net in (self.known.net, self.known.standing):
                first = net.pop(each.path).before if each.path in net else each.before
                net[each.path] = NetChange(first, each.after, each.what)
                if len(net) > KNOWN:
                    self.known.unlisted += 1
                    del net[next(iter(net))]
        return changes

    def _command(
        self, started: CallStarted, decided: CallDecided | None, ended: CallEnded, given: Mapping[str, Any]
    ) -> "Sequence[FoundCheck]":
        """Take note of a command that ran; return what is known of the checks in it."""
        from supervisor.agent.receipts.run_line import checks_of_line

        printed = as_object(ended.content) if ended.ok and ended.form == "json" else ended.details
        exit_code = printed.get("exit_code")
        if exit_code is None and decided is not None and decided.effects is not None and ended.ok:
            exit_code = decided.effects.exit_code
        if exit_code is None and not ended.ok and ended.kind not in ("timeout", "resource_limit", "outcome_unknown"):
            return ()  # it was never run
        code = exit_code if isinstance(exit_code, int) else None
        rest = [str(each) for each in given.get("args") or ()]
        text = " ".join([str(given.get("command", "")), *rest])
        self.known.commands.append(KnownCommand(text[:_SEEN], code, self.known.turn))
        del self.known.commands[:-KNOWN]
        words = [str(given.get("command", "")), *rest]
        found = checks_of_line(words if rest or "args" in given else text, code)
        if not started.typed_by:
            command = one_line(text, _COMMAND)
            self._commands.append(CommandRun(started.call, command, code, bool(found) or started.check))
        return found

    def _check(self, started: CallStarted, ended: CallEnded, found: "FoundCheck", at: tuple[int, int]) -> None:
        from supervisor.agent.receipts.runners import Counts, counts_in

        printed = as_object(ended.content) if ended.ok and ended.form == "json" else ended.details
        text = "\n".join(str(printed.get(name, "")) for name in ("stdout", "stderr"))
        counts = counts_in(found.runner, text) if found.alone else Counts()
        result, why = found.result, found.why
        if result == "passed" and counts.failed:
            result = "failed"
        elif result == "passed" and counts.none_ran and found.runner.kind == "tests":
            result = "empty"
        elif found.among_checks and found.alone and (counts.passed or counts.failed):
            result, why = "failed" if counts.failed else "passed", ""
        if _is_own(found, self.known):
            result, why = "unknown", "what it started was written in this turn"
        run = CheckRun(
            started.call,
            found.runner.name,
            found.runner.kind,
            result,
            why,
            one_line(found.where, _COMMAND),
            one_line(found.only, _COMMAND),
            counts.passed,
            counts.failed,
        )
        key = run.runner, run.where
        order = max((check.order for check in self.known.checks.values()), default=0) + 1
        check, before = KnownCheck(run, self.known.turn, order, *at), self.known.checks.get(key)
        if result != "unknown" or before is None or before.run.result != "passed" or not self.known.fresh(before):
            self.known.checks.pop(key, None)
            self.known.checks[key] = check  # what is not known takes nothing from what is
        if not started.typed_by:
            self._checks.pop(key, None)
            self._checks[key] = check

    def _take_names(self, started: CallStarted, ended: CallEnded, subject: str, *, writes: bool, same: bool) -> None:
        """Remember what a call was about, and what it found; or that it was to change something and did not."""
        if writes and not ended.ok:
            self.known.refused[subject] = "it was denied" if ended.kind == "denied" else f"it failed ({ended.kind})"
        elif writes:
            self.known.refused.pop(subject, None)
            self.known.wrote |= {subject} if same and subject else set()
        if ended.ok and len(self.known.seen) < KNOWN:
            self.known.seen.add(effective(started)[:_SEEN].casefold())
            found = [*(each.name for each in ended.sources), *lines_by_path(ended)]
            self.known.seen.update(each[:_SEEN].casefold() for each in found)


def _unknown_runner(started: CallStarted, ended: CallEnded) -> "FoundCheck":
    """Return the turn's check as one of a runner that nobody knows: its exit code decides."""
    from supervisor.agent.receipts.run_line import FoundCheck
    from supervisor.agent.receipts.runners import Runner

    given = as_object(started.arguments)
    name = " ".join([str(given.get("command", "")), *map(str, given.get("args") or ())])
    runner = Runner(one_line(name, _COMMAND), "own", re.compile(""))
    return FoundCheck(runner, "failed" if check_problem(ended) else "passed")


def _is_own(found: "FoundCheck", known: KnownWork) -> bool:
    """Say whether the script that a check started was written in the turn: its exit code is what the model made it."""
    return any(known.net[path].stands for path in (found.runner.name.removeprefix("./"),) if path in known.net)


def _of_directory(change: Change) -> bool:
    return "dir" in {each.kind for each in (change.before, change.after) if each is not None}
