"""The line in which the person writes what they search for in the history."""

from textual import events
from textual.message import Message
from textual.widgets import Input


class SearchLine(Input):
    """The line: each change searches anew, from the end; Enter or Up goes on upwards, Down downwards."""

    class Sought(Message):
        """A text to be found; `step`: 0 anew, -1 further up, 1 further down."""

        def __init__(self, text: str, step: int) -> None:
            super().__init__()
            self.text = text
            self.step = step

    class Ended(Message):
        """The person searches no more."""

    def __init__(self) -> None:
        super().__init__(id="search", compact=True, placeholder="find in the history; Enter finds more, Escape ends")

    async def _on_key(self, event: events.Key) -> None:
        steps = {"enter": -1, "up": -1, "down": 1}
        if event.key in steps:
            self.post_message(self.Sought(self.value, steps[event.key]))
        elif event.key == "escape":
            self.post_message(self.Ended())
        else:
            return
        event.stop()
        event.prevent_default()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Sought(event.value, 0))
