"""Inputs of the category `shell`, and the time of one command."""

from typing import Annotated, Final

from msgspec import Meta

from workers.errors import ToolError
from workers.wire.messages import Inputs

ENDS_S: Final = 5.0
"""Seconds that a call has, after its command's time is up, for ending it and for what it changed."""

TimeLimit = Annotated[
    float,
    Meta(
        gt=0,
        description="Seconds that it may take, for what takes long: a build, a test suite, an install. 30 where it is "
        "left out, 600 at most, unless the operator says otherwise.",
    ),
]
"""Type of an argument."""


def granted_s(wanted: float | None, usual: float, most: float) -> float:
    """Return the seconds that a command gets.

    Raises:
        ToolError: `invalid_arguments`, it wants more than there is.
    """
    if wanted is not None and wanted > most:
        raise ToolError(
            "invalid_arguments",
            f"timeout_s is {wanted:g}, and a command may take {most:g} s at most (max_timeout_s of [shell]). Nothing "
            f"was run. Send {most:g} or less, and split what takes longer.",
        )
    return usual if wanted is None else wanted


class ShellInputs(Inputs, frozen=True):
    """Values that a shell worker needs besides the root."""

    programs: tuple[str, ...]
    """Names that `exec_shell` runs."""
    toolchains: tuple[str, ...] = ()
    """Directories that commands see besides the system's."""
    path: tuple[str, ...] = ()
    """Those of them in which programs are looked up."""
    timeout_s: float = 30.0
    disk_mb: int = 1024
    network: tuple[str, ...] = ()
    """Hosts that a command may be allowed to reach, each "host:port"."""
    ca_file: str = ""
    """A file of certificates (PEM) that commands trust in addition."""
    max_timeout_s: float = 600.0
    """Seconds that a command may ask for; it has `timeout_s` where it does not say."""
