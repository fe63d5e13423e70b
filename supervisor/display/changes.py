"""Effects of a call in words: the same for an approval on a terminal, in an editor and in a journal. Pure.

Rule: all of it was caused by a command that nobody trusts, so every line that leaves here is visible
(`supervisor.display.escape`), and a name stays on its line. What a person must not miss comes first: protected paths,
by name.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from supervisor.acp import extensions
from supervisor.display.command_text import text_argument, text_of
from supervisor.display.differences import LETTERS, differences
from supervisor.display.escape import is_padded, name
from supervisor.display.fragments import Line
from supervisor.display.git_words import kept_for_itself, own_part
from supervisor.display.package_folders import folder_of
from supervisor.display.proposed_effects import ONLY
from workers.changes.effects import What

UNDO: Final = "/undo takes it back"

_GIT: Final = "git: "
_MANY: Final = 4
"""Changes of one kind in one directory that are shown one by one also where there is little room."""
_SECRET: Final = re.compile(
    r"(?i)(?:^|/)(?:\.(?:ssh|gnupg|aws|azure|kube|docker|netrc|pgpass|password-store|mozilla|vault-token|env|npmrc|pypirc)\b"
    r"|\.git-credentials|\.config/(?:gcloud|gh|chromium|google-chrome)|g?shadow-?$|sudoers|id_[a-z0-9]+$|keyrings?\b)"
    r"|secret|credential|passw|token|private.?key|\.(?:pem|key|p12|kdbx)$|/proc/[^/]+/(?:environ|mem)$"
)
"""Paths to which an attempt is never told in a number alone."""

_STAGES: Final[Mapping[extensions.Stage, str]] = MappingProxyType(
    {
        "direct": "A yes runs it on the root itself, at once: what it changes is not shown before, and cannot be "
        "undone. What is there and other programs obey is read-only to it.",
        "refused": "It has run in its sandbox, and what it printed stands. You can let it run once more, on the real "
        "system: at once, with all your rights, without rehearsal or undo. Every other answer leaves it as it is.",
        "switch": "A yes sends this conversation to the other model until this turn ends, and in later turns whenever "
        "the first gives no reply. You are not asked again in this session.",
        "narrow": "A yes leaves the file out, here and in later sessions, for as long as it is as it is now. With a no "
        "it counts, and you are not asked again. One that has changed is asked about anew.",
        "turn": "A yes lets the model go on with this turn; a no ends it. You are not asked again in this turn.",
        "network": "A yes rehearses it with connections to the hosts that are named. What it sends there cannot be "
        "taken back. What it would change here is asked about after that, unless it is what installs change: packages, "
        "lock files, dependencies, what git ignores, and of a build what it builds.",
    }
)


TITLES: Final[Mapping[extensions.Stage, str]] = MappingProxyType(
    {
        "switch": "Ask another model",
        "turn": "Go on with this turn",
        "narrow": "Leave out what this directory takes away",
    }
)
"""What is asked about where no call of the model's is."""


# --- sentences --------------------------------------------------------------------------------------------------------


def counted(effects: extensions.ProposedEffects) -> str:
    """Return how much changes, for example "3 files"; of repositories in git's words."""
    if effects.git:
        others = [change for change in effects.changes if not own_part(change.path)]
        rest = sum(effects.totals.values()) - len(effects.changes) + len(others)
        more = f"; {_counted(rest, others, more=bool(effects.left_out))}" if rest else ""
        return f"{_GIT}{effects.git}{more}"
    own = bool(effects.changes) and all(own_part(change.path) for change in effects.changes)
    notes = " that git keeps for itself" if own and not effects.left_out else ""
    return _counted(sum(effects.totals.values()), effects.changes, more=bool(effects.left_out)) + notes


def _counted(total: int, changes: Iterable[extensions.ChangedName], *, more: bool) -> str:
    kinds = {"dir" if change.kind == "dir" else "file" for change in changes}
    many = "" if total == 1 else "s"
    if more or len(kinds) != 1:
        return f"{total} file{many} and directories" if total else "nothing"
    return f"{total} file{many}" if kinds == {"file"} else f"{total} director{'ies' if many else 'y'}"


def counted_unseen(effects: extensions.ProposedEffects) -> str:
    """Return how many changes there are, and how many of them nobody can be shown, as "3 changes, 1 unseen"."""
    total = sum(effects.totals.values())
    return f"{total} change{'' if total == 1 else 's'}{f', {effects.unseen} unseen' if effects.unseen else ''}"


def detailed(effects: extensions.ProposedEffects) -> str:
    """Return how much changes, and how."""
    total = _counted(sum(effects.totals.values()), effects.changes, more=bool(effects.left_out))
    return f"{total}: {_totals(effects.totals)}" if effects.totals else total


def changed(path: str, what: What) -> str:
    """Return one change in words; `path` is safe to show."""
    return f"{path} ({ONLY[what]})" if what in ONLY else f"{path} {what}"


def blocked(what: str, kind: str = "network", count: int = 1) -> str:
    """Return an attempt that the sandbox has blocked, in words; `what` is safe to show."""
    times = {1: "", 2: ", twice"}.get(count, f", {count} times")
    return f"{kind} ({what}){times}"


def concerns(kind: str, what: str) -> bool:
    """Say whether a blocked attempt is told by itself: at a network, or at what looks like a secret."""
    return kind == "network" or _SECRET.search(what) is not None


def _totals(totals: Mapping[str, int]) -> str:
    known = [what for what in LETTERS if totals.get(what)]
    return ", ".join(f"{totals[what]} {ONLY.get(what, what)}" for what in known)


def outcome(decided: extensions.Decided) -> str:
    """Return a line for a call that was let change something, and ended well."""
    if decided.undoes:
        return f"{decided.changed or 'nothing'} restored"
    if decided.unconfined:
        return "it ran outside of the sandbox; what it changed is not known, and cannot be undone"
    if not decided.changed:
        return "it ran without a rehearsal; what it changed is not known, and cannot be undone"
    what = decided.changed if decided.changed.startswith(_GIT) else f"{decided.changed} changed"
    if decided.cannot_undo:
        return f"{what}, and {name(decided.cannot_undo)}"
    if decided.changed == "nothing":
        return "nothing changed"
    missing = f", but for {decided.not_kept} that were too large to keep" if decided.not_kept else ""
    return f"{what}, {f'{UNDO}{missing}' if decided.kept else 'and it cannot be undone'}"


# --- lines ------------------------------------------------------------------------------------------------------------


def explained(review: extensions.ApprovalRequest, *, short: bool = False) -> list[Line]:
    """Return all that a person should see before they decide, besides the call itself; see `overview` for `short`."""
    effects = review.effects if review.stage != "network" else None
    return [*introduced(review, short=short), *(differences(effects, short) if effects is not None else ())]


def introduced(review: extensions.ApprovalRequest, *, short: bool = False) -> list[Line]:
    """Return what a person should see before they decide, but for the differences of texts."""
    lines: list[Line] = []
    text = text_of(review.tool, review.arguments)
    if is_padded(text) and (review.effects is None or text_argument(review.tool, review.arguments) is None):
        lines.append(("bold red", f"! It holds long runs of blanks; with those counted it is: {name(text)}"))
    if review.stage in _STAGES:
        lines += [("yellow", name(review.reason)), ("bold yellow", _STAGES[review.stage])]
    if review.effects is None:
        return lines
    return lines + (refused(review.effects) if review.stage == "network" else overview(review.effects, short))


def listed(effects: extensions.ProposedEffects, short: bool = False) -> list[Line]:
    """Return effects line by line: protected paths, all changes, blocked attempts, and the differences of texts."""
    return [*overview(effects, short), *differences(effects, short)]


def overview(effects: extensions.ProposedEffects, short: bool = False) -> list[Line]:
    """Return effects line by line, without the differences of texts.

    If `short`, many changes of one kind in one directory are one line, unless they are protected.
    """
    lines: list[Line] = [("bold", f"Would change {detailed(effects)}")]
    lines += [("bold red", f"! {counted_unseen(effects)}; no line below shows them")] if effects.unseen else []
    lines += [("bold red", f"! {name(effects.cannot_undo)}")] if effects.cannot_undo else []
    lines += [
        ("bold red", f"!{_row(change)[1].removeprefix(' ')}: protected, because {name(change.protected)}")
        for change in effects.changes
        if change.protected
    ]
    others, own = [], []
    for change in effects.changes:
        if not change.protected and not change.ignored:
            if short and folder_of(change.path) in effects.packages:
                continue
            part = own_part(change.path) if effects.git else ""
            (own.append((part, change.what)) if part else others.append(change))
    lines += [("bold", f"  git: {name(effects.git)}")] if effects.git else []
    lines += [("", f"  {name(folder)}: {name(much)}") for folder, much in effects.packages.items()]
    lines += _gathered(others) if short else map(_row, others)
    lines += [("dim", f"  git keeps for itself: {kept_for_itself(own)}")] if own else []
    if quiet := sum(change.ignored for change in effects.changes):
        lines.append(("dim", f"  {quiet} name{'s' * (quiet > 1)} that git ignores"))
    if effects.left_out:
        lines.append(("bold yellow", f"  ... and {_totals(effects.left_out)}, too many to be listed"))
    return lines + refused(effects)


def _row(change: extensions.ChangedName) -> Line:
    tone, letter = LETTERS.get(change.what, ("", "?"))
    slash = "/" if change.kind == "dir" else ""
    hidden = f"; unseen: {name(change.unseen)}" if change.unseen else ""
    return tone, f"  {letter}  {name(change.path)}{slash}  {name(change.about)}{hidden}".rstrip()


def _gathered(changes: Iterable[extensions.ChangedName]) -> list[Line]:
    """Return changes with those together that are of one kind in one directory, where they are many."""
    groups: dict[tuple[str, str], list[extensions.ChangedName]] = {}
    for change in changes:
        groups.setdefault((change.path.rpartition("/")[0], change.what), []).append(change)
    lines: list[Line] = []
    for (place, what), group in groups.items():
        if len(group) <= _MANY:
            lines += map(_row, group)
        else:
            tone, letter = LETTERS.get(what, ("", "?"))
            lines.append((tone, f"  {letter}  {name(place) or '.'}/...  {len(group)} names"))
    return lines


def refused(effects: extensions.ProposedEffects) -> list[Line]:
    """Return the attempts that the sandbox has blocked, line by line."""
    lines = [("yellow", f"  {name(effects.rehearsed_in)}")] if effects.rehearsed_in else []
    lines += [("yellow", f"  network: {name(effects.traffic)}")] if effects.traffic else []
    lines += [("yellow", f"  refused, by the look of it: {name(effects.lacked)}")] if effects.lacked else []
    told = [each for each in effects.refused if concerns(each.kind, each.what)]
    lines += [("yellow", f"  blocked: {blocked(name(each.what), each.kind, each.count)}") for each in told]
    if others := sum(each.count for each in effects.refused if each not in told):
        many = f"{others} blocked attempt{'s' * (others > 1)}"
        lines.append(("dim", f"  {many} at other paths; `strongroom why` lists them"))
    if effects.refused_left_out:
        lines.append(("yellow", f"  ... and {effects.refused_left_out} more such attempts"))
    return lines
