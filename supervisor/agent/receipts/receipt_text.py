"""A receipt in words: one line of what a turn did, and one of each claim that nothing bears out. Pure.

Rule: short, for it stands below every answer: what is as it should be takes a word, and what is not says so.
"""

from collections.abc import Iterator
from typing import Final

from supervisor.display.escape import name, visible
from supervisor.journal.receipt import CheckRun, CommandRun, Receipt

_CHECKS: Final = 3
"""Checks that are told one by one: the last ones."""


def receipt_line(receipt: Receipt) -> str:
    """Return what a turn did, on one line; "" where it did nothing that counts."""
    parts = [*_checks(receipt), *_files(receipt), *_commands(receipt)]
    return f"receipt: {'; '.join(parts)}" if parts else ""


def unproven_lines(receipt: Receipt) -> list[str]:
    """Return what an answer claims, and why nothing bears it out, a line each."""
    return [f'unproven: "{visible(each.claim)}": {visible(each.why)}' for each in receipt.unproven]


def receipt_lines(receipt: Receipt | None) -> list[str]:
    """Return all that is said of a turn."""
    return [] if receipt is None else [line for line in (receipt_line(receipt), *unproven_lines(receipt)) if line]


def _checks(receipt: Receipt) -> Iterator[str]:
    if len(receipt.checks) > _CHECKS:
        yield f"{len(receipt.checks) - _CHECKS} other checks"
    for check in receipt.checks[-_CHECKS:]:
        where = f" in {name(check.where)}" if check.where else ""
        only = f" of {name(check.only)}" if check.only else ""
        since = ", something changed since" if check.changed_since and check.result == "passed" else ""
        yield f"{visible(check.runner)}{where}{only} {_result(check)}{since}"


def _result(check: CheckRun) -> str:
    match check.result:
        case "passed":
            return f"passed ({check.passed})" if check.passed else "passed"
        case "failed":
            return f"failed ({check.failed} of {check.failed + (check.passed or 0)})" if check.failed else "failed"
        case "empty":
            return "ran no test"
        case _:
            return f"not known ({visible(check.why)})"


def _files(receipt: Receipt) -> Iterator[str]:
    if changed := len(receipt.changed) + receipt.changed_left_out:
        tested = any(check.changed_since for check in receipt.checks if check.result == "passed")
        never = receipt.changed_since_check and not tested
        yield f"{_counted(changed, 'file')} changed{', none checked since' if never else ''}"
    if receipt.unseen:
        yield f"{_counted(receipt.unseen, 'command')} whose changes nobody has seen"


def _commands(receipt: Receipt) -> Iterator[str]:
    others = [each for each in receipt.commands if not each.checks]
    if count := len(others) + receipt.commands_left_out:
        bad = [each for each in others if each.exit_code != 0]
        yield _counted(count, "other command" if receipt.checks else "command") + (f", {_ended(bad)}" if bad else "")


def _ended(bad: list[CommandRun]) -> str:
    code = bad[-1].exit_code
    last = "cut off" if code is None else f"exit code {code}"
    return last if len(bad) == 1 else f"{len(bad)} of them failed, the last with {last}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
