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

from supervisor.config.config_file import Config, DaemonConfig
from supervisor.config.settings import Settings, load
from supervisor.daemon.process.logs import LogFile, start_logging
from supervisor.errors import ConfigError

KEY: Final = "sk-ant-api03-abcdefghijklmnop"


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """A logger below ours, which is afterwards as it was before."""
    ours = logging.getLogger("strongroom")
    before = ours.handlers[:], ours.level, ours.propagate
    yield ours.getChild("test")
    for handler in ours.handlers:
        handler.close()
    ours.handlers, level, ours.propagate = before
    ours.setLevel(level)


@pytest.fixture
def settings(home: Path) -> Settings:
    return load({"STRONGROOM_HOME": str(home), "ANTHROPIC_API_KEY": KEY})


@pytest.fixture
def written(settings: Settings) -> Callable[[], list[Any]]:
    """Read what is in the log's file."""
    return lambda: [json.loads(line) for line in (settings.logs / "daemon.log").read_text("utf-8").splitlines()]


def fail(error: Exception) -> None:
    raise error


def quiet(settings: Settings) -> LogFile:
    return start_logging(settings, to_stderr=False, verbose=0)


# what a line holds ---------------------------------------------------------------------------------------------


def test_a_line_says_when_how_grave_who_and_what(
    settings: Settings, log: logging.Logger, written: Callable[[], list[Any]]
) -> None:
    quiet(settings)
    log.warning("%d workers of %s", 3, "files", extra={"session": "s1", "pid": 7})
    (line,) = written()
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
def test_no_text_leaves_its_line(
    settings: Settings, log: logging.Logger, written: Callable[[], list[Any]], text: str, read: str
) -> None:
    quiet(settings)
    log.error(text, extra={"session": text})
    assert [(line["level"], line["message"], line["session"]) for line in written()] == [("error", read, read)]
    raw = (settings.logs / "daemon.log").read_bytes()
    assert b"\x1b" not in raw
    assert b"\x7f" not in raw
    assert "\u202e" not in raw.decode()


def test_an_exception_is_one_field(settings: Settings, log: logging.Logger, written: Callable[[], list[Any]]) -> None:
    quiet(settings)
    try:
        fail(KeyError("line\nend \ud800"))
    except KeyError:
        log.exception("it failed")
    (line,) = written()
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
def test_any_value_has_a_field(
    settings: Settings, log: logging.Logger, written: Callable[[], list[Any]], value: Any, read: Any
) -> None:
    quiet(settings)
    log.error("x", extra={"value": value})
    assert [line["value"] for line in written()] == [read]


def test_a_field_does_not_hide_what_every_line_has(
    settings: Settings, log: logging.Logger, written: Callable[[], list[Any]]
) -> None:
    quiet(settings)
    log.error("x", extra={"level": "none", "at": "never", "logger": "nobody"})
    assert [(line["level"], line["logger"]) for line in written()] == [("error", "strongroom.test")]


def test_arguments_that_do_not_fit_do_not_cost_the_line(
    settings: Settings, log: logging.Logger, written: Callable[[], list[Any]]
) -> None:
    quiet(settings)
    log.error("%d of %s", "x")  # noqa: PLE1206 - that is the point
    assert [line["message"] for line in written()] == ["%d of %s ('x',)"]


# the key -------------------------------------------------------------------------------------------------------


def test_the_key_never_stands_in_it(
    settings: Settings, log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    start_logging(settings, to_stderr=True, verbose=2)
    try:
        fail(ValueError(f"x-api-key: {KEY}"))
    except ValueError:
        log.exception("bad header %s", KEY, extra={"header": {"x-api-key": KEY}})
    logging.getLogger("httpx2").warning(KEY)
    seen = (settings.logs / "daemon.log").read_text() + capsys.readouterr().err
    assert seen.count("[key]") == 6
    assert KEY not in seen


def test_a_word_that_is_no_key_is_left_alone(
    settings: Settings, log: logging.Logger, written: Callable[[], list[Any]]
) -> None:
    quiet(replace(settings, environment={"ANTHROPIC_API_KEY": "e"}))
    log.error("text")
    assert [line["message"] for line in written()] == ["text"]


def test_other_loggers_are_not_ours(settings: Settings, log: logging.Logger, written: Callable[[], list[Any]]) -> None:
    before = logging.getLogger().handlers[:], logging.getLogger().level
    quiet(settings)
    logging.getLogger("anthropic").error("request")
    log.error("ours")
    assert [line["message"] for line in written()] == ["ours"]
    assert (logging.getLogger().handlers, logging.getLogger().level) == before


# the file ------------------------------------------------------------------------------------------------------


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def test_it_rotates_whole_lines_for_their_owner_alone(settings: Settings, log: logging.Logger, umask_000: None) -> None:
    daemon = DaemonConfig(log_mb=1, log_files=2)
    file = quiet(replace(settings, config=Config(daemon=daemon)))
    for number in range(12):
        log.error("%d %s", number, "x" * 400_000)
    assert stat.S_IMODE(settings.logs.stat().st_mode) == 0o700
    assert modes(settings.logs) == {"daemon.log": 0o600, "daemon.log.1": 0o600, "daemon.log.2": 0o600}
    names = ("daemon.log.2", "daemon.log.1", "daemon.log")
    lines = [json.loads(line) for name in names for line in (settings.logs / name).read_text().splitlines()]
    assert [int(line["message"].split()[0]) for line in lines] == [6, 7, 8, 9, 10, 11]
    assert file.lost == 0


def test_a_file_and_a_directory_that_others_could_read_are_closed_to_them(
    settings: Settings, log: logging.Logger
) -> None:
    settings.logs.mkdir(parents=True)
    settings.logs.chmod(0o755)
    (settings.logs / "daemon.log").touch()
    (settings.logs / "daemon.log").chmod(0o644)
    quiet(settings)
    log.error("x")
    assert stat.S_IMODE(settings.logs.stat().st_mode) == 0o700
    assert modes(settings.logs) == {"daemon.log": 0o600}


def test_what_is_there_is_gone_on_with(
    settings: Settings, log: logging.Logger, written: Callable[[], list[Any]]
) -> None:
    for number in range(3):
        quiet(settings)
        log.error("%d", number)
    assert [line["message"] for line in written()] == ["0", "1", "2"]


def test_a_torn_line_costs_no_other(settings: Settings, log: logging.Logger) -> None:
    settings.logs.mkdir(parents=True, mode=0o700)
    (settings.logs / "daemon.log").write_text('{"at": "2026')
    quiet(settings)
    log.error("x")
    torn, whole = (settings.logs / "daemon.log").read_text().splitlines()
    assert torn == '{"at": "2026'
    assert json.loads(whole)["message"] == "x"


def test_a_full_disk_is_counted_and_not_felt(
    settings: Settings,
    log: logging.Logger,
    written: Callable[[], list[Any]],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = quiet(settings)
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
    assert [line["message"] for line in written()] == ["before", "after"]
    assert capfd.readouterr() == ("", "")


def a_directory(file: Path) -> None:
    file.mkdir()


def a_link(file: Path) -> None:
    file.symlink_to("elsewhere")


def a_pipe(file: Path) -> None:
    os.mkfifo(file)


@pytest.mark.parametrize("plant", [a_directory, a_link, a_pipe])
def test_a_log_that_cannot_be_written_is_counted_until_it_can_be(
    settings: Settings,
    log: logging.Logger,
    written: Callable[[], list[Any]],
    capfd: pytest.CaptureFixture[str],
    plant: Callable[[Path], None],
) -> None:
    file = quiet(settings)
    plant(settings.logs / "daemon.log")
    log.error("lost")
    os.rename(settings.logs / "daemon.log", settings.logs / "away")
    log.error("kept")
    assert file.lost == 1
    assert [line["message"] for line in written()] == ["kept"]
    assert not (settings.logs / "elsewhere").exists()
    assert capfd.readouterr() == ("", "")


def test_a_directory_that_others_can_write_is_refused(settings: Settings, log: logging.Logger) -> None:
    settings.logs.mkdir(parents=True)
    settings.logs.chmod(0o777)
    with pytest.raises(ConfigError, match="insecure permissions"):
        quiet(settings)
    assert os.listdir(settings.logs) == []


# for people ----------------------------------------------------------------------------------------------------

SHOWN: Final = [
    (0, ["warning", "error"], ["info", "warning", "error"]),
    (1, ["info", "warning", "error"], ["info", "warning", "error"]),
    (2, ["debug", "info", "warning", "error"], ["debug", "info", "warning", "error"]),
    (9, ["debug", "info", "warning", "error"], ["debug", "info", "warning", "error"]),
]


@pytest.mark.parametrize(("verbose", "shown", "kept"), SHOWN)
def test_how_much_is_shown_is_a_matter_of_verbosity(
    settings: Settings,
    log: logging.Logger,
    written: Callable[[], list[Any]],
    capsys: pytest.CaptureFixture[str],
    verbose: int,
    shown: list[str],
    kept: list[str],
) -> None:
    start_logging(settings, to_stderr=True, verbose=verbose)
    for level in ("debug", "info", "warning", "error"):
        getattr(log, level)("x")
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == shown
    assert [line["level"] for line in written()] == kept


def test_a_line_for_people_is_one_safe_line(
    settings: Settings, log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    start_logging(settings, to_stderr=True, verbose=0)
    try:
        fail(KeyError("a\nb"))
    except KeyError:
        log.exception("\x1b[2J%s\n", "gone", extra={"session": "s1"})
    line = capsys.readouterr().err
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d error strongroom\.test: \\x1b\[2Jgone KeyError\('a\\nb'\) session=s1\n", line
    ), line


def test_starting_again_replaces_what_was_there(
    settings: Settings, log: logging.Logger, written: Callable[[], list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger("strongroom").addHandler(logging.StreamHandler(sys.stderr))
    start_logging(settings, to_stderr=True, verbose=0)
    start_logging(settings, to_stderr=True, verbose=0)
    log.error("once")
    assert len(written()) == len(capsys.readouterr().err.splitlines()) == 1


def test_without_a_stderr_there_is_the_file(
    settings: Settings, log: logging.Logger, written: Callable[[], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    start_logging(settings, to_stderr=True, verbose=0)
    log.error("x")
    assert len(written()) == 1


def test_a_stderr_that_nobody_reads_is_not_felt(
    settings: Settings, log: logging.Logger, written: Callable[[], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1) as closed:
        monkeypatch.setattr(sys, "stderr", closed)
        start_logging(settings, to_stderr=True, verbose=0)
        log.error("x")
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), writer)  # so that closing it can write what it holds
    assert len(written()) == 1
