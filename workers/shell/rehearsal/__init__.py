"""What a command would change, before it does.

Rule: whoever uses this needs `Rehearsal` and why there is none, nothing else of the package.
"""

from workers.shell.rehearsal.faults import CannotRehearse, TooMuch
from workers.shell.rehearsal.rehearsal import Original, Rehearsal

__all__ = ["CannotRehearse", "Original", "Rehearsal", "TooMuch"]
