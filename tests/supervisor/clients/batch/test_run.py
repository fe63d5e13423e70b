"""`strongroom batch` as scripts use it: items in, a durable line for each out."""

import json
import signal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from supervisor.journal.facts import BatchStarted, SessionOpened, TurnEnded, TurnStarted
from tests.daemon_process import DaemonProcess
from tests.forked import ForkedStrongroom
from tests.messages_server import MessagesServer, Recorded, Response, reply
from tests.supervisor.clients.shared import Guest
from tests.supervisor.command import Done, Family, Strongroom, children, finished
from tests.supervisor.histories import Line, call, fault_in_facts, script

READ: Final = call("read_file", path="a.txt")
FIELDS: Final = ["id", "status", "answer", "session", "steps", "tool_calls", "usage", "seconds"]


def batch(strongroom: Strongroom, text: str, *options: str, model: str = "offline", output: str = "out.jsonl") -> Done:
    (strongroom.folder / "in").write_text(text)
    return strongroom.run("batch", "in", "--output", output, "--root", "root", "--model", model, *options)


def results(strongroom: Strongroom) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (strongroom.folder / "out.jsonl").read_text().splitlines()]


def scripted(strongroom: Strongroom, *lines: Line) -> str:
    return f"scripted:{script(strongroom.folder, *lines)}"


def test_each_line_of_plain_text_is_an_item(guest: Guest, root: Path) -> None:
    done = batch(guest, "read a.txt\nread b.txt\n")
    assert (done.code, done.out) == (0, "")
    assert [(each["id"], each["status"]) for each in results(guest)] == [("1", "ok"), ("2", "ok")]


def test_items_can_be_json_lines_with_turns(guest: Guest, root: Path) -> None:
    lines = ['{"id": 7, "prompts": ["write b: new", "read b"]}', '{"id": "x", "prompt": "read a.txt"}']
    assert batch(guest, "\n".join(lines)).code == 0
    first, second = results(guest)
    assert (first["id"], second["id"]) == (7, "x")
    assert first["answer"] == "read_file b:\nnew"
    assert [each["tool"] for each in first["tool_calls"]] == ["write_file", "read_file"]


def test_items_can_come_from_standard_input(guest: Guest, root: Path) -> None:
    arguments = ("batch", "-", "--output", "out.jsonl", "--root", "root", "--model", "offline")
    assert guest.run(*arguments, stdin="read a.txt\n").code == 0
    assert results(guest)[0]["answer"] == "read_file a.txt:\nhello\n"


def test_a_result_has_every_field_and_says_what_was_done(guest: Guest, root: Path) -> None:
    model = scripted(guest, {"calls": [READ, call("nothing"), {"tool": "read_file", "raw": "{"}]}, {"text": "yes"})
    batch(guest, "go", model=model)
    (result,) = results(guest)
    assert list(result) == FIELDS
    assert (result["status"], result["answer"], result["steps"]) == ("ok", "yes", 2)
    assert result["usage"] == {"input_tokens": 2, "output_tokens": 2}
    assert result["seconds"] > 0
    assert sorted(result["tool_calls"], key=lambda each: str(each["error_kind"])) == [
        {"tool": "read_file", "arguments": {"path": "a.txt"}, "ok": True, "error_kind": None},
        {"tool": "read_file", "arguments": "{", "ok": False, "error_kind": "invalid_arguments"},
        {"tool": "nothing", "arguments": {}, "ok": False, "error_kind": "unknown_tool"},
    ]
    assert fault_in_facts(guest.sessions[result["session"]]) is None


def test_a_failed_item_is_a_line_and_exit_code_1(guest: Guest, root: Path) -> None:
    done = batch(guest, "one\ntwo", model=scripted(guest, {"fault": "overloaded"}))
    assert done.code == 1
    for result in results(guest):
        assert list(result) == [*FIELDS, "error"]
        assert (result["status"], result["answer"], result["error"]["kind"]) == ("error", "", "overloaded")


def test_an_item_ends_at_its_first_failed_turn(guest: Guest, root: Path) -> None:
    model = scripted(guest, {"text": "one"}, {"fault": "overloaded"}, {"text": "three"})
    batch(guest, '{"id": 1, "prompts": ["a", "b", "c"]}', model=model)
    (result,) = results(guest)
    assert (result["status"], result["answer"]) == ("error", "")
    asked = [fact.text for fact in guest.facts if isinstance(fact, TurnStarted)]
    assert asked == ["a", "b"]


def test_items_have_a_profile_a_root_and_a_model_of_their_own(guest: Guest, root: Path) -> None:
    other = guest.folder / "other"
    other.mkdir()
    (other / "a.txt").write_text("other\n")
    model = scripted(guest, {"text": "scripted"})
    items: list[dict[str, Any]] = [
        {"id": "plain", "prompt": "read a.txt"},
        {"id": "root", "prompt": "read a.txt", "root": "other"},
        {"id": "model", "prompt": "read a.txt", "model": model},
        {"id": "profile", "prompt": "ls .", "profile": "project"},
    ]
    assert batch(guest, "\n".join(map(json.dumps, items))).code == 0
    assert [each["answer"] for each in results(guest)] == [
        "read_file a.txt:\nhello\n",
        "read_file a.txt:\nother\n",
        "scripted",
        "list_directory .:\na.txt file",
    ]


def test_several_items_run_at_a_time_if_asked_for(guest: Guest, root: Path) -> None:
    lines = "".join(f"read {number}.txt; write {number}.txt: x\n" for number in range(20))
    assert batch(guest, lines, "--concurrency", "8").code == 0
    assert sorted(int(each["id"]) for each in results(guest)) == list(range(1, 21))
    assert {fault_in_facts(facts) for facts in list(guest.sessions.values())[1:]} == {None}


def test_items_wait_for_one_another_at_the_model(guest: Guest, root: Path) -> None:
    waiting, most = 0, 0

    def come(_request: Recorded) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting - len(results(guest)))

    guest.play([reply("x")] * 6, come)
    assert batch(guest, "a\nb\nc\nd\ne\nf", "--concurrency", "2", model="m").code == 0
    assert most <= 2


def test_an_item_names_its_batch_in_the_journal(guest: Guest, root: Path) -> None:
    batch(guest, '{"id": "x", "prompt": "read a.txt"}')
    started, opened, *_ = guest.facts
    assert isinstance(started, BatchStarted)
    assert isinstance(opened, SessionOpened)
    assert started.output == str(guest.folder / "out.jsonl")
    assert opened.origin == f"batch:{started.run}:x"


# refused -----------------------------------------------------------------------------------------------------


class Refusal(NamedTuple):
    name: str
    text: str
    options: tuple[str, ...]
    words: str
    model: str = "offline"


REFUSALS: Final = [
    Refusal("no key", "x", (), "needs a key: set ANTHROPIC_API_KEY", "claude-x"),
    Refusal("no items", "\n", (), "in holds no prompts."),
    Refusal("bad line", '{"id": 1, "prompt": "x"}\n{"id": 2}', (), "in, line 2: "),
    Refusal("duplicate ids", '{"id": 1, "prompt": "x"}\n{"id": 1, "prompt": "y"}', (), "occurs twice"),
    Refusal("no such root", "x", ("--root", "nowhere"), "does not exist"),
    Refusal("no such root in an item", '{"id": 1, "prompt": "x", "root": "no"}', (), "does not exist"),
    Refusal("no such profile", "x", ("--profile", "no"), "No profile 'no'"),
    Refusal("no such model", "x", (), "No model 'gpt'", "gpt"),
    Refusal("no such model in an item", '{"id": 1, "prompt": "x", "model": "gpt"}', (), "No model 'gpt'"),
    Refusal("no such script", "x", (), "cannot be read", "scripted:no"),
    Refusal("no concurrency", "x", ("--concurrency", "0"), "is not in the range"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=[refusal.name for refusal in REFUSALS])
def test_wrong_usage_is_refused_before_anything_is_done(daemon: DaemonProcess, place: Path, refusal: Refusal) -> None:
    strongroom = ForkedStrongroom(daemon.home, place)
    (place / "root").mkdir(exist_ok=True)
    done = batch(strongroom, refusal.text, *refusal.options, model=refusal.model)
    assert (done.code, done.out) == (2, "")
    assert refusal.words in done.err
    assert "Traceback" not in done.err
    assert not (place / "out.jsonl").exists()
    assert not strongroom.has_done_anything


def test_without_a_model_or_a_key_it_refuses(strongroom: Strongroom, root: Path) -> None:
    (strongroom.folder / "in").write_text("x")
    done = strongroom.run("batch", "in", "--output", "out.jsonl", "--root", "root")
    assert done.code == 2
    assert "--model offline" in done.err


def test_a_file_of_somebody_else_is_not_written_to(guest: Guest, root: Path) -> None:
    (guest.folder / "out.jsonl").write_text("notes")
    for options in ((), ("--resume",)):
        assert batch(guest, "read a.txt", *options).code == 2
        assert (guest.folder / "out.jsonl").read_text() == "notes"


# resumed -----------------------------------------------------------------------------------------------------


def test_resuming_skips_what_is_done(guest: Guest, root: Path) -> None:
    batch(guest, "write b: 1\n")
    (root / "b").unlink()
    assert batch(guest, "write b: 1\nwrite c: 2\n", "--resume").code == 0
    assert [each["id"] for each in results(guest)] == ["1", "2"]
    assert not (root / "b").exists()
    assert (root / "c").exists()


def test_resuming_what_failed_still_says_so(guest: Guest, root: Path) -> None:
    model = scripted(guest, {"fault": "overloaded"})
    batch(guest, "a", model=model)
    assert batch(guest, "a", "--resume", model=model).code == 1
    assert len(results(guest)) == 1


def test_resuming_what_never_began_is_beginning(guest: Guest, root: Path) -> None:
    assert batch(guest, "read a.txt", "--resume").code == 0
    assert len(results(guest)) == 1


def test_resuming_goes_on_past_a_torn_line(guest: Guest, root: Path) -> None:
    batch(guest, "write b: 1\nwrite c: 2\n")
    output = guest.folder / "out.jsonl"
    output.write_bytes(output.read_bytes()[:-20])
    assert batch(guest, "write b: 1\nwrite c: 2\n", "--resume").code == 0
    assert [each["id"] for each in results(guest)] == ["1", "2"]
    assert sum(isinstance(fact, TurnStarted) for fact in guest.facts) == 2  # the journal knew the answer


def test_an_item_that_failed_and_was_not_written_stays_failed(guest: Guest, root: Path) -> None:
    model = scripted(guest, {"fault": "overloaded"}, {"text": "two"})
    item = '{"id": 1, "prompts": ["a", "b"]}'
    batch(guest, item, model=model)
    (guest.folder / "out.jsonl").write_bytes(b"")
    assert batch(guest, item, "--resume", model=model).code == 1
    assert [fact.text for fact in guest.facts if isinstance(fact, TurnStarted)] == ["a"]
    assert results(guest)[0]["status"] == "error"


def test_a_batch_is_found_again_by_its_output_alone(guest: Guest, root: Path) -> None:
    batch(guest, "write b: 1\n")
    batch(guest, "write b: 2\n", output="other.jsonl")
    (guest.folder / "out.jsonl").write_bytes(b"")
    batch(guest, "write b: 1\n", "--resume")
    assert (root / "b").read_text() == "2"
    assert "b" in results(guest)[0]["answer"]


# interrupted -------------------------------------------------------------------------------------------------


INTERRUPTED: Final = [(signal.SIGINT, "4", "cancelled"), (signal.SIGTERM, "5", "outcome_unknown")]
"""While a call is rehearsed; while it is committed, and does not end in the time that it is given."""


@pytest.mark.parametrize(("number", "moment", "kind"), INTERRUPTED)
def test_a_signal_in_the_middle_of_a_call(
    strongroom: Strongroom, root: Path, number: signal.Signals, moment: str, kind: str
) -> None:
    model = scripted(
        strongroom, {"calls": [call("write_file", path="b", content="1")]}, {"text": "yes"}, {"text": "no"}
    )
    (strongroom.folder / "in").write_text("go\n")
    arguments = ("batch", "in", "--output", "out.jsonl", "--root", "root", "--model", model)
    with strongroom.start(*arguments, program=("tests.supervisor.dying", "hang", moment)) as process:
        assert process.stderr
        assert process.stderr.readline() == b"hung\n"
        family = Family(children(process.pid))
        process.send_signal(number)
        done = finished(process)
    assert (done.code, done.out) == (130, "")
    assert done.err.endswith("interrupted\n")
    assert "Traceback" not in done.err
    assert family.is_gone()
    assert [fact.status for fact in strongroom.facts if isinstance(fact, TurnEnded)] == ["cancelled"]
    assert (strongroom.folder / "out.jsonl").read_bytes() == b""
    assert strongroom.run(*arguments, "--resume").code == 0
    (result,) = results(strongroom)
    assert (result["status"], result["answer"]) == ("ok", "yes")
    assert [(each["tool"], each["error_kind"]) for each in result["tool_calls"]] == [("write_file", kind)]
    assert fault_in_facts(strongroom.sessions[result["session"]]) is None


def test_a_signal_while_the_model_is_silent(strongroom: Strongroom, root: Path) -> None:
    def interrupt(_request: Recorded) -> None:
        families.append(Family(children(process.pid)))
        process.send_signal(signal.SIGTERM)

    families: list[Family] = []
    (strongroom.folder / "in").write_text("go\n")
    with MessagesServer([{"sse": "", "then": "hang"}], on_request=interrupt) as server:
        strongroom.environment["ANTHROPIC_BASE_URL"] = server.url
        process = strongroom.start("batch", "in", "--output", "out.jsonl", "--root", "root", "--model", "m")
        done = finished(process)
    assert done.code == 130
    assert "Traceback" not in done.err
    assert [family.is_gone() for family in families] == [True]
    assert [fact.status for fact in strongroom.facts if isinstance(fact, TurnEnded)] == ["cancelled"]


def test_two_batches_at_once_cannot_do_the_same_work(guest: Guest, root: Path) -> None:
    second: list[Done] = []

    def start_another(_request: Recorded) -> None:
        second.append(batch(guest, "go", "--resume", model="offline"))

    guest.play([reply("x")], start_another)
    assert batch(guest, "go", model="m").code == 0
    assert [done.code for done in second] == [2]
    assert "Another batch is writing" in second[0].err
    assert len(results(guest)) == 1


# where a daemon runs -----------------------------------------------------------------------------------------


def test_a_daemon_that_runs_has_the_conversations(guest: Guest, root: Path) -> None:
    families: list[list[int]] = []
    guest.play([reply("x")], lambda _: families.append(children(process.pid)))
    (guest.folder / "in").write_text("go\n")
    process = guest.start("batch", "in", "--output", "out.jsonl", "--root", "root", "--model", "m")
    assert finished(process).code == 0
    assert batch(guest, "read a.txt", output="other.jsonl").code == 0
    assert guest.daemon.process.poll() is None
    assert families == [[]]
    assert [each["answer"] for each in results(guest)] == ["x"]


def test_a_key_that_the_daemon_does_not_have_is_explained(strongroom: Strongroom, root: Path) -> None:
    with DaemonProcess(strongroom.home, strongroom.folder):
        strongroom.environment["ANTHROPIC_API_KEY"] = "sk-ant-example"
        done = batch(strongroom, "go", model="claude-x")
    assert (done.code, done.out) == (2, "")
    assert "needs a key: set ANTHROPIC_API_KEY" in done.err
    assert "`strongroom daemon --stop` ends it." in done.err
    assert not strongroom.has_done_anything


def test_a_batch_that_was_killed_takes_up_the_turn_that_goes_on_without_it(guest: Guest, root: Path) -> None:
    def kill(_request: Recorded) -> None:
        process.kill()
        process.wait()

    (guest.folder / "in").write_text("go\n")
    arguments = ("batch", "in", "--output", "out.jsonl", "--root", "root", "--model", "m", "--resume")
    guest.play([reply("once")], kill)
    process = guest.start(*arguments)
    assert finished(process).code == -signal.SIGKILL
    assert guest.run(*arguments).code == 0
    assert len(guest.requests) == 1
    assert [each["answer"] for each in results(guest)] == ["once"]
    assert [fact.text for fact in guest.facts if isinstance(fact, TurnStarted)] == ["go"]


def test_a_signal_cancels_the_turns_in_the_daemon(guest: Guest, root: Path) -> None:
    def interrupt(_request: Recorded) -> None:
        if len(guest.requests) == 2:
            process.send_signal(signal.SIGTERM)

    (guest.folder / "in").write_text("one\ntwo\nthree\n")
    arguments = ("batch", "in", "--output", "out.jsonl", "--root", "root", "--model", "m", "--concurrency", "2")
    silence: Response = {"sse": "", "then": "hang"}
    guest.play([silence] * 2, interrupt)
    process = guest.start(*arguments)
    done = finished(process)
    assert (done.code, done.out) == (130, "")
    assert done.err == "\nstopped; run the same command with --resume to continue\n\ninterrupted\n"
    assert [fact.status for fact in guest.facts if isinstance(fact, TurnEnded)] == ["cancelled"] * 2
    assert [fact.text for fact in guest.facts if isinstance(fact, TurnStarted)] == ["one", "two"]


def test_a_daemon_that_is_killed_ends_the_batch_with_a_sentence(strongroom: Strongroom, root: Path) -> None:
    (strongroom.folder / "in").write_text("go\n")
    arguments = ("batch", "in", "--output", "out.jsonl", "--root", "root", "--model", "m", "--resume")
    with MessagesServer([reply("x")] * 2, on_request=lambda _: daemon.kill()) as server:
        strongroom.environment["ANTHROPIC_BASE_URL"] = server.url
        daemon = DaemonProcess(strongroom.home, strongroom.folder, ANTHROPIC_BASE_URL=server.url)
        daemon.start()
        done = strongroom.run(*arguments)
        daemon.wait()
        assert (done.code, done.out) == (1, "")
        assert done.err.endswith("Run the same command with --resume to resume the batch.\n")
        assert strongroom.run(*arguments).code == 0
    assert [each["answer"] for each in results(strongroom)] == ["x"]
    assert [fact.text for fact in strongroom.facts if isinstance(fact, TurnStarted)] == ["go"]
