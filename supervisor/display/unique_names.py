"""Objects of JSON in which each name stands once: of two, a reader would keep one and never say so."""

from typing import Any, Final

_SHOWN: Final = 80
"""Characters of a name that an error repeats."""


class RepeatedName(ValueError):
    """A name stands twice in an object."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {name[:_SHOWN]!a} stands twice in one object: leave one of them out")


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; for `object_pairs_hook` of `json.loads`.

    Raises:
        RepeatedName: a name stands twice in it.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise RepeatedName(name)
        found[name] = value
    return found
