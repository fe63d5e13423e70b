"""The findings of `strongroom doctor` for people: a table that fits into a terminal.

Rule: pure. What is well is told in few words, the doors of a category as one line; everything else is told in full,
with what to do about it.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from supervisor.programs.surroundings import Finding, Verdict

_VERDICT: Final = 10
_SUBJECT: Final = 19
_AT: Final = _VERDICT + _SUBJECT
_NARROWEST: Final = 60


def lines(findings: Sequence[Finding], width: int) -> Iterator[tuple[Verdict, str]]:
    """Return each line with the verdict that it belongs to."""
    width = max(width, _NARROWEST) - 1
    for finding in _gathered(findings):
        detail = textwrap.wrap(finding.detail, width - _AT, break_on_hyphens=False) or [""]
        short = len(finding.subject) < _SUBJECT
        head = f"{finding.verdict:{_VERDICT}}{finding.subject:{_SUBJECT}}"
        yield finding.verdict, head + detail.pop(0) if short else head
        for each in detail:
            yield finding.verdict, " " * _AT + each
        for each in finding.advice.splitlines():
            yield from ((finding.verdict, line) for line in _advice(each.strip("\n"), width))


def _advice(line: str, width: int) -> list[str]:
    indent = " " * _VERDICT
    if line.startswith(indent + "    "):  # to be copied as it is
        return [line]
    return textwrap.wrap(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _gathered(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Tell the doors of each category that are shut as one."""
    shut: dict[str, int] = {}
    for finding in findings:
        category, door = finding.subject.partition(": ")[::2]
        if finding.verdict == "ok" and door and finding.detail.startswith("refused"):
            shut[category] = shut.get(category, 0) + 1
            continue
        for told in [each for each in shut if each != category]:
            yield _doors(told, shut.pop(told))
        yield finding
    yield from (_doors(category, count) for category, count in shut.items())


def _doors(category: str, count: int) -> Finding:
    return Finding(f"{category}: doors", "ok", f"{count} ways out were tried from inside, all shut")


def summary(findings: Sequence[Finding]) -> str:
    """Return what it comes to, in a sentence."""
    missing, degraded = (sum(each.verdict == verdict for each in findings) for verdict in ("missing", "degraded"))
    if missing:
        return (
            f"{missing} missing, {degraded} degraded: what is missing does not work, or is not safe, until it is there."
        )
    if degraded:
        return f"{degraded} degraded: everything works, but for what is said there."
    return "Everything that was tried is as it should be."
