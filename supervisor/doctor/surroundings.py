"""Findings of `strongroom doctor`, and the one check that looks outside of this machine: the models' servers.

Rule: nothing is changed, and nothing is sent anywhere unless it was asked for.
"""

from typing import Literal

import msgspec

from supervisor.config.config_file import DEFAULT_MODEL
from supervisor.config.settings import Settings

Verdict = Literal["ok", "degraded", "missing"]


class Finding(msgspec.Struct, frozen=True):
    """One line of the table: what was looked at, how it is, what it means and what to do."""

    subject: str
    verdict: Verdict
    detail: str
    advice: str = ""


def model_servers(settings: Settings) -> list[Finding]:
    """Ask the server of each provider that has a key or a server of its own set, else the default model's."""
    from supervisor.agent.models.providers import provider_of, rows

    chosen = [row for row in rows() if settings.variable(row.key) or settings.variable(row.server)]
    default = provider_of(DEFAULT_MODEL)
    checked = chosen or ([default] if default is not None else [])
    return [Finding("model", *row.check(settings)) for row in checked if row.check is not None]
