"""Preparation of a shell worker before it locks itself in: imports, and checks of its inputs.

Rule: the supervisor says where things are, in `Start.inputs`; here it is only read, and what would let a command
change the programs that commands are run with is left out.
"""

import os
import re
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from workers import kernel
from workers.confine import denylist
from workers.confine.command_policy import (
    FAMILIES,
    FAMILIES_OF_THE_NETWORK,
    MACHINE_DENIES,
    NETLINK_ALONE,
    NO_NETLINK,
    NO_NETWORK,
    NO_SOCKET_FILES,
    ON_THE_ROOT_ITSELF,
    SHELL,
    WITH_A_NETWORK,
)
from workers.confine.denylist import Deny, IsNot, Notify
from workers.confine.probe import ATTEMPTS, try_doors
from workers.confine.seccomp import ARCHITECTURES, packed
from workers.confine.steps import Enforced, Prepared
from workers.shell import command_proposal  # noqa: F401 - of the tools, imported before nothing can be imported any more
from workers.shell.command_line import SYSTEM_PATH
from workers.shell.command_runner import CommandRunner, Filter, Network
from workers.shell.copies.copy_locks import COPY_WORKER, in_copies
from workers.shell.look import TOLD
from workers.shell.run.attempts import ASKS_ITS_NUMBER, CONNECTS, notify_sockets
from workers.shell.run.command import NotStarted, try_locks
from workers.shell.run.directory_moves import NOTIFY
from workers.shell.sandbox import doors, held_sockets, machine_root, private_root
from workers.shell.sandbox.command_mounts import show_root_itself
from workers.shell.sandbox.lock_steps import COMMAND, PROXY, WORKER
from workers.shell.sandbox.quiet_variables import QUIET
from workers.shell.sandbox.secret_places import SecretPlaces
from workers.shell.shell_inputs import CERTIFICATES, HOME, ShellInputs, within
from workers.wire import messages

_ENVIRONMENT: Final = MappingProxyType(
    {
        "HOME": HOME,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",  # noqa: S108 - the private one
        "TERM": "dumb",
        "NO_COLOR": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",  # looking changes nothing
        "CARGO_HOME": f"{HOME}/.cargo",
        # There is no network, and trying again and again takes longer than a command may.
        "CARGO_NET_RETRY": "0",
        "npm_config_fetch_retries": "0",
        "pnpm_config_fetch_retries": "0",
        "npm_config_prefer_offline": "true",
        "PIP_RETRIES": "0",
        **QUIET,
    }
)
"""Of every command, besides the PATH; it is built from nothing."""


def prepared(start: messages.Start, inputs: ShellInputs) -> Prepared:
    """Read what was given, and import what will be needed.

    Raises:
        ValueError: something of it is missing or wrong, or the root cannot be used.
    """
    if kernel.MACHINE not in ARCHITECTURES:
        raise ValueError(f"there is no table of system calls for {kernel.MACHINE}")
    wanted = _layout(start, inputs)
    private_root.check(wanted)
    path = tuple(dict.fromkeys(_outside((*inputs.path, *SYSTEM_PATH), wanted.root)))
    trusted = wanted.authorities and not inputs.copies  # without a root of its own there is no such file
    trusting = dict.fromkeys(CERTIFICATES, private_root.AUTHORITIES) if trusted else {}
    given = {**inputs.registries.variables, **dict(inputs.environment)}
    engine = CommandRunner(
        start,
        SHELL,
        wanted,
        inputs.programs,
        path,
        {**_ENVIRONMENT, **trusting, **given, "PATH": ":".join(path)},
        inputs.timeout_s,
        inputs.max_timeout_s,
        COMMAND,
        Filter(_filter((*SHELL.denies, *ON_THE_ROOT_ITSELF))),
        show_root_itself,
        Filter(_filter(SHELL.denies), _filter((*_LOCKS, notify_sockets(FAMILIES), *NOTIFY))),
        Filter(b"", _filter((*_LOCKS, *ON_THE_ROOT_ITSELF, notify_sockets(FAMILIES), *TOLD))),
        _network(start, inputs),
        inputs.own,
        inputs.venv_problem,
        copy_mb=inputs.copy_mb,
        lacks_machine=inputs.machine and not wanted.machine,
    )
    keep = () if engine.network is None else (start.broker_fd,)  # a worker that closes it is taken for gone
    if inputs.localhost and not (inputs.copies or wanted.secrets):
        engine = _with_localhost(engine)
    if inputs.copies:
        engine = in_copies(engine, inputs.copies)
        return Prepared(engine, keep=keep, steps=COPY_WORKER, doors=lambda _opens: _try_doors(engine, _OPEN_IN_A_COPY))
    if wanted.secrets:
        looker = held_sockets.begin()
        keep = (*keep, looker, *wanted.secrets.descriptors)
        engine = _on_the_machine(msgspec.structs.replace(engine, layout=msgspec.structs.replace(wanted, looker=looker)))
    return Prepared(engine, keep=keep, steps=WORKER, doors=lambda opens: _try_doors(engine, opens))


def _layout(start: messages.Start, inputs: ShellInputs) -> private_root.Layout:
    """Return what a command shall see: of the machine, where the profile wants that and it can be had.

    Raises:
        ValueError: something of it cannot be read.
    """
    root = start.context.working_directory
    wanted = private_root.Layout(
        *(root, start.writable, _outside(inputs.toolchains, root), start.limits.processes, inputs.disk_mb),
        authorities=_authorities(inputs),
        identity=inputs.identity,
        home_files=inputs.registries.files,
        caches=tuple(each for each in inputs.registries.caches if os.path.isdir(each[1])),
    )
    if not inputs.machine or inputs.copies:
        return wanted
    needed = (os.path.realpath(HOME), root, *wanted.toolchains)
    secrets = SecretPlaces(inputs.hidden, root, needed)
    seen = msgspec.structs.replace(wanted, secrets=secrets, authorities=b"", caches=())
    return seen if machine_root.is_possible(seen, start.root_fd) else wanted


def _outside(places: Iterable[str], root: str) -> tuple[str, ...]:
    """Return those that do not lie in the root; where that is the whole machine, which is only looked at, all."""
    return tuple(each for each in places if root == "/" or not within(each, root))


def _on_the_machine(engine: CommandRunner) -> CommandRunner:
    """Return the engine for commands that see the machine, whose network nothing but the filter keeps them from."""
    alone = Deny("socket", (IsNot(0, NETLINK_ALONE),))
    plain = _filter((*MACHINE_DENIES, alone))
    tells: tuple[Deny | Notify, ...] = (
        *MACHINE_DENIES,
        NO_SOCKET_FILES,
        notify_sockets(NETLINK_ALONE),
        ASKS_ITS_NUMBER,
    )
    environment = {**engine.environment, "GIT_CONFIG_SYSTEM": machine_root.GIT_SETTINGS}
    filters = {"filter": Filter(plain, _filter(tells)), "overlay_filter": Filter(plain, _filter((*tells, *NOTIFY)))}
    filters["look_filter"] = Filter(b"", _filter((*tells, *TOLD)))
    return msgspec.structs.replace(engine, environment=environment, network=None, **filters)


def _with_localhost(engine: CommandRunner) -> CommandRunner:
    """Return the engine for commands that may listen and connect in their network namespace, where nothing else is.

    Only where the worker can be asked: it refuses, and counts, what is meant for elsewhere.
    """
    told = _filter((*_WITH_A_NETWORK, notify_sockets(FAMILIES_OF_THE_NETWORK), CONNECTS, *NOTIFY))
    return msgspec.structs.replace(
        engine, overlay_filter=engine.overlay_filter._replace(notifying=told), overlay_ports=None
    )


def _network(start: messages.Start, inputs: ShellInputs) -> Network | None:
    """Return what a command is given besides where the profile names hosts.

    Raises:
        ValueError: nobody makes connections.
    """
    if not inputs.network:
        return None
    if start.broker_fd < 0:
        raise ValueError("there is no broker to ask for connections")
    locks = (*_WITH_A_NETWORK, *(() if inputs.localhost else (NO_NETLINK,)))
    plain = _filter((*locks, Deny("socket", (IsNot(0, FAMILIES_OF_THE_NETWORK),))))
    told = _filter((*locks, notify_sockets(FAMILIES_OF_THE_NETWORK), *NOTIFY))
    return Network(inputs.network, Filter(plain, told), PROXY)


def _authorities(inputs: ShellInputs) -> bytes:
    """Return the certificates that are trusted in addition, behind the system's; nothing where none are needed.

    Of each file the certificates alone are taken: a key may stand beside them.

    Raises:
        ValueError: they cannot be read.
    """
    if not (inputs.ca_files or inputs.network):
        return b""
    system = next((each for each in _SYSTEMS_AUTHORITIES if os.path.exists(each)), None)
    try:
        texts = [_read(each) for each in (system, *inputs.ca_files) if each]
        return b"\n".join(dict.fromkeys(found for text in texts for found in _CERTIFICATE.findall(text))) + b"\n"
    except OSError as error:
        raise ValueError(f"the certificates in {error.filename!r} cannot be read: {error.strerror}") from error


def _read(file: str) -> bytes:
    with open(file, "rb") as opened:
        return opened.read(_LARGEST_CERTIFICATES)


_LARGEST_CERTIFICATES: Final = 2**23
_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]*-----END (?:TRUSTED )?CERTIFICATE-----"
)
_SYSTEMS_AUTHORITIES: Final = (
    *("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"),
    *("/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem"),
)


_BUT_SOCKETS: Final = tuple(row for row in SHELL.denies if row is not NO_NETWORK)
_WITH_A_NETWORK: Final = (*_BUT_SOCKETS, *WITH_A_NETWORK)
_LOCKS: Final = (*_BUT_SOCKETS, NO_NETLINK)


_OPEN_IN_A_COPY: Final = tuple(
    each for each in SHELL.opens if not each.endswith(" outside") or each.split()[0] in ("read", "watch")
)


def _filter(denies: tuple[Deny | Notify, ...]) -> bytes:
    return packed(denylist.assemble(denies, kernel.MACHINE))


def _try_doors(engine: CommandRunner, opens: Sequence[str]) -> Iterable[messages.Door]:
    """Try the doors as a command would."""

    def work(_held: Enforced) -> bytes:
        every = (*ATTEMPTS, *doors.ATTEMPTS)
        return msgspec.msgpack.encode(tuple(try_doors(opens, every, doors.REFUSALS)))

    try:
        return msgspec.msgpack.decode(try_locks(engine, work), type=tuple[messages.Door, ...])
    except NotStarted as error:
        return (messages.Door("run a command", shut=False, detail=f"it cannot be locked in: {error}"),)
