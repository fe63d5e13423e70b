"""What a command would change, before it does.

Rule: whoever uses this needs `Rehearsal` for a command, or `Layered` where the changes are there already, why there is
none, and what a commit's outcome means in words; nothing else of the package.
"""

from workers.commit.outcome_text import committed
from workers.commit.upper_layer import Layered
from workers.shell.run.rehearsal import Rehearsal
from workers.treediff.unrehearsable import CannotRehearse, TooMuch

__all__ = ["CannotRehearse", "Layered", "Rehearsal", "TooMuch", "committed"]
