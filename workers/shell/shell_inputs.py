"""Inputs of the category `shell`: the time of one command, and what commands see of the system whatever these are."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from workers.errors import ToolError
from workers.wire.messages import Inputs

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
"""Directories of the system's programs and libraries."""

CERTIFICATES: Final = (
    *("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"),
    *("CARGO_HTTP_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE", "DENO_CERT", "npm_config_cafile"),
)
"""Variables that hold the file of the authorities that are trusted."""

HOME: Final = "/home/agent"
"""Of every command, fresh each time. No person's home is there."""

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


class RegistryHints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What package managers are told of mirrors."""

    variables: dict[str, str] = {}
    files: dict[str, str] = {}
    """Of a command's HOME: path there -> text."""
    caches: tuple[tuple[str, str], ...] = ()
    """Of package managers: the registry of each, and its directory."""


class ShellInputs(Inputs, frozen=True):
    """Values that a shell worker needs besides the root."""

    programs: tuple[str, ...]
    """Names that `exec_shell` runs."""
    toolchains: tuple[str, ...] = ()
    """Directories, files and links that commands see besides the system's."""
    path: tuple[str, ...] = ()
    """Directories in which programs are looked up, before the rest of the system's."""
    own: tuple[str, ...] = ()
    """Directories of the root's own programs, besides those that have them everywhere, relative to the root."""
    timeout_s: float = 30.0
    disk_mb: int = 1024
    network: tuple[str, ...] = ()
    """Hosts that a command may be allowed to reach, each "host:port"."""
    ca_files: tuple[str, ...] = ()
    """Files of certificates (PEM) that commands trust in addition."""
    copies: str = ""
    """Where each command gets a copy of the root, as there is no sandbox; empty where there is one."""
    copy_mb: int = 0
    """Megabytes of the largest root that is copied."""
    machine: bool = False
    """Whether commands see the machine, read-only, where the system lets them."""
    hidden: tuple[str, ...] = ()
    """Patterns of absolute paths that they do not see of it."""
    localhost: bool = False
    """Whether commands may listen, and reach each other, at addresses of this machine that nobody else has."""
    max_timeout_s: float = 600.0
    """Seconds that a command may ask for; it has `timeout_s` where it does not say."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables that commands are given besides their own."""
    identity: tuple[str, str] = ("", "")
    """Name and e-mail address that git writes into commits, where the root's own settings name none."""
    venv_problem: str = ""
    """Why the root's own virtual environment cannot work; empty where it can, or is none."""
    registries: RegistryHints = RegistryHints()


def within(path: str, directory: str) -> bool:
    """Say whether a path is a directory or lies beneath it; both are absolute and normal."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")
