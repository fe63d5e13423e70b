"""What a command would change, before it does.

Rule: whoever uses this needs `Rehearsal` for a command, or `Layered` where the changes are there already, why there is
none, and what a commit's outcome means in words; nothing else of the package.
"""

from workers.rehearsal.faults import CannotRehearse, TooMuch
from workers.rehearsal.layered import Layered
from workers.rehearsal.rehearsal import Rehearsal
from workers.rehearsal.words import committed

__all__ = ["CannotRehearse", "Layered", "Rehearsal", "TooMuch", "committed"]
