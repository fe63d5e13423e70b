from collections.abc import Callable

from workers.url import parse
from workers.web.kept_texts import BYTES, TEXTS, KeptTexts


class Converter:
    """Makes of each body another text, and counts."""

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self.done = 0
        self.kept = KeptTexts()

    def text_of(self, data: bytes, kind: str = "text/html", url: str = "https://github.com/x") -> str:
        return self.kept.text_of(data, kind, parse(url), self._work(data))[0]

    def _work(self, data: bytes) -> Callable[[], tuple[str, str]]:
        def convert() -> tuple[str, str]:
            self.done += 1
            return data.decode() * self.size, ""

        return convert


def test_a_page_that_is_read_on_is_converted_once() -> None:
    converter = Converter()
    assert [converter.text_of(b"a") for _ in range(5)] == ["a"] * 5
    assert converter.done == 1


def test_another_body_type_or_address_is_converted_by_itself() -> None:
    converter = Converter()
    converter.text_of(b"a")
    assert converter.text_of(b"b") == "b"
    converter.text_of(b"a", "text/html; charset=latin1")
    converter.text_of(b"a", url="https://github.com/y")
    assert converter.done == 4


def test_only_so_many_texts_are_kept_those_that_were_wanted_last() -> None:
    converter = Converter()
    for number in range(TEXTS):
        converter.text_of(b"%d" % number)
    converter.text_of(b"0")
    converter.text_of(b"more")
    converter.text_of(b"0")
    assert converter.done == TEXTS + 1
    converter.text_of(b"1")
    assert converter.done == TEXTS + 2


def test_no_more_bytes_are_kept_than_the_limit() -> None:
    converter = Converter(size=BYTES // 2)
    for data in (b"a", b"b", b"b", b"a"):
        converter.text_of(data)
    assert converter.done == 3
    huge = Converter(size=BYTES)
    huge.text_of(b"a")
    assert len(huge.text_of(b"a")) == BYTES
    assert huge.done == 2
