"""The result of one check of `strongroom doctor`: a row of its table, or an object of its JSON."""

from typing import Literal

import msgspec

CheckVerdict = Literal["ok", "degraded", "missing"]


class CheckResult(msgspec.Struct, frozen=True):
    """One line of the table: what was checked, how it is, what that means, and what to do."""

    subject: str
    verdict: CheckVerdict
    detail: str
    advice: str = ""
