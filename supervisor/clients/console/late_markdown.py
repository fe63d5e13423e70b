"""The renderer of Markdown, imported in a thread: the prompt comes first, and rich takes a while."""

from collections.abc import Callable
from concurrent.futures import Future

from supervisor.clients.console.daemon_link import in_thread
from supervisor.clients.console.markdown_stream import MarkdownRenderer
from supervisor.display.themes import ToneTable


class LateMarkdown:
    """Has it as soon as it is imported; the first look, or `begin`, begins with that.

    Args:
        theme: says in which theme it renders, when it is made.
        colour: whether the terminal has any.
    """

    def __init__(self, theme: Callable[[], ToneTable], *, colour: bool) -> None:
        self._theme = theme
        self._colour = colour
        self._coming: Future[MarkdownRenderer] | None = None

    def begin(self) -> "Future[MarkdownRenderer]":
        """Return it, which is imported from now on unless it was."""

        def renderer() -> MarkdownRenderer:
            from supervisor.clients.console.markdown_display import RichMarkdown

            return RichMarkdown(colour=self._colour, theme=self._theme())

        self._coming = self._coming or in_thread(renderer)
        return self._coming

    def renderer(self) -> MarkdownRenderer:
        return self.begin().result()

    def forget(self) -> None:
        """Make another one when it is wanted next, as the theme is another."""
        self._coming = None
