"""Output of a command, out of its result."""

from typing import Final

from supervisor.display.command_output import output_text
from tests.each_row import each_row

TEXTS: Final = {
    '{"stdout":"a\\n","stderr":"","exit_code":0}': "a",
    '{"stdout":"a\\n\\n","stderr":"b\\n","exit_code":1}': "a\nb\nexit code 1",
    '{"stdout":"","stderr":"","exit_code":137,"signal":"SIGKILL"}\n\n[killed]': "exit code 137\n\n[killed]",
    '{"stdout":"x","exit_code":0}\n\n[a note]': "x\n\n[a note]",
    '{"other": 1}': '{"other": 1}',
    '["stdout"]': '["stdout"]',
    "stdout": "stdout",
    "[" * 100_000: "[" * 100_000,
}


@each_row("result", TEXTS, ids=range(len(TEXTS)))
def test_what_was_printed_is_text(result: str) -> None:
    assert output_text("exec_shell", result) == TEXTS[result]
    assert output_text("read_file", result) == result
