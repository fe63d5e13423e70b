"""A model that replays given replies: for tests, demonstrations and fault injection.

Rule: the reply is chosen by the request's step alone, so a conversation that is opened again after a crash continues
at the right line. One JSON object a line:

    {"text": "Let me look.", "calls": [{"tool": "read_file", "arguments": {"path": "a.md"}}]}
    {"calls": [{"tool": "read_file", "raw": "{\\"path\\": "}], "stop_reason": "tool_use"}
    {"fault": "overloaded", "times": 2, "text": "the reply after two visible retries"}
    {"fault": "rate_limited"}                                   no reply: the turn ends as this error

A client may name any file that the user can read, so an error says what is wrong without quoting the file.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from supervisor.agent.models.model import NO_STEP, Model, Progress, Reply, Retrying, TextDelta, ToolUse
from supervisor.agent.models.provider import Provider
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, ModelError, ModelErrorKind, reason
from supervisor.system import safe_files

_LONGEST: Final = 16 * 2**20
"""Bytes of a script."""


class _ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    arguments: dict[str, Any] = {}
    raw: str | None = None
    """The arguments' text as it is, well-formed or not; instead of `arguments`."""

    @property
    def text(self) -> str:
        return msgspec.json.encode(self.arguments).decode() if self.raw is None else self.raw


class _ScriptLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    text: str = ""
    calls: tuple[_ScriptedCall, ...] = ()
    stop_reason: str = ""
    usage: dict[str, int] = msgspec.field(default_factory=lambda: {"input_tokens": 1, "output_tokens": 1})
    fault: ModelErrorKind | None = None
    times: int | None = None
    """How often the fault is retried before the reply; None: no reply comes."""


def open_script(file: Path) -> Model:
    """Return a model that replays a file; every conversation starts at its first line.

    Raises:
        ConfigError: the file cannot be read, or a line of it is not as above.
    """
    from supervisor.agent.models.immediate import ImmediateModel

    name, lines = f"{PROVIDER.prefix}{file}", _read(file)
    return ImmediateModel(name, lambda request, show: _reply(name, lines, request.step, show))


def _reply(name: str, lines: Sequence[_ScriptLine], step: int, show: Callable[[Progress], None]) -> Reply:
    """Return the line of the request's step."""
    if step == NO_STEP:
        raise ModelError("bad_response", f"The script {name} has no summaries.", billed=False)
    if step >= len(lines):
        raise ModelError("bad_response", f"The script {name} has no line {step + 1}.")
    line = lines[step]
    if line.fault is not None:
        for attempt in range(1, (line.times or 0) + 1):
            show(Retrying(attempt, line.fault, "scripted fault", 0.0))
        if line.times is None:
            raise ModelError(line.fault, f"The script says {line.fault} in line {step + 1}.")
    if line.text:
        show(TextDelta(line.text))
    calls = [
        (ToolUse(f"call_{step}_{number}", call.tool, call.text), call.arguments if call.raw is None else {})
        for number, call in enumerate(line.calls)
    ]
    return Reply.at_once(line.text, calls, line.usage, line.stop_reason)


def _read(file: Path) -> list[_ScriptLine]:
    decoder = msgspec.json.Decoder(_ScriptLine)
    read: list[_ScriptLine] = []
    for number, line in enumerate(_content(file).splitlines(), 1):
        if line.strip():
            try:
                read.append(decoder.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise ConfigError(f"The script {str(file)!r}, line {number}: {_problem(error)}.") from None
    return read


def _content(file: Path) -> bytes:
    try:
        return safe_files.read_bytes(file, _LONGEST)
    except (OSError, ValueError) as error:
        raise ConfigError(f"The script {str(file)!r} cannot be read: {reason(error)}.") from error


def _problem(error: Exception) -> str:
    """Say what is wrong with a line, and nothing that stands in it."""
    match error:
        case msgspec.ValidationError() if str(error).endswith("`$.fault`"):
            return f"not one of the faults {', '.join(get_args(ModelErrorKind))}"
        case msgspec.ValidationError():
            return (
                f"not an object with {', '.join(_ScriptLine.__struct_fields__)} and nothing else, each of its own type"
            )
        case RecursionError():
            return "nested too deep"
        case _:
            return "not JSON in UTF-8"


def _open(name: str, _settings: Settings) -> Model:
    return open_script(Path(name.removeprefix(PROVIDER.prefix)))


PROVIDER: Final = Provider(prefix="scripted:", rest="FILE", open=_open, is_file=True)
