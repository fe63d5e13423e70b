"""Where the programs are looked for that were installed with us."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.supervisor.command import CODE

ASK = """
import sys
sys.executable = sys.argv[1]
from pathlib import Path
from supervisor.config import Config, Settings
from supervisor.equipment import equipment
print(equipment(Settings(Config(), Path("config.toml"), Path()), "search")["rg"])
"""


def found(folder: Path, executable: Path) -> str:
    environment = {"PYTHONPATH": str(CODE), "PYTHONUSERBASE": str(folder / "user")}
    command = [sys.executable, "-c", "import sysconfig\nsysconfig.get_path = " + PLACES + ASK, str(executable)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


PLACES = "lambda _name, scheme='', real=sysconfig.get_path: real('scripts', scheme) if scheme else '/nonexistent'\n"
"""An interpreter whose own scripts are not ours."""


@pytest.mark.parametrize("there", [["user"], ["python", "user"], []])
def test_ripgrep_is_found_beside_python_or_where_pip_puts_a_users_programs(there: list[str], tmp_path: Path) -> None:
    for place in there:
        (tmp_path / place / "bin").mkdir(parents=True)
        (tmp_path / place / "bin/rg").write_text("")
    wanted = tmp_path / (there[0] if there else "python") / "bin/rg"
    assert found(tmp_path, tmp_path / "python/bin/python") == str(wanted)
