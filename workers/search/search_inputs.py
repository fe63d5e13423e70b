"""Inputs of the category `search`."""

from workers.wire.messages import Inputs


class SearchInputs(Inputs, frozen=True):
    """Values that a search worker needs besides the root."""

    ripgrep: str
    """The program's path."""
