"""One word, one meaning: the words that ARCHITECTURE.md retires are in no name of a module, class or function."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
_TABLE: Final = re.compile(r"^\| retired \| use \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)
_PARTS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def retired() -> set[tuple[str, ...]]:
    """Return the retired words, each as its parts: ("take", "back"). What stands in brackets is for people."""
    table = _TABLE.search((ROOT / "ARCHITECTURE.md").read_text("utf-8"))
    assert table
    cells = [row.split("|")[1] for row in table[1].splitlines()]
    words = [word for cell in cells for word in re.sub(r"\(.*?\)", "", cell).split(",")]
    return {tuple(word.split()) for word in words}


@cache
def modules() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Return each module's docstring, and where which class or function is defined in it; no tree is kept."""
    found = {}
    for file in [file for folder in ("supervisor", "workers") for file in sorted((ROOT / folder).rglob("*.py"))]:
        tree, place = ast.parse(file.read_text("utf-8")), str(file.relative_to(ROOT))
        defined = [(place, file.stem if file.stem != "__init__" else file.parent.name)]
        defined += [
            (f"{place}:{node.lineno}", node.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        found[place] = (ast.get_docstring(tree) or "", defined)
    return found


def names() -> list[tuple[str, str]]:
    """Return where a name is defined, and the name: of modules, classes and functions."""
    return [each for _, defined in modules().values() for each in defined]


def words_in(name: str, longest: int) -> set[tuple[str, ...]]:
    """Return what a name says, in one part of it or in several that follow each other."""
    parts = tuple(part.lower() for part in _PARTS.findall(name))
    return {parts[at : at + size] for size in range(1, longest + 1) for at in range(len(parts) - size + 1)}


def test_no_name_has_a_retired_word() -> None:
    words = retired()
    assert len(words) > 30
    longest = max(map(len, words))
    found = [f"{place} {name}: {' '.join(word)}" for place, name in names() for word in words & words_in(name, longest)]
    assert found == []


def test_no_module_begins_with_a_riddle() -> None:
    question = re.compile(r"^(What|Which|Whether|Who|Whose|Where|When|Why|How)\b")
    assert [place for place, (line, _) in modules().items() if question.match(line) or not line] == []


def test_no_class_name_stands_twice() -> None:
    """A private one counts as its public namesake would: a reader sees the same word."""
    seen: dict[str, str] = {}
    twice = []
    for place, name in names():
        if name[:1].isupper() or (name[:2] != "__" and name.lstrip("_")[:1].isupper()):
            bare = name.lstrip("_")
            if bare in seen:
                twice.append((bare, seen[bare], place))
            seen[bare] = place
    assert twice == []


def test_the_documents_name_files_that_are_there() -> None:
    documents = ("README.md", "MANUAL.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
    path = re.compile(r"(?:`|\()((?:supervisor|workers|tests|scripts)/[\w/.-]+)(?:`|\))")
    named = {(document, file) for document in documents for file in path.findall((ROOT / document).read_text("utf-8"))}
    assert len(named) > 20
    assert sorted(pair for pair in named if not (ROOT / pair[1]).exists()) == []
