"""The sentence of a rule: all that it covers, in words.

Rule: it leaves out nothing that the rule says, and every name in it is safe to show.
"""

from supervisor.display.escape import name
from supervisor.rules.rule import KINDS, Rule, joined, listed, quoted


def sentence(rule: Rule) -> str:
    """Return all that a rule says, on one line, safe to show."""
    text = {"allow": _allow_sentence, "ask": _ask_sentence, "deny": _deny_sentence}[rule.decision](rule)
    if rule.until is not None:
        text += f", until {rule.until.isoformat()}"
    return f"{text}: {name(rule.reason)}" if rule.reason else text


def _allow_sentence(rule: Rule) -> str:
    who = joined(_who(rule)) if rule.programs else "any program"
    if rule.starts:
        return f"{who} may be started"
    installs = f"install packages from {listed(rule.registries)} with the network" if rule.registries else ""
    if installs and not (rule.writes or rule.deletes):
        return f"{who} may {installs}"
    anything = rule.ignored and rule.writes == rule.deletes == ("**",)
    if anything:
        what = "add, change and delete what git ignores"
    elif rule.writes:
        what = f"add or change {listed(rule.writes)} and delete {listed(rule.deletes) if rule.deletes else 'nothing'}"
    else:
        what = f"delete {listed(rule.deletes) if rule.deletes else 'nothing'} and add or change nothing"
    many = "however many files" if rule.max_files is None else f"at most {_files(rule.max_files)}"
    if rule.max_bytes is not None:
        many += f" and at most {in_bytes(rule.max_bytes)}"
    if rule.kinds is not None:
        many += f", only {_kinds(rule)}"
    if rule.ignored and not anything:
        many += ", only what git ignores"
    if rule.git is not None:
        moved = sorted({path.partition("/.git/refs/")[2] for path in (f"/{each}" for each in rule.writes)} - {""})
        many += f", moving {'no ref' if not moved else f'no ref but {listed(moved)}'}"
    also = ", even if it tried to reach the network" if rule.network else ""
    return f"{who} may {what}, {many}{also}{f', and {installs}' if installs else ''}"


def _ask_sentence(rule: Rule) -> str:
    who = joined(_who(rule), "or") if rule.programs else "any program"
    return f"a person is asked before {who} {_touched(rule, 'adds or changes', 'deletes', 'changes')}"


def _deny_sentence(rule: Rule) -> str:
    who = f"{joined(_who(rule))} may not" if rule.programs else "no program may"
    return f"{who} {_touched(rule, 'add or change', 'delete', 'change')}"


def _who(rule: Rule) -> list[str]:
    """Return the programs as a sentence names them; git by its subcommands."""
    subcommands = [f"git {each}" for each in rule.git or ()] or ["git"]
    return [each for one in rule.programs or () for each in (subcommands if one == "git" else [quoted(one)])]


def _touched(rule: Rule, write: str, delete: str, change: str) -> str:
    """Return what a rule that asks or denies speaks of, with these verbs."""
    parts = [f"{verb} {listed(names, 'or')}" for verb, names in ((write, rule.writes), (delete, rule.deletes)) if names]
    if rule.network:
        parts.append(f"{change} anything after trying the network")
    text = ", or ".join(parts) or f"{change} anything"
    text += " that git ignores" if rule.ignored else ""
    return text if rule.kinds is None else f"{text}, as to {_kinds(rule)}"


def in_bytes(number: int) -> str:
    """Return a size as people say it."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= factor and number % factor == 0:
            return f"{number // factor} {unit}"
    return f"{number} bytes"


def _kinds(rule: Rule) -> str:
    return joined([KINDS[kind] for kind in rule.kinds]) if rule.kinds else "time stamps"


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
