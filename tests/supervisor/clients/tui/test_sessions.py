"""The full screen with a real daemon: a command from the question to its output, and one session beside another."""

import asyncio
import json
from pathlib import Path

from textual.app import App, ComposeResult

from supervisor.acp import schema
from supervisor.clients.tui.sessions_list import SessionsList
from supervisor.config.config_keys import Config
from supervisor.config.settings import Settings
from tests.daemon_process import DaemonProcess
from tests.supervisor.clients.tui.played_screen import play, shown

REPLIES = [
    {"calls": [{"tool": "run_cmd", "arguments": {"command": "echo so far; echo hi > made.txt"}}]},
    {"text": "It is **made**."},
]


def test_a_command_is_run_while_another_session_is_looked_at(home: Path, root: Path, quick: None) -> None:
    script = root.parent / "script.jsonl"
    script.write_text("\n".join(map(json.dumps, REPLIES)))
    settings = Settings(Config(), home / "config.toml", home)

    async def story() -> None:
        options = {"profile": "operator", "root": str(root), "model": f"scripted:{script}"}
        async with shown(settings, 120, 40, **options) as screen:
            await screen.press(*"make", "enter")
            await screen.until("Enter runs it")
            await screen.ready()
            await screen.press("enter")
            await screen.until("Enter applies 1 change")
            first = screen.view
            await screen.press("f2")
            await screen.until("> asks make")
            await screen.press("home", "enter")  # a new session
            await screen.until(lambda _: screen.view is not first and "Ready" in screen.text)
            await screen.press("y")  # goes to its line, and to no question of the other's
            await screen.press("space", "@", "a")
            await screen.until("a.txt")
            await screen.press("tab")
            await screen.until(lambda _: screen.view.prompt.text == "y @a.txt ")
            assert not (root / "made.txt").exists()
            await screen.app.look_at(first.controller.session)
            await screen.until(lambda _: screen.app.focused is screen.view.keyboard)
            await screen.ready()
            await screen.press("y")
            await screen.until("It is made.")
            assert (root / "made.txt").read_text() == "hi\n"
            await screen.press("f3")
            await screen.until("Workers (")

    with DaemonProcess(home, root.parent):
        play(story)


class Sessions(App[None]):
    """The list and nothing else."""

    def compose(self) -> ComposeResult:
        yield SessionsList()


def test_the_cursor_stays_on_its_session_when_another_comes_above_it() -> None:
    async def story() -> None:
        app = Sessions()
        async with app.run_test():
            sessions = app.query_one(SessionsList)
            sessions.fill("one", {"one": "first"}, [], [schema.SessionInfo("two", "/", title="second")])
            sessions.highlighted = 2
            sessions.fill(
                "three", {"one": "first", "three": "third"}, [], [schema.SessionInfo("two", "/", title="second")]
            )
            assert sessions.highlighted_option is not None
            assert sessions.highlighted_option.id == "two"

    asyncio.run(story())
