"""Rules: changes by commands that the operator, or a person who approved one, allows, denies or wants to approve.

Rule: a rule speaks of effects that a rehearsal has found, never of what a command says it will do. Its sentence says
all that it covers, and what would mean less, or more, than it seems to is refused. Its patterns of paths are those of
`workers.tree.glob`, strictly read: one that could be read in two ways is refused, since a rule that means something
else than it says is worse than none. `a/` is the directory itself, and all beneath it. Clients import this for the keys
of the configuration: the patterns are imported where one is judged.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from supervisor.display.escape import name, visible

if TYPE_CHECKING:
    from workers.tree.glob import Matcher

LIMIT: Final = 4096
"""Characters of a pattern, and the longest path that Linux takes."""
_Pattern = Annotated[str, Meta(min_length=1, max_length=LIMIT)]

UNCOVERED: Final = "and no rule covers that"
"""How a reason ends that says no more than what would change."""

_WIDTH: Final = 100
"""Characters of a path in a sentence."""
_PLAIN: Final = re.compile(r"[^\s,:;'\"()]+")
"""What stands in a sentence without quotes, and cannot be taken for a part of it."""


Mode = Literal["ask", "edits", "plan"]
"""Which changes a session asks about (`supervisor.rules.modes`)."""

ChangeKind = Literal[
    "content", "mode", "executable", "program", "setuid", "link", "link-outside", "special", "attributes", "deletion"
]
"""What a change does to a name; `supervisor.rules.change_kinds` says which it is."""

KINDS: Final[Mapping[ChangeKind, str]] = MappingProxyType(
    {
        "content": "content",
        "mode": "permissions",
        "executable": "executable bits of text",
        "program": "executable bits of what is no text",
        "setuid": "set-user-ID bits",
        "link": "links within the root",
        "link-outside": "links to the outside",
        "special": "pipes and sockets",
        "attributes": "attributes and access lists",
        "deletion": "deletions",
    }
)
"""Kind -> what it is, for people. Another time stamp is no kind: whatever covers a path covers that."""
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z-]*|commit --amend")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rules on what commands may change unasked: the first that covers their effects decides; without any you decide.

    One that allows has to cover all that a command would change; one that asks or denies speaks of every command that
    would change any of it. It comes from `[[rules]]`, or a person made it with an approval.
    """

    decision: Annotated[
        Literal["allow", "ask", "deny"],
        Meta(description='"ask" and "deny" count where any of it is touched.', examples=["allow"]),
    ]
    programs: Annotated[
        tuple[_Pattern, ...] | None,
        Meta(description="Without it, any program of the profile.", examples=[["git", "npm"]]),
    ] = None
    writes: Annotated[
        tuple[_Pattern, ...],
        Meta(
            description="Paths that are added or changed, relative to the root: `*`, `?` and `[...]` stay within one "
            "name, `**` is any depth.",
            examples=[["build/**", "node_modules/**"]],
        ),
    ] = ()
    deletes: Annotated[tuple[_Pattern, ...], Meta(description="Paths that are deleted.", examples=[["build/**"]])] = ()
    max_files: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Names that an allowed command may change, directories included.", examples=[500]),
    ] = None
    network: Annotated[
        bool, Meta(description="true: also commands that tried the network, which they do not have.")
    ] = False
    reason: Annotated[str, Meta(description="Shown with what it decides.", examples=["what builds leave"])] = ""
    until: Annotated[
        dt.date | None, Meta(description="The last day on which it counts.", examples=[dt.date(2099, 12, 31)])
    ] = None
    kinds: Annotated[
        tuple[ChangeKind, ...] | None,
        Meta(
            description="Kinds of change. Without it, an allowed command may do all but `link-outside` and `special`; "
            "a rule that asks or denies speaks of all. With it, what lies in `.git` is allowed only together with "
            "`git`.",
            examples=[["content", "mode", "executable", "link", "deletion"]],
        ),
    ] = None
    max_bytes: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Bytes of all files that an allowed command adds or changes.", examples=[1_000_000]),
    ] = None
    git: Annotated[
        tuple[_Pattern, ...] | None,
        Meta(
            description="Subcommands of git that it speaks of, for `programs` with `git`; `commit --amend` is one of "
            "its own. Allowed ones only add to `.git/objects`.",
            examples=[["add", "commit"]],
        ),
    ] = None

    ignored: Annotated[
        bool,
        Meta(
            description="true: only what git ignores, and does not track, as its lists and its index said before the "
            "command. A rule that comes with Strongroom allows such changes; one that asks or denies comes before it."
        ),
    ] = False
    registries: Annotated[
        tuple[_Pattern, ...] | None,
        Meta(
            description="Registries that installs by these `programs` may reach unasked. What such an install may "
            "change is package directories, lock files and dependencies in manifests, and nothing that is named here.",
            examples=[["npm", "pypi"]],
        ),
    ] = None

    starts: Annotated[
        bool,
        Meta(
            description="true: `exec_shell` may start these `programs`, although [shell] does not list them. What they "
            "change is judged as ever."
        ),
    ] = False

    def counts(self, today: dt.date) -> bool:
        """Say whether it has not expired."""
        return self.until is None or today <= self.until


class Narrowing(NamedTuple):
    """What a root's own file takes away from a profile (`supervisor.config.narrowing`)."""

    file: str
    told: tuple[str, ...]
    """What it does, and what of it was refused, a clause each."""
    digest: str = ""
    """SHA-256 of it, as hexadecimal digits."""
    used: bool | None = None
    """What the person said of a file with this content: whether it counts; None, where they have not: it does."""
    max_steps: int | None = None
    rules: tuple[Rule, ...] = ()
    """They deny, and come before all others."""
    web: tuple[str, ...] | None = None
    """All that is left of the sites that `fetch_url` may reach; None where that is not said."""

    def steps(self, configured: int) -> int:
        """Return how many model requests a turn may take: no more than is configured."""
        return configured if self.max_steps is None else min(configured, self.max_steps)


def compiled(patterns: Sequence[str]) -> "Matcher":
    """Return what matches exactly the paths that one of the patterns, at least, stands for.

    Raises:
        PatternError: one has no clear meaning.
    """
    from workers.tree.glob import Matcher

    alternatives: list[str] = []
    for pattern in patterns:
        _refuse(pattern)
        alternatives.append(pattern)
        if pattern.endswith("/") and {*pattern.split("/")} - {"", "."}:
            alternatives.append(f"{pattern}**")
    return Matcher(alternatives, strict=True)


def literal(path: str) -> str:
    """Return the pattern for exactly this path."""
    from workers.tree.glob import MEANS_MORE

    escaped = MEANS_MORE.sub(r"[\g<0>]", path)
    return f"[~]{escaped[1:]}" if escaped.startswith("~") else escaped


def _refuse(pattern: str) -> None:
    """Refuse what cannot be meant, or is not clear."""
    from workers.tree.glob import PatternError

    parts = pattern.split("/")
    problem = ""
    if not pattern or len(pattern) > LIMIT:
        problem = f"is empty or longer than {LIMIT} characters"
    elif pattern.startswith("/") or parts[0] == "~":
        problem = "is absolute, or in a home: name the path as it is seen from the root"
    elif ".." in parts:
        problem = "has a .. in it: name the path as it is seen from the root"
    elif any(char == "\0" or "\ud800" <= char <= "\udfff" for char in pattern):
        problem = "has a character that no path has"
    elif any("**" in part and part != "**" for part in parts):
        problem = "has a ** beside other characters: between slashes it stands alone"
    if problem:
        raise PatternError(problem)


def problem_of(rule: Rule) -> str:
    """Say in a sentence what is wrong with a rule, and what to do instead; empty if nothing is."""
    from workers.tree.glob import PatternError

    for key, patterns in (("writes", rule.writes), ("deletes", rule.deletes)):
        for pattern in patterns:
            try:
                compiled((pattern,))
            except PatternError as error:
                return f"the pattern {quoted(pattern)} of `{key}` {error}."
    return _problem_of_programs(rule) or _problem_of_registries(rule) or _problem_of_limits(rule)


def _problem_of_registries(rule: Rule) -> str:
    if rule.registries is None:
        return ""
    if rule.decision != "allow" or not rule.registries:
        return "`registries` is for a rule that allows installs, and names one at least."
    return ""


def _problem_of_programs(rule: Rule) -> str:
    for key, given in (("programs", rule.programs), ("git", rule.git)):
        if given == ():
            return f"`{key}` is empty: name some, or leave it out to mean any."
    for program in rule.programs or ():
        if program.split() != [program] or not program.isprintable():
            return f"{quoted(program)} of `programs` is no program's name: give it as it is typed, without arguments."
    if rule.git is not None and "git" not in (rule.programs or ()):
        return "`git` names subcommands of git: name git in `programs` as well."
    for subcommand in rule.git or ():
        if not _SUBCOMMAND.fullmatch(subcommand):
            return f"{quoted(subcommand)} of `git` is no subcommand: give it as it is typed, without arguments."
    return ""


def _problem_of_limits(rule: Rule) -> str:
    if rule.kinds == () and rule.decision != "allow":
        return "`kinds` is empty: name some, or leave it out to mean any."
    if rule.decision != "allow":
        if rule.starts:
            return "`starts` is for rules that allow: leave it out here."
        limits = [key for key in ("max_files", "max_bytes") if getattr(rule, key) is not None]
        return f"`{limits[0]}` limits what a rule allows: leave it out here." if limits else ""
    if rule.starts:
        return (
            "" if rule.programs and not rule.writes and not rule.deletes else "`starts` wants `programs`, and no paths."
        )
    if not rule.writes and not rule.deletes and rule.registries is None:
        return "it allows nothing: name the paths that may be changed in `writes`, or `deletes`."
    return "it allows nothing: `max_files` is 0." if rule.max_files == 0 else ""


def quoted(text: str) -> str:
    """Return a name or a pattern as it stands in a sentence: escaped, and in quotes where it could mislead."""
    plain = _PLAIN.fullmatch(text) and visible(text) == text
    if plain:
        return text
    import json  # later: clients have the rules' keys, and no rule

    return name(json.dumps(text, ensure_ascii=False))


def quoted_path(path: str) -> str:
    """Return the same of a path, whose middle is left out where it is long."""
    return quoted(path if len(path) <= _WIDTH else f"{path[: _WIDTH // 2]}...{path[-_WIDTH // 2 :]}")


def listed(names: Sequence[str], last: str = "and") -> str:
    """Return names, at least one, as a sentence lists them."""
    return joined([quoted(each) for each in names], last)


def joined(words: Sequence[str], last: str = "and") -> str:
    """Return words, at least one, as a sentence lists them."""
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else end
