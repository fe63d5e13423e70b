"""What a session has seen, and who wrote it."""

from typing import Final

import msgspec
import pytest

from supervisor.journal.facts import CallEnded, CallStarted, Fact, Source, TurnStarted
from supervisor.tools.exfiltration.exposure import SeenText
from workers.url import parse

LINK: Final = "https://github.com/o/r/issues/7"
FREE: Final = {"person", "file", "page"}


def read(kind: str, text: str) -> list[Fact]:
    """Return the facts of a session that has seen one text of that kind."""
    if kind in ("person", "attachment"):
        return [TurnStarted(1, text, (Source(kind, "", b"", len(text)),))]  # type: ignore[arg-type]
    tool = {"page": "fetch_url", "output": "run_cmd", "foreign_tool": "issue_get"}.get(kind, "read_file")
    source = Source(kind, "a.md", b"", len(text))  # type: ignore[arg-type]
    return [CallEnded(1, "c", tool, True, text, sources=(source,))]


@pytest.mark.parametrize(
    "kind", ["person", "file", "agent_file", "foreign_file", "page", "output", "attachment", "foreign_tool"]
)
def test_a_link_is_free_by_who_wrote_it(kind: str) -> None:
    seen = SeenText()
    for fact in read(kind, f"See [it]({LINK}), please."):
        seen.apply(fact)
    source = seen.link(parse(LINK))
    assert (source.kind if source else None) == (kind if kind in FREE else None)
    assert seen.link(parse(f"{LINK}8")) is None
    assert seen.has_private == (kind not in ("person", "page"))


def test_lines_of_a_search_are_free_by_their_files() -> None:
    found = [{"path": "mine.md", "line": 1, "text": LINK}, {"path": "its.md", "line": 1, "text": f"{LINK}8"}]
    sources = (Source("file", "github"), Source("agent_file", "its.md"))
    seen = SeenText()
    seen.apply(CallEnded(1, "c", "search_files", True, msgspec.json.encode(found).decode(), "json", sources=sources))
    assert seen.link(parse(LINK)) is not None
    assert seen.link(parse(f"{LINK}8")) is None


def test_names_of_files_are_no_links() -> None:
    seen = SeenText()
    seen.apply(CallEnded(1, "c", "list_files", True, '["github.com/o/r.md"]', "json"))
    assert seen.link(parse("https://github.com/o/r.md")) is None


def test_an_old_journal_says_what_was_read_by_its_calls() -> None:
    seen = SeenText()
    seen.apply(CallStarted(1, "c", "read_file", '{"path": "a.md"}', False, "allow", ""))
    seen.apply(CallEnded(1, "c", "read_file", True, "text"))
    assert [(each.kind, each.name) for each in seen.latest(3)] == [("file", "a.md")]
