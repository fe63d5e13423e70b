"""Every fold over facts says of every fact that it handles it, or that it ignores it.

A fold is a module that matches on facts. What it has a case for is handled; its docstring names the others, in a
sentence that begins with "Facts ignored:".
"""

import ast
import re
from pathlib import Path
from typing import Final, get_args

from supervisor.journal.facts import Fact, TurnEnded, decode, encode
from tests.each_row import each_row

SUPERVISOR: Final = Path(__file__).parents[3] / "supervisor"
FACTS: Final = {fact.__name__ for fact in get_args(Fact)}


def handled(tree: ast.Module) -> set[str]:
    patterns = [node.cls for node in ast.walk(tree) if isinstance(node, ast.MatchClass)]
    return {name.id for name in patterns if isinstance(name, ast.Name)} & FACTS


def ignored(tree: ast.Module) -> set[str]:
    told = re.search(r"^Facts ignored: ([\w\s,]+)\.$", ast.get_docstring(tree) or "", re.MULTILINE)
    return set(re.split(r",\s+", told[1])) if told else set()


FOLLOWING: Final = {
    SUPERVISOR / name
    for name in ("session/single_call.py", "daemon/sessions/open_session.py", "daemon/sessions/subscribers.py")
}
"""They follow one call or one turn while it happens, and are no folds."""
TEXTS: Final = {path: path.read_text("utf-8") for path in sorted(set(SUPERVISOR.rglob("*.py")) - FOLLOWING)}
TREES: Final = {path: ast.parse(text) for path, text in TEXTS.items() if "supervisor.journal.facts" in text}
FOLDS: Final = {str(path.relative_to(SUPERVISOR)): tree for path, tree in TREES.items() if handled(tree)}


def test_the_folds_are_found() -> None:
    known = {"agent/transcript.py", "journal/index.py", "undo/undo_plan.py", "tools/exfiltration/exposure.py"}
    assert known | {"reports/why.py", "reports/session_text.py", "daemon/protocol/updates.py"} <= set(FOLDS)


@each_row("fold", FOLDS)
def test_a_fold_handles_or_ignores_each_fact(fold: str) -> None:
    handles, ignores = handled(FOLDS[fold]), ignored(FOLDS[fold])
    neither = FACTS - handles - ignores
    assert not neither, f"{fold} neither handles nor ignores {', '.join(sorted(neither))}"
    assert ignores - FACTS == set(), f"{fold} ignores what is no fact"
    assert handles & ignores == set(), f"{fold} says that it ignores what it handles"


def test_a_fact_reads_back_as_it_was_written() -> None:
    fact = TurnEnded(1, "ok", "an answer")
    assert decode(encode(fact)) == fact
    assert encode(fact) == b'{"fact":"TurnEnded","turn":1,"status":"ok","answer":"an answer"}'
