"""Programs that only look: what a command must consist of to be tried on the root itself, read-only.

Rule: pure, and deny by default. It is no boundary: nothing can be written there, and what tries to is ended and
rehearsed (`workers.shell.look`). A row says which arguments are worth the try, and leaves out those by which a program
opens files that its words do not name, for reading from a FIFO takes something from whoever writes there.
"""

import glob
import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from workers.shell.shell_line import Word

GIT: Final = ".git"
"""With all that is in it but objects, where it is named."""
_OPTION: Final = 64
"""Characters of a word of options, each of which may have a file's name after it."""
_ANY: Final = ".*"
_GIT: Final = "(?:--no-pager\0|-C\0[^\0]+\0)*(?:{always}|{listing})".format(
    always="(?:annotate|blame|cat-file|check-attr|check-ignore|cherry|count-objects|describe|diff|diff-files|diff-index"
    "|diff-tree|for-each-ref|grep|log|ls-files|ls-tree|merge-base|name-rev|range-diff|rev-list|rev-parse|shortlog|show"
    "|show-branch|show-ref|status|var|version|whatchanged|--version)(?:\0(?!--no-index|--output|--ext)[^\0]*)*",
    listing="(?:branch|tag)(?:\0-(?:a|r|v|vv|l|-list|-all|-remotes|-show-current|-sort=[^\0]*|-format=[^\0]*))*"
    "|(?:branch|tag)\0(?:-l|--list)\0.*|stash\0(?:list|show)(?:\0.*)?|remote(?:\0-v)?|worktree\0list|reflog(?:\0show)?"
    "|config\0(?:--get|--list|-l)(?:\0.*)?",
)

_PLAIN: Final = (
    ": basename cat cd cmp column comm cut date df dirname du echo expand expr false fold head hexdump id join "
    "ls nl nproc od paste pwd readlink realpath rev seq stat tac tail tr true uname uniq whoami"
)

_LOOKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "git": _GIT,
        "find": "(?!(?:.*\0)?-(?:exec|ok|delete|fprint|fls|files0-from)).*",
        "grep": "(?!(?:.*\0)?-(?:[A-Za-z]*D|-de)).*",
        "egrep": "(?!(?:.*\0)?-(?:[A-Za-z]*D|-de)).*",
        "fgrep": "(?!(?:.*\0)?-(?:[A-Za-z]*D|-de)).*",
        "sed": "-n\0[0-9,$;p ]+(?:\0(?!-).*)?",
        "file": "(?:-[bikL]+\0|--mime(?:-type|-encoding)?\0|--brief\0)*(?:--\0)?(?!-)[^\0]*(?:\0(?!-)[^\0]*)*",
        "jq": "(?!.*(?:import|include)).*",
        **dict.fromkeys(("sort", "wc"), "(?!(?:.*\0)?--f).*"),
        **dict.fromkeys(("md5sum", "sha1sum", "sha256sum", "sha512sum"), "(?!(?:.*\0)?-(?:[a-z]*c|-c)).*"),
        **dict.fromkeys(("test", "[", "printf"), "(?!(?:.*\0)?-v).*"),
        **dict.fromkeys(_PLAIN.split(), _ANY),
    }
)
"""Program -> pattern of its arguments, which are joined by NUL."""
_READS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"git": (".gitattributes", ".mailmap", GIT, f"{GIT}/objects/info/*")}
)
"""Program -> what it reads by itself, as patterns of names; `rg` is in no table, for it reads such files everywhere."""
_PATTERNS: Final = {name: re.compile(pattern, re.DOTALL) for name, pattern in _LOOKS.items()}
PROGRAMS: Final = frozenset(_LOOKS)


class LookPlan(NamedTuple):
    """A command that only looks."""

    programs: frozenset[str]
    names: tuple[str, ...]
    """Patterns of files that words may name; a word stands here once more for each part of it that may."""
    directories: tuple[str, ...]
    """Where the command goes on from: none but the first where it changes no directory."""


def look_of(commands: Sequence[Sequence[Word]]) -> LookPlan | None:
    """Return what simple commands look at; None where one of them may do more."""
    names: list[str] = []
    directories = ["."]
    for program, *words in commands:
        pattern = _PATTERNS.get(program.raw)
        texts = [each.text for each in words]
        if pattern is None or not pattern.fullmatch("\0".join(texts)) or any(map(_unclear, words)):
            return None
        names += _READS.get(program.text, ())
        moves = (
            texts if program.text == "cd" else [each for at, each in enumerate(texts) if texts[at - 1 : at] == ["-C"]]
        )
        if len(directories) + len(moves) > 2 or any(each.expands for each in words if each.text in moves):  # noqa: PLR2004
            return None
        directories += [os.path.join(directories[-1], each) for each in moves]
        for each in words:
            options = each.text[:_OPTION] if each.text.startswith("-") else ""
            parts = {each.text, each.text[2:], each.text.partition("=")[2]} - {""}
            parts |= {each.text[at:] for at in range(2, len(options))}
            names += parts if each.expands else map(glob.escape, parts)
    return LookPlan(frozenset(words[0].text for words in commands), tuple(names), tuple(directories))


def _unclear(word: Word) -> bool:
    """Say whether a shell may make of a word what a pattern of `*` and `?` alone does not say."""
    return word.expands and not re.fullmatch(r"(?!~)(?:[^'\"\\\[{]|\{[^{},.]*\})*", word.raw)
