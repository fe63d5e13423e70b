"""The sessions at the side: those that are open here, those that the daemon has open, and the newest others.

Rule: it shows what the daemon last said; looking at a session, or leaving it, changes nothing of what it does.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from supervisor.acp import extensions, schema
from supervisor.clients.console.status_bar import word_of
from supervisor.display.columns import cut

_SHOWN: Final = 60
"""Sessions that are listed."""
_NEW: Final = "new"


class SessionsList(OptionList):
    """The list."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("delete", "leave"), Binding("escape", "close")]

    class Picked(Message):
        """The person wants to look at a session; "" for a new one."""

        def __init__(self, session: str) -> None:
            super().__init__()
            self.session = session

    class Departed(Message):
        """The person wants to leave a session that is open here, or the list, "" for that."""

        def __init__(self, session: str) -> None:
            super().__init__()
            self.session = session

    def __init__(self) -> None:
        super().__init__(id="sessions", markup=False)

    def fill(
        self,
        looked_at: str,
        here: Mapping[str, str],
        status: Sequence[extensions.OpenSessionStatus],
        known: Sequence[schema.SessionInfo],
    ) -> None:
        """List sessions; the cursor stays on its own, wherever that stands now.

        Args:
            looked_at: the one that is looked at.
            here: those that are open here, with their titles.
            status: those that are open in the daemon.
            known: the newest ones.
        """
        states = {each.session_id: "asks" if each.waiting_for else word_of(each.state) for each in status}
        titles = {each.session_id: each.title or "" for each in known} | {
            each.session_id: each.title for each in status
        }
        titles |= {session: title for session, title in here.items() if title}
        order = dict.fromkeys([*here, *states, *(each.session_id for each in known if each.title)])
        options = [Option(Content("+ a new session"), id=_NEW)]
        for session in list(order)[:_SHOWN]:
            mark = ">" if session == looked_at else "*" if session in here else " "
            title = cut(titles.get(session) or "no line yet", 60)
            state = states.get(session, "")
            text = Content.assemble(f"{mark} ", (f"{state} ", "bold $warning" if state == "asks" else "bold"), title)
            options.append(Option(text, id=session))
        before, at = self.highlighted_option, self.highlighted or 0
        stays = (number for number, each in enumerate(options) if before is not None and each.id == before.id)
        self.clear_options()
        self.add_options(options)
        self.highlighted = next(stays, min(at, len(options) - 1))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Look at the session that was chosen."""
        event.stop()
        self.post_message(self.Picked("" if event.option_id == _NEW else event.option_id or ""))

    def action_leave(self) -> None:
        option = self.highlighted_option
        if option is not None and option.id != _NEW:
            self.post_message(self.Departed(option.id or ""))

    def action_close(self) -> None:
        self.post_message(self.Departed(""))
