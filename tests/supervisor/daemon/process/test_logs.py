"""The daemon's log: whole lines of JSON, for its owner alone, and never a reason to fail."""

import json
import logging
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.config.config_keys import Config, DaemonConfig
from supervisor.config.settings import Settings, load
from supervisor.daemon.process.logs import LogFile, keep_out, start_logging
from supervisor.errors import ConfigError

KEY: Final = "sk-ant-api03-abcdefghijklmnop"


class Log:
    """A daemon's log, and a logger below ours."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.logger = logging.getLogger("strongroom.test")
        self.error = self.logger.error

    def start(self, **settings: Any) -> LogFile:
        return start_logging(replace(self.settings, **settings), to_stderr=False, verbose=0)

    def start_for_people(self, verbose: int = 0) -> None:
        start_logging(self.settings, to_stderr=True, verbose=verbose)

    def fail(self, error: Exception, *message: str, **extra: Any) -> None:
        """Log an exception that was raised."""
        try:
            raise error
        except type(error):
            self.logger.exception(*message, extra=extra)

    @property
    def file(self) -> Path:
        return self.settings.logs / "daemon.log"

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.file.read_text("utf-8").splitlines()]

    @property
    def messages(self) -> list[str]:
        return [line["message"] for line in self.lines]


@pytest.fixture
def log(home: Path) -> Iterator[Log]:
    """A log that was not started; our loggers are afterwards as they were before."""
    ours = logging.getLogger("strongroom")
    before = ours.handlers[:], ours.level, ours.propagate
    yield Log(load({"STRONGROOM_HOME": str(home), "ANTHROPIC_API_KEY": KEY}))
    for handler in ours.handlers:
        handler.close()
    ours.handlers, level, ours.propagate = before
    ours.setLevel(level)


# what a line holds ---------------------------------------------------------------------------------------------


def test_a_line_says_when_how_grave_who_and_what(log: Log) -> None:
    log.start()
    log.logger.warning("%d workers of %s", 3, "files", extra={"session": "s1", "pid": 7})
    (line,) = log.lines
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("at"))
    assert line == {
        "level": "warning",
        "logger": "strongroom.test",
        "message": "3 workers of files",
        "session": "s1",
        "pid": 7,
    }


TEXTS: Final = [
    ("two\nlines\r\n", "two\nlines\r\n"),
    ('"}\n{"level": "error", "message": "forged"}', '"}\n{"level": "error", "message": "forged"}'),
    ("\x1b[2J \x9b \u202e \u2028 \x7f", "\x1b[2J \x9b \u202e \u2028 \x7f"),
    ("half \ud800 pair", "half \\ud800 pair"),
    ("é日😀\0", "é日😀\0"),
]


@pytest.mark.parametrize(("text", "read"), TEXTS, ids=[ascii(text)[:20] for text, _ in TEXTS])
def test_no_text_leaves_its_line(log: Log, text: str, read: str) -> None:
    log.start()
    log.error(text, extra={"session": text})
    assert [(line["level"], line["message"], line["session"]) for line in log.lines] == [("error", read, read)]
    raw = log.file.read_bytes()
    assert b"\x1b" not in raw
    assert b"\x7f" not in raw
    assert "\u202e" not in raw.decode()


def test_an_exception_is_one_field(log: Log) -> None:
    log.start()
    log.fail(KeyError("line\nend \ud800"), "it failed")
    (line,) = log.lines
    assert line["message"] == "it failed"
    assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert line["exception"].endswith("KeyError: 'line\\nend \\ud800'")


def circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


VALUES: Final = [
    ([1, {"a": None}], [1, {"a": None}]),
    (2.5, 2.5),
    (Path("/x"), "PosixPath('/x')"),
    (2**70, 2**70),
    (circle(), "[[...]]"),
    (["\ud800"], "['\\ud800']"),
    ({1, 2}, [1, 2]),
    (float("nan"), None),
]


@pytest.mark.parametrize(("value", "read"), VALUES, ids=[repr(value)[:20] for value, _ in VALUES])
def test_any_value_has_a_field(log: Log, value: Any, read: Any) -> None:
    log.start()
    log.error("x", extra={"value": value})
    assert [line["value"] for line in log.lines] == [read]


def test_a_field_does_not_hide_what_every_line_has(log: Log) -> None:
    log.start()
    log.error("x", extra={"level": "none", "at": "never", "logger": "nobody"})
    assert [(line["level"], line["logger"]) for line in log.lines] == [("error", "strongroom.test")]


def test_arguments_that_do_not_fit_do_not_cost_the_line(log: Log) -> None:
    log.start()
    log.error("%d of %s", "x")  # noqa: PLE1206 - that is the point
    assert log.messages == ["%d of %s ('x',)"]


# the key -------------------------------------------------------------------------------------------------------


def test_the_key_never_stands_in_it(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    log.start_for_people(2)
    log.fail(ValueError(f"x-api-key: {KEY}"), "bad header %s", KEY, header={"x-api-key": KEY})
    logging.getLogger("httpx2").warning(KEY)
    later = "sk-that-a-client-told"
    keep_out([later, "e"])
    log.error("then %s", later)
    seen = log.file.read_text() + capsys.readouterr().err
    assert seen.count("[key]") == 8
    assert KEY not in seen
    assert later not in seen


def test_a_word_that_is_no_key_is_left_alone(log: Log) -> None:
    log.start(environment={"ANTHROPIC_API_KEY": "e"})
    log.error("text")
    assert log.messages == ["text"]


def test_other_loggers_are_not_ours(log: Log) -> None:
    before = logging.getLogger().handlers[:], logging.getLogger().level
    log.start()
    logging.getLogger("anthropic").error("request")
    log.error("ours")
    assert log.messages == ["ours"]
    assert (logging.getLogger().handlers, logging.getLogger().level) == before


# the file ------------------------------------------------------------------------------------------------------


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def test_it_rotates_whole_lines_for_their_owner_alone(log: Log, umask_000: None) -> None:
    daemon = DaemonConfig(log_mb=1, log_files=2)
    file = log.start(config=Config(daemon=daemon))
    for number in range(12):
        log.error("%d %s", number, "x" * 400_000)
    assert stat.S_IMODE(log.settings.logs.stat().st_mode) == 0o700
    assert modes(log.settings.logs) == {"daemon.log": 0o600, "daemon.log.1": 0o600, "daemon.log.2": 0o600}
    names = ("daemon.log.2", "daemon.log.1", "daemon.log")
    lines = [json.loads(line) for name in names for line in (log.settings.logs / name).read_text().splitlines()]
    assert [int(line["message"].split()[0]) for line in lines] == [6, 7, 8, 9, 10, 11]
    assert file.lost == 0


def test_a_file_and_a_directory_that_others_could_read_are_closed_to_them(log: Log) -> None:
    log.settings.logs.mkdir(parents=True)
    log.settings.logs.chmod(0o755)
    log.file.touch()
    log.file.chmod(0o644)
    log.start()
    log.error("x")
    assert stat.S_IMODE(log.settings.logs.stat().st_mode) == 0o700
    assert modes(log.settings.logs) == {"daemon.log": 0o600}


def test_a_log_that_is_there_is_gone_on_with(log: Log) -> None:
    for number in range(3):
        log.start()
        log.error("%d", number)
    assert log.messages == ["0", "1", "2"]


def test_a_torn_line_costs_no_other(log: Log) -> None:
    log.settings.logs.mkdir(parents=True, mode=0o700)
    log.file.write_text('{"at": "2026')
    log.start()
    log.error("x")
    torn, whole = log.file.read_text().splitlines()
    assert torn == '{"at": "2026'
    assert json.loads(whole)["message"] == "x"


def test_a_full_disk_is_counted_and_not_felt(
    log: Log, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = log.start()
    log.error("before")
    with monkeypatch.context() as disk:
        disk.setattr(LogFile, "_open", lambda _self: open("/dev/full", "w"))  # noqa: SIM115
        assert file.stream is not None
        file.stream.close()
        file.stream = None
        log.error("one")
        log.error("two")
    log.error("after")
    assert file.lost == 2
    assert log.messages == ["before", "after"]
    assert capfd.readouterr() == ("", "")


def a_link(file: Path) -> None:
    file.symlink_to("elsewhere")


@pytest.mark.parametrize("plant", [Path.mkdir, a_link, os.mkfifo])
def test_a_log_that_cannot_be_written_is_counted_until_it_can_be(
    log: Log, capfd: pytest.CaptureFixture[str], plant: Callable[[Path], None]
) -> None:
    file = log.start()
    plant(log.file)
    log.error("lost")
    os.rename(log.file, log.settings.logs / "away")
    log.error("kept")
    assert file.lost == 1
    assert log.messages == ["kept"]
    assert not (log.settings.logs / "elsewhere").exists()
    assert capfd.readouterr() == ("", "")


def test_a_directory_that_others_can_write_is_refused(log: Log) -> None:
    log.settings.logs.mkdir(parents=True)
    log.settings.logs.chmod(0o777)
    with pytest.raises(ConfigError, match="insecure permissions"):
        log.start()
    assert os.listdir(log.settings.logs) == []


# for people ----------------------------------------------------------------------------------------------------

SHOWN: Final = [
    (0, ["warning", "error"], ["info", "warning", "error"]),
    (1, ["info", "warning", "error"], ["info", "warning", "error"]),
    (2, ["debug", "info", "warning", "error"], ["debug", "info", "warning", "error"]),
    (9, ["debug", "info", "warning", "error"], ["debug", "info", "warning", "error"]),
]


@pytest.mark.parametrize(("verbose", "shown", "kept"), SHOWN)
def test_the_verbosity_decides_how_much_is_shown(
    log: Log, capsys: pytest.CaptureFixture[str], verbose: int, shown: list[str], kept: list[str]
) -> None:
    log.start_for_people(verbose)
    for level in ("debug", "info", "warning", "error"):
        getattr(log.logger, level)("x")
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == shown
    assert [line["level"] for line in log.lines] == kept


def test_a_line_for_people_is_one_safe_line(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    log.start_for_people()
    log.fail(KeyError("a\nb"), "\x1b[2J%s\n", "gone", session="s1")
    line = capsys.readouterr().err
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d error strongroom\.test: \\x1b\[2Jgone KeyError\('a\\nb'\) session=s1\n", line
    ), line


def test_starting_again_replaces_what_was_there(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("strongroom").addHandler(logging.StreamHandler(sys.stderr))
    log.start_for_people()
    log.start_for_people()
    log.error("once")
    assert len(log.lines) == len(capsys.readouterr().err.splitlines()) == 1


def test_without_a_stderr_there_is_the_file(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    log.start_for_people()
    log.error("x")
    assert len(log.lines) == 1


def test_a_stderr_that_nobody_reads_is_not_felt(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1) as closed:
        monkeypatch.setattr(sys, "stderr", closed)
        log.start_for_people()
        log.error("x")
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), writer)  # so that closing it can write what it holds
    assert len(log.lines) == 1
