"""The notice at a turn's end of files that it wrote and the person will run.

Rule: pure. Build files and programs that are text count: nobody types their names, or looks into them again.
"""

import re
from collections.abc import Sequence
from typing import Final

from supervisor.display.escape import one_line
from workers.changes.effects import Effects

_EXECUTABLE: Final = 0o111
_PLAIN: Final = re.compile(r"[\w.@+/-]{1,100}", re.ASCII)
_RUN: Final = 6
_RUN_NAME: Final = 100
"""Names that are told at a turn's end, and characters of one."""


def will_run(effects: Effects) -> list[str]:
    """Return the names of what a commit wrote and people run by themselves: build files, and programs that are text."""
    return [
        each.path
        for each in effects.changes
        if each.after is not None and each.after.kind == "file" and each.what != "times"
        if each.level == "told" or (each.after.mode & _EXECUTABLE and (each.diff or each.script))
    ]


def run_notice(names: Sequence[str]) -> str:
    """Return the sentence at a turn's end about files that it wrote and the person will run; empty without any."""
    more = f" and {len(names) - _RUN} more" if len(names) > _RUN else ""
    told = [each if _PLAIN.fullmatch(each) else f'"{one_line(each, _RUN_NAME)}"' for each in names[:_RUN]]
    return f"You will run these: {', '.join(told)}{more}." if names else ""
