"""What the mode `edits` asks about all the same in a source tree, and whose word it leaves alone."""

from typing import Any, Final

from msgspec.structs import replace

from supervisor.rules.judge_effects import Verdict
from supervisor.rules.modes import InTree, judge_by_mode
from supervisor.rules.rule import Mode, Rule
from tests.each_row import each_row
from tests.supervisor.changes import change, effects
from workers.changes.effects import Change, Effects, GitChange, NodeState, Traffic

UNDECIDED: Final = Verdict("ask", "no rule covers that")
NPM: Final = InTree(("npm",))
UNSEEN: Final = InTree(("npm",), index_unseen=True)


LOG: Final = Change(".git/logs/HEAD", "modified", NodeState("file", 0o644, 9), NodeState("file", 0o644))
TOPIC: Final = ("- .git/refs/heads/topic", "- .git/logs/refs/heads/topic")
STASH: Final = ("- .git/refs/stash", "- .git/logs/refs/stash")
GONE: Final = GitChange("moved", "refs/heads/topic", "1234567" * 5)
RENAMED: Final = GitChange("moved", "refs/heads/other", "", "1234567" * 5)
DROPPED: Final = GitChange("moved", "refs/stash", "1234567" * 5)


def made(text: str = "+ node_modules/.bin/tsc", **more: Any) -> Change:
    return change(text, protected="npm runs it", level="refused", **more)


PYTHON: Final = InTree(("python3",))


def link(target: str, **more: Any) -> Change:
    return Change(".venv/bin/python", "added", None, NodeState("link", 0o777, target=target), leaves=True, **more)


def gone(*texts: str, ignored: bool = True, level: Any = "asked") -> Effects:
    return effects(*(change(each, ignored=ignored, protected="it is obeyed", level=level) for each in texts))


IN_TREE: Final[list[tuple[str, Effects, InTree, str]]] = [
    ("a file", effects("+ a", "- b"), NPM, ""),
    ("more than is listed", effects("+ a", left_out={"added": 1}), NPM, "too many to list"),
    ("a network that was had", effects("+ a", traffic=(Traffic("x:443", 1, 1),)), NPM, "it used the network"),
    ("a set-user-ID bit", effects(change("+ a", withheld=0o4000)), NPM, "set-user-ID bits: a"),
    ("a deletion where the index is not seen", effects("- a"), UNSEEN, "may track: a"),
    ("an ignored one there", effects(change("- a", ignored=True)), UNSEEN, ""),
    ("a log that loses lines", effects(LOG), NPM, "takes away what git keeps: .git/logs/HEAD"),
    ("one that gains some", effects(replace(LOG, before=LOG.after, after=LOG.before)), NPM, ""),
    (
        "a deleted branch",
        effects(*TOPIC, git=(GONE,)),
        NPM,
        "takes away what git keeps: branch topic deleted, was 1234567",
    ),
    ("a renamed one", effects(*TOPIC, git=(GONE, RENAMED)), NPM, ""),
    ("a renamed one, and a log", effects(*TOPIC, LOG, git=(GONE, RENAMED)), NPM, "git keeps: .git/logs/HEAD"),
    ("a dropped stash", effects(*STASH, git=(DROPPED,)), NPM, "stash deleted, was 1234567"),
    ("a popped one", effects(*STASH, "~ a", git=(DROPPED,)), NPM, ""),
    ("a popped one, and a branch", effects(*STASH, *TOPIC, "~ a", git=(DROPPED, GONE)), NPM, "git keeps: branch topic"),
    ("a new directory of objects", effects("+ sub/.git/objects/info/"), NPM, ""),
    ("what its maker makes", effects(made(ignored=True)), NPM, ""),
    ("the same by another", effects(made(ignored=True)), InTree(("cp",)), "protected files"),
    ("the same by who knows whom", effects(made(ignored=True)), InTree(None), "protected files"),
    ("the same, not ignored", effects(made()), NPM, "protected files"),
    ("a link to an interpreter", effects(link("/usr/bin/python3", ignored=True)), PYTHON, ""),
    ("one that is not ignored", effects(link("/usr/bin/python3")), PYTHON, "lead outside"),
    ("a link elsewhere", effects(link("/etc/shadow", ignored=True)), PYTHON, "lead outside"),
    ("a build that goes", gone("- out/build/", "- out/build/sub/", "- out/build/sub/x.cmake"), InTree(("rm",)), ""),
    ("packages that go", gone("- web/node_modules/", "- web/node_modules/x"), InTree(("rm",)), ""),
    ("an environment that goes", gone("- .venv/", "- .venv/bin/", level="refused"), InTree(("rm",)), ""),
    ("a history of another's", gone("- .hg/", "- .hg/store", level="refused"), InTree(("rm",)), "protected files"),
    ("one in a directory", gone("- x/", "- x/.jj/", level="refused"), InTree(("rm",)), "protected files"),
    ("one of them", gone("- node_modules/x/", "- node_modules/x/index.js"), InTree(("rm",)), "protected files"),
    ("a file that goes", gone("- out/x.cmake"), InTree(("rm",)), "protected files"),
    ("what git does not ignore", gone("- out/", "- out/x", ignored=False), InTree(("rm",)), "protected files"),
]


@each_row(("found", "tree", "words"), [row[1:] for row in IN_TREE], ids=[row[0] for row in IN_TREE])
def test_in_a_source_tree_all_is_made_but_these(found: Effects, tree: InTree, words: str) -> None:
    verdict = judge_by_mode("edits", UNDECIDED, found, tree)
    assert (verdict.decision, words in verdict.reason) == ("ask" if words else "allow", True)


@each_row("mode", ["edits", "ask"])
@each_row("decision", ["allow", "ask", "deny"])
def test_what_a_rule_says_holds(mode: Mode, decision: Any) -> None:
    verdict = Verdict(decision, "a rule", Rule(decision, writes=("a",)))
    assert judge_by_mode(mode, verdict, effects("+ a"), NPM) == verdict
