"""Rules that come with Strongroom, for what no rule of the operator's or of a person's decides.

Rule: what git ignores is made anew by the next build or test, and an undo has it; nobody is asked about it. What other
programs obey is asked about all the same, and so is what a network may have brought: a test that runs may be anybody's.
But for settings of a build that the programs made whose work they are, and caches among dependencies. Whoever wants to
be asked writes a rule: `ignored = true` with "ask".
"""

import datetime as dt
from typing import Final

from supervisor.rules.judge_effects import Verdict, judge_effects
from supervisor.rules.rule import Rule
from supervisor.rules.started_programs import Started
from workers.changes.effects import Change, Effects

SHIPPED: Final = (Rule("allow", writes=("**",), deletes=("**",), network=True, ignored=True),)
"""In order."""
_DEPENDENCIES: Final = frozenset({"node_modules", "bower_components", "jspm_packages", "web_modules"})
_CACHES: Final = frozenset({".cache", ".vite", ".vite-temp", ".vitest", ".tmp"})


def or_shipped(verdict: Verdict, started: Started, effects: Effects, today: dt.date) -> Verdict:
    """Return what a shipped rule allows where nobody has decided otherwise, of a command without a network."""
    if verdict.decision != "ask" or verdict.rule is not None or started.network or effects.traffic:
        return verdict
    if any(change.protected and not _made_anew(change) for change in effects.changes):
        return verdict
    found = judge_effects(SHIPPED, started, effects, today)
    return found if found.decision == "allow" else verdict


def _made_anew(change: Change) -> bool:
    """Say whether a name that programs obey is neither a dependency nor obeyed at once."""
    parts = change.path.casefold().split("/")
    below = [parts[at + 1] for at, part in enumerate(parts[:-1]) if part in _DEPENDENCIES]
    return change.level == "asked" and _CACHES.issuperset(below)
