"""Rules that a text states in so many words: "Never change migrations/." Pure.

Rule: only a line that says nothing else, in one of the forms below, of what is plainly a path. A reason behind it, an
exception, a name that may be code: then it is no rule here, for one that means more than was said is worse than none.
It is offered, not made; who keeps it is a person, and then it holds by the engine.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from supervisor.display.escape import one_line
from supervisor.rules.rule import Rule, problem_of

MOST: Final = 20
"""Rules that are offered of all files together."""
_LINE: Final = 200
"""Characters of the longest line that is looked at."""
_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_MARKS: Final = re.compile(r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\[[ x]\]\s+)?")
_BOLD: Final = re.compile(r"\*\*(?=\S)|(?<=\S)\*\*(?=[\s.:!,]|$)|__")

_CHANGE: Final = "change|modify|edit|touch|alter|overwrite|rewrite"
_DELETE: Final = "delete|remove"
_CHANGED: Final = "changed|modified|edited|touched|altered|overwritten|rewritten"
_DELETED: Final = "deleted|removed"
_NOT: Final = (
    r"(?:please,? )?(?:you (?:must|may) (?:never|not)|never|do not|don['\u2019]t|must (?:not|never)|may not)(?: ever)?"
)
_PATH: Final = r"(?:`[^`\s]{1,200}`|\"[^\"\s]{1,200}\"|[^\s`\",;:()]{1,200}?)"
_PATHS: Final = rf"(?P<paths>{_PATH}(?: (?:or|and|nor) {_PATH}|, {_PATH})*)"
_FILES: Final = (
    r"(?:(?:any|the|all)? ?(?:files?|contents?|anything|everything) (?:in|inside|under|beneath|below|within|of) )?"
)
_KIND: Final = r"(?P<kind> (?:directory|folder|file|dir))?"
_END: Final = r"(?:,? (?:ever|at all|under any circumstances))?[.!]*"


def _verbs(first: str) -> str:
    return rf"(?P<verbs>(?:{first})(?:(?:, | or | and |, or )(?:{first}))*)"


_ANY: Final = f"{_CHANGE}|{_DELETE}"
_DONE: Final = f"{_CHANGED}|{_DELETED}"
_FORMS: Final = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_NOT} {_verbs(_ANY)} {_FILES}(?:the )?{_PATHS}{_KIND}{_END}",
        rf"(?:the )?(?:files? (?:in|under) )?{_PATHS}{_KIND} (?:must|may) (?:never|not) be {_verbs(_DONE)}{_END}",
        rf"(?:the )?(?:files? (?:in|under) )?{_PATHS}{_KIND} (?:is|are) (?P<verbs>read-only|off[- ]limits){_END}",
        rf"{_NOT} (?P<verbs>{_DELETE})(?: (?:any |the )?(?:files?|anything))?{_END}",
    )
)
"""What is forbidden; without `paths`, of all of the root."""
_BETWEEN: Final = re.compile(r",? (?:or|and|nor) |, ")
_NAME: Final = re.compile(r"\.?[A-Za-z0-9_*?-][A-Za-z0-9_.*?+-]*")
_ENDING_NAMES: Final = (
    "c cc cfg conf cpp cs css csv env go gradle h hpp html ini java js json jsx kt lock lua md mjs php pl proto py pyi "
    "rb rs scss sh sql svg swift tf toml ts tsx txt xml yaml yml"
)
_ENDINGS: Final = frozenset(_ENDING_NAMES.split())
"""Of names that are files, and no code, where nothing else says so."""


class StatedRule(NamedTuple):
    """One rule, and where it stands."""

    path: str
    """Of the file."""
    line: str
    rule: Rule

    @property
    def told(self) -> str:
        """Where it stands, and how, in a few words."""
        return one_line(f"{self.path} says: {_MARKS.sub('', self.line, count=1).rstrip('.! ')}", _LINE)


def stated_rules(texts: Mapping[str, str]) -> list[StatedRule]:
    """Return the rules that instructions state, by their files' paths, each once."""
    found: dict[Rule, StatedRule] = {}
    for path, text in texts.items():
        directory = "" if path.startswith("/") else path.rpartition("/")[0]
        for line in _lines(text):
            rule = rule_of(line, directory)
            if rule is not None and len(found) < MOST:
                found.setdefault(rule, StatedRule(path, line, rule))
    return list(found.values())


def rule_of(line: str, directory: str = "") -> Rule | None:
    """Return the rule that a line states, of a file in a directory of the root; None where it states none."""
    said = _BOLD.sub("", _MARKS.sub("", line, count=1)).strip()
    for form in _FORMS:
        if (match := form.fullmatch(said)) is None:
            continue
        given = match.groupdict()
        kind = (given.get("kind") or "").strip().lower()
        words = _BETWEEN.split(given["paths"]) if given.get("paths") else []
        named = [_patterns(each, kind, directory) for each in words]
        if not all(named):
            continue
        patterns = tuple(dict.fromkeys(pattern for each in named for pattern in each)) or (_beneath(directory, "**"),)
        verbs = given["verbs"].lower()
        only_deletes = re.search(f"{_CHANGE}|{_CHANGED}|read-only|off.limits", verbs) is None
        rule = Rule("deny", writes=() if only_deletes else patterns, deletes=patterns)
        if not problem_of(rule):
            return rule
    return None


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of prose that can state a rule: none of code, quotes, headings and tables."""
    is_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code and len(line) <= _LINE and not line.startswith(("    ", "\t", ">", "#", "|")):
            yield line.strip()


def _patterns(word: str, kind: str, directory: str) -> tuple[str, ...]:
    """Return the patterns for what a word names; none where it may be anything else than a path."""
    marked = word[:1] in ('"', "`")
    path = word.strip('"`').removeprefix("./")
    parts = path.rstrip("/").split("/")
    if not all(part == "**" or _NAME.fullmatch(part) for part in parts):
        return ()
    ending = parts[-1].rpartition(".")[2].lower()
    is_file = "." in parts[-1] and (ending in _ENDINGS or kind == "file" or (marked and parts[-1].startswith(".")))
    is_directory = path.endswith("/") or kind in ("directory", "folder", "dir")
    if not (is_file or is_directory or "*" in path or (marked and len(parts) > 1) or (marked and kind == "file")):
        return ()
    if is_directory:
        return (_beneath(directory, "/".join(parts) + "/"),)
    if len(parts) == 1:
        return (_beneath(directory, f"**/{path}"),)
    whole = _beneath(directory, path)
    return (whole,) if is_file or "*" in parts[-1] else (whole, f"{whole}/**")


def _beneath(directory: str, pattern: str) -> str:
    return f"{directory}/{pattern}" if directory else pattern
