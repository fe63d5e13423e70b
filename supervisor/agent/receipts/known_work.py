"""Work that the journal knows of: what the claims of an answer are held against. Data, and questions about it.

Rule: what nobody has seen is counted, and never taken for nothing. The session's work counts, not the turn's alone: who
is asked whether the tests passed may answer by what an earlier turn ran.
"""

import posixpath
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from supervisor.journal.receipt import CheckRun
from workers.changes.effects import NodeState, What

KNOWN: Final = 5000
"""Names of each kind that are remembered; where there are more, nothing is said for want of one."""

_PROSE: Final = re.compile(
    r"(?:.*/)?(?:README|CHANGELOG|LICENSE|NOTICE|AUTHORS)[^/]*|.*\.(?:md|mdx|rst|txt|adoc)", re.IGNORECASE
)
"""Files in which no test stands."""
_CACHES: Final = re.compile(
    r"(?:^|/)(?:__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.hypothesis|\.nyc_output|\.gradle|\.eslintcache"
    r"|\.git|\.coverage[^/]*|htmlcov|coverage|[^/]+\.egg-info|[^/]+\.tsbuildinfo|[^/]+\.py[cod])(?:/|$)|^target/|(?:^|/)node_modules/\.cache/"
)
"""What checks and builds leave behind, wherever they run, and git among its own."""


class NetChange(NamedTuple):
    """What a name was before the first change of it, and is after the last."""

    before: NodeState | None
    after: NodeState | None
    what: What

    @property
    def stands(self) -> bool:
        """Whether the name is another than before, as far as that was seen."""
        one, other = self.before, self.after
        if one is None or other is None:
            return one is not other
        unread = "file" in (one.kind, other.kind) and not (one.digest and other.digest)
        return unread or _content(one) != _content(other)


def _content(state: NodeState) -> tuple[object, ...]:
    return state.kind, state.mode, state.digest, state.size, state.target, tuple(sorted(state.attributes.items()))


class KnownCheck(NamedTuple):
    """A check as the session knows it."""

    run: CheckRun
    turn: int
    order: int
    """Later checks have higher numbers."""
    changes: int
    code: int
    """Of the changes so far when it ran: all, and those of code."""


class KnownCommand(NamedTuple):
    """A command as the session knows it."""

    text: str
    exit_code: int | None
    turn: int


@dataclass
class KnownWork:
    """The work of one session, and of its last turn."""

    turn: int = 0
    checks: dict[tuple[str, str], KnownCheck] = field(default_factory=dict)
    """The last of each runner and directory."""
    commands: list[KnownCommand] = field(default_factory=list)
    changes: int = 0
    code: int = 0
    """Calls so far that changed anything, and anything but prose."""
    looks: int = 0
    """Calls that went well since the last change, and changed nothing."""
    standing: dict[str, NetChange] = field(default_factory=dict)
    """Of the session, by path."""
    net: dict[str, NetChange] = field(default_factory=dict)
    """Of the turn."""
    wrote: set[str] = field(default_factory=set)
    """Paths that calls were to write, and wrote as they were."""
    refused: dict[str, str] = field(default_factory=dict)
    """Paths that calls of the turn were to change and did not, and why."""
    seen: set[str] = field(default_factory=set)
    """Paths, addresses and words of commands that calls were about, in letters of one case."""
    unlisted: int = 0
    """Of the session: changes that are not listed one by one."""
    unseen: int = 0
    """Of the session: calls that may have changed something that nobody has seen."""

    def changed_in_turn(self) -> list[str]:
        """Return the paths that are others than when the turn began."""
        return [path for path, change in self.net.items() if change.stands]

    def fresh(self, check: KnownCheck) -> bool:
        """Say whether no code was changed after a check."""
        return check.code == self.code

    def elsewhere(self, check: KnownCheck) -> str:
        """Return the directory of a check that has nothing to do with what the turn changed; "" where it may."""
        scope = check.run.where or _scope(check.run.only)
        changed = [path for path in self.changed_in_turn() if not is_prose(path)]
        if not scope or not changed or any(_beneath(path, scope) for path in changed):
            return ""
        return scope

    def matching(self, name: str) -> str | None:
        """Return the path, changed in the session and so standing, that a name in an answer means; None without one."""
        found = [path for path, change in self.standing.items() if change.stands and is_same(path, name)]
        return found[0] if found else None


def is_prose(path: str) -> bool:
    """Say whether a change of a path changes what no check looks at."""
    return _PROSE.fullmatch(path) is not None


def is_cache(path: str) -> bool:
    """Say whether a path is one of those that checks and builds leave behind."""
    return _CACHES.search(path) is not None


def is_same(path: str, name: str) -> bool:
    """Say whether a name in an answer may mean a path, or a directory that it lies in."""
    path, name = path.casefold(), posixpath.normpath(name.casefold()).strip("/")
    return f"/{path}".endswith(f"/{name}") or f"/{name}".endswith(f"/{path}") or f"/{path}/".find(f"/{name}/") >= 0


def _scope(only: str) -> str:
    """Return the directory that belongs to what a check was narrowed to: what stands above its tests."""
    scopes = set[str]()
    for word in only.split():
        parts = word.split("::")[0].strip("./").split("/")
        kept: list[str] = []
        for part in parts[:-1] if "." in parts[-1] else parts:
            if re.fullmatch(r"(?:__)?(?:tests?|specs?|e2e|integration|unit|src|lib)(?:__)?|\.\.\.", part):
                break
            kept.append(part)
        scopes.add("/".join(kept))
    return scopes.pop() if len(scopes) == 1 else ""


def _beneath(path: str, scope: str) -> bool:
    scope = posixpath.normpath(scope)
    return scope.startswith((".", "/")) or f"{path}/".startswith(f"{scope}/")
