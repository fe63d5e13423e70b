"""The full screen, by its keys: what stands on it, what keys do, and which of them count."""

import asyncio
import dataclasses
import math
import time
from typing import Any, Final

import pytest

from supervisor.acp import extensions, schema
from supervisor.clients.console.answer_guard import BURST_S
from supervisor.clients.tui.text_screen import TextScreen
from tests.supervisor.clients.console.fake_daemon import FakeDaemon, called, ended, heard, said
from tests.supervisor.clients.console.typist import LONG, PLAIN, PROTECTED
from tests.supervisor.clients.tui.played_screen import PlayedScreen, played, shown

COMMAND: Final = '{"command": "rm -r build"}'


async def begun(screen: PlayedScreen, daemon: FakeDaemon) -> None:
    """Begin a turn that the test plays."""
    await screen.press("g", "o", "enter")
    assert await screen.told(daemon.prompt) == "go"


@played
async def test_a_line_is_sent_and_its_answer_is_markdown_that_grows(daemon: FakeDaemon) -> None:
    async with shown(daemon.settings) as screen:
        await screen.press("enter")  # an empty line is none
        await begun(screen, daemon)
        await screen.until("> go")
        daemon.say("# Title\n\nSome **bold** te")
        await screen.until("Some bold te")
        daemon.tell(called(1, "run_cmd", COMMAND, "execute"), ended(1, "run_cmd", "removed"))
        daemon.reply("Done.", "turn-1-step-1")
        text = await screen.until(lambda text: "Done." in text and "Ready" in text)
        assert "# Title" not in text
        assert text.index("> go") < text.index("Title") < text.index("· run_cmd") < text.index("removed")


@played
async def test_a_command_stands_in_a_green_box_with_its_effects_beside_or_beneath_it(
    daemon: FakeDaemon, quick: None
) -> None:
    async with shown(daemon.settings, 120, 40) as screen:
        await begun(screen, daemon)
        daemon.ask("run_cmd", COMMAND, stage="effects", effects=PLAIN)
        await screen.until("-a")
        box = screen.view.query_one("#box")
        assert box.styles.border_top[1].g > max(box.styles.border_top[1].r, box.styles.border_top[1].b)
        page = screen.view.query_one("#page")
        await screen.until(lambda _: page.region.x >= box.region.right)
        await screen.pilot.resize_terminal(60, 20)
        await screen.until(lambda _: page.region.y >= box.region.bottom)
        assert screen.view.history.size.height >= 3
        await screen.until("lines 1 to")
        await screen.ready()
        await screen.press("enter")  # is no yes where not all of it was shown
        await screen.until("Enter alone is no yes")
        await screen.ready()
        await screen.press("y")
        assert (await screen.told(daemon.answered))["option"] == "allow_once"


@played
async def test_keys_before_a_question_can_be_read_answer_nothing(daemon: FakeDaemon) -> None:
    """With a person's own times: Enter each 20 ms, before, at and after the moment when the box appears."""
    async with shown(daemon.settings) as screen:
        await begun(screen, daemon)
        begin = time.monotonic()
        asked = False
        while time.monotonic() < begin + 1.7:
            await screen.press("enter")
            if not asked and time.monotonic() > begin + 0.3:
                asked = bool(daemon.ask("run_cmd", COMMAND))
            await asyncio.sleep(0.02)
        stopped = time.monotonic()
        await screen.until(lambda _: time.monotonic() > stopped + 2 * BURST_S)  # until the last one was alone
        assert screen.view.approvals.waits
        assert not daemon.is_answered()
        await screen.ready()
        await screen.press("enter")
        assert (await screen.told(daemon.answered))["option"] == "allow_once"


ANSWERS: Final[dict[str, tuple[dict[str, Any], list[str], str]]] = {
    "Enter runs an ordinary command": ({}, ["enter"], "allow_once"),
    "Enter alone says no yes to protected names": (
        {"stage": "effects", "effects": PROTECTED},
        ["enter", "y"],
        "allow_once",
    ),
    "Escape twice rejects without a reason": ({}, ["escape", "escape"], "reject_once"),
    "a reason is told": ({}, ["escape", "n", "o", "enter"], "reject_once"),
}


@pytest.mark.parametrize("row", ANSWERS.values(), ids=ANSWERS)
@played
async def test_a_question_is_answered_by_keys(
    row: tuple[dict[str, Any], list[str], str], daemon: FakeDaemon, quick: None
) -> None:
    asked, keys, option = row
    async with shown(daemon.settings) as screen:
        await begun(screen, daemon)
        daemon.ask("run_cmd", COMMAND, **asked)
        for key in keys:
            assert not daemon.is_answered()
            if screen.view.mode != "reason":
                await screen.until(lambda _: screen.view.mode == "review")
                await screen.ready()
            await screen.press(key)
        answer = await screen.told(daemon.answered)
        assert answer["option"] == option
        assert answer.get(extensions.REMARK, "") == ("no" if "o" in keys else "")


@played
async def test_the_command_can_be_edited_and_a_new_row_is_no_yes(daemon: FakeDaemon, quick: None) -> None:
    async with shown(daemon.settings) as screen:
        await begun(screen, daemon)
        daemon.ask("run_cmd", COMMAND)
        await screen.ready()
        await screen.press("tab", "x", "alt+enter", "y")
        await screen.until("Alt-Enter new line")
        assert not daemon.is_answered()
        await screen.ready()
        await screen.press("enter")
        assert (await screen.told(daemon.answered))[extensions.EDITED] == {"command": "rm -r buildx\ny"}


@played
async def test_a_draft_keeps_the_keys_and_the_box_gets_them_when_it_is_empty(daemon: FakeDaemon, quick: None) -> None:
    async with shown(daemon.settings) as screen:
        await begun(screen, daemon)
        await screen.press("n", "o")
        daemon.ask("run_cmd", COMMAND)
        await screen.until("your line has the keys")
        await screen.press("t", "enter")  # sets the line aside
        await screen.until("kept > not")
        await screen.ready()
        assert not daemon.is_answered()
        await screen.press("y")
        assert (await screen.told(daemon.answered))["option"] == "allow_once"


@played
async def test_pages_of_effects_are_turned_and_clicked_words_count_as_keys(daemon: FakeDaemon, quick: None) -> None:
    async with shown(daemon.settings, 60, 20) as screen:
        await begun(screen, daemon)
        number = daemon.ask("write_file", '{"path": "a"}')
        await screen.until("write_file")
        daemon.withdraw(number)  # somebody else has answered
        await screen.until(lambda text: "write_file" not in text)
        daemon.ask("run_cmd", COMMAND, stage="effects", effects=LONG)
        await screen.until("PgDn")
        await screen.press("ctrl+o")
        await screen.ready()
        assert "Enter applies" in await screen.until("Enter applies")
        box = screen.view.query_one("#box")
        row = screen.text.split("\n")[box.region.bottom - 1]
        await screen.pilot.click(offset=(row.index("Enter applies"), box.region.bottom - 1))
        assert (await screen.told(daemon.answered))["option"] == "allow_once"


@played
async def test_live_output_stands_in_the_middle_while_a_command_runs(daemon: FakeDaemon) -> None:
    async with shown(daemon.settings, 80, 24) as screen:
        await begun(screen, daemon)
        output = "".join(f"line {number}\n" for number in range(2000))
        written = schema.Content(content=schema.Text(text=output))
        running = schema.ToolCallUpdate(tool_call_id="call-1", status="in_progress", content=[written])
        daemon.state("Executing")
        daemon.tell(called(1, "run_cmd", COMMAND, "execute"), running)
        text = await screen.until("line 1999")
        assert "Running" in text
        assert "line 1900" not in text
        daemon.tell(ended(1, "run_cmd", output))
        daemon.state("Thinking")
        await screen.until(lambda _: not screen.view.query_one("#live").display)


@played
async def test_a_history_is_searched_folded_and_copied(daemon: FakeDaemon) -> None:
    daemon.sessions = [schema.SessionInfo(session_id=daemon.facts.session_id, cwd="/", title="old")]
    daemon.history = [
        update
        for number in range(1, 200)
        for update in (heard(f"question {number}", f"turn-{number}"), said(f"answer {number}", f"turn-{number}-step-0"))
    ]
    settings = dataclasses.replace(daemon.settings, environment={"TERM": "xterm"})
    async with shown(settings, 80, 24, session=daemon.facts.session_id) as screen:
        await screen.told(daemon.continued)
        await screen.until("answer 199")
        await screen.press("ctrl+f", *"ANSWER 23")
        await screen.until(lambda text: "answer 23" in text and "answer 199" not in text)
        for key in ("escape", "f6", "c"):
            await screen.press(key)
        await screen.until(lambda _: screen.app.clipboard == "answer 23")
        await screen.press("end")
        await screen.until("answer 199")
        await screen.press("escape")
        await screen.until(lambda _: screen.app.focused is screen.view.prompt)


@played
async def test_the_status_and_the_keys_are_screens_and_a_question_behind_them_has_no_key(
    daemon: FakeDaemon, quick: None
) -> None:
    async with shown(daemon.settings) as screen:
        await begun(screen, daemon)
        daemon.ask("run_cmd", COMMAND)
        await screen.ready()
        guard = screen.view.approvals._guard
        before = guard._shown
        await screen.press("f1")
        await screen.until("Ctrl-F")
        assert isinstance(screen.app.screen, TextScreen)
        await screen.press("enter", "y")
        await screen.press("escape")
        await screen.until(lambda _: before < guard._shown < math.inf)  # it has to be read anew
        await screen.ready()
        assert not daemon.is_answered()
        await screen.press("y")
        assert (await screen.told(daemon.answered))["option"] == "allow_once"


@played
async def test_themes_follow_each_other(daemon: FakeDaemon) -> None:
    async with shown(daemon.settings) as screen:
        grounds = [screen.app.screen.styles.background.rgb]
        for _ in range(2):
            await screen.press("f4")
            await screen.until(lambda _: screen.app.screen.styles.background.rgb not in grounds)
            grounds.append(screen.app.screen.styles.background.rgb)
        await screen.press("f4")
        await screen.until(lambda _: screen.app.screen.styles.background.rgb == grounds[0])
        assert screen.app.theme == "dark"
        await screen.press(*"/theme", "enter")
        await screen.until("type to narrow")
        await screen.press(*"light", "enter")
        await screen.until("The theme is light now.")
        assert screen.app.theme == "light"
