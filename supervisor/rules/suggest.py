"""Suggests the rule that a person may make while they approve a command, so as not to be asked about the same again.

Rule: pure. It covers what a person would call the same thing again, and little more: exactly the programs, of git the
subcommands, up to 8 exact paths or else the directories that they share, deletions apart, the kinds of change that
were seen, a number of files and of bytes, and an end. A directory that builds and installations make, by the names
that such have, is covered as a whole: the next build has others. It never covers protected paths or the whole root,
nor in `.git` what no commit writes.
"""

import datetime as dt
import re
from collections.abc import Sequence
from os.path import commonpath
from typing import Final

from supervisor.display.unseen import count_unseen
from supervisor.rules.change_kinds import NEVER_MADE, NamedChange, essential_changes, kinds_of
from supervisor.rules.git_changes import MADE_FOR, in_git, moved_by_commit, objects_of, only_adds
from supervisor.rules.judge_effects import count_changed, tried_network, unmade
from supervisor.rules.rule import KINDS, LIMIT, ChangeKind, Rule, literal
from supervisor.rules.started_programs import GIT, Started
from workers.changes.effects import Change, Effects

MOST: Final = 5000
"""Changes of which a person can still say that they want them always."""
_PATTERNS: Final = 8
"""As many as a person can read."""
_LEAST: Final = 10
_LEAST_BYTES: Final = 100_000
"""Files and bytes that a rule allows at least."""
_LEAST_GIT: Final = 500
_LEAST_BYTES_GIT: Final = 20_000_000
"""The same of git, whose objects are as many and as large as what is committed."""
_GROWS: Final = 5
"""So many times as much may the next build make."""
_GONE: Final = frozenset({"deleted", "replaced"})
_OUTPUT_NAMES: Final = (
    "node_modules bower_components target build dist out _build obj .venv venv .tox .nox __pycache__ .next .nuxt "
    ".output .svelte-kit .turbo .parcel-cache .gradle coverage htmlcov .nyc_output zig-out .zig-cache .dart_tool "
    ".stack-work dist-newstyle elm-stuff cmake-build-debug cmake-build-release"
)
_OUTPUTS: Final = frozenset(_OUTPUT_NAMES.split())
"""Names of directories that builds and installations make."""
_FEBRUARY_29: Final = (2, 29)
_NO_TEXT: Final = re.compile("[\ud800-\udfff]")
"""Bytes that are not UTF-8, which no pattern can say."""


def suggested_rule(started: Started | Sequence[str] | None, effects: Effects, today: dt.date) -> Rule | None:
    """Return the rule that would have covered these effects; None where no rule may, or none can be said shortly.

    Args:
        started: the programs of the command, alone or with what else is known; None where they are not known.
        effects: what it would change.
        today: a year from then the rule expires.
    """
    if not isinstance(started, Started):
        started = Started(tuple(started) if started else None)
    if not started.programs or count_unseen(effects) or not 0 < len(effects.changes) <= MOST:
        return None
    if unmade(effects, started.programs):
        return None
    changes = essential_changes(effects)
    outputs = sorted({found for path, _change in changes if (found := _output(path))})
    kinds = frozenset[ChangeKind]().union(*map(kinds_of, effects.changes))
    never = frozenset[ChangeKind]().union(*(kinds_of(each) - _built(each) for each in effects.changes)) & NEVER_MADE
    git = started.git if GIT in started.programs else ()
    in_gits = [each for each in changes if in_git(each.path)]
    if never or git is None or not MADE_FOR.issuperset(git) or not _as_committed(in_gits, git):
        return None
    outside = [each for each in changes if not in_git(each.path) and not _output(each.path)]
    writes = _patterns([each.path for each in outside if each.change.what != "deleted"])
    deletes = _patterns([each.path for each in outside if each.change.what in _GONE])
    if writes is None or deletes is None:
        return None
    moved = {f"{literal(found)}**" if (found := objects_of(path)) else literal(path) for path, _change in in_gits}
    if len(moved) > _PATTERNS or len(outputs) > _PATTERNS or any(map(_NO_TEXT.search, outputs)):
        return None
    least, least_bytes = (_LEAST_GIT, _LEAST_BYTES_GIT) if git else (_LEAST, _LEAST_BYTES)
    whole = tuple(f"{literal(each)}/" for each in outputs)
    gone = whole if any(_output(path) and change.what in _GONE for path, change in changes) else ()
    return Rule(
        "allow",
        tuple(dict.fromkeys(started.programs)),
        (*whole, *writes, *sorted(moved)),
        (*gone, *deletes),
        _round(max(count_changed(effects) * (_GROWS if outputs else 1), least)),
        started.network or tried_network(effects),
        until=_in_a_year(today),
        kinds=tuple(kind for kind in KINDS if kind in kinds),
        max_bytes=_round(max((_GROWS if outputs else 2) * effects.size, least_bytes)),
        git=git or None,
    )


def _output(path: str) -> str:
    """Return the outermost directory on the way to a path that a build or an installation makes; "" for none."""
    parts = path.split("/")
    at = next((at for at, part in enumerate(parts[:-1]) if part in _OUTPUTS), -1)
    return "/".join(parts[: at + 1])


def _built(change: Change) -> frozenset[ChangeKind]:
    """Return the kinds that are never another's to allow, but ordinary where builds put what they make."""
    return frozenset({"program"}) if _output(change.path) else frozenset()


def _as_committed(in_gits: Sequence[NamedChange], git: Sequence[str]) -> bool:
    """Say whether git's own directories, if they change, do so only as by a commit on a branch."""
    return not in_gits or (
        bool(git)
        and all(
            only_adds(path, change.what) and bool(objects_of(path) or moved_by_commit(path)) for path, change in in_gits
        )
    )


def _patterns(paths: Sequence[str]) -> tuple[str, ...] | None:
    """Return a few patterns for these paths; None where there is no way but to name the root, or many.

    Few paths stand for themselves. Of many, those with the same first name become all beneath what they share.
    """
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(path if len(paths) <= _PATTERNS else path.partition("/")[0], []).append(path)
    patterns = tuple(sorted({_pattern(group) for group in groups.values()})) if len(groups) <= _PATTERNS else ("",)
    return patterns if all(0 < len(each) <= LIMIT for each in patterns) else None


def _pattern(paths: Sequence[str]) -> str:
    """Return the pattern for one path, or for all beneath the directory that several share; "" for the root."""
    shared = commonpath((min(paths), max(paths)))
    if any(not f"{path}/".startswith(f"{shared}/") for path in paths):
        shared = shared.rpartition("/")[0]
    if no_text := _NO_TEXT.search(shared):
        shared = shared[: no_text.start()].rpartition("/")[0]
    if not shared:
        return ""
    if len(paths) == 1 and shared == paths[0]:
        return literal(shared)
    return f"{literal(shared)}{'/' if shared in paths else '/**'}"


def _round(number: int) -> int:
    """Return the first round number that is not below this one: 10, 20, 50, 100 and so on."""
    power = 10
    while True:
        for digit in (1, 2, 5):
            if digit * power >= number:
                return digit * power
        power *= 10


def _in_a_year(today: dt.date) -> dt.date:
    day = 28 if (today.month, today.day) == _FEBRUARY_29 else today.day
    return today.replace(year=today.year + 1, day=day)
