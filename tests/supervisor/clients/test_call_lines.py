"""What `strongroom call --stdin` writes: one line of harmless JSON for each question, whatever is in it."""

import json
from pathlib import Path
from typing import Final

import msgspec

from supervisor.display.escape import json_line
from tests.supervisor.clients.shared import Guest
from tests.supervisor.command import Done

STREAM: Final = ("call", "--stdin", "--root", "root")
REST: Final = '"tool": "read_file", "arguments": {"path": "evil.txt"}'

EVIL: Final = ["\x1b[2J", "\x9b31m", "\u202eexe.txt", "\x7f", "\x85", "\u2028", "\u2029", "\r", "\U000e0041", "\ufeff"]


def answers(done: Done) -> list[str]:
    """The lines as anybody may cut them, not only at a line feed."""
    return done.out.splitlines()


def test_control_characters_of_a_file_are_escapes_that_mean_the_same(guest: Guest, root: Path) -> None:
    text = "first\n" + "\n".join(EVIL) + "\tlast é 日\n"
    (root / "evil.txt").write_bytes(text.encode())
    done = guest.run(*STREAM, stdin=f'{{"id": 1, {REST}}}\n{{"id": 2, {REST}}}\n')
    assert done.code == 0
    assert [char for char in done.out if char != "\n" and not char.isprintable()] == []
    assert [json.loads(line) for line in answers(done)] == [
        {"id": number, "ok": True, "content": text} for number in (1, 2)
    ]
    assert "\\u009b31m" in done.out
    assert "\\u202eexe.txt" in done.out
    assert "\\u007f" in done.out
    assert "é 日" in done.out


IDS: Final = ["[1,\r2]", '[1,\t"é"]', '[1,\r"é"]', '{"a"\r:\r\t"\x7f\x9b"}', '"\u2028"', '\r\r"x"']


def test_an_id_that_would_break_the_line_comes_back_on_one(guest: Guest, root: Path) -> None:
    (root / "evil.txt").write_text("hello\n")
    done = guest.run(*STREAM, stdin="".join(f'{{"id": {each}, {REST}}}\n' for each in IDS))
    for name, line in zip(IDS, answers(done), strict=True):
        assert json.loads(line)["id"] == json.loads(name)
        assert [char for char in line if not char.isprintable()] == []


def test_json_that_a_worker_wrote_over_several_lines_is_one() -> None:
    line = json_line({"id": 1, "content": msgspec.Raw(b'[1,\n{"id":2,"ok":true}\n,\r"a b"\t]')})
    assert len(line.splitlines()) == 1
    assert json.loads(line) == {"id": 1, "content": [1, {"id": 2, "ok": True}, "a b"]}


NAMED: Final = [
    ('{"id": 7}', 7),
    ('{"id": "x", "tool": 1, "arguments": {}}', "x"),
    ('{"id": [1, {}], "tool": "read_file", "arguments": {}, "sudo": true}', [1, {}]),
    ('{"tool": "read_file", "arguments": {}}', None),
    ('{"id": 7', None),
    ("[7]", None),
]


def test_a_bad_line_with_an_id_that_can_be_read_gets_it_back(guest: Guest, root: Path) -> None:
    done = guest.run(*STREAM, stdin="".join(f"{line}\n" for line, _ in NAMED))
    assert (done.code, done.err) == (1, "")
    assert [line["id"] for line in done.lines] == [name for _, name in NAMED]
    assert {line["error"]["kind"] for line in done.lines} == {"invalid_arguments"}
