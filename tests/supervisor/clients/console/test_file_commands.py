"""`/copy`, `/diff` and `/open` in the console."""

import base64
from pathlib import Path

import pytest

from supervisor.acp import extensions, schema
from supervisor.clients.console.clipboard import code_blocks, doubt, sequence
from supervisor.errors import ConfigError
from tests.supervisor.clients.console.fake_daemon import FakeDaemon, called, ended
from tests.supervisor.clients.console.terminals import ENTER, Terminal


def test_what_is_copied_holds_nothing_that_acts_where_it_is_pasted() -> None:
    told = sequence("rm x\n\tä\x1b[201~\r\x07\u202e", "xterm")
    assert told.startswith("\x1b]52;c;")
    assert told.endswith("\x07")
    data = base64.b64decode(told[7:-1]).decode()
    assert data.startswith("rm x\n\tä")
    assert [char for char in data if not char.isprintable()] == ["\n", "\t"]
    for text, terminal in (("x", "dumb"), ("x", ""), ("x" * 80_000, "xterm")):
        with pytest.raises(ConfigError, match=r"takes nothing|at once"):
            sequence(text, terminal)


def test_terminals_that_take_nothing_are_known() -> None:
    assert "set-clipboard" in doubt({"TERM": "tmux-256color"})
    assert "VTE" in doubt({"TERM": "xterm-256color", "VTE_VERSION": "7600"})
    assert doubt({"TERM": "xterm-kitty"}) == ""


def test_code_blocks_are_what_stands_in_fences() -> None:
    answer = "a\n```py\nx = 1\n\n``\n```\n1. b\n   ~~~~\n   y\n   ~~~\n     z\n   ~~~~~\n```\nno end"
    assert code_blocks(answer) == ["x = 1\n\n``", "y\n~~~\n  z"]


def changed(number: int, path: str) -> schema.ToolCallUpdate:
    update = ended(number, "edit_file", "done")
    change = extensions.ChangedName(path, "modified", diff=f"-old {path}\n+new {path}\n")
    decided = extensions.Decided(committed=True, changed="1 modified", differences=[change])
    facts = extensions.CallFacts(tool="edit_file", seconds=0.25, decided=decided)
    return schema.ToolCallUpdate(
        tool_call_id=update.tool_call_id, status="completed", content=update.content, meta={extensions.CALL: facts}
    )


def test_answers_are_copied_changes_shown_and_files_opened(
    home: Path, root: Path, daemon: FakeDaemon, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho new > "$1"\n')
    editor.chmod(0o755)
    (root / "out").symlink_to(tmp_path)
    with Terminal(home, root.parent, EDITOR=str(editor), columns=100, rows=40) as console:
        console.until("Ready")
        console.type("/copy" + ENTER, "There is no answer yet.")
        console.type("/diff" + ENTER, "No call has changed a text so far.")
        console.type("go" + ENTER)
        daemon.prompt()
        for number, path in ((1, "a.txt"), (2, "src/b.py")):
            daemon.tell(called(number, "edit_file", f'{{"path": "{path}"}}', "edit"))
            daemon.tell(changed(number, path))
        daemon.reply("Done:\n\n```\nls -l\n```\n")
        console.until(lambda screen: "ls -l" in screen and "Ready" in screen)
        console.type("/copy code" + ENTER, "Copied the code: 5 B.")
        assert b"\x1b]52;c;" + base64.b64encode(b"ls -l") + b"\x07" in console.raw
        console.type("/copy 2" + ENTER, "Copied the output of #2: 4 B.")
        console.type("/copy 9" + ENTER, "There is no call '9' with an output.")
        console.type("/diff" + ENTER, "2 files, by #1, #2")
        shown = console.type("/diff src" + ENTER, "1 file, by #2")
        assert "new a.txt" not in shown[shown.index("1 file, by #2") :]
        console.type("/open 1" + ENTER, lambda _: (root / "a.txt").read_text() == "new\n")
        for path, why in (("out/editor", "it leads out of the root"), ("none", "No such file"), ("", "Name a file")):
            console.type(f"/open {path}" + ENTER, why)
