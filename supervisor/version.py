"""The version of this code.

Rule: this is the only place that says so; the package's metadata takes it from here (`pyproject.toml`). A process thus
tells the version of the code that it runs, whatever was installed since it started.
"""

from typing import Final

VERSION: Final = "0.1.0"
