"""Files and directories of this user alone: made if need be, and opened safely.

Rule: what belongs to somebody else, or may be written by others, is refused by name.
"""

import errno
import os
import stat
from pathlib import Path

from supervisor.errors import ConfigError
from supervisor.system.plain_file import NO_LINK


def secure_home(home: Path) -> None:
    """Make the home directory if need be, for its owner alone.

    Raises:
        ConfigError: others may write there, it is not ours, or it cannot be made.
    """
    if own_directory(home, "Set STRONGROOM_HOME to a directory of your own.") & 0o077:
        home.chmod(0o700)


def own_directory(directory: Path, advice: str) -> int:
    """Make a directory if need be, for its owner alone, and what is missing above it too; return its mode.

    Args:
        directory: One that is there already stays as it is.
        advice: What to do about a directory of another user.

    Raises:
        ConfigError: others may write there, it is not ours, or it cannot be made.
    """
    try:
        for each in (*reversed(directory.parents), directory):
            if not each.exists():
                each.mkdir(mode=0o700, exist_ok=True)
        status = directory.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise ConfigError(f"The directory {directory} cannot be used: {error.strerror}.") from error
    linked = directory.is_symlink()
    told = f"{directory} is a link to {directory.resolve()}, which" if linked else f"{directory}"
    if status.st_uid != os.geteuid():
        raise ConfigError(f"{told} belongs to another user. {advice}")
    if stat.S_IMODE(status.st_mode) & 0o022:
        mended = f"let {directory} lead to a directory of your own" if linked else f"chmod 700 {directory}"
        raise ConfigError(f"{told} can be written by others (insecure permissions): {mended}")
    return stat.S_IMODE(status.st_mode)


def own_file(path: Path, flags: int) -> int:
    """Open a file of ours, made if need be, with mode 0600 whatever the umask; return its descriptor.

    Raises:
        ConfigError: it is a link, no regular file or another user's, or it cannot be opened.
    """
    try:
        descriptor = os.open(path, flags | os.O_CREAT | NO_LINK, 0o600)
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise ConfigError(f"{path} cannot be opened: {reason}.") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)
        raise ConfigError(f"{path} is not a regular file of this user. Move it away.")
    os.fchmod(descriptor, 0o600)
    return descriptor
