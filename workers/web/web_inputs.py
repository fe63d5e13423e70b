"""Inputs of the category `web`."""

from workers.wire.messages import Inputs


class WebInputs(Inputs, frozen=True):
    """Values that a web worker needs besides the root."""

    fetch_s: float = 20.0
    """Seconds that one fetch may take."""
    http: bool = False
    """Plain http:// is allowed too."""
    ca_file: str = ""
    """A file of certificates (PEM) that are trusted in addition."""
