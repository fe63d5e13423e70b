"""Links in what the console shows: whole addresses and files that are there, and nothing that a tool has printed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp.extensions import ChangedName
from supervisor.clients.console.links import Links, takes_links
from supervisor.clients.console.markdown_display import RichMarkdown
from supervisor.clients.console.scrollback import Scrollback
from supervisor.clients.console.shown import AnswerEnds, Document, Said, ShownCall

_LINK: Final = re.compile("\x1b]8;;([^\x1b]+)\x1b\\\\(.*?)\x1b]8;;\x1b\\\\", re.DOTALL)
_CODES: Final = re.compile("\x1b\\[[0-9;]*m")
CORPUS: Final = Path(__file__).parents[3] / "corpus"


def scrollback(root: Path, columns: int = 60) -> Scrollback:
    return Scrollback(lambda: RichMarkdown(colour=True), lambda: columns, colour=True, links=Links(lambda: str(root)))


def answered(root: Path, *pieces: str, columns: int = 60) -> list[tuple[str, str]]:
    """Return target and text of each link in an answer, of which nothing else acts on the terminal."""
    shown = scrollback(root, columns)
    for piece in pieces:
        shown.show(Said(piece))
        shown.advance()
    shown.show(AnswerEnds())
    out = shown.take()
    assert "\x1b" not in _CODES.sub("", _LINK.sub("", out))
    return _LINK.findall(out)


ANSWERS: Final[dict[str, list[str]]] = {
    "See https://a.example/b?c=d#e, or (http://b.example/).": ["https://a.example/b?c=d#e", "http://b.example/"],
    "[here](https://a.example/x) and **https://b.example**": ["https://a.example/x", "https://b.example"],
    "file:///etc/passwd javascript:alert(1) ftp://a.example data:text/html,x": [],
    "https://a.example/\u202egnp.exe \x1b]8;;https://evil.example\x1b\\good\x1b]8;;\x1b\\": [],
    "https://a.example/\x07x": [],
    "https://a.example/ä https://b.example/%C3%A4": ["https://b.example/%C3%A4"],
    "| a |\n|---|\n| https://a.example/" + "x" * 90 + " |": [],
    "https://" + "a" * 90: [],
}


@pytest.mark.parametrize("text", ANSWERS)
def test_whole_addresses_in_answers_are_links_to_themselves(text: str, root: Path) -> None:
    found = answered(root, text[:9], text[9:])
    assert [target for target, _ in found] == ANSWERS[text]
    assert all(target == shown for target, shown in found)


def strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from strings(each)


def test_hostile_texts_become_no_other_links(root: Path) -> None:
    for file in ("urls.json", "more_urls.json"):
        texts = [text for text in strings(json.loads((CORPUS / file).read_text())) if len(text) < 500]
        for target, shown in answered(root, *(f"{text}\n\n" for text in texts), columns=100):
            assert target == shown
            assert re.fullmatch(r"https?://[!-~]+", target)


def test_a_file_above_its_difference_is_a_link_where_it_is_there(root: Path, tmp_path: Path) -> None:
    (root / "two words.md").touch()
    (root / "out").symlink_to(tmp_path)
    paths = ["a.txt", "two words.md", "gone.txt", "out/secret", "../secret", "/etc/passwd", "a\x1b]8;;x\x1b\\b", "\0"]
    (tmp_path / "secret").touch()
    changes = [ChangedName(path, "modified", diff="-a\n+https://a.example\n") for path in paths]
    call = ShownCall("1", 1, "t", "edit_file", status="completed", output="https://b.example", differences=changes)
    expected = [((root / "a.txt").as_uri(), "a.txt"), ((root / "two words.md").as_uri(), "two words.md")]
    for item in (call, Document("https://c.example", changes)):
        shown = scrollback(root, 100)
        shown.show(item)
        assert _LINK.findall(shown.take()) == expected


def test_only_terminals_that_are_known_to_take_links_get_them() -> None:
    kitty, tmux = {"TERM": "xterm-kitty"}, {"TERM": "tmux-256color", "VTE_VERSION": "7600"}
    rows = [
        (kitty, "auto", True),
        (tmux, "auto", False),
        (tmux, "always", True),
        (kitty, "never", False),
        ({"TERM": "xterm-256color"}, "auto", False),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, "auto", True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4900"}, "auto", False),
        ({}, "auto", False),
    ]
    assert [takes_links(variables, wanted) for variables, wanted, _ in rows] == [takes for *_, takes in rows]  # type: ignore[arg-type]
