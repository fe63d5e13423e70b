"""The PID 1 and the tree that the tests of commits have, too."""

from tests.workers.commit.conftest import memory, rehearsing, template, tree

__all__ = ["memory", "rehearsing", "template", "tree"]
