"""An image or a document as facts name it. Data.

Rule: fields are only ever added, with a default, as those of facts.
"""

import msgspec


class KeptContent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An image or a document that the model is shown; its bytes lie beside the journal, under their digest."""

    digest: str
    """SHA-256 of the bytes, hexadecimal."""
    media_type: str
    size: int
    """Bytes."""
    name: str = ""
    """Of the file that it was made of, for people."""
    width: int = 0
    height: int = 0
    """Pixels of an image."""
    pages: int = 0
    """Of a document."""
    note: str = ""
    """What is not as it was in the file, a clause."""
    text: str = ""
    """The digest of a document's text, for models that take none; "" where it has none."""
