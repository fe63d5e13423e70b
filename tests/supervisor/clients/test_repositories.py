"""The ways to name a repository: options, items of a batch, the console's lines, the functions of a Python session."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.python.repl import Chat, start
from supervisor.config.repositories import Names
from supervisor.errors import ConfigError
from supervisor.journal.facts import SessionOpened
from tests.daemon_process import DaemonProcess
from tests.supervisor.command import Done, Strongroom
from tests.supervisor.repositories import FIRST, GROUP, ODD, OPTIONS, SECOND, THERE, Odd, Repos
from workers.wire.messages import Context

TOOLS: Final = ("read_file", "list_directory", "search_files", "find_files", "recall")
READ: Final = ("read_file", '{"path": "guide.md"}')
TYPED: Final = [odd for odd in ODD if "\0" not in odd.technology]
"""What an argument of a program can be."""


@pytest.fixture(scope="module")
def repos(tmp_path_factory: pytest.TempPathFactory) -> Repos:
    return Repos(tmp_path_factory.mktemp("repositories"))


@pytest.fixture(scope="module")
def daemon(repos: Repos) -> Iterator[DaemonProcess]:
    with DaemonProcess(repos.home, repos.work) as running:
        yield running
    assert "internal error" not in running.log


@pytest.fixture
def strongroom(daemon: DaemonProcess, repos: Repos) -> Strongroom:
    """The command line where that daemon runs."""
    return repos.strongroom()


@pytest.fixture
def own(tmp_path: Path) -> Repos:
    return Repos(tmp_path)


# --- call -------------------------------------------------------------------------------------------------------------


def test_a_call_is_made_in_the_repository_that_is_named(strongroom: Strongroom) -> None:
    done = strongroom.run("call", *READ, *OPTIONS)
    assert (done.code, done.json["content"], done.err) == (0, "All about phoenix.\n", "")


def test_without_names_it_is_made_in_the_repository_that_one_stands_in(daemon: DaemonProcess, repos: Repos) -> None:
    done = repos.strongroom(repos.second / "lib").run("call", *READ, "--profile", "librarian")
    assert (done.code, done.json["content"]) == (0, "All about ecto.\n")


def test_a_way_out_is_a_path_escape(strongroom: Strongroom) -> None:
    done = strongroom.run("call", "read_file", '{"path": "../../etc/passwd"}', *OPTIONS)
    assert (done.code, done.json["error"]["kind"]) == (1, "path_escape")
    assert "Path escape" in done.json["error"]["message"]
    assert "Access denied: path outside sandbox directory" in done.json["error"]["message"]


@pytest.mark.parametrize("odd", TYPED, ids=[odd.name for odd in TYPED])
def test_an_odd_name_is_a_sentence_that_names_what_there_is(strongroom: Strongroom, odd: Odd) -> None:
    before = len(strongroom.entries)
    named = ("--profile", "librarian", "--group", GROUP, "--technology", os.fsencode(odd.technology))
    done = strongroom.run("call", *READ, *named)  # type: ignore[arg-type]  # bytes are an argument too
    done.assert_refused(odd.words)
    assert done.err.rstrip("\n").endswith(THERE)
    assert done.err.rstrip("\n").isprintable()
    assert len(strongroom.entries) == before


def test_a_daemon_takes_up_the_changed_configuration_that_a_client_has(own: Repos) -> None:
    with DaemonProcess(own.home, own.work):
        (own.work / GROUP / FIRST).mkdir(parents=True)
        (own.work / GROUP / FIRST / "guide.md").write_text("moved\n")
        own.configure(repos_path=str(own.work))
        assert "moved" in own.strongroom().run("call", *READ, *OPTIONS).out


# --- batch ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def inside(daemon: DaemonProcess, repos: Repos, tmp_path: Path) -> Strongroom:
    """The command line in a directory that results may lie beside."""
    (tmp_path / "inside").mkdir()
    return repos.strongroom(tmp_path / "inside")


def batch(inside: Strongroom, items: list[dict[str, Any]], *options: str) -> Done:
    lines = "\n".join(json.dumps({"prompt": "hello", **item}) for item in items)
    return inside.batch(lines, *options, output="../out", root="")


def roots(inside: Strongroom) -> dict[str, Context]:
    """What each item has been on."""
    results = [json.loads(line) for line in (inside.folder.parent / "out").read_text().splitlines()]
    assert {each["status"] for each in results} == {"ok"}
    opened = {each["id"]: inside.sessions[each["session"]][0] for each in results}
    return {name: fact.context for name, fact in opened.items() if isinstance(fact, SessionOpened)}


def test_an_item_may_say_what_is_not_said_for_all(inside: Strongroom, repos: Repos, tmp_path: Path) -> None:
    items = [
        {"id": "as all"},
        {"id": "technology", "technology": SECOND},
        {"id": "group", "group": "rust", "technology": "tokio"},
        {"id": "environment", "environment": "staging"},
        {"id": "profile", "profile": "project"},
        {"id": "root", "profile": "project", "root": str(tmp_path / "room")},
    ]
    (tmp_path / "room").mkdir()
    done = batch(inside, items, *OPTIONS)
    assert (done.code, done.err) == (0, "")
    assert roots(inside) == {
        "as all": Context(str(repos.first), None, GROUP, FIRST),
        "technology": Context(str(repos.second), None, GROUP, SECOND),
        "group": Context(str(repos.path / "rust" / "tokio"), None, "rust", "tokio"),
        "environment": Context(str(repos.first), "staging", GROUP, FIRST),
        "profile": Context(str(inside.folder)),
        "root": Context(str(tmp_path / "room")),
    }


def test_an_item_that_names_a_repository_does_without_the_root_for_all(inside: Strongroom, repos: Repos) -> None:
    items = [{"id": "named", "profile": "librarian", "group": GROUP, "technology": FIRST}, {"id": "as all"}]
    assert batch(inside, items, "--root", str(repos.work)).code == 0
    assert roots(inside) == {"named": Context(str(repos.first), None, GROUP, FIRST), "as all": Context(str(repos.work))}


WRONG: Final[dict[str, tuple[dict[str, Any], tuple[str, ...], str]]] = {
    "an odd name": ({"technology": ".."}, OPTIONS, THERE),
    "no technology": ({"group": GROUP}, ("--profile", "librarian"), THERE),
    "a root": ({"root": "/srv"}, OPTIONS, "takes no root such as '/srv'"),
    "both for all": ({}, (*OPTIONS, "--root", "/srv"), "takes no root such as '/srv'"),
    "the default profile": ({"group": GROUP, "technology": FIRST}, (), "The profile 'vault' works on a root"),
    "another profile": ({"profile": "project", "group": GROUP}, OPTIONS, "The profile 'project' works on a root"),
    "a number": ({"group": 5}, OPTIONS, "Expected `str | null`, got `int` - at `$.group`"),
}


@pytest.mark.parametrize(("item", "options", "words"), WRONG.values(), ids=WRONG)
def test_an_item_that_cannot_be_is_refused_before_anything_runs(
    inside: Strongroom, repos: Repos, item: dict[str, Any], options: tuple[str, ...], words: str
) -> None:
    before = len(inside.entries)
    good = {"id": 1, "profile": "project", "root": str(repos.work)}
    batch(inside, [good, {"id": 2, **item}], *options).assert_refused(words)
    assert not (inside.folder.parent / "out").exists()
    assert len(inside.entries) == before


# --- tools and status -------------------------------------------------------------------------------------------------


def test_its_tools_are_listed_without_names(strongroom: Strongroom) -> None:
    found = strongroom.run("tools", "--profile", "librarian", "--json").json
    assert (found["profile"], "context" in found) == ("librarian", False)
    assert [(each["name"], each["effect"]) for each in found["tools"]] == [(name, False) for name in TOOLS]


def test_with_names_its_tools_are_listed_with_the_context(strongroom: Strongroom, repos: Repos) -> None:
    found = strongroom.run("tools", *OPTIONS, "--environment", "live", "--json").json
    assert found["context"] == repos.context(environment="live")
    assert strongroom.run("tools", *OPTIONS[:-1], "nope").code == 2


def test_status_tells_the_context(strongroom: Strongroom, daemon: DaemonProcess, repos: Repos) -> None:
    with daemon.client() as client:
        options = {"profile": "librarian", "group": "rust", "technology": "tokio", "environment": "live"}
        session = client.new_session(repos.work, **options, modelless=True)
        found = {each["session_id"]: each for each in strongroom.run("status", "--json").json["sessions"]}
        assert found[session]["context"] == {
            "working_directory": str(repos.path / "rust" / "tokio"),
            "environment": "live",
            "group": "rust",
            "technology": "tokio",
        }
        assert "environment live, group rust, technology tokio" in " ".join(strongroom.run("status").out.split())


# --- console ----------------------------------------------------------------------------------------------------------


def console(strongroom: Strongroom, *options: str, lines: str) -> Done:
    return strongroom.run("console", "--plain", "--model", "offline", *options, stdin=lines)


def test_a_console_is_opened_on_a_repository(strongroom: Strongroom, repos: Repos) -> None:
    done = console(strongroom, *OPTIONS, lines="read guide.md\nread ../ecto/guide.md\n/tools\n")
    assert done.code == 0
    assert f"librarian on {repos.first}, offline" in done.err
    for words in ("All about phoenix.", "(path_escape)", "".join(f"{name}\n" for name in TOOLS)):
        assert words in done.out


def test_the_console_shows_the_context_and_keeps_what_the_session_is(strongroom: Strongroom, repos: Repos) -> None:
    done = console(strongroom, *OPTIONS, "--environment", "stage-7", lines="/mode plan\n/clear\n/status\n")
    assert "environment stage-7, group elixir, technology phoenix" in " ".join(done.out.split())
    assert f"librarian on {repos.first}, offline, mode plan\n" in done.err


def test_the_profile_cannot_be_taken_without_names(strongroom: Strongroom, repos: Repos) -> None:
    done = console(strongroom, "--profile", "project", lines="/profile librarian\n/profile\n")
    assert "The profile 'librarian' needs a group and a technology" in done.err
    assert "elixir, rust." in done.err
    assert "* project" in " ".join(done.out.split())


def test_the_profile_can_be_taken_in_a_repository(daemon: DaemonProcess, repos: Repos) -> None:
    lines = "/profile librarian\nread ../guide.md\n/clear\nread guide.md\n"
    done = console(repos.strongroom(repos.first / "lib"), "--profile", "project", lines=lines)
    assert "The profile is librarian now." in done.err
    assert "(path_escape)" in done.out
    assert "All about phoenix." in done.out


def test_a_console_goes_on_with_the_newest_session_of_its_repository(own: Repos) -> None:
    strongroom = own.strongroom()
    with DaemonProcess(own.home, own.work):
        for technology in (FIRST, SECOND):
            console(strongroom, *OPTIONS[:-1], technology, lines="read guide.md\n")
        done = console(strongroom, *OPTIONS, "--continue", lines="/history\n")
        assert f"librarian on {own.first}" in done.err
        assert "All about phoenix." in done.out
        assert "All about ecto." not in done.out
        done = console(strongroom, *OPTIONS[:2], "--group", "rust", "--technology", "tokio", "--continue", lines="hi\n")
        assert "There is no session of this directory yet" in done.err
        done = console(strongroom, "--continue", lines="/history\n")
        assert f"librarian on {own.path / 'rust' / 'tokio'}" in done.err
    (first, *_) = strongroom.sessions
    with DaemonProcess(own.home, own.work):
        options = ("--session", first, "--mode", "ask", "--root", str(own.first))
        done = console(strongroom, *options, lines="read guide.md\n/mode\n")
        assert f"librarian on {own.first}" in done.err
        assert "\n* ask " in done.out.replace("*  ", "* ")
        assert "All about phoenix." in done.out
        done = console(strongroom, "--session", first, "--root", str(own.work), lines="")
        assert (done.code, f"is on {own.first}, and stays there: leave out --root" in done.err) == (2, True)
        done = console(strongroom, lines=f"/resume {first}\nread guide.md\n")
        assert "All about phoenix." in done.out


def test_a_listed_session_is_on_what_is_named() -> None:
    plain = schema.SessionInfo(session_id="s", cwd="/")
    odd = schema.SessionInfo(session_id="s", cwd="/", meta={extensions.OPTIONS: 5})
    named = schema.SessionInfo(session_id="s", cwd="/", meta={extensions.OPTIONS: {"group": "g", "technology": "t"}})
    assert [requests.is_named(each, Names()) for each in (plain, odd, named)] == [True] * 3
    assert [requests.is_named(each, Names("g")) for each in (plain, odd, named)] == [False, False, True]
    assert [requests.is_named(named, Names("g", name)) for name in ("t", "u", "")] == [True, False, False]


# --- a Python session -------------------------------------------------------------------------------------------------


@pytest.fixture
def here(daemon: DaemonProcess, repos: Repos, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the person stands."""
    monkeypatch.setenv("STRONGROOM_HOME", str(repos.home))
    monkeypatch.chdir(repos.work)


@pytest.mark.usefixtures("here")
def test_an_agent_is_started_on_a_repository(daemon: DaemonProcess, repos: Repos) -> None:
    names = {"group": GROUP, "technology": FIRST, "environment": "live"}
    assert start("offline", "librarian", **names) == ("ok", daemon.pid)
    with daemon.client() as client:
        found = client.request(extensions.STATUS_METHOD, {})["sessions"]
    assert repos.context(environment="live") in [each["context"] for each in found if each["origin"] == "python"]
    start("offline", "project")


@pytest.mark.usefixtures("here")
def test_an_agent_stays_in_its_repository(repos: Repos, capsys: pytest.CaptureFixture[str]) -> None:
    with Chat("offline", "librarian", names=Names(GROUP, SECOND)) as agent:
        assert agent.chat("read guide.md") == "ok"
        assert agent.clear() == "ok"
        assert agent.chat("read ../phoenix/guide.md") == "ok"
    out = capsys.readouterr().out
    assert "All about ecto." in out
    assert "Path escape" in out
    assert "All about phoenix." not in out


@pytest.mark.usefixtures("here")
def test_an_agent_with_an_odd_name_is_not_started() -> None:
    with pytest.raises(ConfigError, match=r"No group '\.\./x': it holds a slash"):
        start("offline", "librarian", group="../x", technology=FIRST)
