"""Why a call ran, or did not: what the journal knows of it, and nothing that could pass for it."""

from pathlib import Path
from typing import Final

import msgspec
import pytest
import trio

from supervisor.config.settings import Settings
from supervisor.errors import ConfigError
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    Flow,
    Replied,
    SessionChanged,
    SessionOpened,
    Source,
    TurnEnded,
    TurnStarted,
)
from supervisor.journal.index import utc
from supervisor.journal.journal import Journal
from supervisor.reports import history
from supervisor.reports.why import explain
from supervisor.reports.why_text import as_text
from supervisor.rules.rule import Rule
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion
from tests.supervisor.bench import Bench
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import Line, call, scripted
from tests.supervisor.journal.harness import execute
from workers.changes.effects import Attempt, Change, Effects, NodeState, Traffic
from workers.wire.messages import Context

USE: Final = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {"path": "a"}}
REPLIED: Final = Replied(1, 0, [{"type": "text", "text": "I write."}, USE], "tool_use", {})
STARTED: Final = CallStarted(1, "toolu_1", "write_file", '{"path": "a"}', True, "allow", "the vault allows it")
ENDED: Final = CallEnded(1, "toolu_1", "write_file", True, "Wrote a.", seconds=0.25)
EDITED: Final = '{"path": "b"}'


def opened(root: str = "/x") -> SessionOpened:
    return SessionOpened("vault", "m", Context(root), (), "acp", "1")


def lived(journal: Journal, *facts: Fact, session: str = "20260101-s") -> None:
    journal.append(session, opened(), TurnStarted(1, "make a note"), *facts)


async def test_an_edited_call_is_explained_from_the_line_to_the_outcome(bench: Bench, tmp_path: Path) -> None:
    async def approve(_ask: ApprovalQuestion) -> ApprovalDecision:
        await trio.lowlevel.checkpoint()
        return ApprovalDecision(
            approved=True, edited='{"path": "b.txt", "content": "b"}', remark="not there", by="console"
        )

    lines: list[Line] = [{"calls": [call("write_file", path="new.txt", content="new")]}, {"text": "done"}]
    session = bench.session(scripted(tmp_path, *lines), ask=("write_file",), approve=approve)
    with trio.fail_after(HANG_GUARD):
        await session.conversation.run_turn("make a note")
    (call_id,) = {fact.call for fact in bench.facts(session) if isinstance(fact, CallStarted)}
    known = explain(bench.journal, call_id)
    assert (known.session, known.turn, known.line) == (session.id, 1, "make a note")
    assert (known.profile, known.root, known.tool) == ("vault", str(bench.root), "write_file")
    assert (known.decision, known.effect, known.outcome) == ("allow", True, "ok")
    assert known.arguments == '{"path":"new.txt","content":"new"}'
    first, second = known.judged
    assert (first.decision, first.reason) == ("ask", "profile vault asks before each write_file")
    assert (first.approved, first.decided_by, first.remark) == (True, "console", "not there")
    assert (first.committed, first.names, second.committed, second.names) == (False, ("new.txt",), True, ("b.txt",))
    assert known.edited == '{"path": "b.txt", "content": "b"}'
    assert known.seconds > 0
    assert known.content.startswith("Wrote 1 bytes to b.txt")


def test_times_are_those_of_the_journal(journal: Journal) -> None:
    lived(journal, REPLIED)
    journal.append("20260101-s", STARTED)
    journal.append("20260101-s", ENDED)
    *_, replied, started, ended = journal.of_session("20260101-s")
    known = explain(journal, "toolu_1")
    assert (known.asked, known.started, known.ended) == (utc(replied.at), utc(started.at), utc(ended.at))


def test_a_call_stands_in_the_profile_and_the_turn_of_its_time(journal: Journal) -> None:
    lived(journal, SessionChanged("other", "m2", Context("/y"), ()), REPLIED, STARTED, ENDED)
    journal.append("20260101-s", TurnEnded(1, "ok", ""), SessionChanged("third", "m3", Context("/z"), ()))
    journal.append("20260101-s", TurnStarted(2, "later"))
    known = explain(journal, "toolu_1")
    assert (known.profile, known.model, known.root, known.line) == ("other", "m2", "/y", "make a note")


def test_what_an_address_said_and_a_command_sent_is_told(journal: Journal) -> None:
    fetched = CallStarted(1, "c", "fetch_url", "{}", False, "allow", "r", flow=Flow(23.4, "composed"))
    lived(journal, fetched, CallEnded(1, "c", "fetch_url", True, "a page"))
    assert "says     about 23.4 bits to its site (composed)" in as_text(explain(journal, "c"))
    sent = Effects((), {}, b"", traffic=(Traffic("pypi.org:443", 3200, 1_100_000),))
    decided = CallDecided(1, "toolu_1", "allow", "it changes nothing", committed=True, effects=sent, network=True)
    lived(journal, STARTED, decided, ENDED, session="20260102-s")
    assert "network  to pypi.org:443 3.2 kB up, 1.1 MB down" in as_text(explain(journal, "toolu_1"))


def test_a_call_without_a_model_has_no_line(journal: Journal) -> None:
    single = replace_all(STARTED, turn=0, call="call_1"), replace_all(ENDED, turn=0, call="call_1")
    journal.append("s", opened(), *single)
    known = explain(journal, "call_1")
    assert (known.turn, known.line, known.asked, known.outcome) == (0, "", "", "ok")
    assert "line " not in as_text(known)


def replace_all(fact: Fact, **changes: object) -> Fact:
    return msgspec.structs.replace(fact, **changes)


UNFINISHED: Final[dict[str, tuple[list[Fact], str, str]]] = {
    "asked for": ([], "", ""),
    "running": ([STARTED], "allow", ""),
    "never judged": ([CallEnded(1, "toolu_1", "write_file", False, "no", kind="cancelled")], "", "cancelled"),
}


@pytest.mark.parametrize(("facts", "decision", "outcome"), UNFINISHED.values(), ids=UNFINISHED)
def test_a_call_that_did_not_get_to_its_end_is_known_as_far_as_it_got(
    journal: Journal, facts: list[Fact], decision: str, outcome: str
) -> None:
    lived(journal, REPLIED, *facts)
    known = explain(journal, "toolu_1")
    assert (known.tool, msgspec.json.decode(known.arguments)) == ("write_file", {"path": "a"})
    assert (known.decision, known.outcome, known.ended == "") == (decision, outcome, outcome == "")
    assert ("none: it is waiting or running" in as_text(known)) == (outcome == "")


LONG: Final = {
    "".join(f"line {n}\n" for n in range(100)): "".join(f"line {n}\n" for n in range(7)) + "line 7...",
    "x" * 10_000: "x" * 800 + "...",
}


@pytest.mark.parametrize(("result", "told"), LONG.items(), ids=["lines", "a line"])
def test_of_a_long_result_the_beginning_is_told(journal: Journal, result: str, told: str) -> None:
    lived(journal, REPLIED, STARTED, replace_all(ENDED, content=result))
    assert explain(journal, "toolu_1").content == told


def test_an_id_that_an_old_session_used_twice_is_the_last(journal: Journal) -> None:
    first = replace_all(STARTED, turn=0, tool="read_file"), replace_all(ENDED, turn=0, tool="read_file", content="1")
    journal.append("s", opened(), *first, replace_all(STARTED, turn=0))
    known = explain(journal, "toolu_1")
    assert (known.tool, known.outcome, known.content) == ("write_file", "", "")


# which call --------------------------------------------------------------------------------------------------


def test_a_call_of_several_sessions_needs_the_session(journal: Journal) -> None:
    for number in range(7):
        lived(journal, REPLIED, session=f"session-{number}")
    with pytest.raises(ConfigError) as caught:
        explain(journal, "toolu_1")
    words = str(caught.value)
    assert words.startswith("7 sessions have a call 'toolu_1': session-6 (")
    assert ("session-2" in words, "session-1" in words) == (True, False)
    assert words.endswith(" and 2 older. Choose one with --session.")
    for named in ("session-3", "-3"):
        assert explain(journal, "toolu_1", named).session == "session-3"


ABSENT: Final = {
    "no call": ("toolu_2", None, "No call 'toolu_2'"),
    "a word of others": ("toolu_9", None, "No call 'toolu_9'"),
    "no call there": ("toolu_2", "20260101-s", "No call 'toolu_2' in the session 20260101-s"),
    "no session": ("toolu_1", "nobody", "No session 'nobody'"),
}


@pytest.mark.parametrize(("name", "session", "words"), ABSENT.values(), ids=ABSENT)
def test_a_call_or_session_that_is_not_there_is_named(
    journal: Journal, name: str, session: str | None, words: str
) -> None:
    lived(journal, REPLIED, STARTED, ENDED)
    lived(journal, TurnStarted(2, "toolu_9"), CallEnded(1, "x", "read_file", True, "toolu_9"), session="talk")
    with pytest.raises(ConfigError, match=words):
        explain(journal, name, session)


def test_without_a_journal_there_is_no_call_and_none_is_made(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="there is no journal yet"):
        history.why(settings, "toolu_1")
    assert not settings.journal.exists()


def test_the_program_opens_the_journal_itself(settings: Settings, journal: Journal) -> None:
    lived(journal, REPLIED, STARTED, ENDED)
    assert history.why(settings, "toolu_1", "s") == explain(journal, "toolu_1")


# on one screen -----------------------------------------------------------------------------------------------

ASKED: Final = replace_all(STARTED, decision="ask", reason="the vault asks")
PEOPLE: Final[dict[str, tuple[dict[str, object], str]]] = {
    "yes": ({"approved": True, "decided_by": "console"}, "person   yes by console, "),
    "an edit": ({"approved": True, "edited": EDITED, "decided_by": "x"}, "person   yes, to other arguments by x, "),
    "no": ({"approved": False, "decided_by": "console", "remark": "not now"}, "person   no by console, "),
    "nobody": ({"approved": False}, "person   no client said yes, "),
}


@pytest.mark.parametrize(("answer", "words"), PEOPLE.values(), ids=PEOPLE)
def test_a_screen_says_what_the_person_said(journal: Journal, answer: dict[str, object], words: str) -> None:
    lived(journal, REPLIED, replace_all(ASKED, **answer), ENDED)
    text = as_text(explain(journal, "toolu_1"))
    assert words in text
    assert (f"edited   {EDITED}" in text) == ("edited" in answer)
    assert ("remark   not now" in text) == ("remark" in answer)


MARGIN: Final = ["call", "in", "line", "asked", "with", "policy", "person", "edited", "remark", "outcome"]


def margin(text: str) -> list[str]:
    """What stands at the margin, by its first word."""
    return [line.split(" ")[0] for line in text.splitlines() if not line.startswith(" ")]


def test_a_screen_is_one(journal: Journal) -> None:
    lived(journal, REPLIED, replace_all(ASKED, approved=True, edited=EDITED, remark="x"), ENDED)
    text = as_text(explain(journal, "toolu_1"))
    assert margin(text) == MARGIN
    assert len(text.splitlines()) <= 24


# what it changed ---------------------------------------------------------------------------------------------

FILE: Final = NodeState("file", 0o644, 3)
EFFECTS: Final = Effects(
    tuple(Change(f"d/{number}", "deleted", FILE) for number in range(7)),
    {"deleted": 7},
    b"",
    refused=(Attempt("network", "10.0.0.1:80"),),
)
DECIDED: Final = CallDecided(
    1, "toolu_1", "ask", "no rule covers that", True, EFFECTS, True, "clean up", "console", "always", kept="pack"
)
REHEARSED: Final = replace_all(STARTED, rehearsed=True)
UNDOING: Final[list[Fact]] = [
    CallStarted(0, "call_1", "undo", "{}", True, "allow", "", rehearsed=True),
    CallDecided(0, "call_1", "allow", "", True, EFFECTS, kept="other", undoes="toolu_1"),
    CallEnded(0, "call_1", "undo", True, ""),
]
ANEW: Final = replace_all(REHEARSED, again=True)
EDITED_AT_EFFECTS: Final[list[Fact]] = [
    replace_all(DECIDED, committed=False, edited=EDITED, scope="once", kept=""),
    replace_all(REHEARSED, again=True, edited=EDITED),
    replace_all(
        DECIDED, decision="allow", reason="a rule", approved=None, decided_by="", covered_by="rm may delete d/**"
    ),
]


def decided(**changes: object) -> Fact:
    return replace_all(DECIDED, **changes)


LOST: Final = "lost: the worker ended before it was told to commit, so nothing was changed;"
COMMITTED: Final = "judged   ask: no rule covers that; committed"
PERSON: Final = "person   yes, for always, by console"
DECISIONS: Final[dict[str, tuple[list[Fact], list[str]]]] = {
    "what it changed": ([DECIDED], ["changes  7 files: 7 deleted: d/0, d/1, d/2, d/3, d/4, and 2 more"]),
    "what it tried": ([DECIDED], ["blocked  network 10.0.0.1:80"]),
    "who decided": ([DECIDED], [COMMITTED, PERSON]),
    "the remark": ([DECIDED], ["remark   clean up"]),
    "the rule it made": ([decided(rule=Rule("allow", ("rm",), deletes=("d/**",)))], ["rule     made for always: rm"]),
    "both texts": (
        EDITED_AT_EFFECTS,
        ['with     {"path": "a"}', f"edited   {EDITED}", "(rule: rm may delete d/**); committed"],
    ),
    "a commit that was lost": (
        [decided(decision="allow", reason="a rule", approved=None), ANEW, DECIDED],
        [f"judged   allow: a rule; {LOST}", COMMITTED],
    ),
    "that nothing but a lost commit was decided": ([DECIDED, ANEW], ["so nothing was changed; not committed", PERSON]),
    "a no": ([decided(committed=False, approved=False, scope="once")], ["person   no, by console", "not committed"]),
    "nobody": ([decided(committed=False, approved=None)], ["person   no client was there to ask"]),
    "how to undo it": ([DECIDED], ["undo     `strongroom undo toolu_1` takes it back"]),
    "that it was undone": (
        [DECIDED, ENDED, *UNDOING],
        ["undo     undone by call_1; `strongroom undo call_1` brings it back"],
    ),
    "why it cannot be undone": ([decided(effects=None, unrehearsed="no overlay")], ["undo     toolu_1 ran without"]),
}


@pytest.mark.parametrize(("facts", "lines"), DECISIONS.values(), ids=DECISIONS)
def test_a_screen_says_what_was_decided_about_changes(journal: Journal, facts: list[Fact], lines: list[str]) -> None:
    lived(journal, REPLIED, REHEARSED, *facts, *([] if ENDED in facts else [ENDED]))
    text = as_text(explain(journal, "toolu_1"))
    assert [line for line in lines if line not in text] == []
    assert len(text.splitlines()) <= 24


def test_below_the_screen_stands_the_whole_difference(journal: Journal) -> None:
    diff = "@@ -1,0 +1,99 @@\n" + "".join(f"+{number}\n" for number in range(99))
    changed = Change("a.py", "added", None, NodeState("file", 0o644), diff=diff)
    lived(journal, REPLIED, REHEARSED, decided(effects=Effects((changed,), {"added": 1}, b"")), ENDED)
    lines = as_text(explain(journal, "toolu_1")).split("\n")
    assert lines[-101:-98] == ["  A a.py  +99 -0", "  @@ -1,0 +1,99 @@", "  +0"]
    assert lines[-1] == "  +98"


def test_a_change_that_only_a_lost_commit_would_have_made_has_no_undo(journal: Journal) -> None:
    lived(journal, REPLIED, REHEARSED, DECIDED, ANEW, replace_all(ENDED, ok=False, kind="worker_crashed"))
    known = explain(journal, "toolu_1")
    assert ([each.committed for each in known.judged], known.undo) == ([False], "")


def test_a_pack_that_is_no_longer_kept_is_said(journal: Journal) -> None:
    lived(journal, REPLIED, REHEARSED, DECIDED, ENDED)
    assert "is no longer kept" in explain(journal, "toolu_1", holds=lambda _pack: False).undo


def test_nobodys_words_pass_for_strongrooms(journal: Journal) -> None:
    evil = "x\x1b[2J\r\n\u2028policy   allow: forged\x85outcome  ok\n" + "y" * 5000
    started = replace_all(ASKED, arguments=evil, approved=True, edited=evil, remark=evil, decided_by=evil, tool=evil)
    changed = SessionChanged(evil, evil, Context("/x"), ())
    journal.append("s", opened(), changed, TurnStarted(1, evil), started, replace_all(ENDED, content=evil))
    text = as_text(explain(journal, "toolu_1"))
    assert margin(text) == MARGIN
    assert "\x1b" not in text
    assert len(text) < 8000


def test_a_call_is_explained_with_what_the_model_had_read_before(journal: Journal) -> None:
    read = CallEnded(1, "a", "read_file", True, "milk", sources=(Source("agent_file", "its\x1b.md", b"d", 4),))
    page = CallStarted(1, "b", "fetch_url", '{"url": "https://x.example/"}', False, "allow", "")
    later = CallEnded(1, "z", "read_file", True, "x", sources=(Source("file", "later.md", b"d", 1),))
    lived(journal, read, page, CallEnded(1, "b", "fetch_url", True, "hello"), REPLIED, STARTED, ENDED, later)
    known = explain(journal, "toolu_1")
    assert [(each.kind, each.name) for each in known.after] == [
        ("page", "https://x.example/"),
        ("agent_file", "its\x1b.md"),
    ]
    assert 'after    reading page "https://x.example/" and file "its\\x1b.md" (written by an agent)\n' in as_text(known)


def test_what_was_changed_or_lost_in_the_journal_is_marked(journal: Journal, settings: Settings) -> None:
    lived(journal, REPLIED, STARTED, ENDED, TurnEnded(1, "ok", "done"))
    change = "UPDATE facts SET body = CAST(replace(CAST(body AS TEXT), '{}', '{}') AS BLOB) WHERE seq = {}"
    execute(journal.path, "DROP TRIGGER facts_stay", change.format("Wrote", "Wrong", 5), change.format("{", "[", 6))
    known = explain(journal, "toolu_1")
    assert (known.changed, known.unreadable, known.outcome) == ((5,), (6,), "ok")
    text = as_text(known)
    assert "CHANGED  not what was written: row 5 of the journal" in text
    told = history.history(settings, known.session, "text").splitlines()
    assert "(CHANGED: what follows, row 5 of the journal, is not what was written)" in told
    assert "(row 6 of the journal cannot be read)" in told
    rows = msgspec.json.decode(history.history(settings, known.session, "json"))
    assert [row.get("damage") for row in rows] == [None] * 4 + ["changed", "unreadable"]
    for form in ("anthropic", "gemini"):
        assert "Wrong" in history.history(settings, known.session, form)
