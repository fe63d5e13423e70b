"""The context on a small root that the tests of file tools have, too."""

from tests.workers.files.conftest import context, root

__all__ = ["context", "root"]
