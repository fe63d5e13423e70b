"""The budget of what may leave a session unasked, as it is configured."""

from supervisor.broker.allowlist import Allowlist
from supervisor.categories.web import HostPort, WebConfig
from supervisor.tools.exfiltration.flow_ledger import FlowBudget


def flow_budget(web: WebConfig) -> FlowBudget:
    """Return what may leave a session unasked for the sites of `web`."""
    allowed = Allowlist(web.allow, web.ports)
    origins = tuple(f"https://{host}/" for host in web.allow if "*" not in host)
    return FlowBudget(
        web.unasked_bits, web.unasked_addresses, origins, lambda url: not allowed.why_not(HostPort(url.host, url.port))
    )
