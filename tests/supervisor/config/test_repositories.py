"""A technology's repository is found by two names, exactly, or somebody is told what there is."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from click.shell_completion import ShellComplete

from supervisor.cli.main import main
from supervisor.config.profiles import Profile, profiles, resolve
from supervisor.config.repositories import Names, Repositories, environment, name_problem
from supervisor.config.settings import Settings, load
from supervisor.errors import ConfigError
from tests.each_row import each_row
from tests.supervisor.repositories import EVERY_ODD, FIRST, GROUP, ODD, SECOND, THERE, Odd, Repos
from workers.wire.messages import Context


@pytest.fixture(scope="module")
def repos(tmp_path_factory: pytest.TempPathFactory) -> Repos:
    return Repos(tmp_path_factory.mktemp("librarian"))


@pytest.fixture
def own(tmp_path: Path) -> Repos:
    """Repositories that a test may change."""
    return Repos(tmp_path)


def settings(repos: Repos) -> Settings:
    return load({"STRONGROOM_HOME": str(repos.home)})


def opened(repos: Repos, cwd: str | None = None, **names: str) -> Profile:
    return resolve(settings(repos), "librarian", None, cwd, Names(**names))


def refusal(repos: Repos, cwd: str | None = None, **names: str) -> str:
    with pytest.raises(ConfigError) as caught:
        opened(repos, cwd or str(repos.work), **names)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 2000
    return message


# --- what is found ----------------------------------------------------------------------------------------------------


def test_its_root_is_the_directory_of_the_two_names(repos: Repos) -> None:
    profile = opened(repos, group=GROUP, technology=FIRST)
    assert (profile.root, profile.writable) == (str(repos.first), False)
    assert profile.tools == ("read_file", "list_directory", "search_files", "find_files", "recall")
    assert msgspec.to_builtins(profile.context()) == repos.context()


def test_two_technologies_are_two_profiles_with_workers_of_their_own(repos: Repos) -> None:
    first, second, again = (opened(repos, group=GROUP, technology=name) for name in (FIRST, SECOND, FIRST))
    assert first != second
    assert first == again


@pytest.mark.parametrize("name", [".github", "sql lite"])
def test_an_unusual_name_is_exact(repos: Repos, name: str) -> None:
    assert opened(repos, group=GROUP, technology=name).root == str(repos.path / GROUP / name)


@pytest.mark.parametrize("path", ["{0}/link", "../repos"])
def test_repos_path_may_be_a_link_or_relative_to_the_configuration(own: Repos, tmp_path: Path, path: str) -> None:
    (tmp_path / "link").symlink_to(own.path)
    own.configure(repos_path=path.format(tmp_path))
    assert opened(own, group=GROUP, technology=FIRST).root == str(own.first)


def test_by_default_they_are_in_the_users_home(own: Repos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own.home / "config.toml").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert opened(own, group=GROUP, technology=FIRST).root == str(own.first)


# --- names that lead nowhere ------------------------------------------------------------------------------------------


@each_row("odd", ODD, ids=EVERY_ODD)
def test_an_odd_technology_is_refused_and_the_others_are_named(repos: Repos, odd: Odd) -> None:
    message = refusal(repos, group=GROUP, technology=odd.technology)
    assert odd.words in message
    assert message.endswith(f" {THERE}")


@each_row("odd", ODD, ids=EVERY_ODD)
def test_an_odd_group_is_refused_and_the_others_are_named(repos: Repos, odd: Odd) -> None:
    message = refusal(repos, group=odd.technology, technology=FIRST)
    assert message.startswith("No group ")
    assert f"Groups in '{repos.path}' (`repos_path` of [librarian] in {repos.home / 'config.toml'}): " in message
    assert message.endswith(": elixir, rust.")


@pytest.mark.parametrize(("link", "target"), [("out", "outside"), ("up", "repos"), ("alias", "repos/elixir/phoenix")])
def test_of_a_link_it_is_said_where_it_leads(repos: Repos, link: str, target: str) -> None:
    message = refusal(repos, group=GROUP, technology=link)
    assert f"it is a symbolic link to '{repos.path.parent / target}', and links are not followed here" in message
    assert "No group 'linked': it is a symbolic link" in refusal(repos, group="linked", technology=FIRST)


MISSING: Final = [
    ("no names", {}, "needs a group and a technology", ": elixir, rust."),
    ("no group", {"technology": FIRST}, "needs a group", ": elixir, rust."),
    ("no technology", {"group": GROUP}, "needs a technology", THERE),
    ("no technology of an odd group", {"group": ".."}, "No group '..'", ": elixir, rust."),
    ("an environment alone", {"environment": "staging"}, "needs a group and a technology", ": elixir, rust."),
]


@each_row(("names", "words", "there"), [row[1:] for row in MISSING], ids=[row[0] for row in MISSING])
def test_names_that_are_missing_are_asked_for(repos: Repos, names: dict[str, str], words: str, there: str) -> None:
    message = refusal(repos, **names)
    assert words in message
    assert message.endswith(there)


def test_of_many_names_a_few_are_told_and_that_there_are_none(own: Repos) -> None:
    (own.path / "empty").mkdir()
    assert refusal(own, group="empty", technology="x").endswith("Technologies of group 'empty': none yet.")
    for number in range(50):
        (own.path / "rust" / f"crate-{number:02}{'x' * 80}").mkdir()
    message = refusal(own, group="rust", technology="nope")
    assert message.endswith(" and 31 more.")
    assert f"crate-00{'x' * 52}..., crate-01" in message


PLACES: Final = [
    ("a missing one", "/does/not/exist", "'/does/not/exist', does not exist"),
    ("a file", "/dev/null", "'/dev/null', is not a directory"),
    ("the home of nobody", "~nosuchuser/x", "'~nosuchuser/x', cannot be used"),
    ("nothing that can be", "/\\u0000", "cannot be used"),
    ("a name far too long", "/" + "x" * 5000, "cannot be used: File name too long"),
]


@pytest.mark.parametrize(("path", "words"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES])
def test_a_repos_path_that_leads_nowhere_is_told_with_its_file(own: Repos, path: str, words: str) -> None:
    (own.home / "config.toml").write_text(f'[librarian]\nrepos_path = "{path}"')
    with pytest.raises(ConfigError) as caught:
        opened(own, group=GROUP, technology=FIRST)
    assert words in str(caught.value)
    assert f"Set `repos_path` of [librarian] in {own.home / 'config.toml'}" in str(caught.value)


def test_a_repos_path_whose_name_is_no_text_is_refused(own: Repos, tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        Repositories(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"), own.home / "config.toml").root()


def test_a_group_that_cannot_be_listed_is_a_sentence(own: Repos, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may list everything, so the listing itself is made to fail."""

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ConfigError, match=f"'{own.path}' cannot be listed: Permission denied"):
        opened(own, group=GROUP, technology=FIRST)


def test_a_repository_that_holds_the_home_is_refused(own: Repos) -> None:
    own.configure(repos_path=str(own.home.parent.parent))
    names = {"group": own.home.parent.name, "technology": own.home.name}
    assert "which Strongroom keeps for itself" in refusal(own, **names)


# --- the directory that one stands in ---------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["elixir/phoenix", "elixir/phoenix/lib", "elixir/alias", "linked/phoenix"])
def test_without_names_it_is_the_repository_that_one_stands_in(repos: Repos, place: str) -> None:
    profile = opened(repos, str(repos.path / place))
    assert msgspec.to_builtins(profile.context()) == repos.context()


@each_row("place", [".", "elixir", "../work", "/", "elixir/up", "elixir/out"])
def test_beside_every_repository_there_are_no_names(repos: Repos, place: str) -> None:
    assert "needs a group and a technology" in refusal(repos, str(repos.path / place))


def test_names_go_before_the_place_and_that_before_the_current_directory(
    repos: Repos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repos.second)
    assert opened(repos).root == str(repos.second)
    assert opened(repos, str(repos.first), group=GROUP, technology=SECOND).root == str(repos.second)
    assert "needs a technology" in refusal(repos, str(repos.first), group=GROUP)


# --- the environment --------------------------------------------------------------------------------------------------

ENVIRONMENTS: Final = [
    ("nothing anywhere", None, None, None),
    ("configured", "staging", None, "staging"),
    ("named", None, "live", "live"),
    ("named instead", "staging", "live", "live"),
    ("none instead", "staging", "", None),
    ("configured as none", "", None, None),
]


@pytest.mark.parametrize(
    ("configured", "named", "told"), [row[1:] for row in ENVIRONMENTS], ids=[row[0] for row in ENVIRONMENTS]
)
def test_the_environment_is_told(own: Repos, configured: str | None, named: str | None, told: str | None) -> None:
    own.configure(**({} if configured is None else {"environment": configured}))
    names = Names(GROUP, FIRST, named)
    assert resolve(settings(own), "librarian", None, None, names).context().environment == told


@each_row("odd", [row for row in ODD[1:20] if name_problem(row.technology)], ids=lambda row: row.name)
def test_an_odd_environment_is_refused(repos: Repos, odd: Odd) -> None:
    message = refusal(repos, group=GROUP, technology=FIRST, environment=odd.technology)
    assert message.startswith("No environment ")
    assert message.endswith("Name another with --environment, or '' for none.")


@each_row("odd", ODD[1:20], ids=lambda row: row.name)
def test_a_name_that_is_taken_fits_the_context(odd: Odd) -> None:
    """What the rule lets through is what every worker accepts, and no more than that is refused."""
    for name in (FIRST, "日" * 85, "x" * 128, "ä.b-c_d", "{a}", "~"):
        assert environment(name) == Context("/", name).environment
    with pytest.raises(ConfigError):
        environment(odd.technology)


@each_row("name", ["", "a/b", "a\0", "a\n", "\n", "a\x7f", "x" * 129])
def test_no_context_holds_an_odd_name(name: str) -> None:
    for field in ("group", "technology", "environment"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"working_directory": "/", field: name}, Context)


# --- with other profiles, and in the configuration --------------------------------------------------------------------


def test_a_root_and_names_are_not_for_the_same_profile(repos: Repos) -> None:
    with pytest.raises(ConfigError, match="The profile 'librarian' takes no root such as '/srv'"):
        resolve(settings(repos), "librarian", "/srv", None, Names(GROUP, FIRST))
    with pytest.raises(ConfigError, match="or another profile with --root"):
        resolve(settings(repos), "librarian", str(repos.first))


@pytest.mark.parametrize("names", [Names(GROUP), Names(None, FIRST), Names(None, None, "live"), Names("")])
def test_another_profile_takes_no_names(repos: Repos, names: Names) -> None:
    for root in (None, str(repos.work)):
        with pytest.raises(
            ConfigError, match=r"The profile 'project' works on a root.* use them with --profile librarian"
        ):
            resolve(settings(repos), "project", root, None, names)


OVERRIDES: Final = [
    ("ask = ['read_file']", {"own_ask": ("read_file",)}),
    ("tools = ['read_file']", {"own_tools": ("read_file",)}),
    ("tools = ['read_file', 'write_file']", {"own_tools": ("read_file",)}),
    ("writable = false", {}),
]


@pytest.mark.parametrize(("text", "changed"), OVERRIDES)
def test_it_is_overridden_key_by_key_and_still_only_read(own: Repos, text: str, changed: dict[str, Any]) -> None:
    before = opened(own, group=GROUP, technology=FIRST)
    own.configure(f"[profiles.librarian]\n{text}")
    assert opened(own, group=GROUP, technology=FIRST) == replace(before, **({"own_tools": before.tools} | changed))


@pytest.mark.parametrize("text", ["root = '/srv'", "writable = true", "root = '/srv'\ntools = ['read_file']"])
def test_its_root_is_never_another_and_never_written(own: Repos, text: str) -> None:
    own.configure(f"[profiles.librarian]\n{text}")
    with pytest.raises(ConfigError, match="the profile 'librarian' is read-only, and its root is repos_path"):
        profiles(settings(own))


# --- what a shell offers ----------------------------------------------------------------------------------------------

TYPED: Final = [
    ("groups", ["call", "--profile", "librarian", "--group"], "", ["elixir", "rust"]),
    ("groups that begin so", ["console", "--group"], "r", ["rust"]),
    ("technologies", ["tools", "--group", "rust", "--technology"], "", ["tokio"]),
    ("technologies that begin so", ["batch", "--group", GROUP, "--technology"], "p", [FIRST]),
    ("technologies of no group", ["call", "--technology"], "", []),
    ("technologies of an odd group", ["call", "--group", "..", "--technology"], "", []),
]


@pytest.mark.parametrize(("typed", "begin", "offered"), [row[1:] for row in TYPED], ids=[row[0] for row in TYPED])
def test_a_shell_completes_names(
    repos: Repos, monkeypatch: pytest.MonkeyPatch, typed: list[str], begin: str, offered: list[str]
) -> None:
    monkeypatch.setenv("STRONGROOM_HOME", str(repos.home))
    found = ShellComplete(main, {}, "strongroom", "_COMPLETE").get_completions(typed, begin)
    assert [item.value for item in found] == offered
