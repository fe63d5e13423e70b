"""The package as it is installed: complete, light to start, and with workers that run from there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install a copy of the source tree, without its dependencies, into a directory of its own."""
    source = tmp_path_factory.mktemp("source") / "strongroom"
    target = tmp_path_factory.mktemp("installed")
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("strongroom", "supervisor", "workers"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    quiet = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(target), str(source)]
    subprocess.run([*pip, *quiet], check=True, capture_output=True)
    return target


def run(installed: Path, code: str, *arguments: str, home: Path) -> "subprocess.CompletedProcess[str]":
    """Run Python on the installed package alone, from a directory that is not the source tree."""
    libraries = str(Path(msgspec.__file__).parent.parent)
    path = f"import sys; sys.path[:0] = [{str(installed)!r}]; sys.path.append({libraries!r}); "
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", path + code, *arguments],
        env={"STRONGROOM_HOME": str(home), "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=home.parent,
        check=False,
    )


def test_the_package_holds_its_data_files(installed: Path) -> None:
    for name in (
        "strongroom/py.typed",
        "supervisor/py.typed",
        "workers/py.typed",
        "supervisor/agent/prompt.md",
        "workers/tree/obeyed_names.txt",
    ):
        assert (installed / name).is_file(), name


HOSTILE: Final = (
    dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "LD_LIBRARY_PATH"), "."),
    {"PYTHONPATH": "", "PYTHONSTARTUP": "hostile.py", "PYTHONINSPECT": "1", "PYTHONBREAKPOINT": "hostile.here"},
    {"PYTHONEXECUTABLE": "bin/python", "__PYVENV_LAUNCHER__": "bin/python", "PYTHONPLATLIBDIR": "lib"},
    {"PYTHONWARNINGS": "error", "PYTHONPATH": "{root}:", "OPENSSL_CONF": "{root}/openssl.cnf", "HOME": "."},
)
"""Variables that lead to code in a root, each set together in which none hides another."""
BEGINNINGS: Final = {
    "the script": ["{bin}/strongroom"],
    "a link to it": ["{link}"],
    "by the shell": ["sh", "{bin}/strongroom"],
    "the script of Python": ["{bin}/strongroom-python"],
    "a module": [sys.executable, "-P", "-m", "supervisor"],
}


LIST: Final = ("call", "list_files", '{"pattern": "*.pth"}', "--root")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a root in which every name is code that leaves a mark."""
    root = tmp_path_factory.mktemp("hostile")
    names = ["hostile", "sitecustomize", "usercustomize", "msgspec", "click", "trio", "re", "contextlib", "runpy"]
    for place in (root, root / "lib/python3/site-packages"):
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            (place / f"{name}.py").write_text(f"open({str(root / 'mark')!r}, 'a').write({name!r})")
    (root / "pyvenv.cfg").write_text(f"home = {root}\n")
    (root / "evil.pth").write_text("import hostile\n")
    return root


OBEYED: Final = ("a module", "the script of Python")
"""Beginnings where Python has obeyed most variables before it comes to us."""
STARTS: Final = [
    (beginning, variables)
    for beginning in BEGINNINGS
    for variables in ([{"PYTHONINSPECT": "1"}] if beginning in OBEYED else HOSTILE)
]


@pytest.mark.parametrize(("beginning", "variables"), STARTS, ids=[f"{name}-{next(iter(had))}" for name, had in STARTS])
def test_nothing_of_a_root_runs_whichever_way_it_starts(
    installed: Path, hostile: Path, tmp_path: Path, beginning: str, variables: dict[str, str]
) -> None:
    (tmp_path / "link").symlink_to(installed / "bin/strongroom")
    places = {"bin": installed / "bin", "link": tmp_path / "link", "root": hostile}
    done = subprocess.run(
        [*(each.format(**places) for each in BEGINNINGS[beginning]), *LIST, str(hostile)],
        env={"PATH": os.environ["PATH"], "STRONGROOM_HOME": str(tmp_path / "home")}
        | {name: value.format(**places) for name, value in variables.items()},
        cwd=hostile,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert msgspec.json.decode(done.stdout) == {"ok": True, "content": ["evil.pth"]}
    assert not (hostile / "mark").exists()


def test_help_works_and_loads_nothing_heavy(installed: Path, tmp_path: Path) -> None:
    code = (
        "from supervisor.cli.main import main\n"
        "try:\n    main()\n"
        "finally:\n    print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    result = run(installed, code, "--help", home=tmp_path / "home")
    assert result.returncode == 0
    assert "Commands:" in result.stdout
    for heavy in ("trio", "anthropic", "msgspec", "sqlite3", "asyncio"):
        assert repr(heavy) not in result.stderr


def test_a_worker_runs_from_the_installed_package(installed: Path, tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    (root / "a.md").write_text("hello\n")
    arguments = ("call", "read_file", '{"path": "a.md"}', "--root", str(root))
    result = run(installed, "from supervisor.cli.main import main; main()", *arguments, home=tmp_path / "home")
    assert result.returncode == 0, result.stderr
    assert msgspec.json.decode(result.stdout) == {"ok": True, "content": "hello\n"}
