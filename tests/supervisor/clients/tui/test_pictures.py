"""Pictures of the full screen, as SVG, compared with those that somebody has looked at.

One that shall change is deleted: the next run draws it again, and fails once.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from supervisor.acp import extensions
from tests.supervisor.clients.console.fake_daemon import FakeDaemon, called, ended
from tests.supervisor.clients.tui.played_screen import PlayedScreen, play, shown

PICTURES: Final = Path(__file__).with_name("pictures")
COMMAND: Final = '{"command": "sed -i s/one/two/ plan.md && rm -r build"}'
EFFECTS: Final = extensions.ProposedEffects(
    [
        extensions.ChangedName("plan.md", "modified", diff="@@ -1,2 +1,2 @@\n-one line\n+two line\n rest\n"),
        extensions.ChangedName("build/a.o", "deleted"),
    ],
    {"modified": 1, "deleted": 1},
)


async def question(screen: PlayedScreen, daemon: FakeDaemon) -> None:
    daemon.say("I will **mend** the plan:\n\n- first the line\n- then `build`\n")
    daemon.ask("run_cmd", COMMAND, stage="effects", effects=EFFECTS)
    await screen.until("I will mend")
    await screen.ready()
    await screen.until("Esc rejects")


async def answer(screen: PlayedScreen, daemon: FakeDaemon) -> None:
    output = "\n".join(f"{number} bottles" for number in range(40))
    daemon.tell(called(1, "run_cmd", COMMAND, "execute"), ended(1, "run_cmd", output), called(2, "read_file", "{}"))
    daemon.tell(ended(2, "read_file", "no such file", "not_found"))
    daemon.reply("# Result\n\nIt is `done`:\n\n| file | lines |\n|---|---|\n| plan.md | 2 |\n", "turn-1-step-1")
    await screen.until(lambda text: "plan.md │" in text or "plan.md" in text)
    await screen.until("Enter send")


STORIES: Final[dict[str, tuple[int, int, str, Callable[[PlayedScreen, FakeDaemon], Awaitable[None]]]]] = {
    "question-120x30-dark": (120, 30, "dark", question),
    "question-60x20-contrast": (60, 20, "high-contrast", question),
    "answer-80x24-light": (80, 24, "light", answer),
}


@pytest.mark.parametrize("name", STORIES)
def test_the_screen_looks_as_it_did(name: str, daemon: FakeDaemon, quick: None) -> None:
    columns, rows, theme, tell = STORIES[name]
    daemon.facts = msgspec.structs.replace(daemon.facts, root="/srv/notes")

    async def story() -> str:
        async with shown(daemon.settings, columns, rows, theme) as screen:
            screen.view.history.empty()  # the version
            await screen.press(*"mend", "enter")
            await screen.told(daemon.prompt)
            await tell(screen, daemon)
            screen.view.status._begun, screen.view.status._took = None, 0.0  # the seconds
            screen.view._draw()
            await screen.at_rest()
            return screen.app.export_screenshot(title="Strongroom")

    drawn: list[Any] = []

    async def draw() -> None:
        drawn.append(await story())

    play(draw)
    kept = PICTURES / f"{name}.svg"
    if not kept.exists():
        kept.write_text(drawn[0], "utf-8")
        pytest.fail(f"{kept} is new: look at it")
    assert drawn[0] == kept.read_text("utf-8")
