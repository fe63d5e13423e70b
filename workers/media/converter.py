"""The converter: checks content and makes of it what a model can be shown, or declines it with a reason.

Rule: whatever the libraries do with what they were not made for, it is an answer: they raise anything, take for ever
and all memory. The alarm rings before the supervisor's patience ends.
"""

from typing import Final

from workers.errors import ToolError
from workers.libraries.alarm import TooSlow, within
from workers.media.documents import examined
from workers.media.images import converted
from workers.tool import ContentResult
from workers.wire.media_types import DOCUMENT, MEDIA_LIMIT, NAMES, type_of

_PART_OF_CALL: Final = 0.8
"""Of a call's time, for the work: an answer is better than being ended by the supervisor."""
_LEAST_S: Final = 0.05


class MediaConverter:
    """The engine of the category.

    Args:
        call_s: seconds that a call may take.
    """

    def __init__(self, call_s: float) -> None:
        self._seconds = call_s * _PART_OF_CALL

    def convert(self, content: bytes, claimed: str, edge: int, queued_s: float) -> ContentResult:
        """Return an image that can be shown, or a document's text, each with its measures.

        Args:
            content: of the file.
            claimed: its media type, by whoever sent it.
            edge: pixels of an image's longer side, at most.
            queued_s: seconds of the call that have gone by.

        Raises:
            ToolError: `not_text`, it is not what it claims, damaged or encrypted; `too_large`; `timeout`;
                `resource_limit`, it takes more memory than this worker has.
        """
        if len(content) > MEDIA_LIMIT:
            raise ToolError("too_large", f"It has {len(content)} bytes; at most {MEDIA_LIMIT} are taken.")
        found = type_of(content)
        if found != claimed:
            what = f"a {NAMES[found]}" if found else "something else"
            raise ToolError("not_text", f"It claims to be a {NAMES[claimed]}, and its content is {what}.")
        seconds = max(self._seconds - queued_s, _LEAST_S)
        try:
            if claimed == DOCUMENT:
                return examined(content, seconds)
            return within(seconds, lambda: converted(content, claimed, edge))
        except ToolError:
            raise
        except MemoryError as error:
            message = f"This {NAMES[claimed]} takes too much memory to decode. Use a smaller or simpler one."
            raise ToolError("resource_limit", message) from error
        except TooSlow as error:
            raise ToolError("timeout", f"This {NAMES[claimed]} takes too long to decode. Use a simpler one.") from error
        except Exception as error:  # a library's, about bytes that it was not made for: the bytes are to blame
            raise ToolError("not_text", f"This {NAMES[claimed]} is damaged: it cannot be decoded.") from error
