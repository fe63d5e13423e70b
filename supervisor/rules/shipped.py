"""Rules that come with Strongroom, for what no rule of the operator's or of a person's decides.

Rule: what git ignores is made anew by the next build or test, and an undo has it; nobody is asked about it. What other
programs obey is asked about all the same, unless its makers made it, and so is what a network may have brought. Whoever
wants to be asked writes a rule: `ignored = true` with "ask".
"""

import datetime as dt
from typing import Final

from supervisor.rules.judge_effects import Verdict, judge_effects
from supervisor.rules.rule import Rule
from supervisor.rules.started_programs import Started
from workers.changes.effects import Effects

SHIPPED: Final = (Rule("allow", writes=("**",), deletes=("**",), network=True, ignored=True),)
"""In order."""


def or_shipped(verdict: Verdict, started: Started, effects: Effects, today: dt.date) -> Verdict:
    """Return what a shipped rule allows where nobody has decided otherwise, of a command without a network."""
    if verdict.decision != "ask" or verdict.rule is not None or started.network or effects.traffic:
        return verdict
    found = judge_effects(SHIPPED, started, effects, today)
    return found if found.decision == "allow" else verdict
