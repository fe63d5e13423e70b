"""Evidence for the claims of an answer: what bears each out, or why nothing does. One row a kind of claim.

Rule: pure, and in favour of the one who claims: a claim is unproven where the journal knows better, or knows of nothing
that could bear it out; never where something happened that nobody has seen.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from supervisor.agent.receipts.claim_forms import ClaimKind
from supervisor.agent.receipts.claims import Claim, claims_in
from supervisor.agent.receipts.known_work import KnownCheck, KnownCommand, KnownWork, is_same
from supervisor.journal.receipt import CheckKind, Unproven

_TOLD: Final = 5
"""Claims of an answer that are told."""
_READS_MANY: Final = re.compile(
    r"[*?\[]|\b(?:xargs|find|rg|ag|tree|ls)\b|\bgrep\b|\bgit (?:diff|show|log|blame|grep)\b|\bcat\b.* .* "
)
_KINDS_OF_COMMANDS: Final = re.compile(r"\b(?:install|commit|push|deploy|migrat|merge|setup)")
_FETCHES: Final = re.compile(
    r"\b(?:curl|wget|http|gh|lynx|git (?:clone|fetch|pull)|pip|npm|cargo|go get)\b|fetch|\burl"
)
_NONE: Final[Mapping[CheckKind, str]] = MappingProxyType(
    {
        "tests": "no test was run",
        "build": "nothing was built",
        "lint": "no linter was run",
        "types": "no type check was run",
        "own": "no check was run",
    }
)


def unproven(answer: str, known: KnownWork) -> tuple[Unproven, ...]:
    """Return the claims of an answer that the journal does not bear out, each clause once."""
    found: dict[str, str] = {}
    for claim in claims_in(answer):
        why = _EVIDENCE[claim.kind](claim, known)
        if why and claim.text not in found and why not in found.values():
            found[claim.text] = why
        if len(found) == _TOLD:
            break
    return tuple(Unproven(text, why) for text, why in found.items())


# --- checks -----------------------------------------------------------------------------------------------------------


def _tests_pass(claim: Claim, known: KnownWork) -> str:
    checks = list(_checks(known, "tests"))
    if why := _passed(claim, known, "tests", checks):
        last = checks[-1].run if checks else None
        partly = last is not None and last.result == "failed" and set(claim.counts) == {last.passed}
        return "" if partly and not claim.whole else why
    counted = [check.run for check in checks if check.run.passed is not None]
    sums = {each.passed for each in counted} | {(each.passed or 0) + (each.failed or 0) for each in counted}
    sums.add(sum(each.passed or 0 for each in counted))
    if counted and len(counted) == len(checks) and any(number not in sums for number in claim.counts):
        return f"the run counted {counted[-1].passed}"
    return ""


def _passed(claim: Claim, known: KnownWork, kind: CheckKind, checks: list[KnownCheck]) -> str:
    """Return why no check of a kind bears out that it passes; "" where one does."""
    if not checks:
        return _NONE[kind]
    proving = [check for check in checks if not _doubt(check, known)]
    if not proving:
        return _doubt(checks[-1], known)
    if claim.whole:
        bad = [check for check in checks if check.turn == known.turn and check.run.result in ("failed", "empty")]
        if bad:
            return _doubt(bad[-1], known)
    return ""


def _doubt(check: KnownCheck, known: KnownWork) -> str:
    """Return why a check does not show that all is well now; "" where it does."""
    run = check.run
    match run.result:
        case "failed":
            return f"{run.runner} failed"
        case "empty":
            return f"{run.runner} ran no test"
        case "unknown":
            return f"the result of {run.runner} is not known: {run.why}"
    if not known.fresh(check):
        return f"something was changed after {run.runner} passed"
    if scope := known.elsewhere(check):
        return f"{run.runner} ran in {scope}, and what was changed lies elsewhere"
    return ""


def _checks(known: KnownWork, *kinds: CheckKind) -> Iterator[KnownCheck]:
    yield from sorted((each for each in known.checks.values() if each.run.kind in kinds), key=lambda each: each.order)


def _tests_ran(_claim: Claim, known: KnownWork) -> str:
    if any(_checks(known, "tests")) or any("test" in each.text for each in known.commands):
        return ""
    return _NONE["tests"]


def _check_passes(kind: CheckKind) -> Callable[[Claim, KnownWork], str]:
    def evidence(claim: Claim, known: KnownWork) -> str:
        words = claim.text.casefold()
        checks = list(_checks(known, kind))
        named = [each for each in checks if each.run.runner.casefold() in words]
        if not checks and _ran_well(known, kind):
            return ""
        return _passed(claim, known, kind, named or checks)

    return evidence


def _builds(claim: Claim, known: KnownWork) -> str:
    """Look also at tests and type checks: they build what they check."""
    why = _passed(claim, known, "build", list(_checks(known, "build")))
    others = [each for each in _checks(known, "tests", "types") if not _doubt(each, known)]
    return "" if not why or others or _ran_well(known, "build") else why


def _ran_well(known: KnownWork, word: str) -> bool:
    """Say whether a command that is known to nobody else has such a word, and ended well."""
    return not known.checks and any(word in each.text.casefold() and each.exit_code == 0 for each in known.commands)


# --- changes ----------------------------------------------------------------------------------------------------------


def _edited(claim: Claim, known: KnownWork) -> str:
    if known.unseen or known.unlisted:
        return ""
    doubts = [_edit_doubt(name, known) for name in claim.names]
    if all(doubts) and any(not _edit_doubt(name, known) for name in claim.besides):
        return ""  # it speaks of these for the sake of the others
    return next(filter(None, doubts), "")


def _edit_doubt(name: str, known: KnownWork) -> str:
    """Return why nothing shows that a file was changed; "" where something does."""
    if known.matching(name) is not None or any(is_same(path, name) for path in known.wrote):
        return ""
    if refused := next((why for path, why in known.refused.items() if is_same(path, name)), ""):
        return f"the change of {name} was not made: {refused}"
    if any(is_same(path, name) for path in known.standing):
        return f"what was changed in {name} was taken back"
    return f"{name} was not changed"


def _changed_something(_claim: Claim, known: KnownWork) -> str:
    if known.unseen or known.unlisted or any(each.stands for each in known.standing.values()) or known.wrote:
        return ""
    if known.standing:
        return "what was changed was taken back"
    if known.refused:
        return f"nothing was changed: {next(iter(known.refused.values()))}"
    return "nothing was changed"


# --- commands and texts -----------------------------------------------------------------------------------------------


def _command_worked(claim: Claim, known: KnownWork) -> str:
    if not known.commands:
        return "no command was run"
    meant = _meant(claim, known)
    if not meant or any(each.exit_code == 0 for each in meant):
        return ""
    code = meant[-1].exit_code
    return "the command was cut off" if code is None else f"the command ended with exit code {code}"


def _meant(claim: Claim, known: KnownWork) -> list[KnownCommand]:
    """Return the commands that a claim may be about: the last that it names, or all of the turn."""
    words = [" ".join(name.casefold().split()) for name in claim.names] or _KINDS_OF_COMMANDS.findall(
        claim.text.casefold()
    )
    for word in words:
        named = [each for each in known.commands if word in " ".join(each.text.casefold().split())]
        if named:
            return named[-1:]
    return [] if claim.names else [each for each in known.commands if each.turn == known.turn]


def _read(claim: Claim, known: KnownWork) -> str:
    if any(_READS_MANY.search(each.text) for each in known.commands):
        return ""
    for name in claim.names:
        last = posixpath.basename(name.rstrip("/")).casefold()
        if not any(last in each for each in known.seen):
            return f"{name} was not read"
    return ""


def _fetched(claim: Claim, known: KnownWork) -> str:
    hosts = [each.casefold().split("/")[2].split(":")[0] for each in claim.names]
    for host in hosts:
        if not any(host in each for each in known.seen):
            return f"nothing was fetched from {host}"
    if hosts or any(_FETCHES.search(each) for each in known.seen):
        return ""
    return "nothing was fetched"


def _verified(_claim: Claim, known: KnownWork) -> str:
    if known.looks or known.unseen or any(not _doubt(each, known) for each in known.checks.values()):
        return ""
    return "nothing was run or read after the last change" if known.changes else "nothing was run or read"


_EVIDENCE: Final[Mapping[ClaimKind, Callable[[Claim, KnownWork], str]]] = MappingProxyType(
    {
        ClaimKind.TESTS_PASS: _tests_pass,
        ClaimKind.TESTS_RAN: _tests_ran,
        ClaimKind.BUILDS: _builds,
        ClaimKind.LINT_CLEAN: _check_passes("lint"),
        ClaimKind.TYPES_CLEAN: _check_passes("types"),
        ClaimKind.EDITED: _edited,
        ClaimKind.CHANGED_SOMETHING: _changed_something,
        ClaimKind.COMMAND_WORKED: _command_worked,
        ClaimKind.READ: _read,
        ClaimKind.FETCHED: _fetched,
        ClaimKind.VERIFIED: _verified,
    }
)
