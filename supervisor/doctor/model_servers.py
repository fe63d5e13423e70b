"""The one check that looks outside of this machine: the models' servers.

Rule: nothing is sent anywhere unless it was asked for.
"""

from supervisor.config.config_file import DEFAULT_MODEL
from supervisor.config.settings import Settings
from supervisor.doctor.check_result import CheckResult


def check_models(settings: Settings) -> list[CheckResult]:
    """Ask the server of each provider that has a key or a server of its own set, else the default model's."""
    from supervisor.agent.models.providers import provider_of, rows

    chosen = [row for row in rows() if settings.variable(row.key) or settings.variable(row.server)]
    default = provider_of(DEFAULT_MODEL)
    checked = chosen or ([default] if default is not None else [])
    return [CheckResult("model", *row.check(settings)) for row in checked if row.check is not None]
