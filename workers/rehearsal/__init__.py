"""What a command would change, before it does.

Rule: whoever uses this needs `Rehearsal` and why there is none, nothing else of the package.
"""

from workers.rehearsal.faults import CannotRehearse, TooMuch
from workers.rehearsal.rehearsal import Original, Rehearsal

__all__ = ["CannotRehearse", "Original", "Rehearsal", "TooMuch"]
