"""Files of another program among Strongroom's own.

Rule: `supervisor`, the process manager of that name, has a package of the same name. Where pip installs both into one
environment, their files merge without a word, and whichever is updated or removed takes files of the other along.
"""

from pathlib import Path
from typing import Final

ADVICE: Final = (
    "Install Strongroom into an environment of its own, for example by `pipx install .` where its source is."
)
"""What to do about them."""

_THEIRS: Final = "supervisord.py"
"""The process manager's main module."""


def foreign_files(package: str = str(Path(__file__).parents[1])) -> str:
    """Say, in a sentence, that the process manager lies in our package's directory; empty where it does not."""
    if not Path(package, _THEIRS).exists():
        return ""
    return (
        f"The process manager `supervisor` is installed into the directory of Strongroom ({package}): an update or "
        "removal of either breaks the other."
    )
