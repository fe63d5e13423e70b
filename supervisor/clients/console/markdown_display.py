"""Markdown for a terminal, by rich; this is the only module that imports it, which takes 0.05 s.

Rule: whatever the text holds, no byte of it acts on the terminal: it is made visible before Markdown is read, and again
after, for Markdown can write a character as `&#27;`. Nothing of it is hidden either: HTML is text, a link shows where
it leads.
"""

import io
from collections.abc import Iterator
from typing import ClassVar, Final

from rich import markdown as rich_markdown
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from supervisor.display.escape import visible
from supervisor.display.themes import DARK, TONES, ToneTable

_WIDEST: Final = 110
"""Columns: longer lines are hard to read."""
_CODE_LIMIT: Final = 20_000
"""Characters of a code block above which it is not highlighted."""
_TONES: Final = {
    "markdown.code": "cyan",
    "markdown.code_block": "none",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.item.bullet": "cyan",
    "markdown.item.number": "cyan",
    "markdown.block_quote": "italic",
    "markdown.hr": "dim",
    "markdown.link": "underline",
    "markdown.link_url": "dim underline",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}


def _style_of(theme: ToneTable, tones: str) -> str:
    """Return what a piece of Markdown looks like in a theme, in rich's words."""
    words = [word for tone in tones.split() for word in (theme.words(tone) if tone in TONES else (tone,))]
    return " ".join(word.replace("-", "_") for word in words) or "none"


class _Heading(rich_markdown.Heading):
    """At the left, like everything else."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _CodeBlock(rich_markdown.CodeBlock):
    """Highlighted on the terminal's own background, not padded, so that it can be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        shown = Text(code)
        if len(code) <= _CODE_LIMIT and self.lexer_name != "text":
            shown = Syntax(code, self.lexer_name, theme=self.theme, background_color="default").highlight(code)
            shown.rstrip()
        shown.overflow, shown.no_wrap = "fold", False  # what is highlighted comes as not to be wrapped, and is cut
        for line in shown.wrap(console, max(8, options.max_width - 2), tab_size=4):
            yield Text("  ").append_text(line)


class _FoldedTable(rich_markdown.TableElement):
    """What is too long for its column goes on in the next row: an address is seen to its end."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                for column in table.columns:
                    column.overflow = "fold"
            yield table


class _TerminalMarkdown(rich_markdown.Markdown):
    elements: ClassVar[dict[str, type[rich_markdown.MarkdownElement]]] = {
        **rich_markdown.Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "table_open": _FoldedTable,
    }

    def __init__(self, text: str, code_theme: str = "ansi_dark") -> None:
        super().__init__(text, hyperlinks=False, code_theme=code_theme)
        for token in self.parsed:
            if token.type == "html_block":
                token.type, token.tag = "code_block", "code"
            for child in token.children or ():
                title = f' "{child.attrs["title"]}"' if child.attrs.get("title") else ""
                if child.type == "html_inline":
                    child.type = "text"
                elif child.type == "image":  # shown as it is written: a picture's address says what its words may not
                    child.type, child.tag, child.children = "text", "", None
                    child.content = f"![{child.content}]({child.attrs.get('src', '')}{title})"
                elif title:
                    child.attrs["href"] = f"{child.attrs.get('href', '')}{title}"


class RichMarkdown:
    """Renders for a terminal, with colours or without."""

    def __init__(self, *, colour: bool, theme: ToneTable = DARK) -> None:
        self._colour = colour and theme.name != "none"
        self._theme = Theme({name: _style_of(theme, tones) for name, tones in _TONES.items()})
        self._code = "ansi_light" if theme.light else "ansi_dark"

    def starts(self, text: str) -> list[int]:
        lines = visible(text, prose=True).split("\n")
        starts = []
        covered = 0
        for token in _TerminalMarkdown("\n".join(lines)).parsed:
            if token.level or token.nesting < 0 or token.map is None:
                continue
            first, end = token.map
            starts += [number for number in range(covered, first) if lines[number].strip()][:1]  # link definitions
            starts.append(first)
            covered = end
        starts += [number for number in range(covered, len(lines)) if lines[number].strip()][:1]
        return starts or [0]

    def terminal_text(self, block: str, width: int) -> str:
        text = visible(block, prose=True)
        if not text.strip():
            return ""
        columns = max(8, min(width, _WIDEST))
        file = io.StringIO()
        console = Console(
            file=file,
            width=columns,
            force_terminal=True,
            force_interactive=False,
            color_system="standard",
            no_color=not self._colour,
            theme=self._theme,
            highlight=False,
            emoji=False,
            legacy_windows=False,
            _environ={},
        )
        parsed = _TerminalMarkdown(text, self._code)
        lines = list(Segment.split_lines(console.render(parsed if parsed.parsed else Text(text.strip("\n")))))
        plain = ["".join(segment.text for segment in line).strip() for line in lines]
        while lines and not plain[-1]:
            lines.pop()
            plain.pop()
        first = next((number for number, line in enumerate(plain) if line), 0)
        for line in lines[first:]:
            console.print(*_stripped(line), sep="", end="\n", soft_wrap=True)
        return file.getvalue().rstrip("\n")


def _stripped(line: list[Segment]) -> Iterator[Text]:
    """Yield a line's pieces, visible, without the blanks that it was padded with."""
    texts = [(visible(segment.text, prose=True), segment.style) for segment in line if not segment.control]
    while texts and not texts[-1][0].strip() and not (texts[-1][1] and texts[-1][1].bgcolor):
        texts.pop()
    for number, (text, style) in enumerate(texts):
        yield Text(text.rstrip(" ") if number == len(texts) - 1 else text, style=style or "")
