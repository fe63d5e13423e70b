"""The text of a systemd user unit that runs the daemon.

Rule: whatever stands in a path, systemd reads back the same path: quoting as in systemd.syntax(7), specifiers doubled
(systemd.unit(5)). A worker that dies, also of memory, is the daemon's affair and never ends the service.
"""

import math
import re
from pathlib import Path
from typing import Final

from supervisor.config.settings import Settings
from supervisor.display.escape import visible
from supervisor.errors import ConfigError

_STOP_MARGIN_S: Final = 15
"""Seconds beyond `drain_s` that closing workers and models may take."""

_UNIT: Final = """\
# Strongroom as a service of the user. To install it:
#   mkdir -p ~/.config/systemd/user
#   strongroom daemon --print-unit > ~/.config/systemd/user/strongroom.service
#   systemctl --user daemon-reload
#   systemctl --user enable --now strongroom
# What it logs: journalctl --user -u strongroom
# Settings are read again by: systemctl --user reload strongroom

[Unit]
Description=Strongroom, a local agent daemon

[Service]
Type=notify
ExecStart={executable} daemon
ExecReload=kill -HUP $MAINPID
{environment}# The key, for example, as a line ANTHROPIC_API_KEY=... in this file, with mode 0600:
EnvironmentFile=-{environment_file}
WatchdogSec=30
Restart=on-failure
RestartSec=1
# 2: the configuration is wrong; trying again does not help.
RestartPreventExitStatus=2
# SIGTERM goes to the daemon alone, which lets running turns end and stops its workers.
KillMode=mixed
TimeoutStopSec={stop_s}
# Each worker gets a cgroup of its own below this service's, which limits its memory and its processes.
Delegate=memory pids
# A worker that the kernel kills for its memory is replaced; the service goes on.
OOMPolicy=continue
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""


def unit(settings: Settings, executable: str) -> str:
    """Return the unit's text.

    Args:
        settings: For the places that the environment chose, which the unit repeats, and for `drain_s`.
        executable: The path of the command `strongroom`.

    Raises:
        ConfigError: a path holds characters that systemd does not take, such as a line end.
    """
    program = str(Path(executable).absolute())
    if not set(program).isdisjoint("\\\"'"):
        raise ConfigError(f"systemd starts no program at {program!r}: it takes no quotes and backslashes there.")
    environment = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in settings.home_variables)
    return _UNIT.format(
        executable=_quoted(program),
        environment=environment,
        environment_file=re.sub(r"([*?[\\])", r"\\\1", _literal(str(settings.config_file.with_name("environment")))),
        stop_s=math.ceil(settings.config.daemon.drain_s) + _STOP_MARGIN_S,
    )


def _quoted(text: str) -> str:
    return '"' + _literal(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _literal(text: str) -> str:
    """Return text for a setting that is taken as it stands, but for specifiers."""
    if visible(text) != text or not set(text).isdisjoint("\n\t"):
        raise ConfigError(f"A systemd unit cannot name {visible(text)!r}: it holds control characters.")
    return text.replace("%", "%%")
