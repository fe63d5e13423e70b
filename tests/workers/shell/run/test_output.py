"""The output of a command as it is kept and shown, tested without a command."""

import pytest

from workers.shell.run.output import SHOWN_AT_ONCE, SHOWN_EVERY, KeptOutput, Shown


def kept(*parts: bytes, head: int = 10, tail: int = 10) -> str:
    keeper = KeptOutput(head, tail)
    for part in parts:
        keeper.add(part)
    return keeper.text()


@pytest.mark.parametrize("parts", [[b""], [b"short"], [b"0123456789abcdefghij"], [b"01234", b"56789abcde", b"fghij"]])
def test_output_that_fits_is_kept_whole(parts: list[bytes]) -> None:
    assert kept(*parts) == b"".join(parts).decode()


@pytest.mark.parametrize("step", [1, 3, 7, 1000])
def test_of_more_the_beginning_and_the_end_are_kept(step: int) -> None:
    data = b"0123456789" + b"x" * 100 + b"abcdefghij"
    parts = [data[at : at + step] for at in range(0, len(data), step)]
    assert kept(*parts) == "0123456789\n[... 100 bytes left out ...]\nabcdefghij"


ODD = [
    ("a cut character is left out", ["äöüäöü€".encode()], 3, 4, "ä\n[... 9 bytes left out ...]\n€"),
    ("one that lies on the border is whole", [b"123456789\xc3", b"\xa4"], 10, 10, "123456789ä"),
    ("what is no text is replaced", [b"\xff\xfe\x00A"], 10, 10, "\ufffd\ufffd\x00A"),
]


@pytest.mark.parametrize(("parts", "head", "tail", "text"), [row[1:] for row in ODD], ids=[row[0] for row in ODD])
def test_characters_are_kept(parts: list[bytes], head: int, tail: int, text: str) -> None:
    assert kept(*parts, head=head, tail=tail) == text


def test_bytes_that_only_go_on_do_not_take_the_end_away() -> None:
    assert kept(b"\x80" * 100).endswith("\ufffd" * 10)


class Screen:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.shown = Shown(self.parts.append)


@pytest.fixture
def screen() -> Screen:
    return Screen()


def test_the_first_output_is_shown_at_once_and_the_next_when_it_is_due(screen: Screen) -> None:
    for at, data in enumerate((b"a", b"b", b"c")):
        screen.shown.add(0, data, 5.0 + at * SHOWN_EVERY / 10)
        assert screen.parts == ["a"]
    assert screen.shown.due(5.0) == pytest.approx(SHOWN_EVERY)
    screen.shown.flush(5.0 + SHOWN_EVERY)
    assert screen.parts == ["a", "bc"]


def test_nothing_is_due_where_nothing_waits(screen: Screen) -> None:
    assert screen.shown.due(1.0) == float("inf")
    screen.shown.flush(1.0)
    assert screen.parts == []


def test_a_flood_is_cut_and_it_is_said(screen: Screen) -> None:
    screen.shown.add(0, b"a", 5.0)
    for _ in range(100):
        screen.shown.add(0, b"x" * SHOWN_AT_ONCE, 5.0)
    screen.shown.flush(6.0)
    assert len(screen.parts[1]) < SHOWN_AT_ONCE + 100
    assert f"{99 * SHOWN_AT_ONCE} characters not shown" in screen.parts[1]


def test_both_streams_have_characters_of_their_own(screen: Screen) -> None:
    screen.shown.add(0, b"\xc3", 1.0)
    screen.shown.add(1, b"\xc3", 2.0)
    screen.shown.add(0, b"\xa4", 3.0)
    screen.shown.add(1, b"\xb6", 4.0)
    assert screen.parts == ["ä", "ö"]
