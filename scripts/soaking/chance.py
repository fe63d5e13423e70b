"""Chance that can be repeated.

Rule: everything that is left to chance in a soak is drawn from here, and named by what it is for.
"""

import random


def chance_of(*names: object) -> random.Random:
    """Return the generator of this name, at its beginning: always the same."""
    return random.Random("/".join(map(str, names)))  # noqa: S311 - repeatable, not secret
