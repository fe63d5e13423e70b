"""Imports that fail on purpose: what a library imports where it is installed, and nobody uses here."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(names: tuple[str, ...]) -> Iterator[None]:
    """Let imports of `names` fail for a while; what is there already stays."""
    absent = [name for name in names if name not in sys.modules]
    vars(sys)["modules"].update(dict.fromkeys(absent))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name in absent:
            del sys.modules[name]
