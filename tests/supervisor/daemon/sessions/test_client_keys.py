"""A client's own key counts for the sessions that it opens, goes to that client's server, and is written nowhere."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.config.key_store import KeptKey, KeyStore
from tests.daemon_process import DaemonProcess, Lines, named
from tests.messages_server import MessagesServer, error, reply

OWN: Final = "sk-of-the-daemon"
KEPT: Final = "sk-kept-by-login"
TOLD: Final = "sk-CANARY-of-a-client"
MODEL: Final = "claude-haiku-5-5"


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[MessagesServer, MessagesServer]]:
    """The server that the daemon's environment names, and the one that the client's does."""
    with MessagesServer() as own, MessagesServer() as theirs:
        yield own, theirs


@pytest.fixture(scope="module")
def daemon(
    servers: tuple[MessagesServer, MessagesServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("keys")
    (folder / "root").mkdir()
    names = {"ANTHROPIC_API_KEY": OWN, "ANTHROPIC_BASE_URL": servers[0].url}
    daemon = DaemonProcess(folder / "home", folder, **names)
    daemon.prelude = "import sys\n"  # a process of its own: what is forked has the environment of its parent
    with daemon:
        yield daemon


def client(daemon: DaemonProcess, key: str = "", server: str = "") -> Lines:
    """Return a client with these in its environment."""
    lines = daemon.client()
    keys = {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": server, "UNRELATED_SECRET": "x"}
    lines.notify(extensions.VARIABLES, {"variables": {}, "keys": keys})
    return lines


def asked_with(server: MessagesServer, lines: Lines, session: str) -> str:
    """Run a turn, and return the key that its request had."""
    before = len(server.requests)
    server.add(reply("Done."))
    lines.prompt(session, "go")
    (request,) = server.requests[before:]
    return request.headers["authorization"].removeprefix("Bearer ")


def opened(daemon: DaemonProcess, lines: Lines) -> str:
    return lines.new_session(daemon.folder / "root", model=MODEL)


def test_the_client_is_told_which_variables_hold_keys(daemon: DaemonProcess) -> None:
    with daemon.lines() as lines:
        told = lines.initialize()["_meta"][extensions.KEY_VARIABLES]
    assert {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "GOOGLE_API_KEY", "OLLAMA_HOST"} <= set(told)


def test_each_client_asks_its_own_server_with_its_own_key(
    daemon: DaemonProcess, servers: tuple[MessagesServer, MessagesServer]
) -> None:
    own, theirs = servers
    with client(daemon, TOLD, theirs.url) as one, client(daemon) as other:
        first, second = opened(daemon, one), opened(daemon, other)
        assert asked_with(theirs, one, first) == TOLD
        assert asked_with(own, other, second) == OWN
        one.request("session/set_config_option", {"sessionId": first, "configId": "model", "value": "claude-other"})
        assert asked_with(theirs, one, first) == TOLD


def test_resumed_by_a_client_without_a_key_it_has_the_kept_one_else_the_daemons(
    daemon: DaemonProcess, servers: tuple[MessagesServer, MessagesServer]
) -> None:
    own, theirs = servers
    store = KeyStore(daemon.home / "keys.json")
    with client(daemon, TOLD, theirs.url) as one, client(daemon) as other:
        session = opened(daemon, one)
        (notice,) = other.resume(session)["notices"]
        assert notice.startswith("THE KEY IS THAT of the client that opened this session")
        assert asked_with(theirs, other, session) == TOLD  # as long as that one is here
    with client(daemon) as other:
        assert "notices" not in other.resume(session)
        assert asked_with(own, other, session) == OWN
    store.keep("anthropic", KeptKey(KEPT, own.url))
    with client(daemon) as other:
        assert asked_with(own, other, opened(daemon, other)) == KEPT
        other.request("session/close", {"sessionId": session})
        other.resume(session)
        assert asked_with(own, other, session) == KEPT
    with client(daemon, TOLD, theirs.url) as one:
        one.resume(session)
        assert asked_with(theirs, one, session) == TOLD
    store.forget("anthropic")


def test_a_key_is_in_no_file_no_answer_and_no_error(
    daemon: DaemonProcess, servers: tuple[MessagesServer, MessagesServer]
) -> None:
    _, theirs = servers
    refusal: Any = error(401, f"invalid x-api-key {TOLD}", "authentication_error")
    with client(daemon, TOLD, theirs.url) as one:
        session = opened(daemon, one)
        theirs.add(refusal)
        failed = one.answer(one.begin_prompt(session, "go"))
        assert failed["error"]["data"]["kind"] == "authentication"
        heard = [one.status(), failed, one.heard, one.load(session), one.refused("session/load", named(TOLD))]
        wrong = one.refused("session/new", {"cwd": 7, "_meta": {extensions.OPTIONS: {"model": TOLD}}})
    assert "CANARY" not in str([*heard[:-1], wrong])
    kept = [file for file in daemon.home.rglob("*") if file.is_file()]
    assert [file.name for file in kept if b"CANARY" in file.read_bytes()] == []
    for process in (daemon.pid, *daemon.children()):
        for name in ("environ", "cmdline"):
            with suppress(PermissionError):  # only root looks into a template of workers
                assert b"CANARY" not in Path(f"/proc/{process}/{name}").read_bytes()
