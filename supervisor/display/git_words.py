"""Changes of git repositories in git's words, and what git keeps for itself. Pure.

Rule: a word of it stems from bytes that the worker has looked at; names are those of references, and are shown escaped.
What is not understood stays among the changes, by its path.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from supervisor.display.escape import name, one_line
from workers.changes.effects import GIT, GitChange

_OWN: Final = (
    r"(?:.*/)?\.git/(?:(objects|logs|refs)|(objects)/(?:pack|[0-9a-f]{2}(?:/[0-9a-f]{38,62})?)"
    r"|(objects)/pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev)|(logs|refs)/.*"
    r"|(index|HEAD|ORIG_HEAD|FETCH_HEAD|MERGE_HEAD|MERGE_MSG|MERGE_MODE|AUTO_MERGE|CHERRY_PICK_HEAD|REVERT_HEAD)"
    r"|(packed-refs|COMMIT_EDITMSG|TAG_EDITMSG))"
)
_PLURALS: Final = {"objects": "object", "logs": "log", "refs": "reference"}
_KINDS: Final = (("refs/heads/", "branch"), ("refs/tags/", "tag"), ("refs/remotes/", "remote branch"))
_PLAIN: Final = re.compile(r"[\w./@+-]{1,60}", re.ASCII)
_SHORT: Final = 7
_WIDTH: Final = 60


def own_part(path: str) -> str:
    """Return the part of git's directory that a path is, if git keeps that for itself; else ""."""
    found = re.fullmatch(_OWN, path)
    return next(filter(None, found.groups())) if found else ""


def kept_for_itself(changes: Iterable[tuple[str, str]]) -> str:
    """Return changes, a part and what became of it each, as a clause: "3 objects added, index modified"."""
    counts = Counter((part, what) for part, what in changes)
    return ", ".join(
        f"{count} {_PLURALS[part]}{'s' * (count > 1)} {what}" if part in _PLURALS else f"{part} {what}"
        for (part, what), count in sorted(counts.items())
    )


def git_words(changes: Sequence[GitChange], most: int = GIT) -> str:
    """Return what became of repositories as a clause, "" where nothing did; the worker tells no more than `GIT`."""
    told = [_words(each) for each in changes[:most]]
    return "; ".join([*told, *["and more"] * (len(changes) > most or len(changes) == GIT)])


def _words(change: GitChange) -> str:
    old, new = change.old[:_SHORT], change.new[:_SHORT]
    branch = _shown(change.name.removeprefix("refs/heads/")) or "no branch"
    count = "" if change.files is None else f", {change.files} file{'' if change.files == 1 else 's'}"
    match change.kind:
        case "commit":
            text = f"commit {new} on {branch}{count}"
        case "amended":
            text = f"commit {new} on {branch} in place of {old}{count}"
        case "merge":
            text = f"merge {new} on {branch}{count}"
        case "head":
            text = f"HEAD at {branch}"
        case "index":
            text = f"index{count.removeprefix(',')}"
        case "odd":
            text = f"{_shown(change.name)} names no object"
        case "moved":
            text = _moved(change.name, old, new)
    return f"{text} (in {_shown(change.repository)})" if change.repository else text


def _shown(text: str) -> str:
    """Return a name as it stands in a clause, in quotes where it could be taken for another part of that."""
    if _PLAIN.fullmatch(text) or not text:
        return text
    return one_line(name(json.dumps(text, ensure_ascii=False)), _WIDTH)


def _moved(ref: str, old: str, new: str) -> str:
    kind, short = next(((word, ref.removeprefix(each)) for each, word in _KINDS if ref.startswith(each)), ("", ref))
    what = f"{kind} {_shown(short)}".strip() if ref else "HEAD"
    if ref == "refs/stash":
        what = "stash"
    if not new:
        return f"{what} deleted, was {old}"
    return f"{what} moved from {old} to {new}" if old else f"{what} at {new}"
