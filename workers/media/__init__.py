"""The category `media`: it decodes images and documents that strangers may have made, for models to be shown.

Rule: bytes come with the call, and bytes go with the answer; there is no root, no file and no network. No model is
offered its tool: the supervisor calls it for what a person or a model has named. Pillow and pypdf are imported where
the category is prepared, and nowhere else.

    convert_media -> converter -> images      decoded, turned upright, scaled down, encoded anew
                               -> documents   checked, its pages counted, its text
"""

from typing import TYPE_CHECKING, Final

from workers.media.convert_media import convert_media
from workers.tool import Tool
from workers.wire import messages

if TYPE_CHECKING:
    from workers.confine.steps import Prepared

TOOLS: Final[tuple[Tool, ...]] = (convert_media,)


def prepare(start: messages.Start, _inputs: messages.Inputs) -> "Prepared":
    """Import the libraries, and all that they would import later.

    Raises:
        OSError: one of them is not there, or does not work.
    """
    from workers.media.prepare import prepare as made_ready

    return made_ready(start.call_s)
