"""Services that approving and undoing changes needs; one set per process.

Rule: none of it lies in a root; no tool, no model and no file of a root can change it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from supervisor.categories.web import WebConfig
from supervisor.journal.agent_files import AgentFiles
from supervisor.journal.contents import ContentStore
from supervisor.rules.rule import Rule
from supervisor.rules.store import RuleStore
from supervisor.system.descendants import Orphans
from supervisor.system.package_caches import PackageCaches
from supervisor.tools.call_policy import COMMANDS
from supervisor.undo.packs import PackStore
from workers.shell.shell_inputs import ENDS_S


class _Timed(msgspec.Struct):
    """What of a command's arguments says how long it may take."""

    timeout_s: float | None = None


@dataclass(frozen=True)
class ChangeServices:
    """What there is; the default is nothing: all changes are asked about, and none can be undone."""

    rules: Sequence[Rule] = ()
    """The operator's."""
    rule_store: RuleStore | None = None
    """Those that people made for always."""
    packs: PackStore | None = None
    """Where the old content of what changes goes."""
    escalation: bool | Literal["machine"] = "machine"
    """Whether a person may let one command run unconfined; "machine": where commands see the machine."""
    timeout_s: float = 30.0
    """Seconds that a command has."""
    max_timeout_s: float = 600.0
    """Those that its call may ask for."""
    login: Mapping[str, str] = field(default_factory=dict)
    """What of the person's environment it is given."""
    orphans: Orphans | None = None
    """Of this process."""
    web: WebConfig = field(default_factory=WebConfig)
    """The sites that may be reached, and what may go there unasked."""
    programs: Sequence[str] | None = None
    """Those that `exec_shell` may start; None where nobody asks about others."""
    caches: PackageCaches | None = None
    """What approved installs have fetched."""
    agent_files: AgentFiles | None = None
    """The files that agents wrote, in any session."""
    contents: ContentStore | None = None
    """Where images and documents go that models are shown."""
    own_instructions: Path | None = None
    """The directory of the person's own AGENTS.md."""
    journal: Path = Path()
    """What sessions have recorded."""

    def call_s(self, tool: str, arguments: bytes, *, installs: bool = False) -> float | None:
        """Return the seconds that a command's call may take where it asks for more than the usual; None where not.

        An approved install asks for the most where it does not say.
        """
        try:
            wanted = msgspec.json.decode(arguments, type=_Timed).timeout_s
        except (msgspec.DecodeError, UnicodeError, RecursionError):  # its worker says what is wrong
            return None
        wanted = self.max_timeout_s if wanted is None and installs else wanted
        if tool not in COMMANDS or wanted is None or wanted <= self.timeout_s:
            return None
        return min(wanted, self.max_timeout_s) + ENDS_S
