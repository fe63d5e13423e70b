"""A session as a page: all of it is there, and nothing on it acts, whatever the session holds."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from supervisor.categories.media import MediaConfig
from supervisor.config.settings import Settings
from supervisor.journal.contents import ContentStore
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    ModelRetried,
    Replied,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from supervisor.journal.journal import Journal, JournalEntry
from supervisor.journal.kept_content import KeptContent
from supervisor.reports.history import history
from supervisor.reports.markdown_html import markdown_html
from supervisor.reports.time_and_tokens import TimePiece, turn_uses
from tests.hostile_page import MARKUP, faults_of, hostile_facts
from tests.media_files import picture


@pytest.fixture
def page(journal: Journal, settings: Settings, tmp_path: Path) -> str:
    content = picture()
    digest = ContentStore(settings.contents, settings.config.section(MediaConfig)).put("s", content)
    journal.append("s", *hostile_facts(tmp_path, KeptContent(digest, "image/png", len(content), "a.png", 1, 1)))
    return history(settings, "s", "html")


def test_whatever_a_session_holds_nothing_on_its_page_acts(page: str) -> None:
    assert faults_of(page) == []
    assert page.count('<img src="data:image/png;base64,') == 1
    assert page.count("it is not kept any more") == 1


def test_a_page_without_its_escapes_would_have_faults() -> None:
    for markup in MARKUP[:11]:
        assert faults_of(f"<html><style></style><pre>{markup}</pre></html>")


def test_the_policy_allows_the_style_of_the_page_and_nothing_else(page: str) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert policy[1].replace("&#x27;", "'") == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("a **b** `c`", "<p>a <strong>b</strong> <code>c</code></p>"),
        ("- x\n- y", "<ul><li>x</li><li>y</li></ul>"),
        ("|a|\n|-|\n|1|", "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>"),
        ("<https://a.example>", '<p><a href="https://a.example" rel="noreferrer noopener">https://a.example</a></p>'),
        ("[t](mailto:a@b)", '<p><a href="mailto:a@b" rel="noreferrer noopener">t</a><small> (mailto:a@b)</small></p>'),
        ("[t](ftp://x)", "<p>t<small> (ftp://x)</small></p>"),
        ("![a *b*](https://x/y)", "<p>![a *b*](https://x/y)</p>"),
        ("<b>&#x202e;</b>", "<p>&lt;b&gt;\\u202e&lt;/b&gt;</p>"),
    ],
)
def test_markdown_keeps_its_form_and_html_is_text(markdown: str, html: str) -> None:
    assert markdown_html(markdown) == html


def test_all_of_a_turn_s_time_is_somewhere_and_its_tokens_are_counted() -> None:
    facts: list[tuple[float, Fact]] = [
        (10.0, TurnStarted(1, "go")),
        (13.0, Replied(1, 0, [], "tool_use", {"input_tokens": 5, "cache_read_input_tokens": 70, "output_tokens": 3})),
        (20.0, CallStarted(1, "c", "run_cmd", "{}", True, "ask", "", approved=True)),
        (21.0, CallDecided(1, "c", "allow", "", True)),
        (25.0, CallEnded(1, "c", "run_cmd", True, "")),
        (26.0, ModelRetried(1, 1, "overloaded", "", 4.0)),
        (32.0, Replied(1, 1, [], "end_turn", {"input_tokens": 6, "output_tokens": 1})),
        (90.0, TurnResumed(1)),
        (91.0, TurnEnded(1, "ok", "")),
        (500.0, TurnStarted(2, "more")),
    ]
    first, second = turn_uses(JournalEntry(seq, "s", at, fact) for seq, (at, fact) in enumerate(facts))
    assert first.pieces == [
        TimePiece("model", 3.0),
        TimePiece("person", 7.0, "run_cmd"),
        TimePiece("tools", 1.0),
        TimePiece("tools", 4.0, "run_cmd"),
        TimePiece("model", 1.0),
        TimePiece("pause", 4.0),
        TimePiece("model", 2.0),
        TimePiece("pause", 58.0),
        TimePiece("other", 1.0),
    ]
    assert first.seconds == 81.0
    assert first.tokens == {"read": 11, "cached": 70, "written": 4}
    assert (second.turn, second.pieces) == (2, [])
