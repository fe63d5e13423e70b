"""Search in the profiles that people get: what was just written is found, and commands of a batch find it."""

import json
from pathlib import Path

from tests.supervisor.command import Strongroom


def test_new_content_is_found(strongroom: Strongroom, root: Path) -> None:
    (root / ".gitignore").write_text("build/\n")
    calls = [
        ("write_file", {"path": "src/new.py", "content": "def brand_new():\n    pass\n"}),
        ("search_files", {"query": "brand_new"}),
        ("edit_file", {"path": "src/new.py", "old": "brand_new", "new": "renamed"}),
        ("search_files", {"query": r"def \w+", "glob": "*.py"}),
        ("write_file", {"path": "build/made.py", "content": "def renamed(): pass\n"}),
        ("search_files", {"query": "renamed"}),
        ("write_file", {"path": ".gitignore", "content": "src/\n"}),
        ("search_files", {"query": "renamed", "literal": True}),
    ]
    lines = "\n".join(
        json.dumps({"id": at, "tool": tool, "arguments": given}) for at, (tool, given) in enumerate(calls)
    )
    done = strongroom.run("call", "--stdin", "--profile", "project", "--root", str(root), "--approve", stdin=lines)
    answers = {answer["id"]: answer for answer in done.lines}
    assert [answers[at]["ok"] for at in range(len(calls))] == [True] * len(calls), done
    for at, text in ((1, "def brand_new():"), (3, "def renamed():"), (5, "def renamed():")):
        assert answers[at]["content"] == [{"path": "src/new.py", "line": 1, "text": text}]
    assert [each["path"] for each in answers[7]["content"]] == ["build/made.py"]


def test_a_batch_searches_the_vault(strongroom: Strongroom, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "notes").mkdir(parents=True)
    (vault / "notes/idea.md").write_text("# Idea\n\nA swordfish in every pond.\n")
    done = strongroom.batch("search swordfish\nsearch (\n", root="")
    found, refused = sorted(strongroom.results, key=lambda result: "swordfish" not in result["answer"])
    assert done.code == 0, done
    assert "notes/idea.md" in found["answer"]
    assert found["tool_calls"][0]["tool"] == "search_files"
    assert refused["tool_calls"][0]["error_kind"] == "invalid_arguments"
    assert "unclosed group" in refused["answer"]
