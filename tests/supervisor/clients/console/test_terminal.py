"""The console on a terminal, key by key, against a daemon whose turns the test plays."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions, schema
from supervisor.clients.console.answer_guard import BURST_S, QUIET_S
from supervisor.journal.facts import TurnStarted
from tests.supervisor.clients.console.fake_daemon import GO, SESSION, FakeDaemon, called, ended, heard, said
from tests.supervisor.clients.console.terminals import ALT_ENTER, END, ENTER, ESCAPE, INTERRUPT, Terminal, unexpected
from tests.supervisor.command import Home, wait_until
from tests.supervisor.histories import opening_fact

Open = Callable[..., Terminal]


def idle(console: Terminal, *texts: str) -> str:
    """Wait until the screen shows all texts and a line can be typed; return it."""
    return console.until(lambda screen: "\nReady" in screen and all(text in screen for text in texts))


def reject(console: Terminal, daemon: FakeDaemon, why: str = "") -> None:
    console.until("Esc rejects")
    console.type(ESCAPE, "why?")
    console.type(why + ENTER)
    assert daemon.answered() == {"option": "reject_once"} | ({extensions.REMARK: why} if why else {})


def cancel(console: Terminal, daemon: FakeDaemon) -> None:
    console.type(INTERRUPT)
    daemon.noted("session/cancel")
    console.until("cancelling")


def ask(console: Terminal, daemon: FakeDaemon, command: str, reason: str = "policy asks") -> str:
    """Let the daemon ask about a command; return the screen."""
    daemon.ask("run_cmd", json.dumps({"command": command}), reason)
    return console.until(lambda screen: f"│ {command}" in screen and "Enter runs it" in screen)


def boxed(columns: int) -> Callable[[str], bool]:
    """Return whether a whole box of this width is on a screen: it may be caught while it is drawn."""

    def is_whole(screen: str) -> bool:
        edges = [line[:1] + line[-1:] for line in screen.split("\n") if len(line) == columns]
        return all(each in edges for each in ("╭╮", "││", "╰╯"))

    return is_whole


def test_an_empty_line_does_nothing_and_escape_leaves_the_terminal_as_it_was(
    ready: Terminal, daemon: FakeDaemon
) -> None:
    ready.type(ENTER + "  " + ENTER)
    ready.type("x\b")
    ready.type(ESCAPE)
    assert ready.ended() == 0
    assert "session/prompt" not in daemon.seen
    assert ready.raw.count(b"\x1b[?2004h") <= ready.raw.count(b"\x1b[?2004l")
    assert ready.raw.rfind(b"\x1b[?25h") > ready.raw.rfind(b"\x1b[?25l")
    assert "Ready" not in ready.text


@pytest.mark.parametrize("keys", [END, INTERRUPT + INTERRUPT, "/quit" + ENTER], ids=["ctrl-d", "ctrl-c", "quit"])
def test_it_is_left_by(keys: str, ready: Terminal) -> None:
    ready.type(keys)
    assert ready.ended() == 0


def test_a_signal_to_end_is_obeyed(ready: Terminal) -> None:
    ready.signal(signal.SIGTERM)
    assert ready.ended() == 0


def test_the_terminal_is_taken_back_after_a_stop(ready: Terminal, daemon: FakeDaemon) -> None:
    ready.signal(signal.SIGSTOP)
    ready.echo()  # as a shell leaves it
    ready.signal(signal.SIGCONT)
    ready.until(lambda _: not ready.echoes)
    ready.type("go" + ENTER)
    assert daemon.prompt() == "go"


def test_an_answer_streams_block_by_block(ready: Terminal, daemon: FakeDaemon) -> None:
    ready.type("what is it?" + ENTER)
    assert daemon.prompt() == "what is it?"
    daemon.state("Thinking")
    ready.until("Thinking")
    daemon.say("# A title\n\nA *fir")
    ready.until(lambda screen: "A title" in screen and "fir" in screen)
    daemon.say("st* paragraph.\n\n- one\n- tw")
    ready.until("first paragraph.")
    daemon.reply("o\n\n```python\nprint(1)\n```\n")
    screen = idle(ready, "print(1)")
    assert "> what is it?" in screen
    assert " • one\n • two" in screen
    assert "#" not in screen
    assert "```" not in screen


def test_nothing_that_a_model_a_tool_or_a_file_says_acts_on_the_terminal(console: Terminal, daemon: FakeDaemon) -> None:
    evil = "\x1b]0;owned\x07 \x1b[2J\x9b31m \u202eabc `\x1b[31mred` &#27;[1m"
    daemon.state("Executing")
    daemon.tell(called(1, f"run_cmd{evil}", json.dumps({"command": evil}), "execute"))
    daemon.tell(ended(1, f"run_cmd{evil}", evil))
    daemon.state("Finalizing", retry=evil)
    daemon.ask("run_cmd", json.dumps({"command": evil}), evil)
    console.until("Enter runs it")
    console.type(ENTER)
    daemon.answered()
    daemon.say(evil + "\n\n- " + evil + "\n\nEnd")
    daemon.end("error", kind=evil, message=evil)
    idle(console, "End", "error:")
    screen = console.type("/show 1" + ENTER, "arguments:")
    assert unexpected(console.raw) == b"\x07"  # that of the question
    assert b"owned\x07" not in console.raw
    assert "\u202e" not in console.raw.decode()
    assert "\\x1b" in screen


def test_a_tool_call_is_one_line_that_can_be_expanded(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Executing")
    daemon.tell(called(1, "read_file", '{"path": "notes/idea.md"}'))
    console.until("read_file notes/idea.md")
    daemon.tell(ended(1, "read_file", "the whole note"))
    daemon.tell(called(2, "read_file", '{"path": "../x"}'), ended(2, "read_file", "no", "path_escape"))
    daemon.end()
    screen = idle(console, "#2")
    assert "· read_file notes/idea.md  0.25 s  #1" in screen
    assert "· read_file ../x  path_escape  #2" in screen
    assert console.colour_of("path_escape") == "red"
    assert "the whole note" not in screen
    console.type("/show 1" + ENTER, "the whole note")
    console.type("\x0f", "#2 read_file  failed  path_escape")


def test_thinking_is_folded_until_it_is_asked_for(console: Terminal, daemon: FakeDaemon) -> None:
    thought = "\n".join(f"step {number} of it" for number in range(9))
    update = schema.AgentThoughtChunk(content=schema.Text(text=thought), message_id="turn-1-step-0")
    daemon.tell(update)
    console.until("Thinking step 8 of it")
    daemon.reply("So it is.")
    screen = idle(console, "So it is.")
    assert "∴ step 0 of it\n  step 1 of it\n  step 2 of it\n  ... 6 more lines; /show thinking" in screen
    assert "step 3 of it" not in screen
    console.type("\x0f", "step 3 of it")
    console.type("/show thinking" + ENTER, lambda screen: screen.count("step 7 of it") == 2)


def test_output_of_a_command_is_shown(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Executing")
    daemon.tell(called(1, "run_cmd", '{"command": "ls"}', "execute"))
    daemon.tell(ended(1, "run_cmd", "a.txt\noh\nexit code 2"))
    daemon.tell(called(2, "run_cmd", '{"command": "true"}', "execute"))
    daemon.tell(ended(2, "run_cmd", ""))
    daemon.end()
    screen = idle(console, "#2")
    assert "  a.txt\n  oh\n  exit code 2\n" in screen
    assert "(no output)" in screen


def test_a_review_runs_what_is_shown_or_what_it_is_edited_to(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("ReviewAction")
    screen = ask(console, daemon, "ls -l", "every command is asked about")
    assert "run_cmd · command · every command is asked about" in screen
    assert console.colour_of("╭") == "green"
    console.type("\x1a" + ENTER)  # there is no shell that it could be given back to, and it is not typed
    assert daemon.answered() == {"option": "allow_once"}
    console.until(lambda screen: "╭" not in screen)
    ask(console, daemon, "ls")
    console.type(" -a" + ALT_ENTER + "pwd", lambda screen: "│ pwd" in screen and "Enter runs it" in screen)
    console.type(ENTER)
    assert daemon.answered() == {"option": "allow_once", extensions.EDITED: {"command": "ls -a\npwd"}}
    daemon.ask("write_file", '{"path": "a", "content": "b"}')
    console.until(lambda screen: '"content": "b"' in screen and "Enter runs it" in screen)
    console.type("x", lambda screen: "}x" in screen and "Enter runs it" in screen)
    console.type(ENTER, "This is not JSON")
    console.type("\b", lambda screen: "}x" not in screen and "Enter runs it" in screen)
    console.type(ENTER)
    assert daemon.answered() == {"option": "allow_once"}
    daemon.ask("write_file", json.dumps({"path": "first", "content": "word " * 2000}))
    screen = console.until(" characters · policy asks ")
    assert '│   "path": "first",' in screen  # a long one is shown from its beginning


def test_a_rejection_tells_why(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.ask("run_cmd", '{"command": "rm x"}')
    daemon.ask("run_cmd", '{"command": "rm y"}')
    console.until("1 of 2")
    reject(console, daemon, "too much")
    console.until(lambda screen: "│ rm y" in screen and "Esc rejects" in screen)
    reject(console, daemon)


EFFECTS: Final = extensions.ProposedEffects(
    changes=[
        extensions.ChangedName(path=".git/hooks/x", what="added", about="8 B", protected="git runs it"),
        extensions.ChangedName(path="a.py", what="modified", diff="@@ -1 +1 @@\n-one\n+two\n"),
    ],
    totals={"added": 1, "modified": 1},
)
TOUCH: Final = '{"command": "touch", "args": ["a.py"]}'


def proposed(console: Terminal, daemon: FakeDaemon, **offered: Any) -> str:
    """Let the daemon ask about effects; return the screen."""
    daemon.ask("exec_shell", TOUCH, stage="effects", effects=EFFECTS, **offered)
    return console.until("y applies 2 changes")


def test_effects_are_shown_above_the_box_and_applied_or_rehearsed_when_edited(
    console: Terminal, daemon: FakeDaemon
) -> None:
    screen = proposed(console, daemon)
    hook, listed, removed = (screen.index(part) for part in ("! A  .git/hooks/x", "  M  a.py", "│ -one\n│ +two"))
    assert hook < listed < removed < screen.index("│ touch a.py")
    assert [console.colour_of(part) for part in ("! A", "-one", "+two")] == ["red", "red", "green"]
    console.type(ENTER, "Enter alone is no yes here: it changes protected names.")
    console.until("y applies 2 changes")
    console.type("y")
    assert daemon.answered() == {"option": "allow_once"}
    console.until(lambda screen: "╭" not in screen)
    proposed(console, daemon, covers="RULE")
    screen = console.type(" b.py", "Enter rehearses it")
    assert "Alt-S" not in screen
    console.type(ENTER)
    edited = {"command": "touch", "args": ["a.py", "b.py"]}
    assert daemon.answered() == {"option": "allow_once", extensions.EDITED: edited}


def test_a_yes_to_more_is_shown_and_confirmed(console: Terminal, daemon: FakeDaemon) -> None:
    proposed(console, daemon, covers="touch may change a.py\u202e")
    console.type("\x1ba", "touch may change a.py\\u202e")
    console.until("y yes · n no ──")
    console.type("\x1b[200~y\x1b[201~")
    console.rest(3 * BURST_S)
    assert not daemon.is_answered()
    console.type("xn", "Alt-S this session")
    console.type("\x1bs", "until this session ends")
    console.type("\x1b[200~y\x1b[201~" + ENTER, "readable in a moment")
    console.until("y yes · n no ──")
    console.type("y")
    assert daemon.answered() == {"option": "allow_once", extensions.SCOPE: "session"}
    console.until(lambda screen: "╭" not in screen)
    rule = {"decision": "allow", "programs": ["touch"], "writes": ["a.py"], "max_files": 10}
    proposed(console, daemon, covers="touch may change a.py", rule=rule)
    console.type("\x1ba", "e edits the rule")
    console.type("e", 'rule: {"writes":["a.py"]')
    console.type("\x15x" + ENTER, "This is no rule")
    console.type("\x15" + '{"writes": ["docs/"]}' + ENTER, "touch may add or change docs/")
    console.until("e edits the rule")
    console.type("y")
    made = {"option": "allow_once", extensions.SCOPE: "always", extensions.RULE: {"writes": ["docs/"]}}
    assert daemon.answered() == made
    console.until(lambda screen: "╭" not in screen)
    proposed(console, daemon, escalation=True)
    console.type("\x1bs", "No rule can be made of this")
    console.type("\x1bu", lambda screen: "On the real system" in screen and "y yes · n no ──" in screen)
    console.type("y", lambda screen: "Confirm again" in screen and "y yes · n no ──" in screen)
    console.type("y")
    assert daemon.answered() == {"option": "allow_once", extensions.UNCONFINED: True}


def test_a_question_that_somebody_else_answered_goes_away(console: Terminal, daemon: FakeDaemon) -> None:
    number = daemon.ask("run_cmd", '{"command": "rm x"}')
    console.until("│ rm x")
    daemon.withdraw(number)
    console.until(lambda screen: "│ rm x" not in screen and ">" in screen)


def test_an_enter_that_was_meant_for_a_line_runs_nothing_and_escape_ends_nothing(
    console: Terminal, daemon: FakeDaemon
) -> None:
    daemon.state("Executing")  # another call runs beside
    console.type("meanwhile I ty", "meanwhile I ty")
    daemon.ask("run_cmd", '{"command": "rm x"}')
    screen = console.until("your line has the keys")
    assert "│ rm x" in screen
    assert "> meanwhile I ty" in screen
    console.type(ESCAPE)
    console.rest(0.3)
    console.type(
        "\x1b[Fpe" + ENTER, lambda screen: "\n  kept > meanwhile I type\n" in screen and "Esc rejects" in screen
    )
    assert not daemon.has_noted
    reject(console, daemon)
    daemon.end()
    idle(console, "> meanwhile I type")
    assert daemon.seen.count("session/prompt") == 1


def test_a_script_that_presses_enter_every_20_ms_runs_nothing(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal(REAL_TIMES="1")
    console.type("go" + ENTER)
    daemon.prompt()
    daemon.state("ReviewAction")
    console.hammer(ENTER, 20)
    daemon.ask("run_cmd", '{"command": "rm x"}')
    assert "│ rm x" in console.hammer(ENTER, 60)
    daemon.ask("run_cmd", '{"command": "rm y"}')
    console.until("Enter runs it")
    assert not daemon.is_answered()
    console.hammer(ENTER, 1)
    assert daemon.answered() == {"option": "allow_once"}
    assert "│ rm y" in console.hammer(ENTER, 60)
    assert not daemon.is_answered()


def test_what_is_drawn_anew_is_read_anew(console: Terminal, daemon: FakeDaemon) -> None:
    ask(console, daemon, "ls")
    console.resize(60, 20)
    console.until("readable in a moment")
    console.until("Enter runs it")
    console.signal(signal.SIGCONT)
    console.until("readable in a moment")
    console.until("Enter runs it")


def test_who_is_not_looking_is_called_and_reads_a_question_anew(console: Terminal, daemon: FakeDaemon) -> None:
    console.until(lambda _: b"\x1b]2;Strongroom: Thinking, root\x07" in console.raw)
    console.type("a\x1b[Ob", "> ab")
    console.type("\x15")
    ask(console, daemon, "ls")
    assert b"\x1b]9;Strongroom: run_cmd waits for your answer.\x07\x07" in console.raw
    console.type("\x1b[I", "readable in a moment")
    console.until("Enter runs it")
    console.type(INTERRUPT + INTERRUPT)
    console.ended()
    assert console.raw.count(b"\x1b[?1004h") == console.raw.count(b"\x1b[?1004l") > 0
    assert console.raw.rfind(b"\x1b[?1004l") > console.raw.rfind(b"\x1b[?1004h")


def test_a_rule_that_the_screen_cuts_off_cannot_be_confirmed(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal(rows=4)
    console.type("go" + ENTER)
    daemon.prompt()
    daemon.state("ReviewAction")
    daemon.ask("run_cmd", '{"command": "ls"}', covers="word " * 60)
    for rows in (4, 8):
        console.resize(80, rows)
        console.until("Enter runs it")
        console.type("\x1bs", "too few rows")
        console.type("yn", "Alt-S this session")
    console.resize(80, 24)
    console.until("Enter runs it")
    console.type("\x1bs", "y yes · n no ──")
    console.type("y")
    assert daemon.answered() == {"option": "allow_once", extensions.SCOPE: "session"}


def test_pasted_text_answers_nothing_and_begins_a_line(console: Terminal, daemon: FakeDaemon) -> None:
    proposed(console, daemon)
    console.type("\x1b[200~y\x1b[201~", "> y")
    console.type(ENTER, lambda screen: "kept > y\n" in screen and "y applies 2 changes" in screen)
    console.type("y")
    assert daemon.answered() == {"option": "allow_once"}


def test_ctrl_c_cancels_the_turn_and_keeps_what_was_typed(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    console.until("Thinking")
    console.type("next" + ENTER, "> next")
    cancel(console, daemon)
    daemon.end("cancelled")
    idle(console, "\ncancelled")
    console.until("> next")
    assert daemon.seen.count("session/prompt") == 1
    console.type(INTERRUPT, lambda screen: "> next" not in screen)


def test_a_second_ctrl_c_leaves_a_turn_that_does_not_end(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    console.until("Thinking")
    console.type(INTERRUPT, "cancelling")
    console.type(INTERRUPT)
    assert console.ended() == 0


def test_a_retry_is_seen_and_nothing_is_shown_twice(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    daemon.say("First.\n\nSec")
    console.until("Sec")
    daemon.state("Thinking", retry="overloaded: Asked again in 1.0 s, attempt 2.")
    console.until("attempt 2")
    daemon.reply("First.\n\nSecond.", "turn-1-step-0-2")
    screen = idle(console, "Second.")
    assert screen.count("First.") == screen.count("Second.") == 1


def test_a_turn_that_fails_says_why(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.end("error", kind="rate_limited", message="Too many requests.")
    console.until("error: rate_limited: Too many requests.")
    console.type("again" + ENTER)
    daemon.prompt()
    daemon.refuse("The disk is full.", "journal_io")
    idle(console, "error: The disk is full.")


def test_a_daemon_that_ends_in_mid_turn_is_found_again(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    looked = (said("Let me look."), called(1, "read_file", '{"path": "a.txt"}'), ended(1, "read_file", "hello"))
    daemon.tell(*looked, said("One.\n\nTw", "turn-1-step-1"))
    console.until("Tw")
    daemon.history = [heard("go"), *looked]
    daemon.drop()
    console.until("reconnecting")
    daemon.continued(wait=True)
    daemon.state("Finalizing")
    daemon.reply("One.\n\nTwo.", "turn-1-step-1")
    screen = idle(console, "Two.")
    for text in ("> go", "Let me look.", "read_file a.txt", "One.", "Two."):
        assert screen.count(text) == 1, text


def test_a_command_of_the_person_s_own_runs_until_escape(ready: Terminal, daemon: FakeDaemon) -> None:
    ready.type("!sleep 9" + ENTER, "> !sleep 9")
    asked = daemon.next(extensions.CALL_METHOD)
    assert asked.params["arguments"] == '{"command": "sleep 9"}'
    assert asked.params["typed"]
    daemon.tell(called(1, "run_cmd", asked.params["arguments"], "execute"))
    ready.type("next" + ENTER, lambda screen: "queued > next" in screen and "Running · 1 queued" in screen)
    ready.type(ESCAPE, "cancelling")
    daemon.noted("$/cancel_request")
    asked.refuse(-32800, "run_cmd was cut off.", "cancelled")
    idle(ready, "run_cmd was cut off.", "\n> next")
    assert "session/prompt" not in daemon.seen


@pytest.fixture
def waiting(console: Terminal, daemon: FakeDaemon) -> Terminal:
    """A console whose turn waits for a limit."""
    daemon.tell(GO)
    daemon.suspend()
    console.until("Esc ends it · /model switches · /go tries now")
    assert "waiting until 2099-12-03" in console.text
    return console


def test_a_wait_is_ended_by_escape(waiting: Terminal, daemon: FakeDaemon) -> None:
    waiting.type(ESCAPE)
    daemon.noted("session/cancel")
    daemon.end("cancelled")
    idle(waiting, "cancelled")


def test_commands_count_while_a_turn_waits(waiting: Terminal, daemon: FakeDaemon) -> None:
    waiting.type("a line" + ENTER, "queued > a line")
    waiting.type("/help" + ENTER, "approve for this session, or always")
    waiting.type("/model claude-haiku-5-5" + ENTER, "> /model claude-haiku-5-5")
    wait_until(lambda: "session/set_config_option" in daemon.seen)
    waiting.type("/go" + ENTER)
    go = daemon.next("session/prompt")
    assert go.params["prompt"][0]["text"] == "/go"
    daemon.state("Thinking")
    daemon.reply("At last.")
    assert daemon.prompt() == "a line"


def test_a_session_whose_turn_waits_is_left_for_another(waiting: Terminal, daemon: FakeDaemon) -> None:
    waiting.type("/clear" + ENTER)
    idle(waiting, "of the session before goes on")
    waiting.type("go on" + ENTER)
    assert daemon.prompt() == "go on"
    daemon.suspend()
    waiting.until("Esc ends it")
    waiting.type("/quit" + ENTER)
    assert waiting.ended() == 0
    assert "The turn goes on in the daemon" in waiting.text
    assert not daemon.has_noted


def test_plain_lines_on_a_terminal_count_while_a_turn_waits(home: Path, root: Path, daemon: FakeDaemon) -> None:
    with Terminal(home, root.parent, "--plain") as console:
        console.until("\n>")
        console.type("go" + ENTER)
        daemon.prompt()
        console.type("/tools" + ENTER)
        daemon.tell(GO)
        daemon.suspend()
        console.until("(for after this turn: /tools)")
        console.type("/go" + ENTER)
        assert daemon.next("session/prompt").params["prompt"][0]["text"] == "/go"
        console.type("later" + ENTER, "(for after this turn: later)")
        daemon.reply("At last.")
        console.until("At last.")
        console.until("run_cmd")
        assert daemon.prompt() == "later"
        daemon.suspend()
        console.type("more" + ENTER, "(for after this turn: more)")
        console.type("/quit" + ENTER)
        assert console.ended() == 0


def test_a_line_that_the_last_daemon_did_not_record_is_sent_again(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.drop()
    assert daemon.prompt() == "go"
    daemon.reply("Done.")
    screen = idle(console, "Done.")
    assert screen.count("> go") == screen.count("Done.") == 1


def test_a_session_is_gone_on_with(terminal: Open, daemon: FakeDaemon) -> None:
    daemon.history = [heard("first"), said("Hello."), called(1, "read_file", "{}"), ended(1, "read_file", "x")]
    console = terminal("--session", daemon.facts.session_id)
    daemon.continued(wait=True)
    daemon.reply("And more.", "turn-1-step-1")
    screen = console.until("And more.")
    assert "> first" in screen
    assert "Hello." in screen
    assert "· read_file" in screen


def test_continue_without_a_session_says_so(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal("--continue")
    console.until("no session of this directory yet")


def test_notices_cannot_be_missed(home: Path, root: Path) -> None:
    with FakeDaemon(home, root, ("NO LANGUAGE MODEL: no key.",)), Terminal(home, root.parent) as console:
        console.until("! NO LANGUAGE MODEL: no key.")
        assert console.colour_of("! NO") == "brown"


def test_a_pasted_text_stays_one_message(ready: Terminal, daemon: FakeDaemon) -> None:
    ready.type("\x1b[200~one\ntwo\n\x1b[201~", "  two")
    ready.type(ENTER)
    assert daemon.prompt() == "one\ntwo\n"


def test_a_long_pasted_text_is_one_word_and_sent_whole(ready: Terminal, daemon: FakeDaemon) -> None:
    pasted = "".join(f"line {number}\n" for number in range(120))
    ready.type(f"see \x1b[200~{pasted}\x1b[201~", "> see [pasted 120 lines]\n")
    ready.type("\b", "> see\n")
    ready.type(f"\x1b[200~{pasted}\x1b[201~ and \x1b[200~{pasted[:-2]}\x1b[201~", "and [pasted 120 lines, 2]")
    ready.type(ENTER)
    assert daemon.prompt() == f"see {pasted} and {pasted[:-2]}"


def test_the_person_s_editor_has_the_line(terminal: Open, daemon: FakeDaemon, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\ngrep -q bad "$2" && exit 3\necho "$1" >> "$2"\n')
    editor.chmod(0o700)
    console = terminal(EDITOR=f"{editor} 'and more'")
    console.type("draft\x07", "> draftand more\n")
    console.type(INTERRUPT + "bad\x07", "has failed (3); the line stays as it was.")
    console.type(ENTER)
    assert daemon.prompt() == "bad"


def test_lines_are_searched_and_a_question_waits_for_the_end_of_that(
    terminal: Open, daemon: FakeDaemon, home: Path
) -> None:
    (home / "console-history").write_text('"about the greenhouse"\n"about the roof"\n')
    console = terminal()
    console.type("\x12green", lambda screen: "> about the greenhouse" in screen and "search: green" in screen)
    console.type(ENTER + ENTER)
    assert daemon.prompt() == "about the greenhouse"
    console.type("\x12nowhere", "search: nowhere")
    daemon.ask("run_cmd", '{"command": "ls"}')
    console.until("your line has the keys")
    console.type("\x07", "Enter runs it")
    assert not daemon.is_answered()


def test_vi_keys_edit_the_line_and_not_a_question(terminal: Open, daemon: FakeDaemon, home: Path) -> None:
    (home / "config.toml").write_text('[console]\nkeys = "vi"\n')
    console = terminal()
    console.type("axbc", "> axbc")
    console.type(ESCAPE)
    console.rest(0.3)
    console.type("0lx", "> abc")
    console.type(ENTER)
    assert daemon.prompt() == "abc"
    daemon.state("ReviewAction")
    proposed(console, daemon)
    console.type("y")
    assert daemon.answered() == {"option": "allow_once"}
    daemon.state("Thinking")
    console.type("typed", "> typed")
    console.type(ESCAPE)
    console.rest(0.3)
    assert not daemon.has_noted
    console.type(ESCAPE, "cancelling")


def test_tab_completes_commands_tools_and_paths(ready: Terminal, daemon: FakeDaemon, root: Path) -> None:
    (root / "notes").mkdir()
    (root / "notes" / "idea.md").write_text("")
    ready.type("/sta", "daemon, sessions and workers")
    ready.type("\t", "> /status")
    ready.type(INTERRUPT)
    ready.type("read n\t", "> read notes/")
    ready.type("i\t", "> read notes/idea.md")
    ready.type(" run_\t", "idea.md run_cmd")


def test_typed_lines_are_remembered(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal()
    console.type("remember me" + ENTER)
    daemon.prompt()
    daemon.reply("I do.")
    idle(console, "I do.")
    console.type(ESCAPE)
    console.ended()
    again = terminal()

    def has_come_up(screen: str) -> bool:
        if "> remember me" not in screen:
            again.type("\x1b[A")  # once more: lines are read while the prompt is there already
            return False
        return True

    again.until(has_come_up)


@pytest.mark.parametrize("columns", [80, 40, 20])
def test_it_fits_a_terminal_of(columns: int, terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal(columns=columns)
    console.type("go" + ENTER)
    daemon.prompt()
    daemon.state("Executing")
    daemon.tell(called(1, "read_file", '{"path": "a/very/long/path/that/does/not/fit/anywhere/at/all.md"}'))
    console.until("read_f")
    daemon.reply("A paragraph that is long enough to be broken into lines on every terminal there is.\n\nEnd.")
    idle(console, "A paragraph", "End.")


def test_it_follows_the_terminal_s_size(console: Terminal, daemon: FakeDaemon) -> None:
    ask(console, daemon, "ls")
    console.resize(40, 12)
    console.until(boxed(40))
    console.resize(100, 30)
    assert console.until(boxed(100)).count("│ ls") == 1


def test_commands_answer(ready: Terminal, daemon: FakeDaemon, home: Path, root: Path) -> None:
    ready.type("/modl" + ENTER, "Did you mean /model?")
    ready.type("/model claude-haiku-5-5" + ENTER, "The model is claude-haiku-5-5 now.")
    Home(home, root.parent).record(SESSION, opening_fact(root), TurnStarted(1, "what is"))
    ready.type("/export page.html" + ENTER, "The conversation is in page.html.")
    ready.type("/export talk.md" + ENTER, "The conversation is in talk.md.")
    assert (root.parent / "talk.md").read_text().startswith("# what is\n")
    assert (root.parent / "page.html").read_text().startswith("<!doctype html>\n")
    ready.type("/export talk.md" + ENTER, "exists already")
    ready.type(
        "/export ~nobody-of-this-name/x" + ENTER,
        "~nobody-of-this-name/x cannot be written: Could not determine home\ndirectory.\n",
    )
    ready.type(
        "/clear" + ENTER, lambda screen: "talk.md" not in screen and f"vault on {root}" in screen.replace("\n", " ")
    )
    assert daemon.seen.count("session/new") == 2


def test_a_command_of_the_daemon_s_is_shown_once(ready: Terminal, daemon: FakeDaemon) -> None:
    daemon.tell(
        schema.AvailableCommands([schema.AvailableCommand("budget", "What the budgets still hold.")]),
        schema.UsageUpdate(used=5, size=10),
    )
    ready.until("tokens")
    ready.type("/budg", "What the budgets still hold.")
    ready.type("et turn 9 tokens" + ENTER)
    assert daemon.prompt() == "/budget turn 9 tokens"
    daemon.say("turn: 0 of 9 tokens")
    daemon.end("end_turn")
    assert idle(ready, "turn: 0 of 9 tokens").count("> /budget") == 1


def test_a_turn_that_somebody_else_began_is_shown(ready: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    daemon.tell(heard("from elsewhere"))
    daemon.say("An answer.")
    ready.until(lambda screen: "> from elsewhere" in screen and "An answer." in screen and "Thinking" in screen)
    ready.type("mine" + ENTER, "queued > mine")
    daemon.state("Done")
    assert daemon.prompt() == "mine"


def test_a_turn_of_somebody_else_can_be_cancelled(ready: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    ready.until("Thinking")
    cancel(ready, daemon)
    daemon.state("Done")
    ready.until(lambda screen: "Ready" in screen and "cancelling" not in screen and "again to leave" not in screen)


def test_a_daemon_that_ended_meanwhile_is_found_again(ready: Terminal, daemon: FakeDaemon) -> None:
    daemon.drop()
    ready.type("go" + ENTER)
    assert daemon.prompt() == "go"
    daemon.reply("Here.")
    assert idle(ready, "Here.").count("> go") == 1
    assert "session/load" in daemon.seen


def test_a_line_that_is_sent_too_early_is_sent_when_there_is_a_session(held: Terminal, daemon: FakeDaemon) -> None:
    held.type("early" + ENTER, "> early")
    daemon.release()
    assert daemon.prompt() == "early"


def test_lines_are_sent_one_after_the_other(held: Terminal, daemon: FakeDaemon) -> None:
    held.type(
        "".join(f"{line}{ENTER}" for line in ("/tools", "first", "second", "third")),
        lambda screen: "\n  queued > first\n  queued > second\n  queued > third\n" in screen,
    )
    daemon.release()
    assert daemon.prompt() == "first"
    screen = held.until(lambda screen: "> first\n\n" in screen and "\n  queued > second\n  queued > third\n" in screen)
    assert "read_file\nrun_cmd" in screen
    held.type("\x1b[A", "\n  queued > second\n> third")
    held.type("\b\b" + ENTER, "\n  queued > second\n  queued > thi\n")
    daemon.state("Thinking")
    daemon.reply("One.")
    assert daemon.prompt() == "second"
    daemon.end("error", kind="timeout", message="No.")
    idle(held, "error: timeout", "> thi")
    assert daemon.seen.count("session/prompt") == 2


def test_escape_interrupts_and_gives_back_what_waits(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    console.type("next" + ENTER, "queued > next")
    console.type("\x1bq")  # Alt with a key that does nothing
    console.type("draft", "> draft")
    assert not daemon.has_noted
    console.type(ESCAPE, "cancelling")
    daemon.noted("session/cancel")
    daemon.end("cancelled")
    idle(console, "\ncancelled", "> next\n  draft")
    assert daemon.seen.count("session/prompt") == 1


def test_commands_run_while_it_works_where_they_can(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    daemon.say("First.\n\nSec")
    console.type("/tools" + ENTER, "> /tools\n\nread_file\nrun_cmd")
    console.type("/nothing" + ENTER, "There is no command /nothing.")
    console.type("/undo" + ENTER + "/model offline" + ENTER, "\n  queued > /undo\n  queued > /model offline\n")
    console.type("\x1b[A" + INTERRUPT, "cancelling")
    daemon.reply("ond.")
    daemon.next(extensions.UNDO_METHOD)
    assert idle(console, "Second.").count("First.") == 1


def test_lines_that_wait_can_be_taken_back(held: Terminal, daemon: FakeDaemon) -> None:
    held.type("early" + ENTER + "typed" + INTERRUPT, "> early\n  typed")
    daemon.release()
    idle(held, "> early\n  typed")
    assert "session/prompt" not in daemon.seen


def test_a_session_that_cannot_be_opened_is_said_and_ends_it(held: Terminal, daemon: FakeDaemon) -> None:
    daemon.release(refused="No profile 'x'. Choose one of: vault.")
    assert held.ended() == 2
    assert "error: No profile 'x'. Choose one of: vault." in held.text


def test_narrow_lists_are_broken_between_words(terminal: Open, daemon: FakeDaemon) -> None:
    daemon.sessions = [
        schema.SessionInfo(session_id=f"20260101-000000-{number:06}", cwd="/elsewhere", title=title)
        for number, title in enumerate(["", "what did I decide about the greenhouse?"])
    ]
    console = terminal(columns=40, rows=50)
    console.type("/help" + ENTER, "show the approval request, or the")
    screen = console.type("/sessions" + ENTER, "what did I decide about the\n    greenhouse?  in /elsewhere")
    assert "000000-000000" not in screen  # nothing was said there
    console.type("a line that is longer than the terminal is wide" + ENTER)
    daemon.prompt()
    console.until("> a line that is longer than the\n  terminal is wide")


def test_without_colour_there_is_none(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal(NO_COLOR="1")
    console.type("go" + ENTER)
    daemon.prompt()
    daemon.say("`code` and\n\n```python\ndef f(): pass\n```")
    daemon.end("error", kind="timeout", message="No.")
    idle(console, "error: timeout")
    assert not re.search(rb"\x1b\[[0-9;]*[349][0-7][;m]|\x1b\]|\x1b\[\?1004h|\x07", console.raw)


def say(console: Terminal, lines: list[str]) -> None:
    """Answer in plain lines, each after its prompt."""
    for line in lines:
        console.until(lambda _: console.raw.endswith((b"] ", b": ", b"? ")))
        before = len(console.raw)
        console.type(line + ENTER, lambda _, before=before: len(console.raw) > before)  # type: ignore[misc]


def test_plain_lines_that_are_begun_too_early_answer_nothing(home: Path, root: Path, daemon: FakeDaemon) -> None:
    with Terminal(home, root.parent, "--plain", REAL_TIMES="1") as console:
        console.until("\n>")
        daemon.ask("run_cmd", '{"command": "ls"}')  # of somebody else's turn: a line is waited for, too
        console.until("run it? [y/N/e/?]")
        console.hammer("y" + ENTER, 55)
        console.hammer("y", 1)  # the beginning of a line that ends after the pause
        console.rest(QUIET_S)
        assert not daemon.is_answered()
        console.type(ENTER, lambda screen: screen.endswith("turn: y)\nrun it? [y/N/e/?]"))
        assert not daemon.is_answered()
        while not daemon.is_answered():
            console.rest(QUIET_S + 0.3)
            assert "session/prompt" not in daemon.seen
            console.hammer("y" + ENTER, 1)
        assert daemon.answered() == {"option": "allow_once"}


def test_plain_lines_go_to_a_question_as_long_as_it_is_asked(home: Path, root: Path, daemon: FakeDaemon) -> None:
    with Terminal(home, root.parent, "--plain") as console:
        console.until("\n>")
        daemon.tell(heard("from elsewhere"))
        number = daemon.ask("run_cmd", '{"command": "rm x"}')
        console.until("run it? [y/N/e/?]")
        daemon.withdraw(number)
        console.until("(this needs no answer any more)\n>")
        daemon.ask("run_cmd", '{"command": "rm y"}')
        console.until("run it? [y/N/e/?]\n(this needs no answer any more)\n> run_cmd, command:")
        say(console, ["y"])
        assert daemon.answered() == {"option": "allow_once"}
        console.type("mine" + ENTER)
        assert daemon.prompt() == "mine"


def test_plain_lines_on_a_terminal_ask_about_calls(home: Path, root: Path, daemon: FakeDaemon) -> None:
    with Terminal(home, root.parent, "--plain") as console:
        console.until("\n>")
        console.type("go" + ENTER)
        daemon.prompt()
        answers: list[tuple[list[str], dict[str, Any]]] = [
            (["y"], {"option": "allow_once"}),
            (["e", "ls -a"], {"option": "allow_once", extensions.EDITED: {"command": "ls -a"}}),
            (["n", "not now"], {"option": "reject_once", extensions.REMARK: "not now"}),
            (["e", "rm \u202e", "y"], {"option": "allow_once", extensions.EDITED: {"command": "rm \u202e"}}),
        ]
        for typed, answer in answers:
            daemon.ask("run_cmd", '{"command": "ls"}', f"because of {typed[0]}")
            console.until(f"(because of {typed[0]})\nrun it? [y/N/e/?]")
            say(console, typed)
            assert daemon.answered() == answer
        answers = [
            (["all", "s", "n", "a", "y"], {"option": "allow_once", extensions.SCOPE: "always"}),
            (["u", "y", "n", "u", "y", "y"], {"option": "allow_once", extensions.UNCONFINED: True}),
        ]
        for typed, answer in answers:
            daemon.ask("exec_shell", TOUCH, stage="effects", effects=EFFECTS, covers="RULE", escalation=True)
            screen = console.until("\napply 2 changes? [y/N/s/a/u/e/?]")
            assert "! A  .git/hooks/x  8 B: protected, because git runs it\n│   M  a.py" in screen
            say(console, typed)
            assert daemon.answered() == answer
        for typed, answer in (["y"], {"option": "allow_once"}), answers[1]:
            daemon.ask("run_cmd", '{"command": "ls"}', "WHY", stage="refused", escalation=True, editable=False)
            assert "all your rights" in console.until("leave it at that; u runs it on the real system? [y/N/u/?]")
            say(console, typed)
            assert daemon.answered() == answer
        rule = {"decision": "allow", "writes": ["a.py"]}
        daemon.ask("exec_shell", TOUCH, stage="effects", covers="RULE", rule=rule)
        console.until("[y/N/s/a/e/?]")
        say(console, ["?"])
        explained = console.until("change it; what it would do is shown again").rpartition("/?] ")[2]
        assert "always to the like of it" in explained
        assert "the real system" not in explained  # which is not offered
        say(console, ["a", "e", "x", "e", '{"writes": ["d/"]}', "y"])
        made = {"option": "allow_once", extensions.SCOPE: "always", extensions.RULE: {"writes": ["d/"]}}
        assert daemon.answered() == made
        console.type("early" + ENTER + "y" + ENTER + "y")
        daemon.ask("run_cmd", '{"command": "ls"}', "because of nothing")
        console.until("(not an answer, but for after this turn: y)\nrun it? [y/N/e/?]")
        console.type(
            ENTER, lambda screen: screen.endswith("turn: y)\nrun it? [y/N/e/?]") and screen.count("turn: y)") == 2
        )
        console.type("yes" + ENTER + "pasted" + ENTER, "turn: pasted)\nrun it? [y/N/e/?]")
        say(console, ["what?", "n", "later"])
        assert daemon.answered() == {"option": "reject_once", extensions.REMARK: "later"}
        daemon.reply("Done.\x1b[2J")
        console.until("Done.\\x1b[2J")
        for line in ("early", "y", "y", "yes", "pasted", "what?"):
            assert daemon.prompt() == line
            daemon.end()
        console.type("again" + ENTER)
        daemon.prompt()
        console.type(INTERRUPT)
        daemon.noted("session/cancel")
        daemon.end("cancelled")
        console.until("\ncancelled")
        console.type(END)
        assert console.ended() == 0
        assert b"\x1b" not in console.raw
