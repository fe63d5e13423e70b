"""`strongroom batch` as scripts use it: items in, a durable line for each out."""

import json
import signal
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import pytest

from supervisor.journal.facts import BatchStarted, CallEnded, SessionOpened
from tests.daemon_process import DaemonProcess
from tests.forked import ForkedStrongroom
from tests.messages_server import MessagesServer, reply
from tests.script_server import Recorded, Response
from tests.supervisor.clients.shared import Begun, Guest
from tests.supervisor.command import Done, Family, Strongroom, children, finished
from tests.supervisor.histories import Line, call, fault_in_facts, script

READ: Final = call("read_file", path="a.txt")
FIELDS: Final = ["id", "status", "answer", "session", "steps", "tool_calls", "usage", "seconds"]


def scripted(strongroom: Strongroom, *lines: Line) -> str:
    return f"scripted:{script(strongroom.folder, *lines)}"


def answers(strongroom: Strongroom) -> list[str]:
    return [each["answer"] for each in strongroom.results]


def test_each_line_of_plain_text_is_an_item(guest: Guest, root: Path) -> None:
    done = guest.batch("read a.txt\nread b.txt\n")
    assert (done.code, done.out) == (0, "")
    assert [(each["id"], each["status"]) for each in guest.results] == [("1", "ok"), ("2", "ok")]


def test_items_can_be_json_lines_with_turns(guest: Guest, root: Path) -> None:
    lines = ['{"id": 7, "prompts": ["write b: new", "read b"]}', '{"id": "x", "prompt": "read a.txt"}']
    assert guest.batch("\n".join(lines)).code == 0
    first, second = guest.results
    assert (first["id"], second["id"]) == (7, "x")
    assert first["answer"] == "read_file b:\nnew"
    assert [each["tool"] for each in first["tool_calls"]] == ["write_file", "read_file"]


def test_items_can_come_from_standard_input(guest: Guest, root: Path) -> None:
    arguments = ("batch", "-", "--output", "out.jsonl", "--root", "root", "--model", "offline")
    assert guest.run(*arguments, stdin="\ufeffread a.txt\n").code == 0
    assert (guest.asked, answers(guest)) == (["read a.txt"], ["read_file a.txt:\nhello\n"])


def test_a_result_has_every_field_and_says_what_was_done(guest: Guest, root: Path) -> None:
    model = scripted(guest, {"calls": [READ, call("nothing"), {"tool": "read_file", "raw": "{"}]}, {"text": "yes"})
    guest.batch("go", model=model)
    (result,) = guest.results
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


def test_in_plan_mode_a_result_says_what_would_have_changed(guest: Guest, root: Path) -> None:
    calls = [call("write_file", path="a.txt", content="new\n"), call("run_cmd", command="echo new > a.txt"), READ]
    done = guest.batch(
        "go", "--mode", "plan", "--profile", "code", model=scripted(guest, {"calls": calls}, {"text": ""})
    )
    written, run, read = guest.results[0]["tool_calls"]
    assert (done.code, (root / "a.txt").read_text()) == (0, "hello\n")
    for each in (written, run):
        assert each["would_change"].startswith(f"{each['tool']} would have changed 1 file:\n  M  a.txt")
    assert (written["error_kind"], run["ok"], "would_change" in read) == ("denied", True, False)


def test_a_failed_item_is_a_line_and_exit_code_1(guest: Guest, root: Path) -> None:
    assert guest.batch("one\ntwo", model=scripted(guest, {"fault": "api_error"})).code == 1
    for result in guest.results:
        assert list(result) == [*FIELDS, "error"]
        assert (result["status"], result["answer"], result["error"]["kind"]) == ("error", "", "api_error")


def test_an_item_ends_at_its_first_failed_turn(guest: Guest, root: Path) -> None:
    model = scripted(guest, {"text": "one"}, {"fault": "api_error"}, {"text": "three"})
    guest.batch('{"id": 1, "prompts": ["a", "b", "c"]}', model=model)
    (result,) = guest.results
    assert (result["status"], result["answer"]) == ("error", "")
    assert guest.asked == ["a", "b"]


def test_items_have_a_profile_a_root_and_a_model_of_their_own(guest: Guest, root: Path) -> None:
    (guest.folder / "other").mkdir()
    (guest.folder / "other" / "a.txt").write_text("other\n")
    items: list[dict[str, Any]] = [
        {"id": "plain", "prompt": "read a.txt"},
        {"id": "root", "prompt": "read a.txt", "root": "other"},
        {"id": "model", "prompt": "read a.txt", "model": scripted(guest, {"text": "scripted"})},
        {"id": "profile", "prompt": "ls .", "profile": "project"},
    ]
    assert guest.batch("\n".join(map(json.dumps, items))).code == 0
    assert answers(guest) == [
        "read_file a.txt:\nhello\n",
        "read_file a.txt:\nother\n",
        "scripted",
        "list_directory .:\na.txt file",
    ]


def test_several_items_run_at_a_time_if_asked_for(guest: Guest, root: Path) -> None:
    lines = "".join(f"read {number}.txt; write {number}.txt: x\n" for number in range(20))
    assert guest.batch(lines, "--concurrency", "8").code == 0
    assert sorted(int(each["id"]) for each in guest.results) == list(range(1, 21))
    assert {fault_in_facts(facts) for facts in list(guest.sessions.values())[1:]} == {None}


def test_items_wait_for_one_another_at_the_model(guest: Guest, root: Path) -> None:
    waiting, most = 0, 0

    def come(_request: Recorded) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting - len(guest.results))

    guest.play([reply("x")] * 6, come)
    assert guest.batch("a\nb\nc\nd\ne\nf", "--concurrency", "2", model="m").code == 0
    assert most <= 2


def test_an_item_names_its_batch_in_the_journal(guest: Guest, root: Path) -> None:
    guest.batch('{"id": "x", "prompt": "read a.txt"}')
    started, opened, *_ = guest.facts
    assert isinstance(started, BatchStarted)
    assert isinstance(opened, SessionOpened)
    assert started.output == str(guest.folder / "out.jsonl")
    assert opened.origin == f"batch:{started.run}:x"


# refused -----------------------------------------------------------------------------------------------------


def of_two(**item: str) -> str:
    """The second of two items, which the first one must not run for."""
    return json.dumps({"id": 1, "prompt": "write b: 1"}) + "\n" + json.dumps({"id": 2, "prompt": "x", **item})


REFUSALS: Final[dict[str, tuple[str, tuple[str, ...], str]]] = {
    "no key": ("x", ("--model", "claude-x"), "needs a key: `strongroom login anthropic` keeps one"),
    "no items": ("\n", (), "in holds no prompts."),
    "bad line": ('{"id": 1, "prompt": "x"}\n{"id": 2}', (), "in, line 2: "),
    "duplicate ids": ('{"id": 1, "prompt": "x"}\n{"id": 1, "prompt": "y"}', (), "occurs twice"),
    "no such root": ("x", ("--root", "nowhere"), "error: The root 'nowhere' of profile"),
    "no such root in an item": (of_two(root="no"), (), "Item 2: The root 'no' of profile"),
    "no such profile": ("x", ("--profile", "no"), "No profile 'no'"),
    "no such model": ("x", ("--model", "gpt"), "No model 'gpt'"),
    "no such model in an item": (of_two(model="gpt"), (), "No model 'gpt'"),
    "no such script": ("x", ("--model", "scripted:no"), "cannot be read"),
    "no concurrency": ("x", ("--concurrency", "0"), "is not in the range"),
    "NUL in a root": (
        of_two(root="a\0b"),
        (),
        "The root 'a\\x00b' of profile 'vault' cannot be used: embedded null byte.",
    ),
    "a name that begins like offline's": (of_two(model="offlinexyz"), (), "No model 'offlinexyz'."),
    "NUL in a script": (of_two(model="scripted:a\0b"), (), "No model 'scripted:a\\x00b'."),
    "NUL in a model": (of_two(model="claude\0"), (), "No model 'claude\\x00'."),
    "NUL in a profile": (of_two(profile="a\0b"), (), "No profile 'a\\x00b'."),
    "the home of nobody": (of_two(root="~nosuchuser/x"), (), "cannot be used: Could not determine home directory."),
    "a name that is too long": (of_two(root="x" * 300), (), "cannot be used: File name too long"),
}


@pytest.mark.parametrize(("text", "options", "words"), REFUSALS.values(), ids=REFUSALS)
def test_wrong_usage_is_refused_before_anything_is_done(
    daemon: DaemonProcess, place: Path, text: str, options: tuple[str, ...], words: str
) -> None:
    strongroom = ForkedStrongroom(daemon.home, place)
    (place / "root").mkdir(exist_ok=True)
    strongroom.batch(text, *options).assert_refused(words)
    assert not (place / "out.jsonl").exists()
    assert not (place / "root" / "b").exists()
    assert not strongroom.has_done_anything


def test_without_a_model_or_a_key_it_refuses(strongroom: Strongroom, root: Path) -> None:
    strongroom.run(*strongroom.batch_of("x")[:-2]).assert_refused("--model offline")


def test_a_file_of_somebody_else_is_not_written_to(guest: Guest, root: Path) -> None:
    (guest.folder / "out.jsonl").write_text("notes")
    for options in ((), ("--resume",)):
        assert guest.batch("read a.txt", *options).code == 2
        assert (guest.folder / "out.jsonl").read_text() == "notes"


# resumed -----------------------------------------------------------------------------------------------------


def test_resuming_skips_what_is_done(guest: Guest, root: Path) -> None:
    guest.batch("write b: 1\n")
    (root / "b").unlink()
    assert guest.batch("write b: 1\nwrite c: 2\n", "--resume").code == 0
    assert [each["id"] for each in guest.results] == ["1", "2"]
    assert not (root / "b").exists()
    assert (root / "c").exists()


def test_resuming_what_failed_still_says_so(guest: Guest, root: Path) -> None:
    model = scripted(guest, {"fault": "api_error"})
    guest.batch("a", model=model)
    assert guest.batch("a", "--resume", model=model).code == 1
    assert len(guest.results) == 1


def test_resuming_what_never_began_is_beginning(guest: Guest, root: Path) -> None:
    assert guest.batch("read a.txt", "--resume").code == 0
    assert len(guest.results) == 1


def test_resuming_goes_on_past_a_torn_line(guest: Guest, root: Path) -> None:
    guest.batch("write b: 1\nwrite c: 2\n")
    output = guest.folder / "out.jsonl"
    output.write_bytes(output.read_bytes()[:-20])
    assert guest.batch("write b: 1\nwrite c: 2\n", "--resume").code == 0
    assert [each["id"] for each in guest.results] == ["1", "2"]
    assert len(guest.asked) == 2  # the journal knew the answer


def test_an_item_that_failed_and_was_not_written_stays_failed(guest: Guest, root: Path) -> None:
    model = scripted(guest, {"fault": "api_error"}, {"text": "two"})
    item = '{"id": 1, "prompts": ["a", "b"]}'
    guest.batch(item, model=model)
    (guest.folder / "out.jsonl").write_bytes(b"")
    assert guest.batch(item, "--resume", model=model).code == 1
    assert guest.asked == ["a"]
    assert guest.results[0]["status"] == "error"


def test_a_batch_is_found_again_by_its_output_alone(guest: Guest, root: Path) -> None:
    guest.batch("write b: 1\n")
    guest.batch("write b: 2\n", output="other.jsonl")
    (guest.folder / "out.jsonl").write_bytes(b"")
    guest.batch("write b: 1\n", "--resume")
    assert (root / "b").read_text() == "2"
    assert "b" in answers(guest)[0]


# interrupted -------------------------------------------------------------------------------------------------


INTERRUPTED: Final = [(signal.SIGINT, "4", "cancelled"), (signal.SIGTERM, "5", "worker_crashed")]
"""While a call is rehearsed; while it is committed, which takes too long to end and is taken back."""


@pytest.mark.parametrize(("number", "moment", "kind"), INTERRUPTED)
def test_a_signal_in_the_middle_of_a_call(
    strongroom: Strongroom, root: Path, number: signal.Signals, moment: str, kind: str
) -> None:
    write = call("write_file", path="b", content="1")
    arguments = strongroom.batch_of(
        "go", model=scripted(strongroom, {"calls": [write]}, {"text": "yes"}, {"text": "no"})
    )
    with strongroom.start(*arguments, program=("tests.supervisor.dying", "hang", moment)) as process:
        assert process.stderr
        assert process.stderr.readline() == b"hung\n"
        family = Family(children(process.pid))
        process.send_signal(number)
        done = finished(process)
    done.assert_refused(code=130)
    assert done.err.endswith("interrupted\n")
    assert family.is_gone()
    assert (strongroom.ends, strongroom.results) == (["cancelled"], [])
    assert strongroom.run(*arguments, "--resume").code == 0
    (result,) = strongroom.results
    assert (result["status"], result["answer"]) == ("ok", "yes")
    assert [(each["tool"], each["error_kind"]) for each in result["tool_calls"]] == [("write_file", kind)]
    assert fault_in_facts(strongroom.sessions[result["session"]]) is None


def test_a_signal_while_the_model_is_silent(strongroom: Strongroom, root: Path) -> None:
    def interrupt(_request: Recorded) -> None:
        process = begun.get()
        families.append(Family(children(process.pid)))
        process.send_signal(signal.SIGTERM)

    families: list[Family] = []
    begun: Begun = SimpleQueue()
    with MessagesServer([{"sse": "", "then": "hang"}], on_request=interrupt) as server:
        strongroom.environment["ANTHROPIC_BASE_URL"] = server.url
        begun.put(process := strongroom.start(*strongroom.batch_of("go", model="m")))
        finished(process).assert_refused(code=130)
    assert [family.is_gone() for family in families] == [True]
    assert strongroom.ends == ["cancelled"]


def test_two_batches_at_once_cannot_do_the_same_work(guest: Guest, root: Path) -> None:
    second: list[Done] = []
    guest.play([reply("x")], lambda _: second.append(guest.batch("go", "--resume")))
    assert guest.batch("go", model="m").code == 0
    (done,) = second
    done.assert_refused("Another batch is writing")
    assert len(guest.results) == 1


# where a daemon runs -----------------------------------------------------------------------------------------


def test_a_daemon_that_runs_has_the_conversations(guest: Guest, root: Path) -> None:
    families: list[list[int]] = []
    begun: Begun = SimpleQueue()
    guest.play([reply("x")], lambda _: families.append(children(begun.get().pid)))
    begun.put(process := guest.start(*guest.batch_of("go", model="m")))
    assert finished(process).code == 0
    assert guest.batch("read a.txt", output="other.jsonl").code == 0
    assert guest.daemon.process.poll() is None
    assert families == [[]]
    assert answers(guest) == ["x"]


def test_a_batch_that_was_killed_takes_up_the_turn_that_goes_on_without_it(guest: Guest, root: Path) -> None:
    def kill(_request: Recorded) -> None:
        process = begun.get()
        process.kill()
        process.wait()

    begun: Begun = SimpleQueue()
    arguments = guest.batch_of("go", "--resume", model="m")
    guest.play([reply("once")], kill)
    begun.put(process := guest.start(*arguments))
    assert finished(process).code == -signal.SIGKILL
    assert guest.run(*arguments).code == 0
    assert len(guest.requests) == 1
    assert (answers(guest), guest.asked) == (["once"], ["go"])


def test_a_signal_cancels_the_turns_in_the_daemon(guest: Guest, root: Path) -> None:
    def interrupt(request: Recorded) -> None:
        if request is not guest.requests[0]:  # both may be there by now
            begun.get().send_signal(signal.SIGTERM)

    begun: Begun = SimpleQueue()
    silence: Response = {"sse": "", "then": "hang"}
    guest.play([silence] * 2, interrupt)
    begun.put(process := guest.start(*guest.batch_of("one\ntwo\nthree\n", "--concurrency", "2", model="m")))
    done = finished(process)
    assert (done.code, done.out) == (130, "")
    assert done.err == "\nstopped; run the same command with --resume to continue\n\ninterrupted\n"
    assert (sorted(guest.asked), guest.ends) == (["one", "two"], ["cancelled"] * 2)


def test_a_daemon_that_is_killed_ends_the_batch_with_a_sentence(strongroom: Strongroom, root: Path) -> None:
    arguments = strongroom.batch_of("go", "--resume", model="m")
    with MessagesServer([reply("x")] * 2, on_request=lambda _: daemon.kill()) as server:
        strongroom.environment["ANTHROPIC_BASE_URL"] = server.url
        daemon = DaemonProcess(strongroom.home, strongroom.folder, ANTHROPIC_BASE_URL=server.url)
        daemon.start()
        done = strongroom.run(*arguments)
        daemon.wait()
        assert (done.code, done.out) == (1, "")
        assert done.err.endswith("Run the same command with --resume to resume the batch.\n")
        assert strongroom.run(*arguments).code == 0
    assert (answers(strongroom), strongroom.asked) == (["x"], ["go"])


# many roots --------------------------------------------------------------------------------------------------


ROOTS: Final = 7
KEPT: Final = 5
"""The one that is worked on, and those that the daemon keeps for whoever may come back."""
EACH: Final = 2
"""Workers on a root that has had one call: the one that did it, and a warm spare."""


def test_a_batch_over_many_roots_keeps_the_workers_of_a_few(strongroom: Strongroom, tmp_path: Path) -> None:
    """Every second request is the one after an item's call: then the item's worker is there."""
    for number in range(ROOTS):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "a.txt").write_text(str(number))
    items = [json.dumps({"id": number, "prompt": "go", "root": str(number)}) for number in range(ROOTS)]
    begun: Begun = SimpleQueue()
    families: list[list[int]] = []

    def look(_request: Recorded) -> None:
        begun.put(process := begun.get())
        if len(server.requests) % 2 == 0:
            families.append(children(process.pid))

    replies = [reply(calls=[("read_file", {"path": "a.txt"})]), reply("done")] * ROOTS
    with MessagesServer(replies, on_request=look) as server:
        strongroom.environment["ANTHROPIC_BASE_URL"] = server.url
        begun.put(process := strongroom.start(*strongroom.batch_of("\n".join(items), model="m")))
        done = finished(process)
    assert (done.code, done.err) == (0, "")
    assert [fact.ok for fact in strongroom.facts if isinstance(fact, CallEnded)] == [True] * ROOTS
    daemon = 1
    assert max(len(family) for family in families) <= daemon + KEPT * EACH
    assert Family(families[-1]).is_gone()


def test_a_root_that_several_items_share_keeps_its_workers_until_the_last(guest: Guest, root: Path) -> None:
    lines = "".join(f"write {number}.txt: x; read {number}.txt\n" for number in range(8))
    assert guest.batch(lines, "--concurrency", "3").code == 0
    kinds = [fact.kind for fact in guest.facts if isinstance(fact, CallEnded)]
    assert (len(kinds), set(kinds) <= {None, "not_found"}) == (8, True)
