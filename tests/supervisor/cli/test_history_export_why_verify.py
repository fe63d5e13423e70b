"""Commands about what was: `sessions`, `search`, `history`, `verify`, and `tools` for what could be."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from supervisor.cli.sessions_prune import session_row
from supervisor.config.settings import Settings
from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.journal.journal import Journal
from supervisor.reports.history import history
from supervisor.reports.session_formats import FORMATS
from supervisor.reports.session_lines import SessionLine
from tests.forked import ForkedStrongroom
from tests.supervisor.command import Strongroom
from tests.supervisor.histories import Line, call, fault_in_history, opening_fact, script

EVIL: Final = "\x1b]0;owned\x07\x9b31m \u202eevil\r\x7f\ue000"


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Strongroom:
    """A home where one conversation and one call have been, with hostile text in all that can hold it."""
    strongroom = ForkedStrongroom.beside_a_root(tmp_path_factory.mktemp("lived"))
    (strongroom.folder / "root" / "evil.txt").write_text(f"first\n{EVIL}\n")
    lines: list[Line] = [
        {"text": f"I look. {EVIL}", "calls": [call("read_file", path="evil.txt"), call(f"no {EVIL}", a=EVIL)]},
        {"fault": "overloaded", "times": 1, "text": f"It says {EVIL}"},
        {"fault": "api_error"},
    ]
    prompts = {"id": "x", "prompts": [f"What does it say? {EVIL}", "And now?"]}
    assert strongroom.batch(json.dumps(prompts), model=f"scripted:{script(strongroom.folder, *lines)}").code == 1
    assert strongroom.run("call", "read_file", '{"path": "a.txt"}', "--root", "root").code == 0
    return strongroom


@pytest.fixture
def tampered(lived: Strongroom, home: Path) -> Strongroom:
    """A copy of it that a test may harm."""
    shutil.copytree(lived.home, home)
    return ForkedStrongroom(home, lived.folder)


def conversation(strongroom: Strongroom) -> str:
    return str(strongroom.results[0]["session"])


def assert_safe(text: str) -> None:
    assert {char for char in EVIL if not char.isprintable() and char in text} <= set()


def test_sessions_are_listed_oldest_first(lived: Strongroom) -> None:
    first, second = lived.run("sessions").out.splitlines()
    assert first.startswith(conversation(lived))
    assert " error       2 turns" in first
    assert second.endswith("1 calls: read_file")
    first, second = lived.run("sessions", "--json").json
    assert first["session"] == conversation(lived)
    assert (first["profile"], first["turns"], first["state"]) == ("vault", 2, "error")
    assert first["root"] == str(lived.folder / "root")
    assert (second["turns"], second["state"], second["model"]) == (0, "-", "")
    row, title, *_ = session_row(msgspec.convert(first, SessionLine), 85).split("\n")
    assert (row.endswith("  2 turns"), title[:30].strip(), title[30:] != "") == (True, "", True)
    limited, whole = lived.run("sessions", "--limit", "1", "--json"), lived.run("sessions", "--limit", "1")
    assert (limited.json, limited.err) == ([second], "")
    assert (whole.out.count(second["session"]), whole.err) == (1, "1 more before these; --all lists all\n")
    here = lived.run("sessions", "--here")
    assert (here.out, here.err) == ("", "no session of this directory yet\n")


def test_a_search_tells_where_words_stand_and_where_they_are_marked(lived: Strongroom) -> None:
    found = lived.run("search", "does it say", "--json", "--limit", "1").json
    assert [(each["session_id"], each["turn"], each["who"]) for each in found] == [(conversation(lived), 1, "you")]
    assert [found[0]["text"][at:end] for at, end in found[0]["marks"]] == ["does", "it", "say"]
    told = lived.run("search", "read_file", "--session", conversation(lived)[-6:])
    where, _said = told.out.splitlines()[:2]
    assert where.startswith(f"{conversation(lived)}  ")
    assert "\u00abread_file\u00bb" in told.out
    assert told.err == "strongroom history SESSION shows all of one; --session SESSION looks in one alone\n"
    evil = lived.run("search", "evil").out
    assert "evil" in evil
    assert_safe(evil)
    assert lived.run("search", "read_file", "--here", "--json").json == []
    in_root = lived.run("search", "a.txt", "--root", "root", "--json").json
    assert [each["call"] for each in in_root] == ["call_1"]
    assert lived.run("search", "zzz", "--json").json == []
    lived.run("search", "--", "-evil").assert_refused("Name a word")
    lived.run("search", "evil", "--session", "none").assert_refused("No session")


def test_calls_on_a_root_are_one_row_but_for_scripts_and_where_all_are_wanted(tampered: Strongroom) -> None:
    assert tampered.run("call", "read_file", '{"path": "a.txt"}', "--root", "root").code == 0
    assert tampered.run("sessions").out.endswith("2 calls: read_file (in 2 sessions)\n")
    assert len(tampered.run("sessions", "--all").out.splitlines()) == 3
    rows = tampered.run("sessions", "--json").json
    assert [(each["turns"], "folded" in each) for each in rows] == [(2, False), (0, False), (0, False)]
    for each in range(25):
        tampered.record(f"more-{each}", opening_fact(tampered.folder))
    assert len(tampered.run("sessions", "--json").json) == 28
    assert len(tampered.run("sessions").out.splitlines()) == 20


def test_without_a_journal_there_is_nothing_to_list_show_or_verify(strongroom: Strongroom) -> None:
    for options, out in (("--json",), "[]\n"), ((), ""):
        done = strongroom.run("sessions", *options)
        assert (done.code, done.out) == (0, out)
    for command in ("history", "x"), ("verify",):
        strongroom.run(*command).assert_refused("here is no journal yet")
    assert not strongroom.home.exists()


def test_a_history_tells_what_happened_in_order(lived: Strongroom) -> None:
    out = lived.run("history", conversation(lived)).out
    assert lived.run("history", conversation(lived)[-6:]).out == out
    parts = [
        f"session {conversation(lived)}, profile vault",
        "> What does it say?",
        "I look.",
        'read_file {"path":"evil.txt"}',
        "ok: first",
        "unknown_tool: There is no tool",
        "(asked the model again after overloaded: scripted fault)",
        "It says",
        "> And now?",
        "(turn ended: error, api_error: ",
    ]
    places = [out.find(part) for part in parts]
    assert -1 not in places
    assert places[:3] == sorted(places[:3])
    assert places[6:] == sorted(places[6:])
    assert max(places[:6]) < places[6]


@pytest.mark.parametrize(
    "arguments",
    [
        *(("history", "SESSION", "--format", form) for form in FORMATS),
        *(("sessions",), ("sessions", "--json"), ("verify",)),
    ],
)
def test_no_report_hands_control_characters_to_a_terminal(lived: Strongroom, arguments: tuple[str, ...]) -> None:
    assert_safe(lived.run(*(conversation(lived) if each == "SESSION" else each for each in arguments)).out)


def test_no_call_hands_control_characters_to_a_terminal(tampered: Strongroom) -> None:
    done = tampered.run("call", "read_file", '{"path": "evil.txt"}', "--root", "root")
    assert_safe(done.out)
    assert done.json["content"] == f"first\n{EVIL}\n"
    assert_safe(tampered.run("call", f"no {EVIL}", json.dumps({"a": EVIL}, ensure_ascii=False), "--root", "root").out)


WRONG: Final = {
    "profile": ("tools", "--profile", EVIL),
    "session": ("history", EVIL),
    "root": ("call", "read_file", "{}", "--root", f"/no/{EVIL}"),
    "file": ("batch", EVIL, "--output", "x"),
    "command": (EVIL,),
    "option": ("tools", f"--{EVIL}"),
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_no_error_hands_control_characters_to_a_terminal(strongroom: Strongroom, arguments: tuple[str, ...]) -> None:
    done = strongroom.run(*arguments)
    done.assert_refused()
    assert_safe(done.err)


def test_an_export_is_a_new_file_of_markdown_or_one_page(tampered: Strongroom) -> None:
    session = conversation(tampered)
    assert tampered.run("export", session[-6:]).out == f"The conversation is in strongroom-{session[-6:]}.md.\n"
    markdown = (tampered.folder / f"strongroom-{session[-6:]}.md").read_text()
    assert_safe(markdown)
    assert markdown.startswith("# What does it say?")
    assert "\n- `read_file` (ok)\n" in markdown
    assert "\n  ```\n  path: evil.txt\n  ```\n" in markdown
    assert "\nI look." in markdown
    assert tampered.run("export", session, "--html", "-o", "-").out.startswith("<!doctype html>\n")
    assert (
        tampered.run("export", session, "--format", "openai").out
        == f"The conversation is in strongroom-{session}.json.\n"
    )
    same = tampered.run("history", session, "--format", "openai").json
    assert json.loads((tampered.folder / f"strongroom-{session}.json").read_text()) == same
    tampered.run("export", session, "--html", "-o", "in").assert_refused("in exists already", code=1)
    tampered.run("export", session, "-o", "gone/x").assert_refused("gone/x cannot be written", code=1)
    assert (tampered.folder / f"strongroom-{session[-6:]}.md").stat().st_mode & 0o777 == 0o600


def test_a_fence_of_an_export_is_not_ended_from_within(journal: Journal, settings: Settings, root: Path) -> None:
    ended = CallEnded(1, "c", "read_file", True, "```\nfenced\n")
    journal.append("s", opening_fact(root), CallStarted(1, "c", "read_file", "{}", False, "allow", ""), ended)
    assert "\n  ````\n  ```\n  fenced\n  ````\n" in history(settings, "s", "markdown")


def test_a_history_for_the_messages_api_is_valid_there(lived: Strongroom) -> None:
    messages = lived.run("history", conversation(lived), "--format", "anthropic").json
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user", "assistant"]
    assert fault_in_history(messages) is None
    assert messages[0]["content"][0]["text"] == f"What does it say? {EVIL}"


def test_a_history_for_gemini_has_its_parts(lived: Strongroom) -> None:
    contents = lived.run("history", conversation(lived), "--format", "gemini").json
    assert [content["role"] for content in contents] == ["user", "model", "user", "model", "user", "model"]
    calls = [part["functionCall"] for part in contents[1]["parts"] if "functionCall" in part]
    responses = [part["functionResponse"] for part in contents[2]["parts"]]
    assert [(each["id"], each["name"]) for each in calls] == [(each["id"], each["name"]) for each in responses]
    assert ["output" in each["response"] for each in responses] == [True, False]


def test_a_history_as_json_is_every_fact(lived: Strongroom) -> None:
    rows: list[dict[str, Any]] = lived.run("history", conversation(lived), "--format", "json").json
    assert [row["fact"]["fact"] for row in rows] == [
        type(fact).__name__ for fact in lived.sessions[conversation(lived)]
    ]


@pytest.mark.parametrize(("name", "words"), [("nobody", "No session 'nobody'"), ("", "sessions end in ''")])
def test_a_session_that_is_not_there_is_named(lived: Strongroom, name: str, words: str) -> None:
    lived.run("history", name).assert_refused(words)


# verify ------------------------------------------------------------------------------------------------------


def test_a_whole_journal_is_whole(lived: Strongroom) -> None:
    done = lived.run("verify")
    found = lived.run("verify", "--json").json
    assert (done.code, found["problem"], found["rows"]) == (0, "", len(lived.facts))
    assert done.out == f"intact: {found['rows']} facts of 3 sessions, head {found['head']}\n"


def test_a_changed_journal_is_broken_at_the_row(tampered: Strongroom) -> None:
    with sqlite3.connect(tampered.home / "journal.db") as connection:
        connection.execute("DROP TRIGGER facts_stay")
        connection.execute("UPDATE facts SET at = 0 WHERE seq = 4")
    connection.close()
    done = tampered.run("verify")
    assert done.code == 1
    assert done.out == "broken at row 4: row 4 is not what was written; 3 rows before it are intact\n"
    assert tampered.run("verify", "--json").json["broken_at"] == 4


def test_a_destroyed_journal_is_an_error(tampered: Strongroom) -> None:
    (tampered.home / "journal.db").write_bytes(b"garbage" * 1000)
    tampered.run("verify").assert_refused("error: The journal ", "is damaged", code=1)


# tools -------------------------------------------------------------------------------------------------------


def test_tools_are_listed_for_people(strongroom: Strongroom) -> None:
    out = strongroom.run("tools").out
    assert out.startswith("read_file(path, offset?, limit?)\n    Read a UTF-8 text file")
    assert "list_directory" not in out


def test_tools_are_listed_as_data(strongroom: Strongroom) -> None:
    found = strongroom.run("tools", "--json", "--profile", "project").json
    assert found["profile"] == "project"
    rows = [(tool["name"], tool["category"], tool["effect"]) for tool in found["tools"]]
    assert rows[1] == ("write_file", "files", True)
    assert ("search_files", "search", False) in rows
    assert {tool["input_schema"]["type"] for tool in found["tools"]} == {"object"}
