"""A session as one page that a browser shows without a network: `strongroom export SESSION --html`.

Rule: nothing on it runs, and nothing is fetched: it has no script, and its policy allows its own style and images that
are in it. Whatever somebody else wrote is text (`supervisor.display.html_elements`).
"""

import binascii
import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from supervisor.agent.blocks import result_text
from supervisor.agent.models.model import Block, message_text
from supervisor.display.argument_text import argument_text
from supervisor.display.command_output import output_text
from supervisor.display.differences import painted, shown
from supervisor.display.escape import one_line
from supervisor.display.html_elements import Html, element, joined, picture, style, toned
from supervisor.display.proposed_effects import presented
from supervisor.errors import KeptError
from supervisor.journal.contents import ContentStore
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    ModelRetried,
    Replied,
    ReplyCut,
    SessionOpened,
    TurnStarted,
    effective,
)
from supervisor.journal.index import utc
from supervisor.journal.journal import JournalEntry
from supervisor.journal.kept_content import KeptContent
from supervisor.journal.lineage import turn_line
from supervisor.reports.call_lines import caption, decision_lines, person_lines
from supervisor.reports.markdown_html import markdown_html
from supervisor.reports.page_style import STYLE
from supervisor.reports.session_parts import CallPart, SessionPart, session_parts
from supervisor.reports.session_text import ENDLESS, OPEN, damages, is_open, notes, profile_and_model, turn_words
from supervisor.reports.time_and_tokens import TimePiece, TimeUse, TokenUse, TurnUse, turn_uses
from supervisor.tools.content_words import described
from workers.wire.media_types import DOCUMENT

_TITLE: Final = 100
_SUMMARY: Final = 160
"""Characters of a call's arguments that are seen while it is folded."""
_BAR: Final = 1000
"""Units of the longest bar."""
_SAID: Final = 20
"""Pieces of a bar that are named to whoever cannot see it."""
_TIMES: Final[Mapping[TimeUse, str]] = MappingProxyType(
    {
        "model": "the model",
        "tools": "tools and rehearsals",
        "person": "waiting for a person",
        "pause": "paused",
        "other": "other",
    }
)
_TOKENS: Final[Mapping[TokenUse, str]] = MappingProxyType(
    {"cached": "read from the cache", "read": "read", "written": "written"}
)


def session_html(entries: Sequence[JournalEntry], store: ContentStore) -> str:
    """Return the page of a session, with the images of it that are kept."""
    title = next((one_line(each.fact.text, _TITLE) for each in entries if isinstance(each.fact, TurnStarted)), "")
    title = title or "Session"
    digest = binascii.b2a_base64(hashlib.sha256(STYLE.encode()).digest(), newline=False).decode()
    allowed = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=allowed),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        style(STYLE),
    )
    stand = turn_line(entries).turns
    first, *parts = [joined(_part(part, store, stand)) for part in session_parts(entries)]
    parts += [element("p", OPEN, class_="note")] if is_open(entries) else []
    body = element("body", element("h1", title), first, _uses(turn_uses(entries)), element("main", *parts))
    return Html("<!doctype html>\n") + element("html", head, body, lang="en") + "\n"


def _part(part: SessionPart, store: ContentStore, stand: Container[int]) -> Iterator[Html]:
    for damage in damages(part):
        yield element("p", damage, class_="note bad")
    if isinstance(part, CallPart):
        yield _call(part, store)
        return
    fact = part.fact
    if isinstance(fact, SessionOpened):
        root = f"root {one_line(fact.context.working_directory, 4096)}"
        for line in (f"session {part.session}, {utc(part.at)}", profile_and_model(fact), root):
            yield element("p", line, class_="note")
    elif isinstance(fact, TurnStarted):
        name = turn_words(fact, stand).capitalize()
        yield element("h2", name, element("small", f" {utc(part.at)}"), id=f"turn-{fact.turn}")
        yield element("div", _pictures(fact.contents, store), element("pre", fact.text), class_="person")
    elif isinstance(fact, Replied):
        yield from _reply(fact.content)
    elif isinstance(fact, ReplyCut | ModelRetried) and fact.text:
        yield element("div", markdown_html(fact.text), element("p", "(the reply was cut here)"), class_="model")
    yield from (element("p", note, class_="note") for note in notes(fact))


def _reply(content: Sequence[Block]) -> Iterator[Html]:
    thought = "\n\n".join(str(each["thinking"]) for each in content if each.get("thinking"))
    if thought.strip():
        yield _folded("thinking", element("div", markdown_html(thought), class_="model"), class_="thinking")
    said = message_text(content).strip()
    if said:
        yield element("div", markdown_html(said), class_="model")


def _folded(summary: str, *inside: str, class_: str) -> Html:
    return element("details", element("summary", summary), *inside, class_=class_)


def _pictures(contents: Iterable[KeptContent], store: ContentStore) -> Html:
    """Return images as they are, and documents in words."""
    found: list[str] = []
    for each in contents:
        about = described(each)
        try:
            seen = Html("") if each.media_type == DOCUMENT else picture(each.media_type, store.read(each.digest), about)
        except KeptError:
            about, seen = f"{about}; it is not kept any more", Html("")
        found.append(element("figure", seen, element("figcaption", about)))
    return joined(found)


# --- calls ------------------------------------------------------------------------------------------------------------


def _call(part: CallPart, store: ContentStore) -> Html:
    started, ended = part.started, part.ended
    tool = started.tool if started is not None else ended.tool if ended is not None else "a call"
    outcome = "no outcome" if ended is None else "ok" if ended.ok else str(ended.kind)
    summary = joined(
        [
            element("b", one_line(tool, _SUMMARY)),
            element("code", one_line(effective(started), _SUMMARY) if started is not None else ""),
            element("span", outcome, class_="good" if outcome == "ok" else "bad"),
            element("small", f"{ended.seconds:.2f} s" if ended is not None and ended.seconds else ""),
        ]
    )
    inside = joined(joined(_of_call(entry, store)) for entry in part.entries)
    endless = Html("") if ended is not None else element("p", ENDLESS, class_="note")
    return _folded(summary, inside, endless, class_="call")


def _of_call(entry: JournalEntry, store: ContentStore) -> Iterator[Html]:
    fact = entry.fact
    if isinstance(fact, CallStarted):
        yield element("p", f"{'again, ' * fact.again}{utc(entry.at)}, {caption(fact)}", class_="note")
        yield from (element("p", line, class_="note") for line in person_lines(fact))
        yield element("pre", argument_text(effective(fact)))
    elif isinstance(fact, CallDecided):
        yield from (element("p", line, class_="note") for line in decision_lines(fact))
        if fact.effects is not None and (changes := shown(presented(fact.effects))):
            yield element("pre", toned(painted(changes)), class_="difference")
    elif isinstance(fact, CallEnded):
        said = output_text(fact.tool, result_text(fact)) if fact.ok else fact.content
        yield element("pre", said, class_="output" if fact.ok else "output bad")
        yield _pictures(fact.contents, store)


# --- time and tokens --------------------------------------------------------------------------------------------------


def _uses(turns: Sequence[TurnUse]) -> Html:
    """Return the timeline: a row a turn, with a bar of its time and one of its tokens."""
    if not turns:
        return Html("")
    longest = max(each.seconds for each in turns)
    most = max(sum(each.tokens.values()) for each in turns)
    rows = [
        element(
            "tr",
            element("th", element("a", str(each.turn), href=f"#turn-{each.turn}")),
            element("td", f"{each.seconds:,.1f} s", class_="number"),
            element("td", _bar([(piece.use, piece.seconds, _of_time(piece)) for piece in each.pieces], longest)),
            element("td", f"{sum(each.tokens.values()):,}", class_="number"),
            element(
                "td", _bar([(use, count, f"{count:,} {_TOKENS[use]}") for use, count in each.tokens.items()], most)
            ),
        )
        for each in turns
    ]
    times, tokens = _sums(turns)
    head = element("tr", *(element("th", each) for each in ("turn", "time", times, "tokens", tokens)))
    heading = element("h2", "Where the time and the tokens went")
    return element("section", heading, element("table", head, *rows), class_="uses")


def _bar(pieces: Sequence[tuple[str, float, str]], whole: float) -> Html:
    """Return a bar of pieces, each a class, its share of `whole`, and what is said of it."""
    rectangles: list[Html] = []
    at = 0.0
    for use, share, said in pieces:
        width = _BAR * share / whole if whole else 0.0  # of a model that counts no tokens
        rectangles.append(
            element("rect", element("title", said), class_=use, x=round(at, 2), width=round(width, 2), height=10)
        )
        at += width
    said_of_all = ", ".join(said for _, _, said in pieces[:_SAID])
    return element(
        "svg", *rectangles, viewBox=f"0 0 {_BAR} 10", preserveAspectRatio="none", role="img", aria_label=said_of_all
    )


def _of_time(piece: TimePiece) -> str:
    return f"{piece.seconds:,.1f} s {_TIMES[piece.use]}{f' ({one_line(piece.what, _TITLE)})' if piece.what else ''}"


def _sums(turns: Sequence[TurnUse]) -> tuple[Html, Html]:
    """Return what all turns took of each, which is the key to the colours as well."""
    times = {use: sum(each.seconds for turn in turns for each in turn.pieces if each.use == use) for use in _TIMES}
    tokens = {use: sum(turn.tokens.get(use, 0) for turn in turns) for use in _TOKENS}
    said = (
        ((use, f"{_TIMES[use]} {seconds:,.1f} s") for use, seconds in times.items() if seconds),
        ((use, f"{_TOKENS[use]} {count:,}") for use, count in tokens.items() if count),
    )
    of_times, of_tokens = (joined(element("span", words, class_=f"key {use}") for use, words in each) for each in said)
    return of_times, of_tokens
