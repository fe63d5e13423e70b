"""Profiles: a set of tools on a root, and a root that never holds the keys to the house."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from supervisor.config.profiles import Profile, profiles, resolve
from supervisor.config.settings import Settings, load
from supervisor.errors import ConfigError
from supervisor.session.child_specs import child_spec
from workers.catalog import offered_tools
from workers.shell.shell_inputs import ShellInputs


def settings(home: Path, text: str = "") -> Settings:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return load({"STRONGROOM_HOME": str(home)})


def refusal(home: Path, text: str = "", name: str | None = None, root: Path | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve(settings(home, text), name, str(root) if root else None)
    return str(caught.value)


BUILT_IN: Final = [
    (
        "vault",
        ("read_file", "write_file", "edit_file", "list_files", "search_files", "fetch_url", "recall", "read_skill"),
        True,
    ),
    (
        "project",
        (
            "read_file",
            "write_file",
            "edit_file",
            "list_directory",
            "search_files",
            "exec_shell",
            "recall",
            "read_skill",
        ),
        True,
    ),
    ("operator", ("read_file", "list_directory", "run_cmd", "recall", "read_skill"), True),
    ("librarian", ("read_file", "list_directory", "search_files", "find_files", "recall"), False),
]


@pytest.mark.parametrize(("name", "tools", "writable"), BUILT_IN, ids=[row[0] for row in BUILT_IN])
def test_a_profile_is_built_in(home: Path, name: str, tools: tuple[str, ...], writable: bool) -> None:
    profile = profiles(settings(home))[name]
    assert profile.tools == tools
    assert profile.writable == writable


def test_a_built_in_profile_is_overridden_key_by_key(home: Path, root: Path) -> None:
    text = f"[profiles.vault]\nroot = '{root}'\nwritable = false"
    profile = resolve(settings(home, text), "vault", None)
    assert (profile.root, profile.writable) == (str(root), False)
    assert profile.tools == ("read_file", "list_files", "search_files", "fetch_url", "recall", "read_skill")


def test_a_new_profile_stands_beside_them(home: Path, root: Path) -> None:
    text = f"[profiles.mine]\nroot = '{root}'\ntools = ['read_file']\nask = ['read_file']"
    profile = resolve(settings(home, text), "mine", None)
    assert (profile.name, profile.root, profile.tools, profile.ask) == (
        "mine",
        str(root),
        ("read_file",),
        ("read_file",),
    )


ASKED: Final = [
    ("[profiles.project]\nwritable = true", "project", ()),
    ("[profiles.project]\nask = ['exec_shell']", "project", ("exec_shell",)),
    ("[profiles.vault]\ntools = ['read_file', 'exec_shell', 'run_cmd']", "vault", ("run_cmd",)),
    ("[profiles.operator]\nask = []", "operator", ("run_cmd",)),
    ("[profiles.operator]\nask = ['read_file']", "operator", ("read_file", "run_cmd")),
    ("[profiles.x]\nroot = '.'\ntools = ['exec_shell', 'run_cmd']", "x", ("run_cmd",)),
    ("[profiles.x]\nroot = '.'\ntools = ['exec_shell']\nask = []", "x", ()),
]


@pytest.mark.parametrize(("text", "name", "ask"), ASKED, ids=[text.replace("\n", " ") for text, _, _ in ASKED])
def test_the_text_of_a_command_line_is_always_asked_about(
    home: Path, text: str, name: str, ask: tuple[str, ...]
) -> None:
    assert profiles(settings(home, text))[name].ask == ask


def test_the_network_of_a_profile_is_in_normal_form(home: Path) -> None:
    text = "[profiles.project]\nnetwork = ['Example.org.:443', 'example.org:443', 'example.org:80']"
    assert profiles(settings(home, text))["project"].network == ("example.org:443", "example.org:80")


MIRRORS: Final = """
[registries]
pypi = "http://10.0.0.1:8080/simple/"
crates = "https://crates.corp.example/index"
"""


@pytest.mark.parametrize(
    ("text", "network", "told"),
    [
        ("", {"registry.npmjs.org:443", "files.pythonhosted.org:443", "sum.golang.org:443", "deb.debian.org:80"}, {}),
        ("[profiles.project]\nnetwork = ['registry:go', 'a.example:1']", {"proxy.golang.org:443", "a.example:1"}, {}),
        ("[profiles.project]\nnetwork = []" + MIRRORS, set(), {}),
        (
            MIRRORS,
            {"10.0.0.1:8080", "crates.corp.example:443", "registry.npmjs.org:443"},
            {
                "PIP_INDEX_URL": "http://10.0.0.1:8080/simple",
                "PIP_TRUSTED_HOST": "10.0.0.1:8080",
                ".cargo/config.toml": 'registry = "sparse+https://crates.corp.example/index/"',
            },
        ),
    ],
)
def test_registries_stand_for_hosts_and_mirrors_take_their_place(
    home: Path, root: Path, text: str, network: set[str], told: dict[str, str]
) -> None:
    known = settings(home, text)
    profile = resolve(known, "project", str(root))
    assert network <= set(profile.network)
    assert ("pypi.org:443" in profile.network) == (text == "")
    inputs = child_spec(known, profile, "shell").inputs
    assert isinstance(inputs, ShellInputs)
    given = {**inputs.registries.variables, **inputs.registries.files}
    assert all(words in given[name] for name, words in told.items())
    assert bool(given) == bool(told)


def test_the_configured_profile_is_the_default(home: Path, root: Path) -> None:
    text = f"profile = 'project'\n[profiles.project]\nroot = '{root}'"
    assert resolve(settings(home, text), None, None).name == "project"


def test_the_root_given_goes_before_the_profiles_own(home: Path, root: Path) -> None:
    text = "[profiles.vault]\nroot = '/nowhere'"
    assert resolve(settings(home, text), None, str(root)).root == str(root)


def test_a_root_is_resolved_once(home: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(root)
    monkeypatch.chdir(tmp_path)
    profile = resolve(settings(home), None, "link/../link/.")
    assert [profile.root, profile.context().working_directory] == [str(root)] * 2


def test_a_tilde_is_the_users_home(home: Path, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve(settings(home, "[profiles.vault]\nroot = '~/root'"), None, None).root == str(root)


WRONG: Final = [
    ("[profiles.x]\ntools = ['read_file']", "vault", "the new profile 'x' needs both `root` and `tools`"),
    ("[profiles.x]\nroot = '.'", "vault", "the new profile 'x' needs both `root` and `tools`"),
    ("[profiles.vault]\ntools = ['fly']", "vault", f"no tool 'fly'. Choose from: {', '.join(offered_tools())}."),
    ("[profiles.vault]\nask = ['reed_file']", "vault", "profile 'vault': no tool 'reed_file'"),
    ("[profiles.project]\nnetwork = ['example.org']", "project", "'example.org' is no host and port"),
    ("[profiles.project]\nnetwork = ['127.0.0.1:443']", "project", "'127.0.0.1' is an address"),
    ("[profiles.project]\nnetwork = ['*.example.org:443']", "project", "'*.example.org' is not a name"),
    ("[profiles.vault]\nnetwork = ['example.org:443']", "vault", "is for commands, and it has none"),
    (
        "[profiles.project]\nnetwork = ['registry:gems']",
        "project",
        "there is no registry:'gems'. Choose from: registry:n",
    ),
    ("profile = 'nobody'", None, "No profile 'nobody'. Choose one of: vault, project, "),
    ("", "nobody", "No profile 'nobody'. Choose one of: vault, project, "),
    ("[profiles.vault]\nroot = '/does/not/exist'", "vault", "The root '/does/not/exist' of profile 'vault'"),
    ("[profiles.vault]\nroot = '/dev/null'", "vault", "'/dev/null' of profile 'vault' is not a directory"),
]


@pytest.mark.parametrize(("text", "name", "words"), WRONG, ids=[words[:40] for *_, words in WRONG])
def test_a_profile_that_cannot_be_is_refused(home: Path, text: str, name: str | None, words: str) -> None:
    assert words in refusal(home, text, name)


def test_a_root_that_is_a_link_in_a_circle_or_no_text_is_refused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    assert "cannot be used" in refusal(home, root=tmp_path / "circle")
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    assert "not UTF-8" in refusal(home, root=Path(os.fsdecode(folder)))


# the root never holds the configuration or the journal ---------------------------------------------------------


def test_a_root_that_is_or_holds_the_home_is_refused(home: Path) -> None:
    home.mkdir()
    for root in (home, home.parent, Path("/")):
        assert "which Strongroom keeps for itself. Choose another root (--root DIR)" in refusal(home, root=root)


def test_a_root_that_holds_the_home_by_a_link_or_the_link_to_it_is_refused(tmp_path: Path) -> None:
    root, real = tmp_path / "room", tmp_path / "real"
    (root / "inside").mkdir(parents=True)
    real.mkdir()
    (tmp_path / "link").symlink_to(root / "inside")
    assert "which Strongroom keeps for itself" in refusal(tmp_path / "link", root=root)
    (root / "home").symlink_to(real)
    assert "which Strongroom keeps for itself" in refusal(root / "home", root=root)
    (real / "deep").mkdir()
    assert "which Strongroom keeps for itself" in refusal(root / "home" / "deep", root=root)


def test_a_root_that_holds_only_the_configuration_is_refused(tmp_path: Path) -> None:
    found = load({"HOME": str(tmp_path), "XDG_DATA_HOME": "/var/lib/x", "XDG_CONFIG_HOME": str(tmp_path / "room")})
    (tmp_path / "room" / "strongroom").mkdir(parents=True)
    with pytest.raises(ConfigError, match="which Strongroom keeps for itself"):
        resolve(found, None, str(tmp_path / "room"))


@pytest.mark.parametrize(
    "root",
    [
        *("run", "run/strongroom", "run/strongroom/vault", "state", "state/strongroom/logs/old"),
        *("data/strongroom/kept", "data/strongroom/vault", ".config/strongroom/vault"),
    ],
)
def test_a_root_with_the_socket_or_logs_or_within_what_is_kept_is_refused(tmp_path: Path, root: str) -> None:
    places = {"XDG_DATA_HOME": "data", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state"}
    found = load({"HOME": str(tmp_path), **{name: str(tmp_path / place) for name, place in places.items()}})
    (tmp_path / root).mkdir(parents=True)
    with pytest.raises(ConfigError, match="which Strongroom keeps for itself"):
        resolve(found, None, str(tmp_path / root))


def test_a_root_beside_the_home_is_fine(home: Path, tmp_path: Path) -> None:
    (tmp_path / "home-2").mkdir(parents=True)
    assert resolve(settings(home), None, str(tmp_path / "home-2")).root == str(tmp_path / "home-2")


# where a client stands -----------------------------------------------------------------------------------------


def test_a_profiles_own_root_is_beneath_the_clients_directory_or_that_itself(home: Path, root: Path) -> None:
    other = root.with_name("other")
    other.mkdir()
    known, chosen = settings(home), settings(home, f"[profiles.vault]\nroot = '{other}'")
    assert resolve(known, "vault", None, str(root)).root == str(root)
    assert resolve(chosen, "vault", None, str(root)).root == str(other)
    (root / "vault").mkdir()
    assert {resolve(each, "vault", None, str(root)).root for each in (known, chosen)} == {str(root / "vault")}


def test_a_link_there_does_not_lead_out_of_it(home: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "vault").symlink_to(root)
    with pytest.raises(ConfigError, match=f"is a link that leads to '{root}'"):
        resolve(settings(home), "vault", None, str(tmp_path / "place"))


def test_a_root_that_holds_our_code_is_only_read(home: Path) -> None:
    code = Path(__file__).parents[3]
    with pytest.raises(ConfigError, match="which Strongroom itself runs"):
        resolve(settings(home), "project", str(code))
    text = "[profiles.project]\nwritable = false"
    assert resolve(settings(home, text), "project", str(code)).root == str(code)


@pytest.mark.parametrize("network", ["[]", "['example.org:443']"])
def test_commands_are_given_the_network_of_their_profile_and_no_other(home: Path, root: Path, network: str) -> None:
    known = settings(home, f"[profiles.project]\nnetwork = {network}")
    spec = child_spec(known, resolve(known, "project", str(root)), "shell")
    assert isinstance(spec.inputs, ShellInputs)
    assert (spec.broker is not None, bool(spec.inputs.network)) == (network != "[]", network != "[]")


def test_only_in_a_source_tree_do_commands_have_a_localhost_of_their_own(home: Path, root: Path) -> None:
    known = settings(home, "")
    for name in ("code", "project", "operator"):
        inputs = child_spec(known, resolve(known, name, str(root)), "shell").inputs
        assert isinstance(inputs, ShellInputs)
        assert inputs.localhost is (name == "code")
    code = resolve(known, "code", str(root))
    assert not replace(code, copies=True).traits.localhost
    assert not replace(code, view="machine", network=()).traits.localhost


def test_who_sees_the_machine_has_no_network() -> None:
    seeing = Profile("looks", "/r", ("run_cmd",), view="machine")
    assert seeing.traits.machine
    assert not replace(seeing, network=("example.org:443",)).traits.machine
    assert not replace(seeing, copies=True).traits.machine
