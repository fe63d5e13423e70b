"""Sessions on repositories: opened by names, apart from each other, and the same whenever they are taken up again."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import SessionChanged, SessionOpened
from tests.daemon_process import DaemonProcess, Lines, named, opening
from tests.supervisor.repositories import FIRST, GROUP, NAMES, ODD, SECOND, THERE, Odd, Repos

NAME: Final = "guide.md"
WRITTEN: Final = [odd for odd in ODD if odd.name != "not UTF-8"]
"""What can be written as JSON."""


@pytest.fixture(scope="module")
def repos(tmp_path_factory: pytest.TempPathFactory) -> Repos:
    return Repos(tmp_path_factory.mktemp("repositories"))


@pytest.fixture(scope="module")
def daemon(repos: Repos) -> Iterator[DaemonProcess]:
    """A daemon for the tests that leave it as it is."""
    with DaemonProcess(repos.home, repos.work) as running:
        yield running
    assert "internal error" not in running.log


@pytest.fixture
def own(tmp_path: Path) -> Repos:
    """Repositories, and a home, that a test may change."""
    return Repos(tmp_path)


params: Final = partial(opening, model="offline")


def new(client: Lines, cwd: Path, **options: Any) -> dict[str, Any]:
    """Open a session; return what is said of it."""
    return client.opened(cwd, model="offline", **options)


def calls(client: Lines, cwd: Path, technology: str) -> str:
    """Open a session of single calls on a technology; return its id."""
    return client.new_session(cwd, **{**NAMES, "technology": technology}, modelless=True)


def statuses(client: Lines) -> dict[str, Any]:
    return {each["sessionId"]: each for each in client.status()["sessions"]}


# --- opened -----------------------------------------------------------------------------------------------------------


def test_a_session_is_opened_by_names(daemon: DaemonProcess, client: Lines, repos: Repos) -> None:
    facts = new(client, repos.work, **NAMES, environment="staging")
    known = repos.context(environment="staging")
    assert (facts["root"], facts["context"]) == (str(repos.first), known)
    status = statuses(client)[facts["sessionId"]]
    assert (status["profile"], status["root"], status["context"]) == ("librarian", str(repos.first), known)
    (opened,) = daemon.facts_of(facts["sessionId"], SessionOpened)
    assert (opened.context.group, opened.context.technology, opened.cwd) == (GROUP, FIRST, str(repos.work))


@pytest.mark.parametrize("place", ["", "lib"])
def test_an_editor_that_opens_a_repository_needs_no_names(client: Lines, repos: Repos, place: str) -> None:
    facts = new(client, repos.second / place, profile="librarian")
    assert facts["context"] == repos.context(SECOND)


@pytest.mark.parametrize("odd", WRITTEN, ids=[odd.name for odd in WRITTEN])
def test_a_hostile_client_gets_nowhere_with_an_odd_name(
    daemon: DaemonProcess, client: Lines, repos: Repos, odd: Odd
) -> None:
    before = len(daemon.entries)
    options = {**NAMES, "technology": odd.technology}
    for method, wanted in (("session/new", params(repos.work, **options)), (extensions.CHECK_METHOD, options)):
        error = client.refused(method, wanted)
        assert error["data"]["kind"] == "config"
        assert odd.words in error["message"]
        assert error["message"].endswith(THERE)
    assert client.refused("session/new", params(repos.work, **{**NAMES, "group": odd.technology}))
    assert len(daemon.entries) == before


def test_a_name_that_is_not_unicode_is_no_message(daemon: DaemonProcess, client: Lines, repos: Repos) -> None:
    before = len(daemon.entries)
    client.begin("session/new", params(repos.work, **{**NAMES, "technology": "\udcff"}))
    answer = client.read()
    assert (answer["id"], answer["error"]["data"]["kind"]) == (None, "bad_request")
    assert len(daemon.entries) == before


NO_NAMES: Final = [5, True, ["elixir"], {"name": "elixir"}, 1.5]


@pytest.mark.parametrize("value", NO_NAMES, ids=repr)
@pytest.mark.parametrize("key", ["group", "technology", "environment"])
def test_a_value_that_is_no_text_is_no_name(client: Lines, repos: Repos, key: str, value: Any) -> None:
    error = client.refused("session/new", params(repos.work, **{**NAMES, key: value}))
    assert error["data"]["kind"] == "invalid_params"
    assert "Expected `str | null`" in error["message"]


MIXED: Final = [
    ("a root too", {**NAMES, "root": "/srv"}, "takes no root such as '/srv'"),
    ("a root alone", {"profile": "librarian", "root": "/srv"}, "takes no root such as '/srv'"),
    ("another profile", {**NAMES, "profile": "project"}, "The profile 'project' works on a root"),
    ("the default profile", {"group": GROUP, "technology": FIRST}, "The profile 'vault' works on a root"),
    ("no technology", {"profile": "librarian", "group": GROUP}, THERE),
    ("no names", {"profile": "librarian"}, "needs a group and a technology"),
]


@pytest.mark.parametrize(("options", "words"), [row[1:] for row in MIXED], ids=[row[0] for row in MIXED])
def test_names_and_other_ways_to_a_root_do_not_mix(
    client: Lines, repos: Repos, options: dict[str, str], words: str
) -> None:
    error = client.refused("session/new", params(repos.work, **options))
    assert error["data"]["kind"] == "config"
    assert words in error["message"]


# --- apart ------------------------------------------------------------------------------------------------------------

OUT: Final = {
    "up": "../../etc/passwd",
    "up and down": f"../{SECOND}/{NAME}",
    "up from below": f"lib/../../{SECOND}/{NAME}",
    "by a link beside": f"beside/{NAME}",
    "by an absolute link": f"absolute/{NAME}",
    "absolute": f"$REPOS/{GROUP}/{SECOND}/{NAME}",
    "absolute, of its own": f"$REPOS/{GROUP}/{FIRST}/{NAME}",
}


@pytest.mark.parametrize("path", OUT.values(), ids=list(OUT))
def test_no_path_leads_from_one_technology_to_another(client: Lines, repos: Repos, path: str) -> None:
    path = path.replace("$REPOS", str(repos.path))
    first, second = (calls(client, repos.work, name) for name in (FIRST, SECOND))
    for tool, what in (("read_file", path), ("list_directory", path.removesuffix(f"/{NAME}"))):
        answer = client.call(first, tool, path=what)
        assert answer["error"]["kind"] == "path_escape"
        assert "Path escape" in answer["error"]["message"]
        assert "Access denied: path outside sandbox directory" in answer["error"]["message"]
    assert client.call(second, "read_file", path=NAME)["content"] == "All about ecto.\n"


def test_each_of_two_sessions_reads_and_lists_its_own_at_the_same_time(client: Lines, repos: Repos) -> None:
    sessions = {name: calls(client, repos.work, name) for name in (FIRST, SECOND)}
    wanted = [(name, tool) for _ in range(10) for name in sessions for tool in ("read_file", "list_directory")]
    begun = []
    for name, tool in wanted:
        begun.append(client.begin_tool(sessions[name], tool, path=NAME if tool == "read_file" else "."))
    answers: dict[int, Any] = {}
    while len(answers) < len(begun):
        message = client.read()
        if message.get("id") in begun:
            answers[message["id"]] = message["result"]["answer"]["content"]
    for (name, _), number in zip(wanted, begun, strict=True):
        other = SECOND if name == FIRST else FIRST
        assert name in str(answers[number])
        assert other not in str(answers[number])
    pools = [each for each in client.status()["pools"] if each["profile"] == "librarian"]
    pids = {each["root"]: {worker["pid"] for worker in each["workers"] if "pid" in worker} for each in pools}
    assert pids[str(repos.first)].isdisjoint(pids[str(repos.second)])


RELATIVE: Final = [(NAME, "All about phoenix.\n"), ("lib/code.ex", "phoenix"), ("./lib/../lib/./code.ex", "phoenix")]


@pytest.mark.parametrize(("path", "content"), RELATIVE)
def test_a_relative_path_is_relative_to_the_working_directory(
    client: Lines, repos: Repos, path: str, content: str
) -> None:
    assert client.call(calls(client, repos.work, FIRST), "read_file", path=path)["content"] == content


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "list_files", "exec_shell"])
def test_a_tool_that_it_lacks_does_not_exist(client: Lines, repos: Repos, tool: str) -> None:
    answer = client.call(calls(client, repos.work, FIRST), tool, path="x", content="x")
    assert answer["error"]["kind"] == "unknown_tool"
    assert not (repos.first / "x").exists()


# --- changed ----------------------------------------------------------------------------------------------------------


def profile(session: str, name: str) -> dict[str, str]:
    return {"sessionId": session, "configId": "profile", "value": name}


def test_the_profile_needs_names(client: Lines, repos: Repos) -> None:
    session = new(client, repos.work, profile="project")["sessionId"]
    error = client.refused("session/set_config_option", profile(session, "librarian"))
    assert error["data"]["kind"] == "config"
    assert "needs a group and a technology. Use --group and --technology" in error["message"]
    assert error["message"].endswith(": elixir, rust.")
    assert statuses(client)[session]["profile"] == "project"


def test_the_profile_finds_the_repository_that_the_editor_has_open(client: Lines, repos: Repos) -> None:
    session = new(client, repos.first / "lib", profile="project")["sessionId"]
    client.request("session/set_config_option", profile(session, "librarian"))
    assert statuses(client)[session]["context"] == repos.context()


def test_the_profile_finds_the_repository_that_was_named_as_root(client: Lines, repos: Repos) -> None:
    session = new(client, repos.work, profile="project", root=str(repos.second))["sessionId"]
    client.request("session/set_config_option", profile(session, "librarian"))
    assert statuses(client)[session]["context"] == repos.context(SECOND)


def test_there_and_back_again_it_is_the_same_repository(daemon: DaemonProcess, client: Lines, repos: Repos) -> None:
    session = new(client, repos.work, **NAMES, environment="live")["sessionId"]
    for name, root in (("project", repos.work), ("librarian", repos.first), ("project", repos.work)):
        client.request("session/set_config_option", profile(session, name))
        assert statuses(client)[session]["root"] == str(root)
        client.request("session/close", {"sessionId": session})
        assert client.resume(session)["root"] == str(root)
    client.request("session/set_config_option", profile(session, "librarian"))
    assert statuses(client)[session]["context"] == repos.context(environment="live")
    changes = daemon.facts_of(session, SessionChanged)
    assert [change.context.technology for change in changes] == [None, FIRST, None, FIRST]


def test_a_root_that_was_named_waits_for_the_profile_that_has_one(client: Lines, repos: Repos) -> None:
    session = new(client, repos.work, profile="project", root=str(repos.first / "lib"))["sessionId"]
    client.request("session/set_config_option", profile(session, "librarian"))
    client.request("session/close", {"sessionId": session})
    assert client.resume(session)["context"] == repos.context()
    client.request("session/set_config_option", profile(session, "project"))
    assert statuses(client)[session]["root"] == str(repos.first / "lib")


# --- told -------------------------------------------------------------------------------------------------------------


def test_the_agents_own_status_tells_the_names(client: Lines, repos: Repos) -> None:
    session = new(client, repos.work, **NAMES, environment="live")["sessionId"]
    client.prompt(session, "/status")
    (said,) = [each["content"]["text"] for each in client.updates(session) if "content" in each]
    assert f"- root `{repos.first}`\n- environment `live`\n- group `elixir`\n- technology `phoenix`\n" in said


def test_a_listing_tells_the_profile_and_the_names_of_those_that_have_some(client: Lines, repos: Repos) -> None:
    named = new(client, repos.work, **NAMES)["sessionId"]
    other = new(client, repos.work, profile="project")["sessionId"]
    listed = client.request("session/list", {"cwd": str(repos.work)})["sessions"]
    found = {each["sessionId"]: each.get("_meta") for each in listed}
    assert found[named] == {extensions.OPTIONS: {"profile": "librarian", "group": GROUP, "technology": FIRST}}
    assert found[other] == {extensions.OPTIONS: {"profile": "project"}}


def test_a_profile_says_what_it_has(client: Lines, repos: Repos) -> None:
    result = client.request("session/new", params(repos.work, **NAMES))
    (option,) = [each for each in result["configOptions"] if each["id"] == "profile"]
    (found,) = [each for each in option["options"] if each["value"] == "librarian"]
    assert found["description"] == "read_file, list_directory, search_files, find_files, recall"


# --- taken up again ---------------------------------------------------------------------------------------------------

WAYS: Final = ["session/load", "session/resume"]


@pytest.mark.parametrize("method", WAYS)
def test_taken_up_in_the_next_daemon_it_is_where_it_was(own: Repos, method: str) -> None:
    daemon = DaemonProcess(own.home, own.work)
    with daemon, daemon.client() as client:
        session = new(client, own.work, **NAMES, environment="live")["sessionId"]
    own.configure(environment="another")
    with daemon, daemon.client() as client:
        result = client.request(method, {"sessionId": session, "cwd": str(own.second), "mcpServers": []})
        assert result["_meta"][extensions.OPTIONS]["context"] == own.context(environment="live")


def test_taken_up_it_is_in_no_environment_that_was_configured_since(own: Repos) -> None:
    daemon = DaemonProcess(own.home, own.work)
    with daemon, daemon.client() as client:
        session = new(client, own.first, profile="librarian")["sessionId"]
    own.configure(environment="another")
    with daemon, daemon.client() as client:
        assert client.resume(session)["context"] == own.context()


MOVES: Final = [
    ("the technology is gone", "gone", "No technology 'phoenix'."),
    ("the technology has become a link", "linked", "No technology 'phoenix': it is a symbolic link"),
    ("the repositories are elsewhere", "elsewhere", "now leads to"),
    ("the repositories are nowhere", "nowhere", "does not exist"),
]


@pytest.mark.parametrize(("move", "words"), [row[1:] for row in MOVES], ids=[row[0] for row in MOVES])
def test_a_repository_that_is_not_where_it_was_is_not_taken_up(own: Repos, move: str, words: str) -> None:
    daemon = DaemonProcess(own.home, own.work)
    with daemon, daemon.client() as client:
        session = new(client, own.work, **NAMES)["sessionId"]
    match move:
        case "gone":
            own.first.rename(own.path / "rust" / "moved")
        case "linked":
            own.first.rename(own.path / "rust" / "moved")
            own.first.symlink_to("../rust/moved")
        case "elsewhere":
            (own.work / GROUP / FIRST).mkdir(parents=True)
            own.configure(repos_path=str(own.work))
        case "nowhere":
            own.configure(repos_path="/does/not/exist")
    with daemon, daemon.client() as client:
        error = client.refused("session/resume", named(session))
        assert error["data"]["kind"] == "config"
        assert words in error["message"]
