"""The supervisor's half of the category `restore`, and `[undo]`: how much is kept for it."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from supervisor.categories.row import CategoryLimits, CategoryRow, Sections
from workers.restore.restore_inputs import RestoreInputs

SCRATCH: Final = "scratch"
"""Beside the packs: where large undos are made ready."""


class UndoConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much is kept of what calls replace, so that `strongroom undo` can restore it. A megabyte is 2**20 bytes."""

    each_mb: Annotated[
        int, Meta(ge=0, le=2**20, description="Megabytes of one file; the content of a larger one is not kept.")
    ] = 64
    call_mb: Annotated[int, Meta(ge=0, le=2**20, description="Megabytes of one call.")] = 512
    total_mb: Annotated[
        int,
        Meta(
            ge=0,
            le=2**30,
            description="Megabytes of all together: the oldest goes first. With 0 nothing is kept, and nothing can be "
            "undone.",
        ),
    ] = 2048
    days: Annotated[float, Meta(gt=0, le=36500, description="Days after which it goes in any case.")] = 30.0
    small_percent: Annotated[
        int,
        Meta(
            ge=0,
            le=90,
            description="Percent of total_mb for packs of at most 1 MB alone, as edits make them: nothing that a build "
            "replaces takes their room.",
        ),
    ] = 25


def _fit_limits(limits: CategoryLimits, sections: Sections) -> CategoryLimits:
    """An undo may write every file that is kept."""
    each_mb = sections.section(UndoConfig).each_mb
    return msgspec.structs.replace(limits, file_mb=max(limits.file_mb, each_mb))


ROW: Final = CategoryRow(
    "No change can be undone here.",
    section="undo",
    config=UndoConfig,
    limits=CategoryLimits(memory_mb=1024, file_mb=1024, call_s=180.0),
    fit_limits=_fit_limits,
    inputs=lambda _sections, locations, _traits: RestoreInputs(str(locations.packs), str(locations.packs / SCRATCH)),
    works_on_packs=True,
    stands_on="It needs the root, and the directory `kept` of the home, which must be this user's alone.",
    degraded="once taken over, it can change modes and times of files elsewhere",
)
