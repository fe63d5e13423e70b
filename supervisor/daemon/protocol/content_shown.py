"""Images and documents as clients are shown them.

Rule: no file is touched here, for all sessions wait: an image that is at hand goes along, others are named by where
they are kept. A client is this user's, and may look there.
"""

from supervisor.acp.schema import Content, Image, ResourceLink
from supervisor.display.escape import one_line
from supervisor.journal.contents import ContentStore
from supervisor.journal.kept_content import KeptContent
from workers.wire.media_types import DOCUMENT

_NAME = 200


def content_shown(content: KeptContent, store: ContentStore | None) -> Content:
    """Return an image with its data, if they are at hand, else where the content is kept."""
    uri = store.path(content.digest).as_uri() if store is not None else f"sha256:{content.digest}"
    data = store.at_hand(content.digest) if store is not None and content.media_type != DOCUMENT else None
    if data is not None:
        return Content(content=Image(data=data, mime_type=content.media_type, uri=uri))
    name = one_line(content.name, _NAME) or content.digest
    return Content(content=ResourceLink(uri=uri, name=name, mime_type=content.media_type, size=content.size))
