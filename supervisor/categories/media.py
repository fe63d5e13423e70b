"""The supervisor's half of the category `media`, and `[media]`: how much of what models were shown is kept."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from supervisor.categories.row import CategoryLimits, CategoryRow, Library

_WITHOUT: Final = "no image and no PDF is read"


class MediaConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much is kept of images and documents that models were shown. A megabyte is 2**20 bytes."""

    total_mb: Annotated[
        int,
        Meta(ge=0, le=2**20, description="Megabytes of all together: what was not looked at for longest goes first."),
    ] = 1024


ROW: Final = CategoryRow(
    "No image and no PDF is read here.",
    section="media",
    config=MediaConfig,
    limits=CategoryLimits(memory_mb=256, file_mb=1, open_files=16, call_s=5.0, workers=2, soft_memory_mb=128),
    libraries=(Library("pillow", ("PIL",), _WITHOUT), Library("pypdf", ("pypdf",), _WITHOUT)),
    stands_on="It needs Pillow and pypdf: pip install --force-reinstall pillow pypdf",
)
