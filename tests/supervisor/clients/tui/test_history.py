"""The history of the full screen: which rows are where, and that only what is looked at is drawn."""

import asyncio

import pytest
from textual import events
from textual.app import App, ComposeResult

from supervisor.clients.console.markdown_display import RichMarkdown
from supervisor.clients.console.shown import AnswerEnds, Said, ShownCall, ShownPrompt
from supervisor.clients.tui.history_blocks import AnswerBlock, ItemBlock, plain_row
from supervisor.clients.tui.history_rows import _KEPT
from supervisor.clients.tui.history_view import HistoryView
from supervisor.clients.tui.key_driver import KeyParser
from supervisor.clients.tui.middle_layout import ScreenSpace, divided
from supervisor.clients.tui.row_index import RowIndex
from supervisor.display.escape import visible

MARKDOWN = RichMarkdown(colour=True)


class History(App[None]):
    """A history and nothing else."""

    CSS = "HistoryView { overflow-y: scroll; }"

    def __init__(self) -> None:
        super().__init__()
        self.history = HistoryView(lambda: MARKDOWN)

    def compose(self) -> ComposeResult:
        yield self.history


def seen(history: HistoryView) -> str:
    """Return what is looked at."""
    return "\n".join(history.render_line(row).text.rstrip() for row in range(history.size.height))


def test_rows_are_found_also_after_heights_have_changed() -> None:
    index = RowIndex()
    for height in (2, 0, 3, 1):
        index.append(height)
    assert [index.at(row) for row in range(7)] == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1)]
    index.resize(1, 2)
    assert (index.total, index.start(2), index.at(3)) == (8, 4, (1, 1))
    index.pop()
    assert (index.total, len(index)) == (7, 3)


def test_an_answer_looks_the_same_however_it_comes_in_pieces() -> None:
    text = "# Title\n\nSome *words*, and `code`.\n\n```python\nx = 1\n```\n\n1. one\n2. two\n"
    whole, pieces = AnswerBlock(lambda: MARKDOWN), AnswerBlock(lambda: MARKDOWN)
    whole.feed(text)
    whole.end()
    for number, letter in enumerate(text):
        pieces.feed(letter)
        pieces.rows(40 if number % 3 else 30)
    pieces.end()
    assert [plain_row(row) for row in pieces.rows(40)] == [plain_row(row) for row in whole.rows(40)]


def test_a_row_is_never_wider_than_the_screen_and_nothing_of_it_is_hidden() -> None:
    text = visible("漢字 \t tab \u202e bidi \x1b[31m " + "👩‍👩‍👧" * 9 + " end")
    block = ItemBlock(ShownPrompt(text))
    for columns in (7, 20, 60):
        rows = [plain_row(row) for row in block.rows(columns)]
        assert max(sum(segment.cell_length for segment in row) for row in block.rows(columns)) <= columns
        assert "".join("".join(rows).split()) == ">" + "".join(text.split())


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_the_middle_leaves_rows_to_the_history(columns: int) -> None:
    for rows in (19, 23, 39, 59):
        for box in (1, 5, 100):
            layout = divided(ScreenSpace(columns, rows), box)
            height = layout.page.rows if layout.beside else layout.page.rows + min(layout.box.rows, box + 2)
            assert height <= rows - 7
            assert (layout.box.columns + layout.page.columns == columns) is layout.beside is (columns >= 110)


def test_alt_enter_is_another_key_than_enter() -> None:
    parser = KeyParser()
    pressed = parser.feed("y\x1b\r\r\x1bs\n")
    keys = [event.key for event in pressed if isinstance(event, events.Key)]
    assert keys == ["y", "alt+enter", "enter", "alt+s", "ctrl+j"]


def test_the_scrollbar_stands_where_is_looked_at_also_when_that_moves_while_it_is_drawn() -> None:
    async def story() -> None:
        app = History()
        async with app.run_test(size=(80, 24)):
            history = app.history
            for number in range(30):
                history.add(Said(f"Answer {number}. " + "word " * 40))
                history.add(AnswerEnds())
            history._settle()
            history.scroll_y = asked = history.max_scroll_y // 2
            assert history.scroll_y != asked  # the block there is higher than was guessed
            assert history.vertical_scrollbar.position == history.scroll_y

    asyncio.run(story())


def test_five_thousand_turns_are_drawn_where_they_are_looked_at() -> None:
    async def story() -> None:
        app = History()
        async with app.run_test(size=(80, 24)):
            history = app.history
            for number in range(5000):
                history.add(ShownPrompt(f"question {number}"))
                call = ShownCall(f"c{number}", number, "run_cmd", "run_cmd", status="completed", output="x\n" * 50)
                history.add(call)
                history.add(Said(f"Answer *{number}*.\n\n- a\n- b\n"))
                history.add(AnswerEnds())
            assert history.search("answer *1717*")
            assert "Answer 1717." in seen(history)
            for number in range(90):
                history._look_at(number * 700)
            history.action_last()
            history.add(Said("the last word"))
            history._settle()
            assert seen(history).endswith("the last word")
            assert history.search("question 1717")
            assert "Answer 1717." in seen(history)
            drawn = sum(bool(block._rows) for block in history._blocks)
            assert 0 < drawn <= _KEPT

    asyncio.run(story())
