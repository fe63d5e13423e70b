"""A table's rows in one test: where each does so little that a test of its own would cost more than what it tries.

Rule: such rows leave this process as it was and share the test's fixtures. All are tried, and a failure names its row.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]
Ids = Iterable[object] | Callable[[Any], object] | None


def each_row(names: str | Sequence[str], rows: Iterable[Any], ids: Ids = None) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize` with the same arguments, in one test, which is skipped where all its rows are."""
    alone = isinstance(names, str) and "," not in names
    parameters = [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)
    table = [((row,) if alone else tuple(row)) for row in rows]
    told = list(_told(table, ids))

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        fixtures = [each for each in signature.parameters.values() if each.name not in parameters]

        @wraps(test)
        def rows_tried(**given: Any) -> None:
            failures: list[BaseException] = []
            skips: list[BaseException] = []
            for name, values in zip(told, table, strict=True):
                try:
                    test(**given, **dict(zip(parameters, values, strict=True)))
                except pytest.skip.Exception as skip:
                    skips.append(skip)
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - it is told, with all others
                    failure.add_note(f"in the row {name}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{test.__name__} fails in some of {len(table)} rows", failures)
            if skips and len(skips) == len(table):
                raise skips[0]

        vars(rows_tried)["__signature__"] = signature.replace(parameters=fixtures)
        return rows_tried

    return decorate


def _told(table: Sequence[tuple[Any, ...]], ids: Ids) -> Iterator[str]:
    """Return what the rows are called."""
    if ids is None:
        return (", ".join(map(repr, row)) for row in table)
    if callable(ids):
        return (", ".join(str(ids(value)) for value in row) for row in table)
    return map(str, ids)
