"""Inputs of the category `shell`."""

from workers.wire.messages import Inputs


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
