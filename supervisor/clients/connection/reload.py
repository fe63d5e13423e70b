"""`strongroom daemon --reload`: let the daemon of this home read its configuration again, and say what came of it."""

from supervisor.acp import extensions, schema
from supervisor.clients.connection.link_events import decline
from supervisor.clients.connection.start import connect_running
from supervisor.config.profiles import check_profiles
from supervisor.config.settings import load
from supervisor.errors import ConfigError


def reload() -> str:
    """Return what to tell.

    Raises:
        ConfigError: the configuration has a mistake, and what was read before stays in force.
        DaemonLost: the daemon does not answer.
    """
    connected = connect_running(load(read=False), decline, "daemon --reload")
    if connected is None:
        settings = load()
        check_profiles(settings)
        return f"no daemon runs; the next one reads {settings.config_file}, in which there is no mistake"
    with connected:
        found = connected.link.request(extensions.RELOAD_METHOD, schema.Object(), extensions.ReloadResult)
        assert connected.link.daemon is not None
        who = f"the daemon (pid {connected.link.daemon.pid})"
    if found.problem:
        raise ConfigError(f"{found.problem} What {who} has read before stays in force.")
    return f"{who} has read {found.file} again; it counts for sessions that are opened from now on"
