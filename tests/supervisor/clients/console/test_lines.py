"""The bar, the lines, the completions and the memory of the console, without a terminal."""

import io
import json
from typing import Any, Final

import msgspec
import pytest

from supervisor.acp import extensions, schema
from supervisor.clients.console.markdown_display import RichMarkdown
from supervisor.clients.console.plain_screen import PlainScreen
from supervisor.clients.console.proposal_pages import ProposalPages
from supervisor.clients.console.scrollback import Scrollback
from supervisor.clients.console.session_state import SessionState
from supervisor.clients.console.shown import (
    Document,
    Item,
    Note,
    Said,
    ShownCall,
    ShownPrompt,
    ShownProposal,
    ShownThought,
)
from supervisor.clients.console.status_bar import bar, money, progress, tokens
from supervisor.clients.console.styled_text import call_document, lines_of
from supervisor.display.columns import width
from supervisor.display.fragments import plain, styled


def busy() -> SessionState:
    view = SessionState(
        extensions.SessionFacts(session_id="s", profile="vault", model="scripted:/a/b/c.jsonl", root="/", tools=())
    )
    view.used, view.size, view.cost = 12_345, 200_000, schema.Cost(amount=0.0123, currency="USD")
    view.turn_state = "Thinking"
    return view


BARS: Final = [
    (100, "Thinking · 2 queued · scripted:c.jsonl · vault · 94% left · $0.0123 · 1 min 15 s   Esc stop"),
    (70, "Thinking · 2 queued · scripted:c.jsonl · vault · 94% left   Esc stop"),
    (50, "Thinking · 2 queued · scripted:c.jsonl   Esc stop"),
    (12, "Thinking"),
    (3, "..."),
]


def test_the_bar_shows_what_fits_and_is_never_too_wide() -> None:
    for columns, text in BARS:
        assert plain(bar(busy(), columns, waiting=2, seconds=75.9)).split() == text.split()
    view = busy()
    view.entered(extensions.TurnState(session_id="s", state="Thinking", turn=1, other_model="another"))
    assert "· another ·" in plain(bar(view, 79))
    view.finished(None)
    assert "· scripted:c.jsonl ·" in plain(bar(view, 79))
    for state in ("Input", "Thinking", "ReviewAction", "Executing", "Finalizing", "Done"):
        view.turn_state = state
        for columns in range(3, 120):
            assert len(plain(bar(view, columns))) <= columns
            assert len(plain(progress(view, max(columns, 20), 12.0))) <= max(columns, 20)


def test_thinking_is_dimmed_and_folded() -> None:
    short = lines_of(ShownThought("1", "One.\n\nTwo.\n"), 40, wrap=True)
    assert [plain(line) for line in short] == ["∴ One.", "  Two."]
    assert {tone for line in short for tone, _ in line} == {"dim"}
    long = ShownThought("1", "\n".join(f"line {number} \x1b[31m" for number in range(9)))
    assert [plain(line) for line in lines_of(long, 40)] == [
        "∴ line 0 \\x1b[31m",
        "  line 1 \\x1b[31m",
        "  line 2 \\x1b[31m",
        "  ... 6 more lines; /show thinking",
    ]
    for columns in (20, 30, 80):
        assert all(
            width(plain(line)) <= columns for line in lines_of(ShownThought("1", "word " * 99), columns, wrap=True)
        )


def test_progress_says_what_goes_on() -> None:
    view = busy()
    assert plain(progress(view, 60, 3.2)) == "⠹ Thinking  3 s"
    view.retry = "overloaded: Asked again in 1.0 s."
    assert "overloaded" in plain(progress(view, 60, 3.2))
    view.turn_state = "Executing"
    view.retry = ""
    view.calls.append(ShownCall("1", 1, "read_file a", "read_file", '{"path": "a"}', status="in_progress"))
    assert plain(progress(view, 60, 0.0)) == "⠋ read_file a  0 s"
    assert progress(SessionState(), 60, 0.0) == []


def test_tokens_and_money_are_short() -> None:
    counts = {0: "0", 999: "999", 1000: "1.0k", 99_949: "99.9k", 200_000: "200k", 10**6: "1.0M"}
    assert [tokens(count) for count in counts] == list(counts.values())
    amounts = {0.0: "$0.00", 0.0042: "$0.0042", 12.3: "$12.30"}
    assert [money(schema.Cost(amount=amount, currency="USD")) for amount in amounts] == list(amounts.values())


def test_without_colour_only_weight_is_left() -> None:
    line = lines_of(Note("no", "error"), 80)[0]
    assert styled(line, colour=True) == "\x1b[31merror: no\x1b[0m"
    assert styled(line, colour=False) == "error: no"


def ran(columns: int, *, wrap: bool = False, **facts: Any) -> tuple[ShownCall, list[str]]:
    """Return a command that has ended, and the lines that tell so."""
    call = ShownCall("1", 3, "run_cmd", "run_cmd", command=True, **{"status": "completed", **facts})
    return call, [plain(line) for line in lines_of(call, columns, wrap=wrap)]


def test_a_long_output_is_shown_by_its_two_ends() -> None:
    call, lines = ran(80, output="".join(f"{n}\n" for n in range(500)))
    assert lines[0] == "· run_cmd  0.00 s  #3"
    assert lines[3:6] == ["  2", "  ... 488 more lines; /show 3", "  491"]
    assert lines[-1] == "  499"
    assert "of 1890 characters]" in call_document(call).text
    assert len(ran(40, wrap=True, output="word " * 400)[1]) == len(lines), "one line that fills many rows"
    assert len(ran(80, note="word\n" * 500)[1]) == len(lines)


def test_a_denied_call_says_why_where_nobody_was_asked() -> None:
    denied: dict[str, Any] = {"status": "failed", "kind": "denied", "reason": "the profile says so"}
    for output, said in (("it is\nso", ["  it is", "  so"]), ("it is so, and the person declined. Do without it.", [])):
        assert [plain(line) for line in lines_of(ShownCall("1", 3, "t", output=output, **denied), 80)][1:] == said
    would = [plain(line) for line in lines_of(ShownCall("1", 3, "t", output="x\n" * 50, **denied), 80)]
    assert would[-1] == "  ... 38 more lines; /show 3"


def test_a_call_in_full_is_no_json_where_a_command_ran_and_is_broken_once() -> None:
    printed = "x" * 200 + "\ny\nexit code 1"
    lines = [plain(line) for line in lines_of(call_document(ran(40, output=printed)[0]), 40, wrap=True)]
    at = lines.index("output:")
    assert [len(line) for line in lines[at + 1 : at + 7]] == [40] * 5 + [12]
    assert lines[at + 7 :] == ["  y", "  exit code 1"]


WHY: Final = "The turn was cancelled, and the worker that ran this call was stopped. It may have had its effect or not."


def test_the_reason_of_a_failure_is_broken_between_words_and_output_where_it_is_full() -> None:
    failed: dict[str, Any] = {"status": "failed", "kind": "outcome_unknown", "output": WHY}
    _, (head, *lines) = ran(40, wrap=True, **failed)
    assert "outcome_unknown" in head
    assert max(map(len, lines)) <= 40
    assert " ".join(line.strip() for line in lines) == WHY
    assert ran(40, **failed)[1][1:] == [f"  {WHY}"]
    rows = ran(40, wrap=True, output="x " * 60)[1][1:]
    assert "".join(row[2:] for row in rows) == "x " * 60
    assert {row[:2] for row in rows} == {"  "}


def test_no_row_of_an_answer_in_plain_lines_begins_where_a_frame_could(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.isatty", lambda _: True)
    monkeypatch.setenv("COLUMNS", "20")
    out = io.StringIO()
    screen = PlainScreen(out, io.StringIO(), attended=True)
    for piece in ("hello ", "world and more", " yet\n┌ ? run_cmd", "\n", "\n│ x", " " * 17 + "│ y\n", "日本" * 15):
        screen.show(Said(piece))
    rows = out.getvalue().split("\n")
    assert {row[:2] for row in rows if row} == {"  "}
    assert max(map(width, rows)) < 20
    assert "".join(row[2:] for row in rows).startswith("hello world and more yet┌ ? run_cmd│ x")


def test_a_text_that_was_asked_for_is_broken_between_words_and_keeps_its_indent() -> None:
    lines = [plain(line) for line in lines_of(Document("    seven words\n  restored notes"), 13, wrap=True)]
    assert lines == ["    seven", "  words", "  restored", "  notes"]


def test_a_long_line_of_yours_is_shown_by_its_beginning() -> None:
    scrollback = Scrollback(lambda: RichMarkdown(colour=False), lambda: 80, colour=False)
    scrollback.show(ShownPrompt("\n".join(map(str, range(10_000)))))
    *_, last, more, end = scrollback.take().split("\n")
    assert ("  19" in last, "  ... 9980 more lines, sent as well" in more, end) == (True, True, "")


def test_nothing_but_a_review_begins_as_its_frame_does() -> None:
    for item in (Note("┌ ? run_cmd\n│ ls"), Document("a\n└ x" + " " * 75 + "│ y"), ShownPrompt("x\n│ y")):
        assert not {plain(line)[:1] for line in lines_of(item, 80, wrap=True)} & set("┌│└")


def test_the_changes_of_a_call_are_its_last_line() -> None:
    assert ran(80, output="a", outcome="1 file changed")[1][1:] == ["  a", "  1 file changed"]


EDIT: Final = extensions.ChangedName(
    path="notes/a.py", what="modified", diff="@@ -1,30 +1,30 @@\n-x = 1\n+x = 2\n" + " pass\n" * 29
)


def edited() -> ShownCall:
    return ShownCall(
        "c", 3, "t", "edit_file", '{"path": "a.py"}', status="completed", outcome="1 file changed", differences=[EDIT]
    )


def test_an_edit_shows_its_difference_folded_and_all_of_it_on_request() -> None:
    head, *lines, outcome = lines_of(edited(), 80, wrap=True)
    assert plain(head) == "· edit_file a.py  0.00 s  #3"
    shown = [plain(line) for line in lines]
    assert shown[:4] == ["  M notes/a.py  +1 -1", "  @@ -1,30 +1,30 @@", "  -x = 1", "  +x = 2"]
    assert shown[20:] == ["  ... 13 more lines; /show 3"]
    assert plain(outcome) == "  1 file changed"
    assert ("green reverse", "2") in lines[3]
    assert all(width(plain(line)) <= 20 for line in lines_of(edited(), 20, wrap=True))
    whole = [plain(line) for line in lines_of(call_document(edited()), 80, wrap=True)]
    assert whole[-33:-29] == shown[:4]
    assert whole[-29:] == ["   pass"] * 29


def test_what_was_shown_before_it_was_decided_is_not_shown_again() -> None:
    scrollback = Scrollback(lambda: RichMarkdown(colour=False), lambda: 80, colour=False)
    scrollback.show(ShownProposal(([("", "┌ ? edit_file")],), "c"))
    scrollback.take()
    for expected in (False, True):  # the second time somebody asked for the history
        scrollback.show(edited())
        assert ("+x = " in scrollback.take()) == expected


def test_a_long_note_has_a_line_of_its_own() -> None:
    call = ShownCall("1", 3, "t", "read_file", '{"path": "notes/idea.md"}', status="completed", note="word " * 12)
    first, *rest = [plain(line) for line in lines_of(call, 80, wrap=True)]
    assert first == "· read_file notes/idea.md  0.00 s  #3"
    assert " ".join(rest).split() == ["word"] * 12


# --- what a person decides about --------------------------------------------------------------------------------------


def request(*changes: extensions.ChangedName) -> extensions.ApprovalRequest:
    effects = extensions.ProposedEffects(changes=list(changes), totals={"added": len(changes)})
    return extensions.ApprovalRequest(
        tool="exec_shell", arguments='{"command": "make"}', reason="", stage="effects", effects=effects
    )


class Screen:
    """Shows pages."""

    def __init__(self, asked: extensions.ApprovalRequest, printed: str = "", columns: int = 80) -> None:
        self.pages = ProposalPages(asked, printed, columns, self._show)
        self.shown: list[str] = []

    def _show(self, item: Item) -> None:
        assert isinstance(item, ShownProposal)
        self.shown = [plain(line) for line in lines_of(item, 80)]


BUILT = [extensions.ChangedName(path=f"build/{number}", what="added", diff="+x\n") for number in range(50)]


def proposal(rows: int, *, protected: int = 0, printed: str = "") -> list[str]:
    hooks = [
        extensions.ChangedName(path=f"h{number}", what="added", protected="git runs it") for number in range(protected)
    ]
    screen = Screen(request(*BUILT, *hooks), printed)
    screen.pages.first(rows)
    return screen.shown


def test_many_changes_begin_with_a_summary_and_are_paged_through() -> None:
    screen = Screen(request(*BUILT))
    screen.pages.first(5)
    assert screen.shown == [
        "┌ ? exec_shell make",
        "│ Would change 50 files: 50 added",
        "│   A  build/...  50 names",
        "│ A build/0  +1 -0",
        "└ a summary of 151 lines · PgDn, PgUp; Ctrl-O shows all",
    ]
    read: list[str] = []
    while screen.pages.unread:
        assert screen.pages.unread.startswith(f"lines {len(read) + 1} to 151 ")
        screen.pages.turn(True)
        read += screen.shown[1:-1]
    assert screen.shown[-1] == "└ lines 151 to 151 of 151, the end"
    screen.pages.everything()
    assert (screen.shown[1:-1], screen.shown[-1]) == (read, "└")


def test_an_edit_is_named_by_its_file_and_its_blanks_are_seen_in_its_difference() -> None:
    content = f"if x:\n{' ' * 40}pass\n"
    effects = extensions.ProposedEffects(
        changes=[extensions.ChangedName(path="a.py", what="added", diff=f"+if x:\n+{' ' * 40}pass\n")],
        totals={"added": 1},
    )
    arguments = json.dumps({"path": "a.py", "content": content})
    asked = extensions.ApprovalRequest("write_file", arguments, "", stage="effects", effects=effects)
    screen = Screen(asked)
    screen.pages.everything()
    assert screen.shown[:4] == [
        "┌ ? write_file a.py",
        "│ Would change 1 file: 1 added",
        "│   A  a.py",
        "│ A a.py  +2 -0",
    ]
    assert screen.shown[-2] == f"│ +{' ' * 40}pass"


@pytest.mark.parametrize(("columns", "shown"), [(80, True), (200, False)])
def test_a_reason_for_which_the_box_has_no_room_stands_above_it(columns: int, shown: bool) -> None:
    why = "it deletes what git tracks: README.md, after a page was read that says so"
    screen = Screen(msgspec.structs.replace(request(*BUILT[:1]), reason=why), columns=columns)
    screen.pages.first(9)
    assert ("│ it deletes what git tracks: README.md, after a page was read that says so" in screen.shown) == shown
    assert screen.pages.unread == ""


def test_a_long_difference_says_which_lines_of_it_are_shown() -> None:
    diff = "".join(f"+line {number}\n" for number in range(900))
    screen = Screen(request(extensions.ChangedName(path="a", what="added", diff=diff)))
    screen.pages.first(42)
    assert screen.shown[-1] == "└ lines 1 to 40 of 903 · PgDn, PgUp; Ctrl-O shows all"
    assert screen.pages.unread == "lines 41 to 903 of what it asks about were not shown yet"
    screen.pages.turn(True)
    second = screen.shown
    assert second[-1].startswith("└ lines 41 to 80 of 903")
    screen.pages.turn(False)
    assert screen.shown[-1].startswith("└ lines 1 to 40 of 903")
    assert screen.pages.unread.startswith("lines 81 ")


def test_no_line_within_the_frame_begins_where_the_frame_does() -> None:
    forged = "+" + "x" * 75 + "└ nothing else\n+┌ ? run_cmd ls\n"
    screen = Screen(request(extensions.ChangedName(path="a" * 200, what="added", about="└ done", diff=forged)))
    screen.pages.first(0)
    assert {line[:2] for line in screen.shown[1:-1]} == {"│ ", "│↪"}
    assert max(map(width, screen.shown)) <= 80
    assert "".join(line[2:] for line in screen.shown[-4:-2]) == forged.split("\n", maxsplit=1)[0]


def test_a_protected_path_is_never_cut() -> None:
    lines = proposal(5, protected=30)
    assert [line for line in lines if line.startswith("│ ! ")] == lines[2:32]
    assert len(lines) == 33


def test_the_end_of_what_a_rehearsed_command_printed_stands_before_what_it_would_change() -> None:
    lines = proposal(20, printed="".join(f"{number}\x1b\n" for number in range(9)))
    assert lines[1:8] == [
        "│   ...",
        *(f"│   {number}\\x1b" for number in range(4, 9)),
        "│ Would change 50 files: 50 added",
    ]


def test_a_call_that_nobody_has_rehearsed_proposes_nothing() -> None:
    screen = Screen(extensions.ApprovalRequest(tool="fetch_url", arguments="{}", reason=""))
    screen.pages.first(10)
    assert (screen.shown, screen.pages.unread) == ([], "")
