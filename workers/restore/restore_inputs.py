"""Inputs of the category `restore`."""

from workers.wire.messages import Inputs


class RestoreInputs(Inputs, frozen=True):
    """Values that a restore worker needs besides the root."""

    packs: str
    """The directory of undo packs."""
    scratch: str
    """The directory for a layer that is being restored."""
