"""Programs as the person has them, from real commands: what runs, and what cannot be read beside it, or written."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.categories.shown_places import HiddenPlaces
from supervisor.categories.surroundings import Survey, survey
from tests.authority import Authority
from tests.raw_worker import RawWorker
from tests.supervisor.categories.homes import PYTHON, SECRET, SECRETS, make, tree
from tests.workers.shell.conftest import open_shell, propose, shell
from workers.wire import messages

LINES = (
    *("bin/mine", "apps/x/bin/prefixed", "apps/x/lib/data = data", "apps/x/etc/token = secret", "go/bin/gopls"),
    *("conda/bin/condas", "conda/lib/x", "conda/.condarc = secret", ".cargo/bin/rg", ".cargo/config.toml = secret"),
    *(".nvm/versions/node/v22/bin/nodes", ".nvm/versions/node/v22/lib/x", ".nvm/versions/node/v22/etc/npmrc = secret"),
    *(
        ".local/share/pipx/venvs/t/bin/piped",
        ".local/bin/piped -> ../share/pipx/venvs/t/bin/piped",
        ".local/lib/x = secret",
    ),
    *(f".pyenv/versions/3.9/{each}" for each in PYTHON),
    *(
        ".pyenv/versions/3.9/bin/pyenvs",
        ".pyenv/versions/3.9/pip.conf = secret",
        ".pyenv/version = 3.9",
        ".pyenv/shims/pyenvs",
    ),
    *(".sdkman/c/21/bin/javas", ".sdkman/c/21/lib/x", ".sdkman/c/now -> 21", ".sdkman/c/21/conf/x = secret"),
    *(
        "outer/bin/linked -> ../../apps/x/bin/prefixed",
        "outer/bin/lost -> /nowhere",
        "work/root/node_modules/.bin/moduled",
    ),
)
PATH = (
    "bin apps/x/bin go/bin conda/bin .cargo/bin .nvm/versions/node/v22/bin .local/bin .pyenv/shims .sdkman/c/now/bin "
    "outer/bin"
)
PROGRAMS = ("mine", "prefixed", "gopls", "condas", "rg", "nodes", "piped", "pyenvs", "javas", "linked", "moduled")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with programs in it, secrets, and a root with an environment of the Python that runs this."""
    found = tree(tmp_path_factory.mktemp("home").resolve() / "person", SECRETS)
    make(found, LINES)
    python = Path(sys.base_prefix, "bin", "python3")
    subprocess.run([python, "-m", "venv", "--without-pip", found / "work/root/.venv"], check=True, timeout=60)
    make(
        found,
        [
            "work/root/.venv/bin/venved",
            '.gitconfig = [user]\n\tname = "O\'Hara \\"x\\" Y" # me\n\temail = o@example.org\n',
        ],
    )
    return found


@pytest.fixture(scope="module")
def found(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Survey:
    """What commands in the root have of the person."""
    kept = HiddenPlaces(str(home), (), str(home / "work/root"))
    place = tmp_path_factory.mktemp("ca")
    authority = Authority().write(place / "ca.pem")
    both = place / "both.pem"
    both.write_text(f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n{authority.read_text()}")
    person = {"PATH": ":".join(f"{home}/{each}" for each in PATH.split()), "TZ": "JST-9", "LANG": "de_DE.UTF-8"}
    person |= {"AWS_SECRET_ACCESS_KEY": SECRET, "SSL_CERT_FILE": str(both)}
    return survey(("path",), {"GREETING": "hi there", "PYTHONPATH": "src:lib"}, kept, person, "here")


@pytest.fixture(scope="module")
def worker(home: Path, found: Survey) -> Iterator[RawWorker]:
    has = found.surroundings
    given = {name: getattr(has, name) for name in ("path", "environment", "identity", "ca_files", "venv_problem")}
    with open_shell(home / "work/root", toolchains=has.shown, **given) as opened:
        yield opened


def printed(worker: RawWorker, command: str) -> str:
    return str(shell(worker, command)["stdout"])


def test_every_program_of_the_path_runs(worker: RawWorker, found: Survey) -> None:
    assert found.refused == ()
    lines = printed(worker, "; ".join(PROGRAMS)).splitlines()
    assert [line.rpartition("/")[2] for line in lines] == list(PROGRAMS)


def test_the_roots_own_programs_come_first(worker: RawWorker, home: Path) -> None:
    told = printed(worker, "command -v python venved moduled; echo $PATH").splitlines()
    assert told[:3] == [
        f"{home}/work/root/{each}" for each in (".venv/bin/python", ".venv/bin/venved", "node_modules/.bin/moduled")
    ]
    assert told[3].startswith(
        f"{home}/work/root/.venv/bin:{home}/work/root/venv/bin:{home}/work/root/node_modules/.bin:"
    )


def test_programs_of_the_root_are_found_without_a_shell(home: Path, found: Survey) -> None:
    has = found.surroundings
    programs = ("venved", "moduled", "git", "../../x")
    with open_shell(home / "work/root", toolchains=has.shown, path=has.path, programs=programs) as worker:
        told = [worker.done("exec_shell", {"command": name, "args": ["--version"]}) for name in programs[:3]]
        assert [name in answer.content for name, answer in zip(programs, told, strict=False)] == [True] * 3
        assert worker.failed("exec_shell", {"command": "../../x"}).kind == "not_found"


PLANTED = (".venv/bin/git", "node_modules/.bin/sh", "venv/bin/ls -> /usr/bin/env")


def test_a_directory_with_a_name_of_the_systems_is_left_out(tmp_path: Path) -> None:
    """What is decided about `git` is about the system's."""
    make(tmp_path, [*PLANTED, ".venv/bin/other"])
    with open_shell(tmp_path) as worker:
        told = shell(worker, "command -v git ls sh other; echo $PATH")["stdout"]
        done = worker.done("exec_shell", {"command": "git", "args": ["--version"]})
    assert str(tmp_path) not in told
    assert "git version" in done.content


def test_an_environment_of_the_root_runs(worker: RawWorker, home: Path) -> None:
    code = "import sys, ssl, json; print(sys.prefix, sys.base_prefix)"
    assert printed(worker, f".venv/bin/python -c '{code}'").split() == [
        f"{home}/work/root/.venv",
        os.path.realpath(sys.base_prefix),
    ]


READ = (
    *(f"{each}" for each in SECRETS),
    *("apps/x/etc/token", "conda/.condarc", ".cargo/config.toml", ".nvm/versions/node/v22/etc/npmrc", ".local/lib/x"),
    *(".pyenv/versions/3.9/pip.conf", ".pyenv/version", ".sdkman/c/21/conf/x", ".gitconfig"),
    *("bin/../.netrc", "bin/../.ssh/id_rsa", ".sdkman/c/now/conf/x", "conda/bin/../.condarc"),
)


def test_no_secret_beside_a_program_can_be_read(worker: RawWorker, home: Path) -> None:
    tried = "; ".join(f"cat {home}/{each} && echo READ {each}" for each in READ)
    found = f"find {home} -not -path '*/work/*' -name '.*'; grep -rs '{SECRET}' {home} /etc /proc/self/environ ~"
    result = printed(worker, f"{tried}; {found}; true")
    assert "READ" not in result
    assert SECRET not in result
    assert "secret" not in result
    assert not [each for each in READ if not (home / each).exists()], "there was something to read"


def test_a_shown_place_cannot_be_written(worker: RawWorker, home: Path, found: Survey) -> None:
    shown = [each for each in found.surroundings.shown if each.startswith(f"{home}/") and not os.path.islink(each)]
    before = {each: sorted(os.listdir(each)) for each in shown}
    tries = [
        f"touch {each}/new; mkdir {each}/d; rm {each}/*; chmod 777 {each}; mv {each} {each}x; ln -s / {each}/l"
        for each in before
    ]
    tries += [f"echo x > {home}/bin/mine; echo x >> {home}/apps/x/lib/data"]
    proposed = propose(worker, f"({'; '.join(tries)}) 2> /dev/null")
    assert not isinstance(proposed, messages.Proposed)
    assert before == {each: sorted(os.listdir(each)) for each in before}
    assert (home / "apps/x/lib/data").read_text() == "data"


def test_what_goes_in_of_the_person_is_what_is_named(worker: RawWorker) -> None:
    told = printed(worker, "echo $LANG $TZ $GREETING; date -d @0 +%H; env")
    assert told.splitlines()[:2] == ["de_DE.UTF-8 JST-9 hi there", "09"]
    assert SECRET not in told
    assert "AWS_SECRET" not in told


def test_relative_paths_of_variables_are_those_of_the_root(worker: RawWorker, home: Path) -> None:
    assert printed(worker, "cd /tmp; echo $PYTHONPATH") == f"{home}/work/root/src:{home}/work/root/lib\n"


CA = (
    "SSL_CERT_FILE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
)


def test_certificates_go_in_without_the_key_beside_them(worker: RawWorker, found: Survey) -> None:
    named = printed(worker, " ".join(f"echo ${each};" for each in CA)).splitlines()
    assert named == ["/etc/strongroom/authorities.pem"] * len(CA)
    text = printed(worker, "tail -c 3000 $SSL_CERT_FILE; grep -c PRIVATE $SSL_CERT_FILE; echo x > $SSL_CERT_FILE")
    own = Path(found.surroundings.ca_files[0]).read_text().partition("-----BEGIN CERTIFICATE-----")[2].strip()
    assert own in text
    assert "\n0\n" in text


def test_git_knows_who_commits_and_nothing_else_of_the_person(worker: RawWorker) -> None:
    made = "git init -q x && cd x && git commit -q --allow-empty -m x"
    told = printed(worker, f"{made} && git log --format='%an <%ae> %cn'; git config -l")
    assert told.splitlines()[0] == 'O\'Hara "x" Y <o@example.org> O\'Hara "x" Y'
    assert [line for line in told.splitlines() if line.startswith("user.")] == [
        'user.name=O\'Hara "x" Y',
        "user.email=o@example.org",
    ]


def test_the_roots_own_name_for_git_counts_first(worker: RawWorker) -> None:
    made = "git init -q y && cd y && git config user.name Root && git commit -q --allow-empty -m x"
    assert printed(worker, f"{made} && git log --format=%an") == "Root\n"


def test_a_command_that_fails_is_told_that_its_environment_is_broken(tmp_path: Path) -> None:
    make(tmp_path, [".venv/bin/python -> /gone/bin/python", ".venv/bin/pytest"])
    (tmp_path / ".venv/bin/pytest").write_text("#!/gone/bin/python\n")
    with open_shell(tmp_path, programs=("pytest",), venv_problem=".venv has no Python: make it anew") as worker:
        refused = worker.failed("exec_shell", {"command": "pytest"}).message
        notes = [
            worker.done("run_cmd", {"command": command}).note
            for command in (".venv/bin/python -m pytest", "python -m no_such", "false")
        ]
    assert ["make it anew" in note for note in notes] == [True, True, False]
    assert "make it anew" in refused
