"""Ctrl-C while a command only begins: it ends as any program does, and never with a traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import click
import pytest

from supervisor.cli.main import _CommandGroup
from tests.supervisor.command import CODE

CUSTOM: Final = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "{name}":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""
"""Ctrl-C when a module is looked for."""

WAYS: Final = (
    "import runpy; runpy.run_module('supervisor', run_name='__main__')",
    "from supervisor.__main__ import main; main()",
)
IGNORING: Final = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")


def ended(
    folder: Path, name: str, *arguments: str, way: str = WAYS[0], wrapper: tuple[str, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    """Run a command that is interrupted when the module `name` is looked for."""
    program = f"{CUSTOM.format(name=name)}\nsys.path.insert(0, {str(CODE)!r})\n{way}"
    command = [*wrapper, sys.executable, "-I", "-c", program, *arguments]
    environment = {"PATH": os.environ["PATH"], "STRONGROOM_HOME": str(folder / "home")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("way", WAYS, ids=["module", "script"])
def test_ctrl_c_during_the_first_imports_ends_it_silently(tmp_path: Path, way: str) -> None:
    done = ended(tmp_path, "click", "--version", way=way)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_while_a_command_imports_its_program_is_a_word(tmp_path: Path) -> None:
    done = ended(tmp_path, "supervisor.config.settings", "verify")
    assert (done.returncode, done.stdout, done.stderr.split()) == (130, "", ["interrupted"])


def test_ctrl_c_that_a_shell_has_ignored_stays_ignored(tmp_path: Path) -> None:
    done = ended(tmp_path, "click", "--version", wrapper=IGNORING)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("nested", [False, True])
def test_ctrl_c_out_of_a_nursery_is_a_word(capsys: pytest.CaptureFixture[str], nested: bool) -> None:
    def interrupted() -> None:
        group = BaseExceptionGroup("", [KeyboardInterrupt()])
        raise BaseExceptionGroup("", [group]) if nested else group

    with pytest.raises(SystemExit) as caught:
        _CommandGroup(commands=[click.Command("work", callback=interrupted)]).main(["work"])
    assert (caught.value.code, capsys.readouterr().err) == (130, "interrupted\n")
