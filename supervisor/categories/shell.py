"""The supervisor's half of the category `shell`, and `[shell]`: what commands are run with.

Rule: what commands have of a person's programs is found by `surroundings`; here it is asked for, and handed to workers.
"""

import glob
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from supervisor.categories.command_environment import check_variables
from supervisor.categories.registries import told
from supervisor.categories.row import CategoryLimits, CategoryRow, Locations, ProfileTraits, Sections, TrialCall
from supervisor.categories.shown_places import HiddenPlaces, NotShown
from supervisor.categories.surroundings import Survey, survey
from supervisor.categories.toolchains import KNOWN, PATH, Toolchains, refuse_named
from supervisor.categories.web import ca_file
from supervisor.errors import ConfigError
from supervisor.system.package_caches import PackageCaches
from workers.shell.shell_inputs import ENDS_S, RegistryHints, ShellInputs

COPIES: Final = "copies"
"""In the home: where commands run where there is no sandbox."""


class ShellConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Programs that `exec_shell` may run, how long a command may take, and what it sees besides the system."""

    programs: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[^/\x00-\x20\x7f]+\Z", max_length=255)], ...],
        Meta(
            description="Programs that `exec_shell` runs, by exact name. What they start is held by the sandbox, not "
            "by this list."
        ),
    ] = (
        *("git", "cargo", "npm", "yarn", "pnpm", "node", "bun"),
        *("ls", "find", "grep", "mkdir", "rm", "mv", "cp", "touch"),
    )
    timeout_s: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Seconds after which a command is killed with everything that it started. Its memory, "
            "processes and file sizes are limited by [limits.shell].",
        ),
    ] = 30.0
    toolchains: Annotated[
        tuple[str, ...],
        Meta(
            description='Directories with programs outside of the system\'s, shown to be read and run. "path" stands '
            "for what the PATH of whoever opens a session finds, with the install prefixes of these programs; "
            '"known" for what installers and version managers have left in the home, and for /opt.'
        ),
    ] = (PATH, KNOWN)
    disk_mb: Annotated[
        int,
        Meta(
            ge=1,
            le=2**20,
            description="Megabytes that one command may write to its own HOME and /tmp, which go with it; and as much "
            "again of changes in the root until they are committed or discarded.",
        ),
    ] = 1024
    copy_mb: Annotated[
        int,
        Meta(
            ge=0,
            le=2**20,
            description="Megabytes of the largest root that is copied for each command where it cannot be shown below "
            "an overlay: where there are no user namespaces, or its file system cannot. Of a larger one, what git "
            "ignores is left out. With 0 nothing is copied, and without user namespaces no command runs.",
        ),
    ] = 2048
    cache_mb: Annotated[
        int,
        Meta(
            ge=0,
            le=2**20,
            description="Megabytes of packages that approved installs have fetched and later commands are shown, so "
            "that another install needs no network; the oldest go first, and 0 keeps none.",
        ),
    ] = 2048
    escalation: Annotated[
        bool | Literal["machine"],
        Meta(
            description="Offer the person who is asked about a command to let it run on the real system, this once: as "
            'themselves, with all that they may do, and without undo. "machine": where commands see the machine, so in '
            "`operator`."
        ),
    ] = "machine"
    hidden: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^/[^\x00]+\Z")], ...],
        Meta(
            description="Files and directories that commands which see the machine do not see, as absolute paths in "
            'which * stands for any name, such as "/etc/app/*.key", besides those that SECURITY.md lists.'
        ),
    ] = ()
    max_timeout_s: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="The most seconds that a call may ask for, with its argument `timeout_s`; at least those of "
            "`timeout_s` here.",
        ),
    ] = 600.0
    env: Annotated[
        dict[str, str],
        Meta(
            description="Variables that every command is given. Those by which programs load code may only name "
            "paths in the root."
        ),
    ] = {}


def _check(sections: Sections, locations: Locations) -> None:
    """Refuse toolchains that no command may be shown, and variables that none may be given.

    Raises:
        ConfigError: a toolchain is no directory, or holds a home or the journal; a variable would load code.
    """
    section = sections.section(ShellConfig)
    check_variables(section.env, f"{locations.config_file}: `env` of [shell]")
    for each in section.toolchains:
        if each in (PATH, KNOWN):
            continue
        where = f"{locations.config_file}: the toolchain {each!r} of [shell]"
        expanded = os.path.expanduser(each)
        if not os.path.isabs(expanded) or not os.path.isdir(expanded):
            raise ConfigError(f"{where} is not the absolute path of a directory.")
        try:
            refuse_named(os.path.realpath(expanded), kept_from_commands(locations))
        except NotShown as error:
            raise ConfigError(f"{where}: {error}. Name the directory of the programs themselves.") from error


def kept_from_commands(locations: Locations, root: str = "") -> HiddenPlaces:
    """Return what no command in a root may see, besides what says so itself."""
    own = (os.path.realpath(each) for each in (locations.home, locations.config_file.parent))
    return HiddenPlaces(os.path.realpath(os.path.expanduser("~")), tuple(own), root)


def survey_programs(
    sections: Sections,
    locations: Locations,
    root: str,
    person: Mapping[str, str],
    tell: Callable[[str, Toolchains], None] = lambda _place, _found: None,
) -> Survey:
    """Return what commands in a root have of a person, of whose environment `person` is a part.

    Raises:
        ConfigError: a variable of `env` may not be given in this root.
    """
    shell = sections.section(ShellConfig)
    kept = kept_from_commands(locations, "" if root == "/" else root)  # of the whole machine, nothing can be changed
    return survey(shell.toolchains, shell.env, kept, person, f"{locations.config_file}: `env` of [shell]", tell)


def _fit_limits(limits: CategoryLimits, sections: Sections) -> CategoryLimits:
    """A call always has the time that a command has."""
    call_s = sections.section(ShellConfig).timeout_s + ENDS_S
    return msgspec.structs.replace(limits, call_s=max(limits.call_s, call_s))


def package_caches(sections: Sections, home: Path) -> PackageCaches:
    """Return the caches of package managers."""
    return PackageCaches(home / "caches", sections.section(ShellConfig).cache_mb * 2**20)


def _inputs(sections: Sections, locations: Locations, traits: ProfileTraits) -> ShellInputs:
    section = sections.section(ShellConfig)
    has = traits.surroundings or survey_programs(sections, locations, "", {}).surroundings
    named = ca_file(sections, locations)
    own = tuple(map(glob.escape, (str(locations.home), str(locations.config_file.parent)))) if traits.machine else ()
    most = max(section.timeout_s, section.max_timeout_s)
    caches = package_caches(sections, locations.home).places((each.name, each.url) for each in traits.registries)
    return ShellInputs(
        section.programs,
        has.shown,
        has.path,
        has.own,
        section.timeout_s,
        section.disk_mb,
        traits.network,
        ca_files=(named, *has.ca_files) if named else has.ca_files,
        environment=has.environment,
        identity=has.identity,
        venv_problem=has.venv_problem,
        copies=str(locations.home / COPIES) if traits.copies else "",
        copy_mb=section.copy_mb,
        max_timeout_s=most,
        registries=RegistryHints(*told(traits.registries), caches),
        machine=traits.machine,
        hidden=(*section.hidden, *own) if traits.machine else (),
        localhost=traits.localhost,
    )


ROW: Final = CategoryRow(
    "Commands do not run here: each needs a sandbox, made of user namespaces and mounts in them.",
    section="shell",
    config=ShellConfig,
    check=_check,
    limits=CategoryLimits(memory_mb=2048, cpu_s=36_000, processes=384, open_files=1024, file_mb=1024),
    fit_limits=_fit_limits,
    inputs=_inputs,
    trial=TrialCall("run_cmd", b'{"command": "echo rehearsed > made"}', makes="made"),
)
