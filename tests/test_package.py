"""The package as it is installed: complete, light to start, and with workers that run from there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

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
    for name in ("supervisor", "workers"):
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
        "supervisor/py.typed",
        "workers/py.typed",
        "supervisor/agent/prompt.md",
        "workers/tree/obeyed_names.txt",
    ):
        assert (installed / name).is_file(), name


def test_the_command_is_called_strongroom(installed: Path) -> None:
    (entry,) = installed.glob("strongroom-*.dist-info/entry_points.txt")
    assert "strongroom = supervisor.__main__:main" in entry.read_text()


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
