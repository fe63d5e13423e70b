"""The results of `strongroom doctor`; for people a table that fits into a terminal, and in a narrow one, a list.

Rule: pure. What is well takes few words, the doors of a category one line; everything else is shown in full, and what
to do about it once.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from supervisor.display.escape import visible
from supervisor.doctor.remedies import COPY

CheckVerdict = Literal["ok", "degraded", "missing"]

_VERDICT: Final = 10
_SUBJECT: Final = 19
_AT: Final = _VERDICT + _SUBJECT
_NARROWEST: Final = 60
"""Columns that the table needs; with fewer, its parts stand one below another."""
_INDENT: Final = 2
_FEWEST: Final = 20


class CheckResult(msgspec.Struct, frozen=True):
    """One row of the table, or an object of its JSON: what was checked, how it is, what that means, and what to do."""

    subject: str
    verdict: CheckVerdict
    detail: str
    advice: str = ""


def lines(results: Sequence[CheckResult], width: int) -> Iterator[tuple[CheckVerdict, str]]:
    """Return each line with the verdict that it belongs to."""
    told = _in_columns if width >= _NARROWEST else _below_another
    for each in _once(_gathered(results)):
        result = msgspec.structs.replace(each, detail=visible(each.detail), advice=visible(each.advice))
        yield from ((result.verdict, line) for line in told(result, max(width, _FEWEST) - 1))


def _in_columns(result: CheckResult, width: int) -> Iterator[str]:
    head, margin = f"{result.verdict:{_VERDICT}}{result.subject:{_SUBJECT}}", " " * _AT
    if len(result.subject) >= _SUBJECT:
        yield from _wrapped(result.subject, width, " " * _VERDICT, f"{result.verdict:{_VERDICT}}")
        head = margin
    yield from _wrapped(result.detail, width, margin, head) or [head]
    for each in result.advice.splitlines():
        if each.startswith(COPY):
            yield each
        else:
            yield from _wrapped(each, width, " " * _VERDICT, break_long_words=False)


def _below_another(result: CheckResult, width: int) -> Iterator[str]:
    head = f"{result.verdict:{_VERDICT}}{result.subject}"
    if len(head) <= width:
        yield head
    else:
        yield result.verdict
        yield from _wrapped(result.subject, width, " " * _INDENT)
    for each in (result.detail, *result.advice.splitlines()):
        if each.startswith(COPY):
            yield each.removeprefix(COPY)
        else:
            yield from _wrapped(each, width, " " * _INDENT)


def _wrapped(
    text: str, width: int, indent: str, first: str | None = None, *, break_long_words: bool = True
) -> list[str]:
    room = width - len(indent)
    words = [part for word in text.split() for part in (_parts(word, room) if break_long_words else [word])]
    return textwrap.wrap(
        " ".join(words),
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=break_long_words,
    )


def _parts(word: str, room: int) -> Iterator[str]:
    """Yield a word in parts that fit, where it is longer: a path is broken before a name in it."""
    while len(word) > room and (at := word.rfind("/", 1, room)) > 0:
        yield word[:at]
        word = word[at:]
    yield word


def _gathered(results: Iterable[CheckResult]) -> Iterator[CheckResult]:
    """Tell the doors of each category that are shut as one."""
    shut: dict[str, int] = {}
    for result in results:
        category, door = result.subject.partition(": ")[::2]
        if result.verdict == "ok" and door and result.detail.startswith("refused"):
            shut[category] = shut.get(category, 0) + 1
            continue
        for told in [each for each in shut if each != category]:
            yield _doors(told, shut.pop(told))
        yield result
    yield from (_doors(category, count) for category, count in shut.items())


def _doors(category: str, count: int) -> CheckResult:
    return CheckResult(f"{category}: doors", "ok", f"{count} ways out were tried from inside, all shut")


def _once(results: Iterable[CheckResult]) -> Iterator[CheckResult]:
    """Tell what to do once, where it is the same for several; the first line of an advice is each one's own."""
    told: dict[str, str] = {}
    for result in results:
        own, _, common = result.advice.partition("\n")
        if common and (first := told.setdefault(common, result.subject)) != result.subject:
            yield msgspec.structs.replace(result, advice=f"{own}\nFor what to do see: {first}")
        else:
            yield result


def summary(results: Sequence[CheckResult], width: int = 0) -> str:
    """Return what it comes to, in a sentence; with a `width`, broken between words."""
    missing, degraded = (sum(each.verdict == verdict for each in results) for verdict in ("missing", "degraded"))
    told = "Everything that was tried is as it should be."
    if missing:
        told = (
            f"{missing} missing, {degraded} degraded: what is missing does not work, or is not safe, until you fix it."
        )
    elif degraded:
        told = f"{degraded} degraded: everything works, with the limits named there."
    return "\n".join(_wrapped(told, max(width, _FEWEST) - 1, "", break_long_words=False)) if width else told
