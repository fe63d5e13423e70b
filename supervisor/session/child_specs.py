"""Child specs: what is started for a category in sessions of a profile.

Rule: all of it comes from the settings and the profile; what only a running supervisor has (faults, cgroups, the cap)
is added by who starts workers.
"""

import socket
from collections.abc import Awaitable, Callable

import msgspec

from supervisor.broker.allowlist import NetworkAllowlist
from supervisor.broker.broker import Broker
from supervisor.categories.rows import ROWS
from supervisor.categories.shell import ShellConfig
from supervisor.categories.web import HostPort, WebConfig, host_port
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.pool.spec import ChildSpec
from supervisor.tools.catalog import SANDBOXED, category_tools
from workers.catalog import CATEGORIES
from workers.wire.messages import Limits


def child_spec(settings: Settings, profile: Profile, category: str, broker: Broker | None = None) -> ChildSpec:
    """Return what to start for a category in sessions of `profile`; `broker` (default: its own) makes connections."""
    limits = settings.limits(category)
    return ChildSpec(
        category,
        profile.context(),
        profile.writable,
        category_tools(category),
        Limits(**{name: getattr(limits, name) for name in Limits.__struct_fields__}),
        allow_degraded=settings.config.allow_degraded,
        workers=limits.workers,
        call_timeout=limits.call_s,
        soft_memory_mb=limits.soft_memory_mb,
        disk_mb=settings.config.section(ShellConfig).disk_mb if category in SANDBOXED else 0,
        inputs=settings.inputs(category, profile.traits),
        stands_on=str(settings.packs) if ROWS[category].works_on_packs else "",
        broker=_connections(settings, profile, category, broker),
    )


def _connections(
    settings: Settings, profile: Profile, category: str, broker: Broker | None
) -> Callable[[socket.socket, Callable[[], int]], Awaitable[None]] | None:
    """Return what makes the connections of a category, None where it has none to ask for."""
    if CATEGORIES[category].brokered:
        web, less = settings.config.section(WebConfig), profile.narrowing
        if less is not None and less.web is not None:
            return Broker(msgspec.structs.replace(web, allow=less.web)).serve
        return (broker or Broker(web)).serve
    if CATEGORIES[category].networked and profile.network:
        mirrors = [place for each in profile.registries for place in each.named]
        named = [HostPort(host, int(port)) for host, _, port in (each.rpartition(":") for each in mirrors)]
        hosts = [host_port(each) for each in profile.network if each not in mirrors]
        places = NetworkAllowlist(profile.name, hosts, named)
        return Broker(settings.config.section(WebConfig), places=places).serve
    return None
