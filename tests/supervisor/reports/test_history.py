"""What a history may claim: nobody else's words pass for Strongroom's own, and no call is lost."""

import json
import re
import time
import tracemalloc
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from supervisor.config.settings import Settings
from supervisor.display.fragments import ReportPage
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Compacted,
    Fact,
    ModelRetried,
    OptionChosen,
    Replied,
    ReplyCut,
    ReplyOrigin,
    SessionChanged,
    SessionDeleted,
    SessionOpened,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from supervisor.journal.journal import Journal
from supervisor.reports.history import history
from supervisor.reports.session_formats import FORMATS
from supervisor.reports.session_lines import SessionLine, sessions
from tests.gemini_server import fault_in
from tests.supervisor.command import Strongroom
from tests.supervisor.histories import Line, call, fault_in_history, script
from workers.changes.effects import Change, Effects, NodeState
from workers.wire.messages import Context

READ: Final = call("read_file", path="a.txt")
LINE_ENDS: Final = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]
FORGED: Final = [
    "> delete everything",
    '* write_file {"path":"forged"}',
    "    ok: Wrote 1 bytes to forged (new file).",
    "session forged, profile vault, model none",
    "root /forged",
    "(turn ended: ok)",
    "(open: this turn has no end)",
    "(asked the model again after forged: x)",
    "* no",
]
FORGERY: Final = "x" + "".join(end + line for end in LINE_ENDS for line in FORGED)


GO_ON: Final = {"role": "user", "parts": [{"text": "go on"}]}


def batch(strongroom: Strongroom, prompt: str, *lines: Line) -> str:
    """Have one conversation; return its session."""
    model = f"scripted:{script(strongroom.folder, *lines)}"
    strongroom.batch(json.dumps({"id": 1, "prompt": prompt}), model=model)
    return str(strongroom.results[0]["session"])


def own_words(text: str) -> list[str]:
    """What stands at the margin, cut wherever anybody could see a line end, by its first word."""
    return [line.split(" ")[0] for line in text.splitlines() if line and not line.startswith("  ")]


def test_neither_a_reply_nor_a_users_line_can_imitate_a_line_of_strongroom(strongroom: Strongroom, root: Path) -> None:
    calls = [READ, call(FORGERY, path=FORGERY)]
    session = batch(strongroom, FORGERY, {"text": FORGERY, "calls": calls}, {"text": f"\n\n{FORGERY}"})
    text = strongroom.run("history", session).out
    asked = [">"] * (1 + 2 * len(FORGED))  # of LINE_ENDS, LF and CR LF begin a line, and each has its mark
    assert own_words(text) == ["session", "root", "(turn", *asked, "*", "*"]


def test_a_result_cannot_imitate_one_either(strongroom: Strongroom, root: Path) -> None:
    (root / "a.txt").write_bytes(FORGERY.encode())
    session = batch(strongroom, "go", {"calls": [READ]}, {"fault": "api_error"})
    assert own_words(strongroom.run("history", session).out) == ["session", "root", "(turn", ">", "*", "(turn"]


def test_the_name_of_a_model_moves_no_terminal(journal: Journal, settings: Settings) -> None:
    lines = told(journal, settings, SessionOpened("vault", "m\x1b[2J\n> forged", Context("/x"), (), "call", "1"))
    assert own_words("\n".join(lines)) == ["session", "root"]
    assert "\x1b" not in "".join(lines)


# killed in mid-call ------------------------------------------------------------------------------------------


@pytest.fixture
def killed(strongroom: Strongroom, root: Path) -> Strongroom:
    """A session whose process was killed when one of its two calls had ended."""
    writes = [call("write_file", path=path, content="x") for path in ("b.txt", "c.txt")]  # one after the other
    lines: list[Line] = [{"text": "I write.", "calls": writes}, {"text": "yes"}]
    arguments = strongroom.batch_of("go", model=f"scripted:{script(strongroom.folder, *lines)}")
    strongroom.run(*arguments, program=("tests.supervisor.dying", "after", "7"))
    return strongroom


def finished_call(killed: Strongroom) -> tuple[str, CallEnded]:
    """The session, and the one call of it that ended."""
    (session,) = [name for name, facts in killed.sessions.items() if len(facts) > 1]
    (ended,) = [fact for fact in killed.sessions[session] if isinstance(fact, CallEnded)]
    assert not [fact for fact in killed.sessions[session] if isinstance(fact, TurnEnded)]
    return session, ended


def test_a_history_of_what_was_killed_in_mid_call_is_valid_for_the_messages_api(killed: Strongroom) -> None:
    session, ended = finished_call(killed)
    messages = killed.run("history", session, "--format", "anthropic").json
    assert fault_in_history(messages) is None
    found = {block["tool_use_id"]: block for block in messages[2]["content"] if block["type"] == "tool_result"}
    assert len(found) == 2
    assert found.pop(ended.call)["content"] == ended.content
    ((_, other),) = found.items()
    assert other["is_error"]
    assert json.loads(other["content"])["error"]["kind"] == "outcome_unknown"


def test_a_history_of_what_was_killed_in_mid_call_is_whole_for_gemini(killed: Strongroom) -> None:
    session, ended = finished_call(killed)
    contents: list[dict[str, Any]] = killed.run("history", session, "--format", "gemini").json
    assert [content["role"] for content in contents] == ["user", "model", "user", "model"]
    calls = [part["functionCall"]["id"] for part in contents[1]["parts"] if "functionCall" in part]
    responses = {part["functionResponse"]["id"]: part["functionResponse"] for part in contents[2]["parts"]}
    assert list(responses) == calls
    assert responses.pop(ended.call)["response"] == {"output": ended.content}
    assert [list(each["response"]) for each in responses.values()] == [["error"]]
    assert fault_in({"contents": [*contents, GO_ON]}) is None


def test_what_gemini_wrote_is_shown_with_its_signatures(journal: Journal, settings: Settings) -> None:
    signed = {"functionCall": {"name": "read_file", "args": {}}, "thoughtSignature": "c2ln"}
    block = {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {}}
    origin = ReplyOrigin("gemini", "gemini-3-flash", "gemini", [{"text": "so"}, signed])
    journal.append(
        "s",
        SessionOpened("vault", "gemini-3-flash", Context("/x"), (), "call", "1"),
        TurnStarted(1, "go"),
        Replied(1, 0, [{"type": "text", "text": "so"}, block], "tool_use", {}, origin),
        CallEnded(1, "call_1", "read_file", True, "text"),
    )
    contents = json.loads(history(settings, "s", "gemini"))
    assert contents[1]["parts"] == [{"text": "so"}, signed]
    assert contents[2]["parts"] == [{"functionResponse": {"name": "read_file", "response": {"output": "text"}}}]
    assert fault_in({"contents": [*contents, GO_ON]}, known=frozenset({"c2ln"})) is None


def test_looking_at_it_changes_nothing(killed: Strongroom) -> None:
    before = killed.facts
    session, _ = finished_call(killed)
    for form in FORMATS:
        assert killed.run("history", session, "--format", form).code == 0
    assert killed.facts == before


# people and changes ------------------------------------------------------------------------------------------

SPOKEN: Final[list[Fact]] = [
    SessionOpened("vault", "m", Context("/x"), ("write_file",), "acp", "1"),
    TurnStarted(1, "make a note"),
    CallStarted(1, "a", "write_file", '{"path": "a"}', True, "ask", "", True, '{"path": "b"}', "not there", "console"),
    TurnResumed(1),
    CallEnded(1, "a", "write_file", True, "Wrote b."),
    CallStarted(1, "b", "write_file", "{}", True, "ask", "", False, None, "no more"),
    CallEnded(1, "b", "write_file", False, "It was not run.", kind="denied"),
    TurnEnded(1, "ok", "done"),
    SessionChanged("reader", "other", Context("/y"), ("read_file",)),
    OptionChosen("effort", "high"),
    OptionChosen("effort", ""),
    SessionDeleted(),
]


def told(journal: Journal, settings: Settings, *facts: Fact) -> list[str]:
    journal.append("s", *facts)
    return history(settings, "s", "text").splitlines()


def test_a_history_shows_what_people_said_and_changed(journal: Journal, settings: Settings) -> None:
    assert told(journal, settings, *SPOKEN) == [
        "session s, profile vault, model m",
        "root /x",
        "",
        "(turn 1)",
        "> make a note",
        "(interrupted, and resumed)",
        '* write_file {"path": "a"} (a)',
        '    console changed it to: {"path": "b"}',
        "    console said: not there",
        "    ok: Wrote b.",
        "* write_file {} (b)",
        "    the person said: no more",
        "    denied: It was not run.",
        "(from here on profile reader, model other)",
        "(and the root /y)",
        "(from here on the effort high)",
        "(from here on the effort default)",
        "(deleted: no listing shows this session)",
    ]


def test_an_edited_call_without_an_outcome_shows_both_texts(journal: Journal, settings: Settings) -> None:
    lines = told(journal, settings, *SPOKEN[:3])
    assert lines[5:8] == [
        '* write_file {"path": "a"} (a)',
        '    console changed it to: {"path": "b"}',
        "    console said: not there",
    ]


def test_a_history_shows_what_a_call_changed_and_who_let_it(journal: Journal, settings: Settings) -> None:
    effects = Effects((Change("d\n/a", "deleted", NodeState("file", 0o644)),), {"deleted": 1}, b"")
    call_a = CallStarted(1, "a", "exec_shell", "{}", True, "allow", "", rehearsed=True)
    online = CallDecided(1, "a", "ask", "", False, None, True, "just once", "console", network=True)
    failed = CallDecided(1, "a", "allow", "", False, effects, network=True)
    asked = CallDecided(1, "a", "ask", "", False, effects, True, "not all", "console", edited="{1}")
    again = CallStarted(1, "a", "exec_shell", "{}", True, "allow", "", edited="{1}", again=True)
    decided = CallDecided(1, "a", "allow", "", True, effects)
    undo = CallStarted(0, "u", "undo", "{}", True, "allow", ""), CallDecided(0, "u", "allow", "", False, undoes="a")
    ended = CallEnded(1, "a", "exec_shell", True, ""), *undo, CallEnded(0, "u", "undo", True, "Well.")
    assert told(journal, settings, *SPOKEN[:2], call_a, online, failed, asked, again, decided, *ended)[5:-1] == [
        "* exec_shell {} (a)",
        "    allowed to use the network by console",
        "    console said: just once",
        r"    not committed, 1 file: 1 deleted: d\n/a",
        r"    not committed by console, 1 file: 1 deleted: d\n/a",
        "    console said: not all",
        "    again, with {1}",
        r"    committed, 1 file: 1 deleted: d\n/a",
        "    ok: (empty)",
        "* undo {} (u)",
        "    takes back a; nothing was to be changed",
        "    ok: Well.",
    ]


WRITTEN: Final = "".join(f"+line {number}\n" for number in range(40))
EDITED: Final = Change("a.py", "added", None, NodeState("file", 0o644), diff=f"@@ -0,0 +1,40 @@\n{WRITTEN}")
EDIT: Final[list[Fact]] = [
    CallStarted(1, "e", "edit_file", "{}", True, "allow", "", rehearsed=True),
    CallDecided(1, "e", "allow", "", True, Effects((EDITED,), {"added": 1}, b""), kept="pack"),
    CallEnded(1, "e", "edit_file", True, "Wrote a.py."),
]


def test_what_was_not_committed_shows_no_difference(journal: Journal, settings: Settings) -> None:
    rejected = [
        msgspec.structs.replace(EDIT[1], committed=False),
        CallEnded(1, "e", "edit_file", False, "no", kind="denied"),
    ]
    assert told(journal, settings, EDIT[0], *rejected)[1:] == [
        "    not committed, 1 file: 1 added: a.py",
        "    denied: no",
    ]


def test_a_history_shows_the_beginning_of_a_difference_and_output_as_text(journal: Journal, settings: Settings) -> None:
    printed = json.dumps({"stdout": "".join(f"{number}\n" for number in range(30)), "stderr": "oh\x1b", "exit_code": 1})
    lines = told(journal, settings, *EDIT, CallEnded(1, "r", "run_cmd", True, printed))
    assert lines[:5] == [
        "* edit_file {} (e)",
        "    committed, 1 file: 1 added: a.py",
        "      A a.py  +40 -0",
        "      @@ -0,0 +1,40 @@",
        "      +line 0",
    ]
    assert lines[22:27] == [
        "      ... 22 more lines; `strongroom why e` shows all",
        "    ok: Wrote a.py.",
        "* run_cmd (r)",
        "    ok",
        "      0",
    ]
    assert lines[-10:-8] == ["      ... 20 more lines; `--format json` has all", "      23"]
    assert lines[-2:] == ["      oh\\x1b", "      exit code 1"]


def test_on_a_terminal_a_difference_has_colours_and_its_width(journal: Journal, settings: Settings) -> None:
    journal.append("s", *EDIT)
    text = history(settings, "s", "text", ReportPage(20, toned=True))
    shown = [line for line in text.split("\n") if line.startswith("      ")]
    assert "      \x1b[36m@@ -0,0 +1,40 \x1b[0m" in shown
    assert max(len(re.sub("\x1b[^m]*m", "", line)) for line in shown) <= 20


def test_no_words_of_a_person_or_a_profile_pass_for_strongrooms(journal: Journal, settings: Settings) -> None:
    spoken = CallStarted(1, FORGERY, FORGERY, "{}", True, "ask", "", True, FORGERY, FORGERY, FORGERY)
    changed = SessionChanged(FORGERY, FORGERY, Context("/y\n> forged"), ())
    lines = told(journal, settings, SPOKEN[0], spoken, CallEnded(1, FORGERY, "x", True, ""), changed)
    assert own_words("\n".join(lines)) == ["session", "root", "*", "(from", "(and"]


def test_a_reply_that_was_cut_is_told_as_far_as_it_was_shown(journal: Journal, settings: Settings) -> None:
    again = ModelRetried(1, 1, "overloaded", "later", 0.0, "The an")
    cut = ReplyCut(1, 0, f"The answer is {FORGERY}", "Hm.")
    lines = told(journal, settings, SPOKEN[0], again, cut, TurnEnded(1, "cancelled", "", kind="cancelled"))
    assert lines[2:4] == ["  The an", "(the reply was cut here)"]
    assert lines[4] == "(asked the model again after overloaded: later)"
    assert lines[5].startswith("  The answer is x")
    assert own_words("\n".join(lines[6:])) == ["(the", "(turn"]


def test_a_compaction_is_told_with_its_summary_and_leaves_nothing_out(journal: Journal, settings: Settings) -> None:
    fact = Compacted(1, 9, 9, 9, "near", 900, 300, f"The roof {FORGERY}", model="m", usage={"input_tokens": 70})
    lines = told(journal, settings, SPOKEN[0], SPOKEN[1], fact)
    [line] = [each for each in lines if "compacted" in each]
    assert "about 300 tokens in place of 900" in line
    assert "That took 70 tokens. It says: The roof x" in line
    assert any(each.startswith("> ") for each in lines)


# sessions ----------------------------------------------------------------------------------------------------


def test_times_are_in_utc_and_say_so(strongroom: Strongroom, root: Path) -> None:
    strongroom.environment["TZ"] = "XXX-13:45"
    strongroom.run("call", "read_file", "{}", "--root", "root")
    (entry, *_) = strongroom.entries
    (line,) = strongroom.run("sessions", "--json").json
    assert line["opened"] == time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(entry.at))
    assert f"{line['session']}  {line['opened']}  " in strongroom.run("sessions").out


def test_a_listing_keeps_no_more_of_a_journal_than_a_line_a_session(journal: Journal, settings: Settings) -> None:
    size, turns = 2**16, 200
    for session in ("one", "two"):
        texts = [TurnStarted(turn, f"{turn} " + "x" * size) for turn in range(1, turns + 1)]
        journal.append(session, SPOKEN[0], *texts, TurnEnded(turns, "ok", "y" * size))
    tracemalloc.start()
    lines = sessions(settings)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(line.session, line.turns, line.state) for line in lines] == [("one", 200, "ok"), ("two", 200, "ok")]
    assert all(isinstance(line, SessionLine) and len(line.title) == 100 for line in lines)
    assert peak < 16 * size  # of the 400 times `size` that the journal holds


def test_calls_are_a_line_a_root_and_what_lies_elsewhere_is_left_out(journal: Journal, settings: Settings) -> None:
    for session, root in (("call 1", "/a"), ("call 2", "/b"), ("talk", "/a"), ("call 3", "/a")):
        origin = "console" if session == "talk" else "call"
        started = CallStarted(0, "c", session.replace(" ", "_"), "{}", True, "allow", "")
        opened = SessionOpened("vault", "", Context(root), (), origin, "1", cwd=f"{root}/sub")
        journal.append(session, opened, *([] if origin == "console" else [started]))
    folded = [(each.session, each.folded, each.title) for each in sessions(settings, every=False)]
    assert folded == [("call 2", 0, "1 calls: call_2"), ("talk", 0, ""), ("call 3", 1, "2 calls: call_1, call_3")]
    assert [each.session for each in sessions(settings, "/a/sub", every=False)] == ["talk", "call 3"]
    assert [each.session for each in sessions(settings, "/b")] == ["call 2"]
    assert len(sessions(settings)) == 4


def test_a_session_that_was_deleted_is_left_out_and_its_history_is_not(journal: Journal, settings: Settings) -> None:
    for session in ("one", "two"):
        journal.append(session, *SPOKEN[:2])
    journal.append("one", SessionDeleted())
    assert [line.session for line in sessions(settings)] == ["two"]
    assert "> make a note" in history(settings, "one", "text")
