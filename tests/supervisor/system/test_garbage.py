"""Nothing searches what is imported for garbage; everything else is searched as ever."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from supervisor.system import garbage

PROGRAM: Final = """
import gc
from supervisor.system.garbage import importing

searches = []
gc.callbacks.append(lambda phase, _: searches.append(phase))
before, found = gc.get_freeze_count(), len(searches)
with importing("a.library"):
    kept = [[] for _ in range(100_000)]
    during = len(searches) - found
assert gc.isenabled() and gc.get_freeze_count() - before >= 100_000, gc.get_freeze_count()
found = len(searches)
with importing("gc"):
    assert gc.isenabled()
rest = [[] for _ in range(1_000)]
assert (during, len(searches) > found) == (0, True), (during, searches)
"""


def test_a_large_import_is_not_searched_and_what_comes_after_it_is() -> None:
    root = Path(garbage.__file__).parents[2]
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, timeout=60, check=True)
