"""Doors around the places of a person's programs, from a command that is shown them: in both directions.

Rule: what makes programs run can be read and run, and nothing of it can be changed; what lies beside it, by whatever
way, is not there. The sandbox alone holds each: without other locks it is the same. `tests/door_table.py` has the rows.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from supervisor.categories.shown_places import HiddenPlaces
from supervisor.categories.surroundings import survey
from tests.authority import Authority
from tests.door_table import BESIDE_SHOWN_PLACES, CHANGES_OF_SHOWN_PLACES, OF_SHOWN_PLACES, SHOWN_PLACES
from tests.doors import PRELUDE
from tests.hostile_worker import hostile_command
from tests.supervisor.categories.homes import PYTHON, SECRET, SECRETS, make, tree
from tests.workers.shell.conftest import open_shell
from tests.workers.shell.sandbox.test_locks import attack

HOME = (
    *("bin/mine", "apps/x/bin/x", "apps/x/lib/data = d", "apps/x/etc/token = t", "apps/x/.npmrc = t"),
    *(".local/bin/piped -> ../share/pipx/venvs/t/bin/piped", ".local/share/pipx/venvs/t/bin/piped", ".local/bin/own"),
    *(".local/share/pipx/venvs/t/lib/x = d", ".local/share/pipx/venvs/t/pip.conf = password"),
    *(f".pyenv/versions/3.9/{each}" for each in PYTHON),
    *(".pyenv/versions/3.9/pip.conf = password", ".pyenv/version = 3.9", ".pyenv/shims/python3"),
    *(f".nvm/versions/node/v22/{each}" for each in ("bin/node", "lib/x = d", "etc/npmrc = t")),
    *(".cargo/bin/rustup", ".cargo/bin/cargo", ".cargo/config.toml = t", ".rustup/settings.toml = d"),
    *(".rustup/toolchains/stable-x86/bin/rustc", ".rustup/update-hashes/x = d", ".rustup/secret = t"),
    *(".asdf/shims/go", ".asdf/installs/golang/1.22/go/bin/go", ".asdf/installs/golang/1.22/credentials = t"),
    *("conda/bin/condas", "conda/lib/x = d", "conda/.condarc = token", "conda/conda-meta/x = t"),
    *("n/node_modules/.bin/p -> ../p/bin/p", "n/node_modules/p/bin/p", "n/node_modules/p/x = d", "n/.npmrc = t"),
    *(f"py/{each}" for each in PYTHON),
    *("py/pip.conf = password", "leak/bin/link -> ../../.netrc", "leak/bin/x", "leak/bin/up -> ../../.ssh"),
    *("work/root/.venv/pyvenv.cfg = home = HOME/py/bin", "work/root/.venv/bin/python3 -> HOME/py/bin/python3"),
    *("work/root/hole -> ../../.ssh", "work/root/e/bin/own"),
)
PATH = (
    *("bin", "apps/x/bin", ".local/bin", ".pyenv/shims", ".cargo/bin", ".asdf/shims", "conda/bin", "leak/bin"),
    *("n/node_modules/.bin", "work/root/e/bin"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tree(tmp_path_factory.mktemp("doors").resolve() / "person", SECRETS)
    make(found, HOME)
    os.link(found / ".netrc", found / "work/linked")  # beside the root, as another name
    return found


Outcomes = Mapping[str, tuple[str, str]]


@pytest.fixture(scope="module")
def outcomes(home: Path) -> Outcomes:
    """Return how each row ended: with all locks, and with the sandbox alone."""
    root = home / "work/root"
    authority = Authority().write(home / "ca.pem")
    (home / "both.pem").write_text(f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n{authority.read_text()}")
    person = {"PATH": ":".join(f"{home}/{each}" for each in PATH), "SSL_CERT_FILE": str(home / "both.pem")}
    has = survey(("path", "known"), {}, HiddenPlaces(str(home), (), str(root)), person, "here").surroundings
    shown = [each for each in has.shown if each.startswith(f"{home}/")]
    files = {each: next(Path(home, each).rglob("*"), Path(home, each, "x")) for each in SHOWN_PLACES}
    given = PRELUDE + f"home, root_path = {str(home)!r}, {str(root)!r}\n"
    rows = dict((*OF_SHOWN_PLACES, *BESIDE_SHOWN_PLACES))
    for place in SHOWN_PLACES:
        where = f"place, file = {str(home / place)!r}, {str(files[place])!r}\n"
        rows |= {f"{name}: {place}": where + code for name, code in CHANGES_OF_SHOWN_PLACES}
    rows |= {f"read ~/{each}": f"result = open(home + '/{each}').read()" for each in SECRETS}
    found = []
    for removed in ((), ("landlock", "seccomp", "capabilities")):
        command = hostile_command(*removed, category="shell")
        with open_shell(root, command=command, toolchains=shown, path=has.path, ca_files=has.ca_files) as worker:
            told = attack(worker, list(rows.values()), given)
        found.append([line for line in told if not line.startswith("/")])  # programs print where they are
    return {name: (one, other) for name, one, other in zip(rows, *found, strict=True)}


@pytest.mark.parametrize("name", [name for name, _ in OF_SHOWN_PLACES])
def test_what_programs_need_is_there(name: str, outcomes: Outcomes) -> None:
    assert [each[:3] for each in outcomes[name]] == ["did", "did"]


def test_nothing_of_it_can_be_changed_and_nothing_beside_it_be_read(outcomes: Outcomes, home: Path) -> None:
    needed = [name for name, _ in OF_SHOWN_PLACES]
    opened = {
        name: each for name, each in outcomes.items() if name not in needed and any(x.startswith("did") for x in each)
    }
    assert opened == {}
    assert not any(SECRET in line for each in outcomes.values() for line in each)
    assert (home / "apps/x/lib/data").read_text() == "d"
    assert [each for each in SECRETS if (home / each).read_text() != SECRET] == []


CHANGED = [
    # what is put, after the survey, in the place of a directory that is shown
    ("bin", "bin -> .ssh"),
    ("apps", "apps -> .config"),
    ("conda/lib", "conda/lib -> ../.ssh"),
]


@pytest.mark.parametrize(("gone", "put"), CHANGED, ids=[row[1] for row in CHANGED])
def test_a_link_that_took_a_shown_place_since_leads_nowhere(gone: str, put: str, tmp_path: Path) -> None:
    """Also where another directory on the way became one."""
    home = tree(tmp_path.resolve() / "person", SECRETS)
    make(home, [*HOME, ".ssh/mine", ".config/x/lib/data = d", ".config/x/bin/x"])
    kept = HiddenPlaces(str(home), (), str(home / "work/root"))
    path = ":".join(f"{home}/{each}" for each in ("bin", "apps/x/bin", "conda/bin"))
    has = survey(("path",), {}, kept, {"PATH": path}, "here").surroundings
    (shutil.rmtree if (home / gone).is_dir() else os.unlink)(home / gone)
    make(home, [put])
    with open_shell(home / "work/root", toolchains=has.shown, path=has.path) as worker:
        names = [str(home / each) for each in ("bin/id_rsa", "apps/x/lib/data", "conda/lib/id_rsa")]
        code = f"result = [os.path.exists(each) for each in {names}]"
        (line,) = attack(worker, [code], PRELUDE)
    assert line == f"did [False, {gone != 'apps'}, False]"
