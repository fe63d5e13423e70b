"""The console on a terminal, key by key, against a daemon whose turns the test plays."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions, schema
from tests.supervisor.clients.console.fake_daemon import FakeDaemon, called, ended, heard, said
from tests.supervisor.clients.console.terminals import (
    ALT_ENTER,
    END,
    ENTER,
    ESCAPE,
    INTERRUPT,
    Parent,
    Terminal,
    unexpected,
)

Open = Callable[..., Terminal]


def idle(console: Terminal, *texts: str) -> str:
    """Wait until the screen shows all texts and a line can be typed; return it."""
    return console.until(lambda screen: "\nInput" in screen and all(text in screen for text in texts))


def test_an_empty_line_does_nothing_and_escape_leaves_the_terminal_as_it_was(
    terminal: Open, daemon: FakeDaemon
) -> None:
    console = terminal()
    console.type(ENTER + "  " + ENTER)
    console.type("x\b")
    console.type(ESCAPE)
    assert console.ended() == 0
    assert "session/prompt" not in daemon.seen
    assert console.raw.count(b"\x1b[?2004h") <= console.raw.count(b"\x1b[?2004l")
    assert console.raw.rfind(b"\x1b[?25h") > console.raw.rfind(b"\x1b[?25l")
    assert "Input" not in console.text


@pytest.mark.parametrize("keys", [END, INTERRUPT + INTERRUPT, "/quit" + ENTER], ids=["ctrl-d", "ctrl-c", "quit"])
def test_it_is_left_by(keys: str, terminal: Open) -> None:
    console = terminal()
    console.type(keys)
    assert console.ended() == 0


def test_a_signal_to_end_is_obeyed(terminal: Open) -> None:
    console = terminal()
    console.signal(signal.SIGTERM)
    assert console.ended() == 0


def test_the_terminal_is_taken_back_after_a_stop(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal()
    console.signal(signal.SIGSTOP)
    console.echo()  # as a shell leaves it
    console.signal(signal.SIGCONT)
    console.until(lambda _: not console.echoes)
    console.type("go" + ENTER)
    assert daemon.prompt() == "go"


def test_an_answer_streams_block_by_block(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal()
    console.type("what is it?" + ENTER)
    assert daemon.prompt() == "what is it?"
    daemon.state("Thinking")
    console.until("Thinking")
    daemon.say("# A title\n\nA *fir")
    console.until(lambda screen: "A title" in screen and "fir" in screen)
    daemon.say("st* paragraph.\n\n- one\n- tw")
    console.until("first paragraph.")
    daemon.say("o\n\n```python\nprint(1)\n```\n")
    daemon.end()
    screen = idle(console, "print(1)")
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
    console.type("/show 1" + ENTER)
    screen = console.until("arguments:")
    assert unexpected(console.raw) == b""
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
    console.type("/show 1" + ENTER)
    console.until("the whole note")
    console.type("\x0f")
    console.until("#2 read_file  failed  path_escape")


def test_what_a_command_writes_is_shown(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Executing")
    daemon.tell(called(1, "run_cmd", '{"command": "ls"}', "execute"))
    daemon.tell(ended(1, "run_cmd", json.dumps({"stdout": "a.txt\n", "stderr": "oh\n", "exit_code": 2})))
    daemon.tell(called(2, "run_cmd", '{"command": "true"}', "execute"))
    daemon.tell(ended(2, "run_cmd", json.dumps({"stdout": "", "stderr": "", "exit_code": 0})))
    daemon.end()
    screen = idle(console, "#2")
    assert "  a.txt\n  oh\n  exit code 2\n" in screen
    assert "(no output)" in screen


def test_a_review_runs_what_is_shown_or_what_it_is_edited_to(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("ReviewAction")
    daemon.ask("run_cmd", '{"command": "ls -l"}', "every command is asked about")
    screen = console.until("Enter runs it")
    assert "│ ls -l" in screen
    assert "run_cmd · command · every command is asked about" in screen
    assert console.colour_of("╭") == "green"
    console.type("\x1a" + ENTER)  # there is no shell that it could be given back to, and it is not typed
    assert daemon.answered() == {"option": "allow_once"}
    console.until(lambda screen: "╭" not in screen)
    daemon.ask("run_cmd", '{"command": "ls"}')
    console.until("Enter runs it")
    console.type(" -a" + ALT_ENTER + "pwd")
    console.until("│ pwd")
    console.type(ENTER)
    assert daemon.answered() == {"option": "allow_once", extensions.EDITED: {"command": "ls -a\npwd"}}
    daemon.ask("write_file", '{"path": "a", "content": "b"}')
    console.until('"content": "b"')
    console.type("x" + ENTER)
    console.until("This is not JSON")
    console.type("\b" + ENTER)
    assert daemon.answered() == {"option": "allow_once"}
    daemon.ask("write_file", json.dumps({"path": "first", "content": "word " * 2000}))
    screen = console.until('│   "path": "first",')  # a long one is shown from its beginning
    assert " characters · policy asks " in screen


def test_a_rejection_tells_why(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.ask("run_cmd", '{"command": "rm x"}')
    daemon.ask("run_cmd", '{"command": "rm y"}')
    console.until("1 of 2")
    console.type(ESCAPE)
    console.until("why?")
    console.type("too much" + ENTER)
    assert daemon.answered() == {"option": "reject_once", extensions.REMARK: "too much"}
    console.until("│ rm y")
    console.type(ESCAPE)
    console.until("why?")
    console.type(ENTER)
    assert daemon.answered() == {"option": "reject_once"}


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
    return console.until("Enter applies 2 changes")


def test_effects_are_shown_above_the_box_and_applied_or_rehearsed_when_edited(
    console: Terminal, daemon: FakeDaemon
) -> None:
    screen = proposed(console, daemon)
    hook, listed, removed = (screen.index(part) for part in ("! A  .git/hooks/x", "  M  a.py", "-one\n+two"))
    assert hook < listed < removed < screen.index("│ touch a.py")
    assert [console.colour_of(part) for part in ("! A", "-one", "+two")] == ["red", "red", "green"]
    console.type(ENTER)
    assert daemon.answered() == {"option": "allow_once"}
    console.until(lambda screen: "╭" not in screen)
    proposed(console, daemon, covers="RULE")
    console.type(" b.py")
    screen = console.until("Enter rehearses it")
    assert "Alt-S" not in screen
    console.type(ENTER)
    edited = {"command": "touch", "args": ["a.py", "b.py"]}
    assert daemon.answered() == {"option": "allow_once", extensions.EDITED: edited}


def test_a_yes_to_more_is_shown_and_confirmed(console: Terminal, daemon: FakeDaemon) -> None:
    proposed(console, daemon, covers="touch may change a.py\u202e")
    console.type("\x1ba")
    console.until("touch may change a.py\\u202e")
    console.type("xn")
    console.until("Alt-S this session")
    console.type("\x1bs")
    console.until("until this session ends")
    console.type(ENTER + "y")
    assert daemon.answered() == {"option": "allow_once", extensions.SCOPE: "session"}
    console.until(lambda screen: "╭" not in screen)
    proposed(console, daemon, escalation=True)
    console.type("\x1bs")
    console.until("No rule can be made of this")
    console.type("\x1bu")
    console.until("Outside of the sandbox")
    console.type("y")
    console.until("Confirm again")
    console.type("y")
    assert daemon.answered() == {"option": "allow_once", extensions.UNCONFINED: True}


def test_a_question_that_somebody_else_answered_goes_away(console: Terminal, daemon: FakeDaemon) -> None:
    number = daemon.ask("run_cmd", '{"command": "rm x"}')
    console.until("│ rm x")
    daemon.withdraw(number)
    console.until(lambda screen: "│ rm x" not in screen and ">" in screen)


def test_an_enter_that_was_meant_for_a_line_runs_nothing(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("ReviewAction")
    console.type("meanwhile I ty")
    console.until("meanwhile I ty")
    daemon.ask("run_cmd", '{"command": "rm x"}')
    console.type("pe" + ENTER)
    screen = console.until("│ rm x")  # nothing was answered: the box is there
    console.type(ESCAPE)
    console.until("why?")
    console.type(ENTER)
    assert daemon.answered() == {"option": "reject_once"}
    console.until("> meanwhile I type")
    assert "meanwhile" not in screen


def test_ctrl_c_cancels_the_turn_and_keeps_what_was_typed(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    console.until("Thinking")
    console.type("next" + ENTER)
    console.until("> next")
    console.type(INTERRUPT)
    daemon.noted("session/cancel")
    console.until("cancelling")
    daemon.end("cancelled")
    idle(console, "\ncancelled")
    console.until("> next")
    assert daemon.seen.count("session/prompt") == 1
    console.type(INTERRUPT)
    console.until(lambda screen: "> next" not in screen)


def test_a_second_ctrl_c_leaves_a_turn_that_does_not_end(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    console.until("Thinking")
    console.type(INTERRUPT)
    console.until("cancelling")
    console.type(INTERRUPT)
    assert console.ended() == 0


def test_a_retry_is_seen_and_nothing_is_shown_twice(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.state("Thinking")
    daemon.say("First.\n\nSec")
    console.until("Sec")
    daemon.state("Thinking", retry="overloaded: Asked again in 1.0 s, attempt 2.")
    console.until("attempt 2")
    daemon.say("First.\n\nSecond.", "turn-1-step-0-2")
    daemon.end()
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
    daemon.say("Let me look.")
    daemon.tell(called(1, "read_file", '{"path": "a.txt"}'), ended(1, "read_file", "hello"))
    daemon.say("One.\n\nTw", "turn-1-step-1")
    console.until("Tw")
    daemon.history = [
        heard("go"),
        said("Let me look."),
        called(1, "read_file", '{"path": "a.txt"}'),
        ended(1, "read_file", "hello"),
    ]
    daemon.drop()
    console.until("reconnecting")
    daemon.continued(wait=True)
    daemon.state("Finalizing")
    daemon.say("One.\n\nTwo.", "turn-1-step-1")
    daemon.end()
    screen = idle(console, "Two.")
    for text in ("> go", "Let me look.", "read_file a.txt", "One.", "Two."):
        assert screen.count(text) == 1, text


def test_a_line_that_the_last_daemon_did_not_record_is_sent_again(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.drop()
    assert daemon.prompt() == "go"
    daemon.say("Done.")
    daemon.end()
    screen = idle(console, "Done.")
    assert screen.count("> go") == screen.count("Done.") == 1


def test_a_session_is_gone_on_with(terminal: Open, daemon: FakeDaemon) -> None:
    daemon.history = [heard("first"), said("Hello."), called(1, "read_file", "{}"), ended(1, "read_file", "x")]
    console = terminal(session=daemon.facts.session_id)
    daemon.continued(wait=True)
    daemon.say("And more.", "turn-1-step-1")
    daemon.end()
    screen = console.until("And more.")
    assert "> first" in screen
    assert "Hello." in screen
    assert "· read_file" in screen


def test_continue_without_a_session_says_so(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal(continue_=True)
    console.until("no session of this directory yet")


def test_notices_cannot_be_missed(parent: Parent, home: Path, root: Path) -> None:
    with FakeDaemon(home, root, ("NO LANGUAGE MODEL: no key.",)), Terminal(parent, home, root.parent) as console:
        console.until("! NO LANGUAGE MODEL: no key.")
        assert console.colour_of("! NO") == "brown"


def test_a_pasted_text_stays_one_message(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal()
    console.type("\x1b[200~one\ntwo\n\x1b[201~")
    console.until("  two")
    console.type(ENTER)
    assert daemon.prompt() == "one\ntwo\n"


def test_tab_completes_commands_tools_and_paths(terminal: Open, daemon: FakeDaemon, root: Path) -> None:
    (root / "notes").mkdir()
    (root / "notes" / "idea.md").write_text("")
    console = terminal()
    console.type("/sta")
    console.until("daemon, sessions and workers")
    console.type("\t")
    console.until("> /status")
    console.type(INTERRUPT)
    console.type("read n\t")
    console.until("> read notes/")
    console.type("i\t")
    console.until("> read notes/idea.md")
    console.type(" run_\t")
    console.until("idea.md run_cmd")


def test_what_was_typed_is_remembered(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal()
    console.type("remember me" + ENTER)
    daemon.prompt()
    daemon.say("I do.")
    daemon.end()
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
    console = terminal(columns)
    console.type("go" + ENTER)
    daemon.prompt()
    daemon.state("Executing")
    daemon.tell(called(1, "read_file", '{"path": "a/very/long/path/that/does/not/fit/anywhere/at/all.md"}'))
    console.until("read_f")
    daemon.say("A paragraph that is long enough to be broken into lines on every terminal there is.\n\nEnd.")
    daemon.end()
    idle(console, "A paragraph", "End.")


def test_it_follows_the_terminal_s_size(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.ask("run_cmd", '{"command": "ls"}')
    console.until("Enter runs it")
    console.resize(40, 12)
    console.until(
        lambda screen: any(
            line.startswith("╭") and line.endswith("╮") and len(line) == 40 for line in screen.split("\n")
        )
    )
    console.resize(100, 30)
    screen = console.until(lambda screen: any(line.startswith("╭") and len(line) == 100 for line in screen.split("\n")))
    assert screen.count("│ ls") == 1


def test_commands_answer(terminal: Open, daemon: FakeDaemon, root: Path) -> None:
    console = terminal()
    console.type("/modle" + ENTER)
    console.until("Did you mean /model?")
    console.type("/model" + ENTER)
    console.until("*  offline")
    console.type("/model claude-haiku-5-5" + ENTER)
    console.until("The model is claude-haiku-5-5 now.")
    console.type("/export talk.md" + ENTER)
    console.until("The conversation is in talk.md.")
    console.type("/export talk.md" + ENTER)
    console.until("exists already")
    console.type("/export ~nobody-of-this-name/x" + ENTER)
    console.until("~nobody-of-this-name/x cannot be written: Could not determine home\ndirectory.\n")
    console.type("/clear" + ENTER)
    console.until(lambda screen: "talk.md" not in screen and f"vault on {root}" in screen)
    assert daemon.seen.count("session/new") == 2


def test_a_turn_that_somebody_else_began_is_shown(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal()
    daemon.state("Thinking")
    daemon.tell(heard("from elsewhere"))
    daemon.say("An answer.")
    console.until(lambda screen: "> from elsewhere" in screen and "An answer." in screen and "Thinking" in screen)
    console.type("mine" + ENTER)
    console.until("> mine")
    daemon.state("Done")
    idle(console, "An answer.", "> mine")
    console.type(ENTER)
    assert daemon.prompt() == "mine"


def test_a_turn_of_somebody_else_can_be_cancelled(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal()
    daemon.state("Thinking")
    console.until("Thinking")
    console.type(INTERRUPT)
    daemon.noted("session/cancel")
    console.until("cancelling")
    daemon.state("Done")
    console.until(lambda screen: "Input" in screen and "cancelling" not in screen and "again to leave" not in screen)


def test_a_daemon_that_ended_meanwhile_is_found_again(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal()
    daemon.drop()
    console.type("go" + ENTER)
    assert daemon.prompt() == "go"
    daemon.say("Here.")
    daemon.end()
    assert idle(console, "Here.").count("> go") == 1
    assert "session/load" in daemon.seen


def test_a_line_that_is_sent_too_early_is_sent_when_there_is_a_session(held: Terminal, daemon: FakeDaemon) -> None:
    held.type("early" + ENTER)
    held.until("> early")
    daemon.release()
    assert daemon.prompt() == "early"


def test_lines_behind_one_that_is_sent_too_early_are_the_person_s_again(held: Terminal, daemon: FakeDaemon) -> None:
    held.type("/tools" + ENTER + "first" + ENTER + "second" + ENTER + "third")
    held.until(lambda screen: "> /tools\n> first\n> second\n" in screen and "> third" in screen)
    daemon.release()
    assert daemon.prompt() == "first"
    screen = held.until("> second\n  third")
    assert "read_file\nrun_cmd" in screen
    held.type(INTERRUPT)
    daemon.noted("session/cancel")
    daemon.end("cancelled")
    idle(held, "\ncancelled", "> second\n  third")


def test_lines_that_wait_can_be_taken_back(held: Terminal, daemon: FakeDaemon) -> None:
    held.type("early" + ENTER + "typed" + INTERRUPT)
    held.until("> early\n  typed")
    daemon.release()
    idle(held, "> early\n  typed")
    assert "session/prompt" not in daemon.seen


def test_what_cannot_be_opened_is_said_and_ends_it(held: Terminal, daemon: FakeDaemon) -> None:
    daemon.release(refused="No profile 'x'. Choose one of: vault.")
    assert held.ended() == 1
    assert "error: No profile 'x'. Choose one of: vault." in held.text


def test_narrow_lists_are_broken_between_words(terminal: Open, daemon: FakeDaemon) -> None:
    daemon.sessions = [
        schema.SessionInfo(session_id=f"20260101-000000-{number:06}", cwd="/elsewhere", title=title)
        for number, title in enumerate(["", "what did I decide about the greenhouse?"])
    ]
    console = terminal(40, 50)
    console.type("/help" + ENTER)
    console.until("show the approval request, or the")
    console.type("/sessions" + ENTER)
    screen = console.until("what did I decide about the\n    greenhouse?  in /elsewhere")
    assert "000000-000000" not in screen  # nothing was said there
    console.type("a line that is longer than the terminal is wide" + ENTER)
    daemon.prompt()
    console.until("> a line that is longer than the\n  terminal is wide")


def test_without_colour_there_is_none(terminal: Open, daemon: FakeDaemon) -> None:
    console = terminal(colour=False)
    console.type("go" + ENTER)
    daemon.prompt()
    daemon.say("`code` and\n\n```python\ndef f(): pass\n```")
    daemon.end("error", kind="timeout", message="No.")
    idle(console, "error: timeout")
    assert not re.search(rb"\x1b\[[0-9;]*[349][0-7][;m]", console.raw)


def test_plain_lines_on_a_terminal_ask_about_calls(parent: Parent, home: Path, root: Path, daemon: FakeDaemon) -> None:
    with Terminal(parent, home, root.parent, plain=True) as console:
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
            console.until(f"(because of {typed[0]})\nrun it? [y/N/e]")
            for line in typed:
                console.type(line + ENTER)
            assert daemon.answered() == answer
        answers = [
            (["all", "s", "n", "a", "y"], {"option": "allow_once", extensions.SCOPE: "always"}),
            (["u", "y", "n", "u", "y", "y"], {"option": "allow_once", extensions.UNCONFINED: True}),
        ]
        for typed, answer in answers:
            daemon.ask("exec_shell", TOUCH, stage="effects", effects=EFFECTS, covers="RULE", escalation=True)
            screen = console.until("\napply 2 changes? [y/N/s/a/u/e]")
            assert "! A  .git/hooks/x  8 B: protected, because git runs it\n  M  a.py" in screen
            for line in typed:
                console.type(line + ENTER)
            assert daemon.answered() == answer
        daemon.say("Done.\x1b[2J")
        daemon.end()
        console.until("Done.\\x1b[2J")
        console.type("again" + ENTER)
        daemon.prompt()
        console.type(INTERRUPT)
        daemon.noted("session/cancel")
        daemon.end("cancelled")
        console.until("\ncancelled")
        console.type(END)
        assert console.ended() == 0
        assert b"\x1b" not in console.raw
