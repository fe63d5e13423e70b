"""The module `strongroom` as programs use it: blocking, with asyncio and with trio."""

import asyncio
import inspect
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio

import strongroom
from strongroom import AnswerPart, Approval, NoticeGiven, Question, ToolEnded, ToolStarted, TurnResult
from supervisor.clients.connection.link import Link
from supervisor.clients.connection.stop import stop
from supervisor.config.settings import load_home
from supervisor.journal.facts import CallEnded, TurnEnded
from tests.daemon_process import DaemonProcess, scripted
from tests.supervisor.command import CODE, wait_until
from tests.supervisor.histories import call

Patch = pytest.MonkeyPatch
Heard = list[list[object]]
"""What was heard of each prompt: its events, and the error that ended it."""
WRITE: Final = "write new.txt: x"


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """Whoever waits for what never comes fails by name."""

    def late(_number: int, _frame: object) -> None:
        raise AssertionError("it has not ended within a minute")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def here(daemon: DaemonProcess, place: Path, monkeypatch: Patch) -> None:
    """Where the program runs."""
    monkeypatch.setenv("STRONGROOM_HOME", str(daemon.home))
    monkeypatch.setenv("PYTHONPATH", str(CODE))
    monkeypatch.chdir(place)
    (place / "vault" / "new.txt").unlink(missing_ok=True)


def blocking(texts: list[str], leave_at: type[object] = Path, model: str = "offline", **chosen: Any) -> Heard:
    """Ask one after the other in one session; the first loop is left at an event of a type."""
    heard: Heard = []
    with strongroom.connect(model=model, **chosen) as client, client.open(root="vault") as session:
        for text in texts:
            heard.append([])
            try:
                for event in session.ask(text):
                    heard[-1].append(event)
                    if isinstance(event, leave_at) and len(heard) == 1:
                        break
            except strongroom.StrongroomError as error:
                heard[-1].append(error)
    return heard


async def awaited(texts: list[str], leave_at: type[object] = Path, model: str = "offline", **chosen: Any) -> Heard:
    """Do the same."""
    heard: Heard = []
    async with strongroom.connect(model=model, **chosen) as client, await client.open(root="vault") as session:
        for text in texts:
            heard.append([])
            try:
                async for event in session.ask(text):
                    heard[-1].append(event)
                    if isinstance(event, leave_at) and len(heard) == 1:
                        break
            except strongroom.StrongroomError as error:
                heard[-1].append(error)
    return heard


def in_asyncio(work: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await asyncio.wait_for(work(), 60)

    return asyncio.run(main())


def in_trio(work: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        with trio.fail_after(60):
            return await work()

    return trio.run(main)


RUN: Final[dict[str, Callable[..., Heard]]] = {
    "blocking": blocking,
    "asyncio": lambda *texts, **chosen: in_asyncio(partial(awaited, *texts, **chosen)),
    "trio": lambda *texts, **chosen: in_trio(partial(awaited, *texts, **chosen)),
}
each_way = pytest.mark.parametrize("way", RUN)


def shape(events: Sequence[object]) -> list[type]:
    return [type(each) for each in events]


@each_way
def test_a_turn_is_typed_events(way: str) -> None:
    ((started, ended, *parts, result),) = RUN[way](["read a.txt"])
    assert isinstance(started, ToolStarted)
    assert (started.tool, started.title, started.arguments) == ("read_file", "read_file a.txt", {"path": "a.txt"})
    assert isinstance(ended, ToolEnded)
    assert (ended.call, ended.ok, ended.output, ended.kind) == (started.call, True, "hello\n", "")
    texts = [part.text for part in parts if isinstance(part, AnswerPart)]
    assert isinstance(result, TurnResult)
    assert (result.status, result.answer, result.steps) == ("ok", "".join(texts), 2)
    assert len(texts) == len(parts) > 0


async def later(question: Question) -> bool:
    if trio.lowlevel.in_trio_task():
        await trio.lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)
    return question.changes[0].path == "new.txt"


ANSWERS: Final[dict[str, tuple[Any, str | None]]] = {
    "nobody": (None, None),
    "yes": (lambda _: True, "x"),
    "no": (lambda _: False, None),
    "a word": (lambda _: "yes", None),
    "nothing": (lambda _: None, None),
    "edited": (lambda question: Approval(True, edited=question.arguments | {"content": "y"}), "y"),
    "later": (later, "x"),
    "for the session": (lambda question: Approval(True, scope="session" if question.covers else "once"), "x"),
    "why not": (lambda _: Approval(False, remark="not today"), None),
}


@each_way
@pytest.mark.parametrize("said", ANSWERS)
def test_a_callback_decides(way: str, said: str, place: Path) -> None:
    approvals, written = ANSWERS[said]
    if way == "blocking" and inspect.iscoroutinefunction(approvals):
        with pytest.raises(TypeError, match="needs `async with"):
            RUN[way]([WRITE], approvals=approvals)
        assert not (place / "vault" / "new.txt").exists()
        return
    (events,) = RUN[way]([WRITE], approvals=approvals)
    file = place / "vault" / "new.txt"
    assert (file.read_text() if file.exists() else None) == written
    (ended,) = [each for each in events if isinstance(each, ToolEnded)]
    result = events[-1]
    assert isinstance(result, TurnResult)
    assert (ended.ok, ended.kind, result.denied) == (
        (True, "", ()) if written else (False, "denied", ("write_file new.txt",))
    )
    assert ("not today" in ended.output) == (said == "why not")
    asked = [each for each in events if isinstance(each, Question)]
    assert [each.answer is not None and each.answer.allowed for each in asked] == (
        [] if said == "nobody" else [bool(written)]
    )
    if written:
        assert [change.path for change in ended.differences] == ["new.txt"]
        assert f"+{written}" in ended.differences[0].diff


def test_a_callback_that_fails_is_a_no_and_an_error(place: Path) -> None:
    def fail(question: Question) -> bool:
        assert "new.txt" in question.text
        raise ZeroDivisionError

    with strongroom.connect(model="offline", approvals=fail) as client, client.open(root="vault") as session:
        with pytest.raises(ZeroDivisionError):
            session.run(WRITE)
        assert not (place / "vault" / "new.txt").exists()
        assert session.run("read a.txt").status == "ok"


@each_way
def test_a_loop_that_is_left_cancels_its_turn(way: str, daemon: DaemonProcess) -> None:
    before = len(daemon.facts)
    left, after = RUN[way]([WRITE, "read a.txt"], leave_at=ToolStarted, approvals=lambda _: True)
    assert shape(left) == [ToolStarted]
    assert shape(after)[-1] is TurnResult
    ends = [fact.status for fact in daemon.facts[before:] if isinstance(fact, TurnEnded)]
    assert ends == ["cancelled", "ok"]


@each_way
def test_a_daemon_that_is_killed_in_a_turn_is_an_error_and_the_next_prompt_goes_on(
    way: str, daemon: DaemonProcess
) -> None:
    def kill(_question: Question) -> bool:
        if not killed:
            killed.append(daemon.pid)
            daemon.kill()
            daemon.wait()
            daemon.start()
        return True

    killed: list[int] = []
    cut, after = RUN[way]([WRITE, "read a.txt"], approvals=kill)
    assert isinstance(cut[-1], strongroom.DaemonLost)
    assert cut[-1].kind == "daemon_lost"
    assert [each.output for each in after if isinstance(each, ToolEnded)][-1] == "hello\n"
    results = [each.status for each in after if isinstance(each, TurnResult)]
    assert results == ["ok", "ok"], "the turn that was cut off, and the new one"


def test_a_task_that_is_cancelled_cancels_its_turn(daemon: DaemonProcess) -> None:
    async def with_asyncio() -> None:
        task = asyncio.current_task()
        assert task is not None

        async def cancel(_question: Question) -> bool:
            task.cancel()
            await asyncio.Event().wait()
            return True

        with pytest.raises(asyncio.CancelledError):
            await awaited([WRITE], approvals=cancel)

    async def with_trio() -> None:
        async def cancel(_question: Question) -> bool:
            scope.cancel()
            await trio.sleep_forever()

        scope = trio.CancelScope()
        with scope:
            await awaited([WRITE], approvals=cancel)
        assert scope.cancelled_caught

    before = len(daemon.facts)
    asyncio.run(with_asyncio())
    trio.run(with_trio)
    ended = [fact for fact in daemon.facts[before:] if isinstance(fact, TurnEnded)]
    assert [fact.status for fact in ended] == ["cancelled", "cancelled"]
    assert "strongroom link" not in [thread.name for thread in threading.enumerate()], "each has closed its connection"


def test_ctrl_c_in_a_loop_cancels_its_turn_which_can_be_followed_to_its_end() -> None:
    def interrupt(_question: Question) -> bool:
        raise KeyboardInterrupt

    with strongroom.connect(model="offline", approvals=interrupt) as client:
        turn = client.open(root="vault").ask(WRITE)
        with pytest.raises(KeyboardInterrupt):
            list(turn)
        last = list(turn)[-1]
        assert isinstance(last, TurnResult)
        assert last.status == "cancelled"


def test_one_turn_at_a_time_runs_in_a_session(daemon: DaemonProcess) -> None:
    with strongroom.connect(model="offline", approvals=lambda _: True) as client:
        session = client.open(root="vault")
        turn = session.ask(WRITE)
        assert isinstance(next(turn), ToolStarted)
        for refused in (lambda: session.run("read a.txt"), lambda: session.call("read_file", path="a.txt")):
            with pytest.raises(strongroom.DaemonRefused, match="to its end, or cancel it") as busy:
                refused()
            assert busy.value.kind == "busy"
        assert isinstance(list(turn)[-1], TurnResult)
        assert session.run("read a.txt").status == "ok"


def test_a_tool_is_called_without_the_model(daemon: DaemonProcess, place: Path) -> None:
    answers = [True, False]
    with strongroom.connect(approvals=lambda _: answers.pop(0)) as client, client.open(root="vault") as session:
        assert session.call("read_file", path="a.txt") == "hello\n"
        assert session.call("write_file", path="new.txt", content="x") == "Wrote 1 bytes to new.txt (new file)."
        failures = {
            "path_escape": ("read_file", {"path": "../x"}),
            "denied": ("write_file", {"path": "b", "content": ""}),
        }
        for kind, (tool, arguments) in failures.items():
            with pytest.raises(strongroom.ToolFailed) as failed:
                session.call(tool, **arguments)
            assert failed.value.kind == kind
    ended = [fact.kind for fact in daemon.sessions[session.id] if isinstance(fact, CallEnded)]
    assert ended == [None, None, "path_escape", "denied"]


def test_a_turn_that_fails_is_an_error_of_its_kind(place: Path) -> None:
    model = scripted(place / "fails.jsonl", {"fault": "overloaded", "times": 1, "text": "a"}, {"fault": "overloaded"})
    with strongroom.connect(model=model) as client, client.open(root="vault") as session:
        notice, *_, result = session.ask("go")
        assert isinstance(notice, NoticeGiven)
        assert notice.text.startswith("overloaded: ")
        assert isinstance(result, TurnResult)
        assert result.usage is not None
        with pytest.raises(strongroom.TurnFailed) as failed:
            session.run("go")
        assert (failed.value.kind, failed.value.result.status) == ("overloaded", "error")


WRONG: Final[dict[str, dict[str, Any]]] = {
    "No model 'nope'": {"model": "nope"},
    "does not exist": {"root": "nowhere"},
    "No profile 'x'": {"profile": "x"},
}


@pytest.mark.parametrize("said", WRONG)
def test_a_session_that_cannot_be_opened_says_why(said: str) -> None:
    with strongroom.connect() as client, pytest.raises(strongroom.ConfigError, match=said) as error:
        client.open(**WRONG[said])
    assert error.value.kind == "config"


def test_an_answer_by_a_schema_is_data(place: Path) -> None:
    model = scripted(place / "data.jsonl", {"text": '{"sacks": 16}'})
    asked = {"type": "object", "properties": {"sacks": {"type": "integer"}}, "required": ["sacks"]}
    with strongroom.connect(model=model) as client:
        assert client.open(root="vault").run("how many?", schema=asked).data == {"sacks": 16}


def test_a_session_is_listed_and_taken_up_by_another_program(place: Path) -> None:
    with strongroom.connect(model="offline") as client:
        session = client.open(root="vault")
        session.run("read a.txt")
        with strongroom.connect() as other:
            assert session.id in [each.session_id for each in other.sessions(place)]
            for name in (session.id, session.id[-6:], None):
                taken_up = other.resume(name)
                assert (taken_up.id, taken_up.history()) == (session.id, session.history())
            assert list(taken_up.go_on()) == []
            with pytest.raises(strongroom.DaemonRefused):
                other.resume("no such session")
        assert session.run("read a.txt").status == "ok", "leaving it has not closed it"


def test_a_turn_that_runs_is_followed_by_who_takes_the_session_up_and_is_asked_at_once(
    daemon: DaemonProcess, place: Path, monkeypatch: Patch
) -> None:
    def submit_slowly(link: Link, method: str, *arguments: Any) -> Any:
        """Go on when all that comes at once has been heard: the answer, and what is asked right after it."""
        sent = submit(link, method, *arguments)
        if method == "session/load":
            wait_until(lambda: link._prompts)
        return sent

    submit = Link.submit
    monkeypatch.setattr(Link, "submit", submit_slowly)
    steps = ({"calls": [call("write_file", path="new.txt", content="x")]}, {"text": "done"})
    with strongroom.connect(model=scripted(place / "two.jsonl", *steps), approvals=lambda _: True) as client:
        session = client.open(root="vault")
        turn = session.ask("go")
        assert isinstance(next(turn), ToolStarted)
        with daemon.client() as onlooker:
            wait_until(lambda: "ReviewAction" in [each["state"] for each in onlooker.status()["sessions"]])
        with strongroom.connect(approvals=lambda _: True) as other:
            followed = list(other.resume(session.id).go_on())
            assert shape(followed)[-3:] == [AnswerPart, NoticeGiven, TurnResult]
            end = followed[-1]
            assert isinstance(end, TurnResult)
            assert end.receipt is not None
            assert [each.path for each in end.receipt.changed] == ["new.txt"]
        assert isinstance(list(turn)[-1], TurnResult)


def test_the_module_shows_its_public_names_alone() -> None:
    assert {"start", "chat", "history", "clear", "connect", "TurnResult"} <= set(dir(strongroom))
    assert [
        name for name in dir(strongroom) if name.startswith("_") or inspect.ismodule(getattr(strongroom, name))
    ] == []


def test_the_programs_of_the_manual_run_as_they_stand(daemon: DaemonProcess, tmp_path: Path) -> None:
    programs = re.findall(r"^```python\n(.*?)^```$", (CODE / "MANUAL.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(programs) == 2
    (tmp_path / "notes/vault").mkdir(parents=True)
    said = ""
    for program in programs:
        environment = {"HOME": str(tmp_path), "STRONGROOM_HOME": str(daemon.home), "PYTHONPATH": str(CODE)}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        said += done.stdout
    assert (tmp_path / "notes/vault/shopping.md").read_text() == "sixteen sacks of compost"
    assert "ToolEnded(" in said
    assert said.count("sixteen sacks of compost\n") > 2


def test_a_prompt_that_is_too_long_to_be_sent_is_refused() -> None:
    with strongroom.connect(model="offline") as client, client.open(root="vault") as session:
        with pytest.raises(strongroom.DaemonRefused, match="Send less") as refused:
            session.run("read a.txt" * 2**21)
        assert refused.value.kind == "too_large"
        assert session.run("read a.txt").status == "ok"


def test_a_daemon_of_the_home_that_is_named_is_started(tmp_path: Path, daemon: DaemonProcess) -> None:
    (tmp_path / "root").mkdir()
    home = tmp_path / "own"
    try:
        with strongroom.connect(home=home, model="offline") as client:
            assert client.pid() != daemon.pid
            assert client.open(root=tmp_path / "root").run("write a.md: x").status == "ok"
        with strongroom.connect(home=home) as client:
            (listed,) = client.sessions()
            found = client.search('"write a.md"', directory=tmp_path / "root")
            assert [(each.session_id, each.who) for each in found] == [(listed.session_id, "you")]
            assert (listed.title, client.search("write", directory=tmp_path)) == ("write a.md: x", [])
    finally:
        stop(load_home(str(home)))
    assert (tmp_path / "root" / "a.md").exists()
