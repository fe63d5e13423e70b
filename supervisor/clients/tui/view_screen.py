"""The screen as a session and its keys know it: the console's protocols, on the full screen.

Rule: nothing is decided here; each call goes on to the view, its history, or what is above all views.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from textual.app import App, SuspendNotSupported

from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.console.approval_queue import ApprovalQueue
from supervisor.clients.console.attention import Attention
from supervisor.clients.console.choice_list import Choice, ChoiceList
from supervisor.clients.console.external_editor import editor_of, opened
from supervisor.clients.console.key_actions import KeyActions
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.shown import Item, ShownProposal
from supervisor.clients.tui.history_view import HistoryView
from supervisor.clients.tui.pick_screen import PickScreen
from supervisor.display.themes import ToneTable
from supervisor.errors import ConfigError


class Above(Protocol):
    """What has the sessions."""

    attention: Attention

    def left(self, view: "ViewedSession") -> None:
        """Take note that the person leaves a session."""

    def is_looked_at(self, view: "ViewedSession") -> bool:
        """Return whether a session is the one that is looked at."""

    def changed(self, view: "ViewedSession") -> None:
        """Take note that a session has changed."""

    @property
    def theme(self) -> str:
        """The name of the theme."""

    def take_theme(self, name: str) -> None:
        """Use another theme.

        Raises:
            ConfigError: there is none of that name here.
        """

    def copy(self, text: str) -> str:
        """Put a text into the clipboard; return why that may not take it.

        Raises:
            ConfigError: there is none, or it takes not so much.
        """


class ViewedSession(Protocol):
    """The view of a session."""

    above: Above
    history: HistoryView
    controller: SessionController
    approvals: ApprovalQueue
    actions: KeyActions
    mode: str

    @property
    def app(self) -> App[Any]:
        """Textual's."""

    @property
    def is_attached(self) -> bool:
        """Whether it is still there."""

    def is_shown(self) -> bool:
        """Return whether it is looked at."""

    def appeared(self) -> None:
        """Take note that it is looked at from now on."""

    def propose(self, page: Item) -> None:
        """Show a page of what a question is about."""

    def draw(self) -> None:
        """Draw it again, soon."""


class ViewScreen:
    """What the session shows, and its keys change, on the view of it."""

    def __init__(self, view: ViewedSession) -> None:
        self._view = view

    def mode(self) -> str:
        return self._view.mode

    def show(self, item: Item) -> None:
        if isinstance(item, ShownProposal):
            self._view.propose(item)
        else:
            self._view.history.add(item)

    def draw(self) -> None:
        self._view.draw()

    def is_open(self) -> bool:
        return self._view.is_attached

    def exit(self) -> None:
        self._view.above.left(self._view)

    # --- the window, which all sessions have in common ------------------------------------------------------------

    def focus(self, *, has: bool) -> None:
        self._view.above.attention.focus(has=has)

    def title(self, text: str) -> None:
        """Say what goes on in the session that is looked at."""
        if self._view.is_shown():
            self._view.above.attention.title(text)
        self._view.above.changed(self._view)

    def call(self, text: str) -> None:
        self._view.above.attention.call(text)

    # --- the session ----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        self._view.actions.refresh()

    def request_approval(self, question: PermissionPrompt) -> None:
        self._view.actions.request_approval(question)

    def withdraw_approval(self, question: PermissionPrompt | None) -> None:
        self._view.approvals.withdraw_approval(question)

    def turn_ended(self, *, ok: bool) -> None:
        self._view.actions.turn_ended(ok=ok)

    def drop_unfinished(self) -> int:
        """Forget what there is of the answer; none of it is on the screen for good."""
        self._view.history.drop_unfinished()
        return 0

    def clear(self) -> None:
        self._view.history.empty()

    def width(self) -> int:
        return max(20, self._view.history.size.width - 2)

    # --- what the person has besides ------------------------------------------------------------------------------

    picks = True

    @property
    def theme_name(self) -> str:
        return self._view.above.theme

    def take_theme(self, theme: ToneTable) -> None:
        self._view.above.take_theme(theme.name)

    def copy(self, text: str) -> str:
        return self._view.above.copy(text)

    async def open_file(self, path: Path) -> None:
        """Let the person's own editor have a file; everything else waits until it has ended."""
        try:
            command = editor_of(self._view.controller.settings)
            with self._view.app.suspend():
                opened(path, command)
        except SuspendNotSupported as error:
            raise ConfigError("This terminal cannot be given to an editor.") from error
        finally:
            self._view.approvals.read_anew()

    async def pick(self, title: str, choices: Sequence[Choice], current: str) -> str | None:
        taken: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._view.app.push_screen(PickScreen(title, ChoiceList(choices, current)), taken.set_result)
        try:
            return await taken
        finally:
            self._view.appeared()
