"""`@PATH` in the console's line: found while it is typed, and sent along."""

from pathlib import Path
from typing import Any, Final

from supervisor.acp import extensions
from supervisor.clients.connection.root_files import meant, paths_in, told
from supervisor.clients.console.choice_list import Choice, ChoiceList
from supervisor.clients.console.file_finder import typed_path, written
from supervisor.display.columns import width
from supervisor.display.fragments import plain
from tests.supervisor.clients.console.fake_daemon import FakeDaemon
from tests.supervisor.clients.console.terminals import ENTER, ESCAPE, Terminal

BEGUN: Final[dict[str, str | None]] = {
    "@": "",
    "look at @src/te": "src/te",
    'and @"two wo': "two wo",
    "(@a": None,
    "me@host": None,
    "@a b": None,
    '@"a b"': None,
    "one\n@é": "é",
    "/undo @a": None,
    "!cat @a": None,
}

WRITTEN: Final = {
    "a.txt": "@a.txt",
    "Über uns.md": '@"Über uns.md"',
    'say"hi': '@say"hi',
    'say "hi"': "",
    '"quoted': "",
    "two\nlines": "",
    "bidi\u202e": "",
}


def test_a_path_is_begun_where_a_word_begins_with_an_at_sign() -> None:
    assert {before: typed_path(before) for before in BEGUN} == BEGUN


def test_a_path_is_written_as_the_line_reads_it() -> None:
    assert {path: written(path) for path in WRITTEN} == WRITTEN
    for path, word in WRITTEN.items():
        if word:
            assert path in paths_in(f"see {word} now", "/root", ())[0]


def test_words_mean_the_files_that_are_there() -> None:
    words = paths_in('@a.txt, @/root/b.md @/etc/x @"a.txt" @me @~/i.png', "/root", {str(Path.home() / "i.png")})
    assert words == [("a.txt,", "a.txt"), ("b.md", "b.md"), ("etc/x", "etc/x"), ("a.txt",), ("me", "me")]
    files = [file(path, size=1200) for path in ("b.md", "a.txt")] + [file("c", problem="it is not text")]
    assert [each.path for each in meant([*words, ("c",)], files)] == ["a.txt", "b.md", "c"]
    assert told(files) == ["c does not go along: it is not text.", "With it goes b.md (1.2 kB), a.txt (1.2 kB)."]
    assert told([]) == []


def file(path: str, **more: Any) -> extensions.AttachedFile:
    return extensions.AttachedFile(path, f"file:///root/{path}", **more)


def test_a_list_shows_the_rows_around_the_chosen_one() -> None:
    choices = ChoiceList([Choice(str(n), f"row {n}", "漢" * 40) for n in range(9)])
    assert (choices.chosen, choices.best) == (None, Choice("0", "row 0", "漢" * 40))
    choices.move(-1)
    for columns in range(8, 100, 7):
        lines = choices.lines(columns, 3)
        assert [plain(line).strip().startswith(("> row 8", "row")) for line in lines] == [True] * 3
        assert all(width(plain(line)) <= columns for line in lines)
    choices.move(1)
    assert choices.best == Choice("0", "row 0", "漢" * 40)
    choices.narrow("漢漢 W 7")
    assert [plain(line)[:7] for line in choices.lines(20, 3)] == ["> row 7"]
    choices.narrow("nothing")
    assert plain(choices.lines(20, 3)[0]) == "  nothing fits"
    choices.move(1)
    assert choices.best is None


def test_what_is_typed_finds_files_and_what_is_named_goes_along(ready: Terminal, daemon: FakeDaemon) -> None:
    daemon.files = {
        "src/deep/note.md": file("src/deep/note.md", size=6, text="hello\n"),
        "two words.md": file("two words.md", size=3, text="abc"),
        "two more.md": file("two more.md"),
        "data.bin": file("data.bin", problem="it is not text"),
    }
    ready.type("see @no", "note.md  src/deep")
    ready.type("\t", "> see @src/deep/note.md")
    ready.type("and @two", "two words.md")
    asked = daemon.seen.count(extensions.FIND_METHOD)
    for shown in ("two words.md", "two more.md", "two words.md"):
        ready.type("\x1b[B", f"> {shown}")
    assert daemon.seen.count(extensions.FIND_METHOD) == asked, "an arrow is no letter"
    ready.type(ENTER, 'note.md and @"two words.md"')
    ready.type("@data.bin", "\n  data.bin")
    ready.type(ENTER, "data.bin does not go along: it is not text.")
    assert daemon.prompt() == 'see @src/deep/note.md and @"two words.md" @data.bin'
    text, note, words = daemon.blocks
    assert (text["type"], note["resource"]["text"], words["resource"]["uri"]) == (
        "text",
        "hello\n",
        "file:///root/two words.md",
    )
    assert "With it goes src/deep/note.md (6 B), two words.md (3 B)." in " ".join(ready.text.split())
    daemon.reply("Fine.")


def test_escape_closes_the_files_and_without_a_search_one_directory_is_read(
    ready: Terminal, daemon: FakeDaemon, root: Path
) -> None:
    (root / ".hidden").mkdir()
    (root / ".hidden" / "x y.md").touch()
    ready.type("@a", "  a.txt")
    ready.type(ESCAPE, lambda screen: "  a.txt" not in screen and "> @a" in screen)
    ready.type("\x7f.h", "  .hidden/")
    ready.type("\t", "  x y.md")
    ready.type("\x1b[A" + ENTER, '> @".hidden/x y.md"')
    ready.type(ENTER)
    assert daemon.prompt() == '@".hidden/x y.md" '
