"""A session in which everything that can hold a text holds a hostile one, and what a page must not have of it."""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from typing import Any, Final

from supervisor.display.escape import visible
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    ModelRetried,
    ModelSwitched,
    Replied,
    ReplyCut,
    TurnEnded,
    TurnStarted,
)
from supervisor.journal.kept_content import KeptContent
from tests.supervisor.histories import opening_fact
from workers.changes.effects import Change, Effects, NodeState

MARKUP: Final = (
    "<script>document.title='ran'</script>",
    "</style><script>document.title='ran'</script>",
    "</title></pre></code></details></main><h1>forged</h1>",
    "<img src=x onerror=\"document.title='ran'\">",
    '"><svg onload="document.title=\'ran\'">',
    "<details open ontoggle=\"document.title='ran'\">",
    "--><script>document.title='ran'</script>",
    "<iframe srcdoc=\"<script>parent.document.title='ran'</script>\">",
    "<base href=https://evil.example><form action=https://evil.example><button>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<style>@import url(https://evil.example);</style>",
    "[x](javascript:document.title='ran') [y](data:text/html,<script>1</script>) [z](file:///etc/passwd)",
    '[a](JaVaScRiPt:1) <javascript:1> [b](//evil.example) [c](https://evil.example/"onclick=1) [d](vbscript:1)',
    "![p](https://evil.example/pixel.png) &#x202e;exe.gnp &#0;&#27;[2J",
    "\u202eevil\u2066\u200b \x1b]0;owned\x07\x00\x9b \u2028\ue000\U000e0041",
    "```\n</code></pre><script>document.title='ran'</script>\n```",
    "> " * 200 + "deep",
    "[" * 500 + "](x)",
    "*" * 5000,
)
_BARE: Final = (
    *("html", "head", "title", "style", "body", "main", "section", "div", "p", "span", "small", "pre", "code", "b"),
    *("h1", "h3", "h4", "h5", "h6", "em", "strong", "s", "ul", "ol", "li", "blockquote", "hr", "br", "figure"),
    *("table", "thead", "tbody", "tr", "th", "td", "summary", "details", "figcaption"),
)
_ALLOWED: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(_BARE, frozenset()),
    "h2": frozenset({"id"}),
    "meta": frozenset({"charset", "http-equiv", "content", "name"}),
    "a": frozenset({"href", "rel"}),
    "img": frozenset({"src", "alt", "loading"}),
    "svg": frozenset({"viewbox", "preserveaspectratio", "role", "aria-label"}),
    "rect": frozenset({"x", "width", "height"}),
}
"""The elements that a page may have, each with its attributes besides `_EVERYWHERE`."""
_EVERYWHERE: Final = frozenset({"class", "lang"})
_EMPTY: Final = frozenset({"meta", "img", "br", "hr"})


def corpus_texts() -> Iterator[str]:
    """Yield every text of the attack corpora."""

    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for key, each in value.items():
                yield from (key, *texts(each))
        elif isinstance(value, list):
            for each in value:
                yield from texts(each)

    for path in sorted((Path(__file__).parent / "corpus").glob("*.json")):
        yield from texts(json.loads(path.read_text()))


def _hostile_effects(every: str) -> Effects:
    return Effects(
        (
            Change(
                f"a{every[:200]}.py",
                "modified",
                before=NodeState("file", 0o644),
                after=NodeState("file", 0o644),
                diff="@@ -1,2 +1,2 @@\n-x = 1\n+x = 2\n" + "".join(f"+{line}\n" for line in every.splitlines()),
            ),
        ),
        {"modified": 1},
        b"",
    )


def hostile_facts(root: Path, image: KeptContent) -> list[Fact]:
    """Return the facts of a session that was shown an image."""
    every = "\n\n".join(MARKUP)
    corpus = "\n\n".join(text.encode(errors="replace").decode() for text in corpus_texts())[:150_000]
    lost = KeptContent("0" * 64, "image/png", 1, every[:150], 1, 1, note=every[:100])
    vector = KeptContent(image.digest, "image/svg+xml", 1, "x.svg", 1, 1)
    facts: list[Fact] = [
        opening_fact(root / every[:100]),
        TurnStarted(1, f"<b>first</b> {every}", contents=(image, lost, vector)),
        Replied(
            1,
            0,
            [{"type": "thinking", "thinking": every}, {"type": "text", "text": every}],
            "tool_use",
            {"input_tokens": 5},
        ),
        CallStarted(
            1,
            every,
            every,
            json.dumps({every: every}),
            True,
            "ask",
            every,
            approved=True,
            remark=every,
            decided_by=every,
        ),
        CallDecided(
            1, every, "ask", every, True, _hostile_effects(every), decided_by=every, remark=every, cannot_undo=every
        ),
        CallEnded(1, every, every, True, every),
        *(
            fact
            for number, text in zip(count(), MARKUP)
            for fact in (
                CallStarted(1, f"c{number}", "run_cmd", text, True, "allow", "", edited=text),
                CallEnded(1, f"c{number}", "run_cmd", False, text, kind="not_found"),
            )
        ),
        CallEnded(1, "j", "run_cmd", True, json.dumps({"stdout": every, "stderr": every, "exit_code": 1}), form="json"),
        ModelRetried(1, 1, every, every, 1.0, text=every),
        ReplyCut(1, 1, every),
        ModelSwitched(1, every, every, every, by=every),
        TurnEnded(1, "error", "", kind=every, message=every),
        TurnStarted(2, corpus),
        Replied(2, 0, [{"type": "text", "text": corpus}], "end_turn", {"output_tokens": 7}),
        CallStarted(2, "d", "read_file", "{}", False, "allow", ""),
        CallEnded(2, "d", "read_file", True, corpus),
    ]
    return facts


class _Census(HTMLParser):
    """Takes down what a page must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.open: list[str] = []
        self.styles = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.styles += tag == "style"
        if tag not in _EMPTY:
            self.open.append(tag)
        for name, value in attrs:
            address = (value or "").lower()
            allowed = name in _EVERYWHERE | _ALLOWED.get(tag, frozenset())
            allowed &= name != "href" or address.startswith(("https://", "mailto:", "#turn-"))
            allowed &= name != "src" or address.startswith("data:image/png;base64,")
            allowed &= name != "content" or "url" not in address
            if tag not in _ALLOWED or not allowed or visible(value or "", prose=True) != value:
                self.faults.append(f"<{tag} {name}={value!r}>")
        if tag not in _ALLOWED:
            self.faults.append(f"<{tag}>")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if visible(data, prose=True) != data:
            self.faults.append(repr(data[:80]))

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"<!--{data}-->")


def faults_of(page: str) -> list[str]:
    """Return what a page has that may run, lead elsewhere, be fetched, or stand there unseen."""
    census = _Census()
    census.feed(page)
    census.close()
    return [*census.faults, *census.open, *([] if census.styles == 1 else [f"{census.styles} styles"])]
