"""The bar, the lines, the completions and the memory of the console, without a terminal."""

import os
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions, schema
from supervisor.clients.console import input_line
from supervisor.clients.console.completion import offers, paths
from supervisor.clients.console.session_state import SessionState
from supervisor.clients.console.shown import Note, ShownCall, ShownProposal
from supervisor.clients.console.status_bar import bar, money, progress, tokens
from supervisor.clients.console.styled_text import call_document, lines_of, plain, styled


def busy() -> SessionState:
    view = SessionState(
        extensions.SessionFacts(session_id="s", profile="vault", model="scripted:/a/b/c.jsonl", root="/", tools=())
    )
    view.used, view.size, view.cost = 12_345, 200_000, schema.Cost(amount=0.0123, currency="USD")
    view.turn_state = "Thinking"
    return view


BARS: Final = [
    (79, "Thinking · scripted:c.jsonl · vault · 12.3k/200k tokens · $0.0123     ^C cancel"),
    (60, "Thinking · scripted:c.jsonl · vault               ^C cancel"),
    (39, "Thinking · scripted:c.jsonl   ^C cancel"),
    (12, "Thinking"),
    (3, "..."),
]


def test_the_bar_shows_what_fits_and_is_never_too_wide() -> None:
    for width, text in BARS:
        assert plain(bar(busy(), width)).split() == text.split()
    view = busy()
    for state in ("Input", "Thinking", "ReviewAction", "Executing", "Finalizing", "Done"):
        view.turn_state = state
        for width in range(3, 120):
            assert len(plain(bar(view, width))) <= width
            assert len(plain(progress(view, max(width, 20), 12.0))) <= max(width, 20)


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
    counts = {0: "0", 999: "999", 1000: "1.0k", 99_949: "99.9k", 200_000: "200k"}
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


def test_a_long_output_is_shown_by_its_head() -> None:
    call, lines = ran(80, output="x\n" * 500)
    assert lines[0] == "· run_cmd  0.00 s  #3"
    assert lines[-1] == "  ... 490 more lines; /show 3"
    assert "of 1000 characters]" in call_document(call)


WHY: Final = "The turn was cancelled, and the worker that ran this call was stopped. It may have had its effect or not."


def test_the_reason_of_a_failure_is_broken_between_words_and_output_is_not() -> None:
    failed: dict[str, Any] = {"status": "failed", "kind": "outcome_unknown", "output": WHY}
    _, (head, *lines) = ran(40, wrap=True, **failed)
    assert "outcome_unknown" in head
    assert max(map(len, lines)) <= 40
    assert " ".join(line.strip() for line in lines) == WHY
    assert ran(40, **failed)[1][1:] == [f"  {WHY}"]
    assert ran(40, wrap=True, output="x " * 60)[1][1:] == ["  " + "x " * 60]


def test_the_changes_of_a_call_are_its_last_line() -> None:
    result = '{"stdout":"a\\n","stderr":"","exit_code":0}\n\n[a note]'
    assert ran(80, output=result, outcome="1 file changed")[1][1:] == ["  a", "  1 file changed"]


def test_a_long_note_has_a_line_of_its_own() -> None:
    call = ShownCall("1", 3, "t", "read_file", '{"path": "notes/idea.md"}', status="completed", note="word " * 12)
    first, *rest = [plain(line) for line in lines_of(call, 80, wrap=True)]
    assert first == "· read_file notes/idea.md  0.00 s  #3"
    assert " ".join(rest).split() == ["word"] * 12


# --- what a person decides about --------------------------------------------------------------------------------------


def proposal(rows: int, *, protected: int = 0, printed: str = "") -> list[str]:
    found = [extensions.ChangedName(path=f"build/{number}", what="added", diff="+x\n") for number in range(50)]
    found += [
        extensions.ChangedName(path=f"h{number}", what="added", protected="git runs it") for number in range(protected)
    ]
    effects = extensions.ProposedEffects(changes=found, totals={"added": len(found)})
    review = extensions.ApprovalRequest(
        tool="exec_shell", arguments='{"command": "make"}', reason="", stage="effects", effects=effects
    )
    return [plain(line) for line in lines_of(ShownProposal(review, printed, rows), 80)]


def test_a_proposal_is_cut_to_the_screen_and_shown_whole_when_it_is_asked_for() -> None:
    assert proposal(5) == [
        "? exec_shell make",
        "Would change 50 files: 50 added",
        "  A  build/...  50 names",
        "A build/0",
        "... Ctrl-O shows all 151 lines",
    ]
    assert len(proposal(0)) == 152


def test_a_protected_path_is_never_cut() -> None:
    lines = proposal(5, protected=30)
    assert [line for line in lines if line.startswith("! ")] == lines[2:32]
    assert len(lines) == 33


def test_the_end_of_what_a_rehearsed_command_printed_stands_before_what_it_would_change() -> None:
    lines = proposal(20, printed="".join(f"{number}\x1b\n" for number in range(9)))
    assert lines[1:8] == ["  ...", *(f"  {number}\\x1b" for number in range(4, 9)), "Would change 50 files: 50 added"]


def test_a_call_that_nobody_has_rehearsed_proposes_nothing() -> None:
    assert lines_of(ShownProposal(extensions.ApprovalRequest(tool="fetch_url", arguments="{}", reason="")), 80) == []


@pytest.fixture
def tree(root: Path) -> Path:
    (root / "notes" / "deep").mkdir(parents=True)
    (root / "notes" / "idea.md").write_text("")
    (root / ".hidden").write_text("")
    (root / "bad\x1bname").write_text("")
    (root / "out").symlink_to("/etc")
    (root / "notes" / "link").symlink_to("idea.md")
    os.mkfifo(root / "pipe")
    return root


PATHS: Final = [
    ("", ["a.txt", "notes/"]),
    ("no", ["notes/"]),
    ("notes/", ["notes/deep/", "notes/idea.md"]),
    ("notes/i", ["notes/idea.md"]),
    (".h", [".hidden"]),
    ("out/", []),
    ("out", []),
    ("../", []),
    ("notes/../", []),
    ("/etc/", []),
    ("missing/", []),
    ("no\0/x", []),
]


@pytest.mark.parametrize(("word", "found"), PATHS)
def test_paths_are_those_beneath_the_root(word: str, found: list[str], tree: Path) -> None:
    assert [path for path, _ in paths(str(tree), word)] == found


OFFERS: Final = [
    ("/m", ["/model"]),
    ("/model o", ["offline"]),
    ("look at read", ["read_file"]),
    ("/export no", ["notes/"]),
    ("one\nno", ["notes/"]),
]


@pytest.mark.parametrize(("before", "found"), OFFERS)
def test_offers(before: str, found: list[str], tree: Path) -> None:
    given = offers(
        before,
        root=str(tree),
        tools=["read_file"],
        commands={"model": "about", "export": ""},
        choices={"model": ["offline", "claude"]},
    )
    assert [offer.text for offer in given] == found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history"


def test_typed_lines_are_remembered_for_their_owner_alone(file: Path) -> None:
    for line in ("one", "two\nlines", 'é "'):
        input_line.append(file, line)
    assert input_line.load(file) == ["one", "two\nlines", 'é "']
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_long_memory_is_cut(file: Path) -> None:
    file.write_text("".join(f'"{number}"\n' for number in range(2 * input_line.CAP)))
    input_line.append(file, "last")
    lines = file.read_text().splitlines()
    assert (len(lines), lines[-1]) == (input_line.CAP, '"last"')
    assert list(file.parent.iterdir()) == [file]


def test_a_broken_memory_stops_nothing(file: Path) -> None:
    file.write_bytes(b'"ok"\n\xff\n{"no": 1}\n"torn')
    assert input_line.load(file) == ["ok"]
    input_line.append(file.parent, "to a directory")
    input_line.append(file.parent / "missing" / "history", "nowhere")
    input_line.append(file, "x" * 20_000)
    assert input_line.load(file) == ["ok"]


def test_a_history_that_is_a_fifo_is_not_waited_for(file: Path) -> None:
    os.mkfifo(file)
    assert input_line.load(file) == []
    input_line.append(file, "a line")
