"""Sessions have the programs of the client that opened them, and share workers where these come to the same."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio

from supervisor.acp import extensions
from supervisor.categories.stand_ins import programs_behind
from supervisor.config.settings import load
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.errors import ConfigError
from supervisor.session.resources import SessionResources
from tests.supervisor.categories.homes import make

if TYPE_CHECKING:
    from supervisor.daemon.protocol.connection import Connection


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two directories of programs."""
    make(home := tmp_path.resolve() / "person", ["a/bin/mine", "b/bin/mine", ".gitconfig = [user]\n\tname = N\n"])
    monkeypatch.setenv("HOME", str(home))
    return home


async def opened(registry: SessionRegistry, root: Path, path: str | None, profile: str = "project") -> OpenSession:
    variables = None if path is None else {"PATH": path, "SECRET": "x"}
    options = extensions.SessionOptions(profile=profile, model="offline", variables=variables)
    session, _ = await registry.open(str(root), options)
    return session


def path_of(session: OpenSession) -> tuple[str, ...]:
    has = session.session.profile.surroundings
    assert has is not None
    return tuple(each for each in has.path if "/person/" in each)  # the machine may have programs of its own in /opt


async def test_workers_are_shared_where_paths_come_to_the_same(
    registry: SessionRegistry, root: Path, tools: Path
) -> None:
    with trio.fail_after(30):
        one = await opened(registry, root, f"{tools}/a/bin:/no/such")
        same = await opened(registry, root, f"{tools}:{tools}/b/../a/bin:.")
        other = await opened(registry, root, f"{tools}/b/bin")
    assert path_of(one) == path_of(same) == (f"{tools}/a/bin",)
    assert path_of(other) == (f"{tools}/b/bin",)
    assert one.session.pools is same.session.pools
    assert one.session.pools is not other.session.pools


async def test_a_client_that_tells_nothing_has_the_daemons_programs(registry: SessionRegistry, root: Path) -> None:
    with trio.fail_after(30):
        session = await opened(registry, root, None)
    assert session.session.profile.surroundings is not None


async def test_a_profile_without_commands_looks_for_none(registry: SessionRegistry, root: Path, tools: Path) -> None:
    with trio.fail_after(30):
        session = await opened(registry, root, f"{tools}/a/bin", "vault")
    assert session.session.profile.surroundings is None


async def test_reopened_it_has_the_programs_of_who_reopens_it(
    registry: SessionRegistry, root: Path, tools: Path
) -> None:
    with trio.fail_after(30):
        session = await opened(registry, root, f"{tools}/a/bin")
        await registry.close(session.id)
        options = extensions.SessionOptions(variables={"PATH": f"{tools}/b/bin"})
        again, _ = await registry.reopen(session.id, options)
        assert path_of(again) == (f"{tools}/b/bin",)
        await registry.change(again, "operator", None)
    assert path_of(again) == (f"{tools}/b/bin",)


async def test_who_looks_at_the_whole_machine_has_their_programs(registry: SessionRegistry, tools: Path) -> None:
    """Also its workers, which are those of the profile with the tools that are unavailable there."""
    with trio.fail_after(30):
        session = await opened(registry, Path("/"), f"{tools}/a/bin", "operator")
    profile = session.session.profile
    assert path_of(session) == (f"{tools}/a/bin",)
    assert profile.complete is not None
    assert profile.complete.surroundings == profile.surroundings


async def test_a_session_that_is_open_keeps_its_programs_while_somebody_is_there(
    registry: SessionRegistry, root: Path, tools: Path
) -> None:
    here = cast("Connection", object())
    other = extensions.SessionOptions(variables={"PATH": f"{tools}/b/bin"})
    same = extensions.SessionOptions(variables={"PATH": f"{tools}/a/../a/bin"})
    with trio.fail_after(30):
        session = await opened(registry, root, f"{tools}/a/bin")
        session.subscribers.clients.append(here)
        assert await registry.reopen(session.id, same) == (session, [])
        assert await registry.reopen(session.id, extensions.SessionOptions()) == (session, [])
        kept, (notice,) = await registry.reopen(session.id, other)
        assert (kept, notice[:26]) == (session, "COMMANDS KEEP THE PROGRAMS")
        session.subscribers.clients.clear()
        again, notices = await registry.reopen(session.id, other)
    assert (path_of(again), notices) == ((f"{tools}/b/bin",), [])
    assert path_of(session) == (f"{tools}/a/bin",)


async def test_an_environment_that_is_broken_is_told_at_once(registry: SessionRegistry, root: Path) -> None:
    make(root, [".venv/pyvenv.cfg = home = /gone/bin\n", ".venv/bin/python3 -> /gone/bin/python3"])
    options = extensions.SessionOptions(profile="project", model="offline")
    with trio.fail_after(30):
        _, notices = await registry.open(str(root), options)
    assert [each for each in notices if "BROKEN: .venv has no Python" in each and "venv --clear .venv" in each]


async def test_variables_that_lead_out_of_the_root_open_no_session_with_commands(
    resources: SessionResources, registry: SessionRegistry, root: Path
) -> None:
    resources.settings.config_file.write_text('[shell]\nenv = { PYTHONPATH = "/srv/elsewhere" }\n')
    resources.use_settings(load({"STRONGROOM_HOME": str(resources.settings.home)}))
    with trio.fail_after(30), pytest.raises(ConfigError, match="PYTHONPATH"):
        await opened(registry, root, None)


async def test_a_directory_that_does_not_answer_costs_what_follows_it_and_not_the_session(
    registry: SessionRegistry, root: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    def looked(directory: str, *more: Any) -> Any:
        if directory.endswith("b/bin"):
            answers.wait(60)
        return programs_behind(directory, *more)

    monkeypatch.setattr("supervisor.categories.toolchains.programs_behind", looked)
    monkeypatch.setattr("supervisor.session.surveys._TIMEOUT_S", 0.5)
    options = extensions.SessionOptions(
        profile="project", model="offline", variables={"PATH": f"{tools}/a/bin:{tools}/b/bin:/usr/bin"}
    )
    with trio.fail_after(30):
        session, notices = await registry.open(str(root), options)
    answers.set()
    assert path_of(session) == (f"{tools}/a/bin",)
    assert [each for each in notices if f"DOES NOT ANSWER: {tools}/b/bin." in each]


async def test_who_opens_many_sessions_at_once_is_looked_around_for_once(
    registry: SessionRegistry, root: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.session.surveys._HOLDS_S", 1000)
    with trio.fail_after(30):
        one = await opened(registry, root, f"{tools}/a/bin")
        make(tools, ["a/bin/more -> ../../b/bin/mine"])
        two = await opened(registry, root, f"{tools}/a/bin")
        other = await opened(registry, root, f"{tools}/a/bin:")
    has = [each.session.profile.surroundings for each in (one, two, other)]
    assert has[0] is has[1]
    assert has[1] != has[2]
