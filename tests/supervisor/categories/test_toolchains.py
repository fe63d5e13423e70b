"""What of a person's PATH and home commands are shown, on homes that are made for it: programs, and no secrets."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.categories.shown_places import HiddenPlaces
from supervisor.categories.surroundings import Survey, survey
from tests.supervisor.categories.homes import PYTHON, SECRETS, make, tree

Look = Callable[..., Survey]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with everything that nobody else shall see."""
    found = tmp_path.resolve() / "person"
    return tree(found, SECRETS)


@pytest.fixture
def look(home: Path) -> Look:
    """Return what looks around with a PATH, in a root beside the home's other directories."""
    root = home / "work/root"
    root.mkdir(parents=True)

    def looked(path: str = "", named: tuple[str, ...] = ("path", "known"), **person: str) -> Survey:
        path = path.replace("~", str(home))
        kept = HiddenPlaces(str(home), (str(home / ".local/share/strongroom"),), str(root))
        given = {name: value.replace("~", str(home)) for name, value in person.items()}
        return survey(named, {}, kept, {"PATH": path, **given}, "here")

    return looked


def inside(home: Path, places: tuple[str, ...]) -> list[str]:
    return [each.removeprefix(f"{home}/") for each in places if each.startswith(f"{home}/")]


NODE = ("bin/node", "lib/node_modules/npm/x", "etc/npmrc", ".npmrc")

SHOWN = [
    # name, files of the home, PATH, directories searched, what is shown
    ("an own bin", ["bin/tool"], "~/bin", ["bin"], ["bin"]),
    ("an own bin beside an own lib", ["bin/tool", "lib/mine"], "~/bin", ["bin"], ["bin"]),
    ("a program called as a secret is", ["bin/token", "bin/.gitignore"], "~/bin", ["bin"], ["bin"]),
    (
        "a prefix",
        ["apps/x/bin/x", "apps/x/lib/y", "apps/x/etc/z"],
        "~/apps/x/bin",
        ["apps/x/bin"],
        ["apps/x/bin", "apps/x/lib"],
    ),
    ("a source tree", ["src/bin/x", "src/lib/y", "src/.git/config"], "~/src/bin", ["src/bin"], ["src/bin"]),
    (
        "a JDK",
        ["jdk/bin/java", "jdk/lib/modules", "jdk/conf/a", "jdk/x.key"],
        "~/jdk/bin",
        ["jdk/bin"],
        ["jdk/bin", "jdk/lib", "jdk/conf"],
    ),
    (
        "Go",
        ["sdk/go1.22/bin/go", "sdk/go1.22/lib/x", "sdk/go1.22/VERSION", "sdk/go1.22/src/x"],
        "",
        ["sdk/go1.22/bin"],
        ["sdk/go1.22/bin", "sdk/go1.22/lib", "sdk/go1.22/VERSION", "sdk/go1.22/src"],
    ),
    ("what go installs", ["go/bin/gopls", "go/pkg/mod/secret"], "~/go/bin", ["go/bin"], ["go/bin"]),
    ("cargo", [".cargo/bin/rg", ".cargo/registry/x"], "~/.cargo/bin", [".cargo/bin"], [".cargo/bin"]),
    (
        "conda",
        ["c/bin/python3", "c/lib/x", "c/.condarc", "c/envs/a/bin/x", "c/conda-meta/h"],
        "~/c/bin",
        ["c/bin"],
        ["c/bin", "c/lib"],
    ),
    (
        "a conda environment",
        ["c/envs/a/bin/x", "c/envs/a/lib/x"],
        "~/c/envs/a/bin",
        ["c/envs/a/bin"],
        ["c/envs/a/bin", "c/envs/a/lib"],
    ),
    (
        "nvm",
        [f".nvm/versions/node/v9/{x}" for x in NODE] + [f".nvm/versions/node/v22/{x}" for x in NODE],
        "",
        [".nvm/versions/node/v22/bin"],
        [".nvm/versions/node/v22/bin", ".nvm/versions/node/v22/lib"],
    ),
    (
        "fnm by a link",
        [f".local/share/fnm/node-versions/v2/installation/{x}" for x in NODE]
        + ["run/fnm_1 -> ../.local/share/fnm/node-versions/v2/installation"],
        "~/run/fnm_1/bin",
        [".local/share/fnm/node-versions/v2/installation/bin"],
        ["run/fnm_1", *(f".local/share/fnm/node-versions/v2/installation/{x}" for x in ("bin", "lib"))],
    ),
    (
        "sdkman",
        ["s/c/java/21/bin/java", "s/c/java/21/lib/x", "s/c/java/current -> 21"],
        "~/s/c/java/current/bin",
        ["s/c/java/21/bin"],
        ["s/c/java/current", "s/c/java/21/bin", "s/c/java/21/lib"],
    ),
    (
        "bun, deno, pnpm",
        [".bun/bin/bun", ".bun/install/x", ".deno/bin/deno", ".local/share/pnpm/pnpm"],
        "",
        [".bun/bin", ".deno/bin", ".local/share/pnpm"],
        [".bun/bin", ".deno/bin", ".local/share/pnpm"],
    ),
    (
        "pipx by a link",
        [
            *(f".local/share/pipx/venvs/t/{x}" for x in ("bin/t", "lib/p/x", "pip.conf", "pipx_metadata.json")),
            ".local/bin/t -> ../share/pipx/venvs/t/bin/t",
        ],
        "~/.local/bin",
        [".local/bin"],
        [".local/bin", ".local/share/pipx/venvs/t/bin", ".local/share/pipx/venvs/t/lib"],
    ),
    (
        "a tool of uv, and its Python",
        [
            *(f".local/share/uv/python/cpython-3.12/{x}" for x in PYTHON),
            *(f".local/share/uv/tools/r/{x}" for x in ("bin/r", "lib/x", "uv-receipt.toml")),
            ".local/share/uv/tools/r/pyvenv.cfg = home = HOME/.local/share/uv/python/cpython-3.12/bin\n",
            ".local/bin/r -> ../share/uv/tools/r/bin/r",
        ],
        "~/.local/bin",
        [".local/bin", ".local/share/uv/python/cpython-3.12/bin"],
        [
            ".local/bin",
            *(f".local/share/uv/tools/r/{x}" for x in ("bin", "lib", "pyvenv.cfg")),
            *(f".local/share/uv/python/cpython-3.12/{x}" for x in ("bin", "lib")),
        ],
    ),
    (
        "a script's interpreter",
        [".local/bin/t = #!HOME/py/bin/python3\n", *(f"py/{x}" for x in PYTHON)],
        "~/.local/bin",
        [".local/bin"],
        [".local/bin", "py/bin", "py/lib"],
    ),
    (
        "Homebrew",
        ["brew/bin/x -> ../Cellar/x/1/bin/x", "brew/Cellar/x/1/bin/x", "brew/lib/y", "brew/etc/z", "brew/var/w"],
        "~/brew/bin",
        ["brew/bin"],
        ["brew/bin", "brew/lib", "brew/Cellar"],
    ),
    (
        "pyenv's choice",
        [
            *(f".pyenv/versions/{v}/{x}" for v in ("3.9.1", "3.12.2") for x in (*PYTHON, "pip.conf")),
            ".pyenv/shims/python3",
            ".pyenv/version = 3.9.1\n",
        ],
        "~/.pyenv/shims",
        [".pyenv/versions/3.9.1/bin"],
        [".pyenv/versions/3.9.1/bin", ".pyenv/versions/3.9.1/lib"],
    ),
    (
        "what the root asks pyenv for",
        [
            *(f".pyenv/versions/{v}/{x}" for v in ("3.9.1", "3.12.2") for x in PYTHON),
            ".pyenv/shims/python3",
            ".pyenv/version = 3.9.1\n",
            "work/root/.python-version = 3.12 # new\n",
        ],
        "",
        [".pyenv/versions/3.12.2/bin"],
        [".pyenv/versions/3.12.2/bin", ".pyenv/versions/3.12.2/lib"],
    ),
    (
        "a root that asks pyenv for a path",
        [
            *(f".pyenv/versions/3.9.1/{x}" for x in PYTHON),
            ".pyenv/shims/p",
            "work/root/.python-version = ../../.ssh\n/etc\n..\n.\n",
        ],
        "~/.pyenv/shims",
        [],
        [],
    ),
    (
        "rbenv",
        [
            ".rbenv/versions/3.3.0/bin/ruby",
            ".rbenv/versions/3.3.0/lib/x",
            ".rbenv/shims/ruby",
            ".rbenv/libexec/rbenv",
            ".rbenv/version = 3.3.0\n",
        ],
        "~/.rbenv/shims",
        [".rbenv/versions/3.3.0/bin"],
        [".rbenv/versions/3.3.0/bin", ".rbenv/versions/3.3.0/lib"],
    ),
    (
        "asdf",
        [
            *(f".asdf/installs/{x}" for x in ("nodejs/20.1.0/bin/node", "nodejs/22.0.0/bin/node", "erlang/26/bin/erl")),
            ".asdf/shims/node",
            ".tool-versions = nodejs 20.1.0\n",
        ],
        "~/.asdf/shims",
        [".asdf/installs/erlang/26/bin", ".asdf/installs/nodejs/20.1.0/bin"],
        [".asdf/installs/erlang/26/bin", ".asdf/installs/nodejs/20.1.0/bin"],
    ),
    (
        "asdf, as the root asks and not the person",
        [
            *(f".asdf/installs/nodejs/{x}/bin/node" for x in ("20.1.0", "22.0.0")),
            ".asdf/shims/node",
            ".tool-versions = nodejs 22.0.0\n",
            "work/root/.tool-versions = nodejs 20.1.0\n",
        ],
        "~/.asdf/shims",
        [".asdf/installs/nodejs/20.1.0/bin"],
        [".asdf/installs/nodejs/20.1.0/bin"],
    ),
    (
        "a version that begins like the one that is asked for",
        [*(f".pyenv/versions/3.12.2/{x}" for x in PYTHON), ".pyenv/shims/python3", "work/root/.python-version = 3.1\n"],
        "~/.pyenv/shims",
        [],
        [],
    ),
    (
        "each candidate of sdkman",
        [f".sdkman/candidates/{x}/current/bin/{x}" for x in ("gradle", "kotlin")],
        "",
        [f".sdkman/candidates/{x}/current/bin" for x in ("gradle", "kotlin")],
        [f".sdkman/candidates/{x}/current/bin" for x in ("gradle", "kotlin")],
    ),
    (
        "mise",
        [
            *(f".local/share/mise/installs/node/{x}/bin/node" for x in ("20.1.0", "22.0.0")),
            ".local/share/mise/shims/node",
            'work/root/mise.toml = [tools]\nnode = "20"\n',
        ],
        "",
        [".local/share/mise/installs/node/20.1.0/bin"],
        [".local/share/mise/installs/node/20.1.0/bin"],
    ),
    (
        "volta",
        [
            *(f".volta/tools/image/node/{v}/{x}" for v in ("18.0.0", "20.1.0") for x in ("bin/node", "lib/x")),
            ".volta/bin/node",
            '.volta/tools/user/platform.json = {"node": {"runtime": "18.0.0", "npm": null}}',
        ],
        "~/.volta/bin",
        [".volta/tools/image/node/18.0.0/bin"],
        [f".volta/tools/image/node/18.0.0/{x}" for x in ("bin", "lib")],
    ),
    (
        "rustup, as the root asks",
        [
            *(f".rustup/toolchains/{v}-x86/bin/rustc" for v in ("stable", "nightly")),
            ".cargo/bin/rustup",
            ".cargo/credentials.toml",
            '.rustup/settings.toml = default_toolchain = "stable-x86"\n',
            'work/root/rust-toolchain.toml = [toolchain]\nchannel = "nightly"\n',
        ],
        "~/.cargo/bin",
        [".rustup/toolchains/nightly-x86/bin", ".cargo/bin"],
        [".cargo/bin", ".rustup/settings.toml", ".rustup/toolchains", ".rustup/toolchains/nightly-x86/bin"],
    ),
    (
        "rustup's stand-ins, where these can choose",
        [
            ".rustup/toolchains/stable-x86/bin/rustc",
            ".rustup/update-hashes/x = y",
            ".rustup/downloads/x = y",
            ".cargo/bin/rustup",
            '.rustup/settings.toml = default_toolchain = "stable-x86"\n',
        ],
        "",
        [".cargo/bin", ".rustup/toolchains/stable-x86/bin"],
        [
            *(".cargo/bin", ".rustup/settings.toml", ".rustup/toolchains", ".rustup/toolchains/stable-x86/bin"),
            ".rustup/update-hashes",
        ],
    ),
    (
        "a program among packages",
        ["n/node_modules/.bin/x -> ../x/bin/x", "n/node_modules/x/bin/x", "n/node_modules/x/package.json", "n/.npmrc"],
        "~/n/node_modules/.bin",
        ["n/node_modules/.bin"],
        ["n/node_modules"],
    ),
]


@pytest.mark.parametrize(
    ("files", "path", "searched", "shown"), [row[1:] for row in SHOWN], ids=[row[0] for row in SHOWN]
)
def test_programs_are_shown_and_nothing_beside_them(
    files: list[str], path: str, searched: list[str], shown: list[str], home: Path, look: Look
) -> None:
    make(home, files)
    found = look(path).surroundings
    assert inside(home, found.path) == searched
    assert sorted(inside(home, found.shown)) == sorted(shown)


REFUSED = [
    # name, files of the home, the entry, words of the reason
    ("the home", ["x"], "~", "a home"),
    ("what holds the home", ["x"], "~/..", "a home"),
    ("everything", ["x"], "/", "a home"),
    ("a link to the home", ["bin -> ."], "~/bin", "a home"),
    ("settings", [".config/yarn/global/bin/x"], "~/.config/yarn/global/bin", ".config"),
    ("keys", [".ssh/bin/x"], "~/.ssh/bin", ".ssh"),
    ("a hidden directory of the home", [".thing/x"], "~/.thing", "hidden"),
    ("programs among secrets", ["tools/x", "tools/.env"], "~/tools", ".env"),
    ("programs beside a key", ["bin/x", "bin/server.key ="], "~/bin", "server.key"),
    ("another's home", ["other/.bashrc", "other/x"], "~/other", ".bashrc"),
    ("Strongroom's own", [".local/share/strongroom/bin/x"], "~/.local/share/strongroom/bin", "Strongroom keeps"),
    ("what holds Strongroom's own", ["x"], "~/.local/share", "Strongroom keeps"),
    ("the root", ["work/root/x"], "~/work/root", "the root itself"),
    ("a link to the root", ["bin -> work/root"], "~/bin", "the root itself"),
    ("settings of the system", [], "/etc", "/etc"),
    ("processes", [], "/proc/self", "/proc"),
    ("an empty entry", [], "", "empty or relative"),
    ("a relative entry", [], "bin", "empty or relative"),
    ("a dot", [], ".", "empty or relative"),
    ("a missing one", [], "~/no/such", "not there"),
    ("a file", ["file"], "~/file", "not a directory"),
    ("a loop", ["a -> b", "b -> a"], "~/a", "circle"),
    ("a link to itself", ["a -> a/a"], "~/a", "circle"),
    ("a long one", [], "/" + "x" * 5000, "longer"),
    ("a long name", [], "/" + "x" * 300, "too long"),
    ("a NUL", [], "/usr\0/bin", "NUL"),
    (
        "stand-ins for nothing that can be read",
        [".asdf/shims/x", ".asdf/installs = x"],
        "~/.asdf/shims",
        "Not a directory",
    ),
    ("one that cannot be decoded", [], "/\udcff", "not there"),
]


@pytest.mark.parametrize(("files", "entry", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_may_not_be_shown_is_refused_by_name_and_the_rest_counts(
    files: list[str], entry: str, words: str, home: Path, look: Look
) -> None:
    make(home, ["good/bin/x", *files])
    found = look(f"{entry}:~/good/bin", ("path",))
    assert inside(home, found.surroundings.path) == ["good/bin"]
    assert inside(home, found.surroundings.shown) == ["good/bin"]
    (place, why), *others = found.refused
    assert others == []
    assert words in why
    assert len(place) <= 256


def test_a_path_with_too_many_entries_is_cut(home: Path, look: Look) -> None:
    make(home, [f"b{number}/x" for number in range(300)])
    found = look(":".join(f"~/b{number}" for number in range(300)), ("path",))
    assert 100 < len(found.surroundings.shown) < 256
    assert any("256" in why for _, why in found.refused)
    assert any("128" in why for _, why in found.refused)


def test_a_huge_path_is_no_work(look: Look) -> None:
    assert look("x" * 2**20 + ":" * 2**16, ("path",)).surroundings.shown == ()


VENVS = [
    # name, files, words of the problem, whether the Python is shown
    (
        "one",
        ["work/root/.venv/pyvenv.cfg = home = HOME/py/bin\n", "work/root/.venv/bin/python3 -> HOME/py/bin/python3"],
        "",
        True,
    ),
    (
        "the other name",
        ["work/root/venv/pyvenv.cfg = home = HOME/py/bin\n", "work/root/venv/bin/python -> HOME/py/bin/python3"],
        "",
        True,
    ),
    ("with a copy", ["work/root/.venv/pyvenv.cfg = home = HOME/py/bin\n", "work/root/.venv/bin/python3"], "", True),
    (
        "by an alias",
        [
            "work/root/.venv/pyvenv.cfg = home = HOME/alias/bin\n",
            "work/root/.venv/bin/python3 -> HOME/alias/bin/python3",
        ],
        "",
        True,
    ),
    (
        "whose base is gone",
        ["work/root/.venv/pyvenv.cfg = home = HOME/gone/bin\n", "work/root/.venv/bin/python3 -> HOME/gone/bin/python3"],
        "gone",
        False,
    ),
    ("without a program", ["work/root/.venv/pyvenv.cfg = home = HOME/py/bin\n"], "gone", True),
    (
        "that leads to keys",
        ["work/root/.venv/pyvenv.cfg = home = HOME/.ssh\n", "work/root/.venv/bin/python3 -> HOME/.ssh/id_rsa"],
        "gone",
        False,
    ),
    (
        "that leads to keys by .bin",
        ["work/root/.venv/pyvenv.cfg = home = HOME/.ssh/bin\n", "work/root/.venv/bin/python3 -> HOME/py/bin/python3"],
        "gone",
        False,
    ),
    (
        "that leads to the home",
        [
            "bin/python3",
            "lib/python3.11/os.py",
            "work/root/.venv/pyvenv.cfg = home = HOME/bin\n",
            "work/root/.venv/bin/python3 -> HOME/bin/python3",
        ],
        "gone",
        False,
    ),
    (
        "that leads to no Python",
        [
            "d/bin/python3",
            "d/lib/x",
            "work/root/.venv/pyvenv.cfg = home = HOME/d/bin\n",
            "work/root/.venv/bin/python3 -> HOME/d/bin/python3",
        ],
        "gone",
        False,
    ),
    (
        "that leads to a library of Python alone",
        [
            "d/bin/x",
            "d/lib/python3.11/os.py",
            "work/root/.venv/pyvenv.cfg = home = HOME/d/bin\n",
            "work/root/.venv/bin/python3 -> HOME/py/bin/python3",
        ],
        "gone",
        False,
    ),
    (
        "that leads in a circle",
        [
            "work/root/.venv/pyvenv.cfg = home = HOME/work/root/l\n",
            "work/root/l -> l",
            "work/root/.venv/bin/python3 -> python3",
        ],
        "gone",
        False,
    ),
    ("that is a link out", ["work/root/.venv -> HOME/py", "py/pyvenv.cfg = home = HOME/py/bin\n"], "gone", False),
    (
        "of relative words",
        ["work/root/.venv/pyvenv.cfg = home = ../../../.ssh\n", "work/root/.venv/bin/python3 -> HOME/py/bin/python3"],
        "",
        True,
    ),
]


@pytest.mark.parametrize(("files", "words", "shown"), [row[1:] for row in VENVS], ids=[row[0] for row in VENVS])
def test_an_environment_of_the_root_brings_its_python_and_nothing_else(
    files: list[str], words: str, shown: bool, home: Path, look: Look
) -> None:
    make(home, [*(f"py/{each}" for each in PYTHON), "py/pip.conf", "alias -> py", *files])
    found = look("", ("path",)).surroundings
    assert words in found.venv_problem
    assert bool(found.venv_problem) == bool(words)
    assert [each for each in inside(home, found.shown) if each != "alias"] == (["py/bin", "py/lib"] if shown else [])


def test_a_python_among_a_persons_data_brings_none_of_it(home: Path, look: Look) -> None:
    """As after `./configure --prefix=$HOME/data`; ~/.local is such a place too."""
    make(home, [*(f"data/{each}" for each in PYTHON), "data/share/keyrings/x", "data/usr/x", "data/man/x"])
    make(home, ["work/root/.venv/pyvenv.cfg = home = HOME/data/bin\n", "work/root/.venv/bin/python3"])
    assert inside(home, look("").surroundings.shown) == ["data/bin", "data/lib"]
    assert inside(home, look("~/data/bin").surroundings.shown) == ["data/bin", "data/lib", "data/man"]


def test_the_problem_of_an_environment_does_not_say_what_is_where(home: Path, look: Look) -> None:
    """A model may have written where it leads: it would learn which files there are."""
    told = []
    for place in (".ssh", "nothing"):
        make(home, [f"work/root/.venv/pyvenv.cfg = home = HOME/{place}\n"])
        told.append(look("").surroundings.venv_problem)
    assert told[0] == told[1] != ""


def test_a_fifo_for_settings_of_an_environment_is_not_waited_for(home: Path, look: Look) -> None:
    make(home, ["work/root/.venv/bin/python3"])
    os.mkfifo(home / "work/root/.venv/pyvenv.cfg")
    assert inside(home, look("").surroundings.shown) == []


OWN = [
    # name, files of the home, PATH, directories of the root's own programs, which of PYTHON's prefixes are shown
    ("tools", ["work/root/tools/x"], "~/work/root/tools", ["tools"], []),
    ("a link to them", ["work/root/tools/x", "bin -> work/root/tools"], "~/bin", ["tools"], []),
    ("a link out of it", ["apps/x", "work/root/tools -> ../../apps"], "~/work/root/tools", [], ["apps"]),
    (
        "an environment of another name",
        [
            *(f"py/{x}" for x in PYTHON),
            "work/root/e/pyvenv.cfg = home = HOME/py/bin",
            "work/root/e/bin/python3 -> HOME/py/bin/python3",
        ],
        "~/work/root/e/bin",
        ["e/bin"],
        ["py/bin", "py/lib"],
    ),
]


@pytest.mark.parametrize(("files", "path", "own", "shown"), [row[1:] for row in OWN], ids=[row[0] for row in OWN])
def test_programs_of_the_root_that_a_path_names_are_its_own(
    files: list[str], path: str, own: list[str], shown: list[str], home: Path, look: Look
) -> None:
    make(home, files)
    found = look(path, ("path",))
    assert list(found.surroundings.own) == own
    assert [each for each in inside(home, found.surroundings.shown) if each not in ("bin", "work/root/tools")] == shown


PREFIXES = [
    # name, files of the home, variables, those that go in, what is shown
    (
        "an environment elsewhere",
        ["v/bin/x", "v/lib/y", "v/pyvenv.cfg = x"],
        {"VIRTUAL_ENV": "~/v"},
        {"VIRTUAL_ENV": "~/v"},
        ["v/bin", "v/lib", "v/pyvenv.cfg"],
    ),
    ("one beside the root's own", ["v/bin/x", "v/lib/y", "work/root/.venv/bin/x"], {"VIRTUAL_ENV": "~/v"}, {}, []),
    ("one in the root", ["work/root/e/bin/x"], {"VIRTUAL_ENV": "~/work/root/e"}, {"VIRTUAL_ENV": "~/work/root/e"}, []),
    (
        "rustup",
        [".cargo/bin/rustup", ".rustup/toolchains/beta-x/bin/rustc", ".rustup/update-hashes/x = y"],
        {"PATH": "~/.cargo/bin", "RUSTUP_TOOLCHAIN": "beta"},
        {"RUSTUP_HOME": "~/.rustup", "RUSTUP_TOOLCHAIN": "beta"},
        [".cargo/bin", *(f".rustup/{x}" for x in ("toolchains/beta-x/bin", "toolchains", "update-hashes"))],
    ),
    ("one that is gone", [], {"VIRTUAL_ENV": "~/gone"}, {}, []),
    ("a home", [], {"CONDA_PREFIX": "~", "GOROOT": "~/..", "VIRTUAL_ENV": "relative", "DOTNET_ROOT": "/"}, {}, []),
    ("settings", [".config/j/bin/java"], {"JAVA_HOME": "~/.config/j"}, {}, []),
    (
        "conda",
        ["c/envs/a/bin/x", "c/envs/a/lib/y", "c/envs/a/conda-meta/h", "c/envs/a/ssl/cert.pem"],
        {"CONDA_PREFIX": "~/c/envs/a"},
        {"CONDA_PREFIX": "~/c/envs/a"},
        ["c/envs/a/bin", "c/envs/a/lib", "c/envs/a/ssl/cert.pem"],
    ),
]


@pytest.mark.parametrize(
    ("files", "person", "given", "shown"), [row[1:] for row in PREFIXES], ids=[row[0] for row in PREFIXES]
)
def test_a_variable_goes_in_where_commands_see_what_it_names(
    files: list[str], person: dict[str, str], given: dict[str, str], shown: list[str], home: Path, look: Look
) -> None:
    make(home, files)
    found = look("", ("path",), **person).surroundings
    assert dict(found.environment) == {name: value.replace("~", str(home)) for name, value in given.items()}
    assert inside(home, found.shown) == shown


ELSEWHERE = [
    # name, files of the home, variables, directories searched
    (
        "pyenv",
        [*(f"p/versions/3.9.1/{x}" for x in PYTHON), "p/shims/x", "p/version = 3.9.1"],
        {"PYENV_ROOT": "~/p"},
        ["p/versions/3.9.1/bin"],
    ),
    (
        "a version that a shell has chosen",
        [
            *(f".pyenv/versions/{v}/{x}" for v in ("3.9.1", "3.10.2") for x in PYTHON),
            ".pyenv/shims/x",
            "work/root/.python-version = 3.9.1",
        ],
        {"PYENV_VERSION": "3.10.2"},
        [".pyenv/versions/3.10.2/bin"],
    ),
    (
        "a shell's version that is a path",
        [*(f".pyenv/versions/3.9.1/{x}" for x in PYTHON), ".pyenv/shims/x"],
        {"PYENV_VERSION": "../../.ssh:/etc"},
        [],
    ),
    (
        "rustup",
        [
            *(f"r/toolchains/{x}-x86/bin/rustc" for x in ("stable", "beta")),
            "c/bin/rustup",
            'r/settings.toml = default_toolchain = "stable-x86"\n',
        ],
        {"RUSTUP_HOME": "~/r", "CARGO_HOME": "~/c", "RUSTUP_TOOLCHAIN": "beta"},
        ["r/toolchains/beta-x86/bin", "c/bin"],
    ),
    (
        "a directory's own Rust",
        [
            *(f".rustup/toolchains/{x}-x86/bin/rustc" for x in ("stable", "beta")),
            ".cargo/bin/rustup",
            '.rustup/settings.toml = default_toolchain = "stable-x86"\n[overrides]\n"HOME/work" = "beta-x86"\n',
        ],
        {},
        [".rustup/toolchains/beta-x86/bin", ".cargo/bin"],
    ),
    (
        "what npm has installed for a version of asdf's",
        [f".asdf/installs/nodejs/22.0.0/{x}" for x in ("bin/node", ".npm/bin/cowsay", ".npm/lib/x")]
        + [".asdf/shims/node"],
        {},
        [".asdf/installs/nodejs/22.0.0/bin", ".asdf/installs/nodejs/22.0.0/.npm/bin"],
    ),
    (
        "the version that fnm starts with",
        [
            *(f"f/node-versions/{v}/installation/bin/node" for v in ("v20", "v22")),
            "f/aliases/default -> ../node-versions/v20/installation",
        ],
        {"FNM_DIR": "~/f"},
        ["f/node-versions/v20/installation/bin", "f/node-versions/v22/installation/bin"],
    ),
    ("Go", ["g/bin/gopls"], {"GOPATH": "~/g:~/h"}, ["g/bin"]),
    ("a relative one", ["go/bin/gopls"], {"GOPATH": "g"}, ["go/bin"]),
    ("a home of settings", [".ssh/bin/x"], {"CARGO_HOME": "~/.ssh"}, []),
    (
        "several directories of one version",
        [f".asdf/installs/golang/1.22/{x}" for x in ("go/bin/go", "packages/bin/p")] + [".asdf/shims/go"],
        {},
        [".asdf/installs/golang/1.22/go/bin", ".asdf/installs/golang/1.22/packages/bin"],
    ),
    (
        "asdf's shell",
        [f".asdf/installs/nodejs/{x}/bin/node" for x in ("20.1.0", "22.0.0")] + [".asdf/shims/node"],
        {"ASDF_NODEJS_VERSION": "20.1.0"},
        [".asdf/installs/nodejs/20.1.0/bin"],
    ),
]


@pytest.mark.parametrize(
    ("files", "person", "searched"), [row[1:] for row in ELSEWHERE], ids=[row[0] for row in ELSEWHERE]
)
def test_version_managers_are_where_the_persons_variables_say(
    files: list[str], person: dict[str, str], searched: list[str], home: Path, look: Look
) -> None:
    make(home, files)
    assert inside(home, look("", **person).surroundings.path) == searched


def test_certificates_come_from_files_that_the_person_names_outside_of_the_root(
    home: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    make(home, ["ca.pem", "work/root/ca.pem"])
    assert look("", SSL_CERT_FILE="~/ca.pem").surroundings.ca_files == (str(home / "ca.pem"),)
    for other in ("~/work/root/ca.pem", "ca.pem", "~/no.pem"):
        assert look("", SSL_CERT_FILE=other).surroundings.ca_files == ()


def test_java_home_is_shown_where_it_is_one(home: Path, look: Look) -> None:
    make(home, ["jdk/bin/java", "jdk/lib/modules", "jdk/conf/x", ".ssh/bin/x"])
    found = look("", JAVA_HOME="~/jdk").surroundings
    assert dict(found.environment)["JAVA_HOME"] == str(home / "jdk")
    assert inside(home, found.shown) == ["jdk/bin", "jdk/lib", "jdk/conf"]
    assert inside(home, look("", JAVA_HOME="~/.ssh").surroundings.shown) == []


def test_packages_of_the_persons_python_go_with_their_programs(home: Path, look: Look) -> None:
    make(home, [".local/bin/tool", ".local/lib/python3.11/site-packages/tool.py", ".local/lib/x/y"])
    make(home, [".local/lib/python3.12/site-packages -> HOME/.ssh"])
    found = look("~/.local/bin").surroundings
    assert inside(home, found.shown) == [".local/bin", ".local/lib/python3.11/site-packages"]
    assert dict(found.environment)["PYTHONUSERBASE"] == str(home / ".local")
    assert look("", ("path",)).surroundings.shown == ()


def test_a_slow_directory_costs_those_after_it(home: Path, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor.categories.toolchains._LOOKS_S", -1.0)
    make(home, ["bin/x"])
    found = look("~/bin", ("path",))
    assert found.surroundings.shown == ()
    assert "took longer" in found.refused[0][1]


def test_equal_results_are_equal(home: Path, look: Look) -> None:
    """Sessions of two shells share workers, though one has a directory in its PATH that is none."""
    make(home, ["bin/x"])
    assert look("~/bin:/no/such::bin").surroundings == look("~/bin/../bin:~/.config").surroundings
